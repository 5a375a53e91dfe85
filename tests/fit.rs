//! `compile`, `fit`, `evaluate` and `predict`: numbers against a loop by hand and against Keras, what data may be, what a
//! step costs.
#![allow(clippy::unwrap_used)]

use ndarray::{Array1, Array2, ArrayD};
use wgrad as tf;
use wgrad::data::drawn_digits::draw_digits;
use wgrad::data::{Batch, Dataset, IntoModelData, ModelData};
use wgrad::keras::callbacks::{Callback, EpochLogs, LambdaCallback, Run};
use wgrad::keras::layers::{Dense, Dropout, Flatten};
use wgrad::keras::losses::{MeanSquaredError, SparseCategoricalCrossentropy};
use wgrad::keras::metrics::{Metric, SparseCategoricalAccuracy};
use wgrad::keras::optimizers::{Adam, Optimizer, Sgd};
use wgrad::keras::{
    Activation, CompileOptions, Context, EvaluateOptions, FitOptions, History, INFERENCE,
    Initializer, Layer, Logs, Loss, Losses, Model, PredictOptions, Sequential, StepLogs,
    StopSignal, TRAINING, Trainer,
};
use wgrad::{Device, GradientTape, Result, Tensor, Trackable};

fn near(got: f64, want: f64, what: &str) {
    assert!((got - want).abs() <= 1e-5 * want.abs().max(1e-3), "{what}: {got} is not {want}");
}

fn all_near(got: &[f64], want: &[f64], what: &str) {
    assert_eq!(got.len(), want.len(), "{what}: {got:?} and {want:?}");
    got.iter().zip(want).for_each(|(got, want)| near(*got, *want, what));
}

/// Tests draw from the one global generator, so only one runs at a time.
fn alone() -> std::sync::MutexGuard<'static, ()> {
    static ALONE: std::sync::Mutex<()> = std::sync::Mutex::new(());
    ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Numbers without pattern between -1 and 1.
fn noise(count: usize, seed: u64) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    };
    (0..count).map(|_| next()).collect()
}

fn data(rows: usize) -> (Array2<f32>, Array1<i32>) {
    let x = Array2::from_shape_vec((rows, 6), noise(rows * 6, 1)).unwrap();
    let y =
        x.rows().into_iter().map(|row| i32::from(row[0] + row[1] > 0.0) + i32::from(row[2] > 0.5));
    let y = y.collect();
    (x, y)
}

/// A network whose weights are the same each time.
fn network() -> Sequential {
    tf::random::set_seed(3);
    Sequential::new().add(Dense::new(8).activation(Activation::Tanh)).add(Dense::new(3))
}

fn loss() -> SparseCategoricalCrossentropy {
    SparseCategoricalCrossentropy::new().from_logits(true)
}

fn accuracy() -> SparseCategoricalAccuracy {
    SparseCategoricalAccuracy::new("accuracy")
}

/// What a loop by hand makes of the same data.
fn by_hand(
    model: &Sequential,
    x: &Array2<f32>,
    y: &Array1<i32>,
    size: usize,
    epochs: usize,
) -> Vec<[f64; 2]> {
    let adam = Adam::new(0.01);
    let (x, y) = (Tensor::from_array(x).unwrap(), Tensor::from_array(y).unwrap());
    model.build([1, 6]).unwrap();
    let mut history = Vec::new();
    for _ in 0..epochs {
        let order = tf::random::global().permutation(x.shape()[0]).unwrap();
        let (metric, mut sum) = (accuracy(), 0.0);
        for places in order.chunks(size) {
            let places: Vec<i32> = places.iter().map(|&place| place as i32).collect();
            let places = Tensor::from_slice(&places, [places.len()]).unwrap();
            let (x, y) = (x.gather(&places, 0).unwrap(), y.gather(&places, 0).unwrap());
            let tape = GradientTape::new();
            let logits = model.call(&x, TRAINING).unwrap();
            let value = loss().call(&y, &logits).unwrap();
            metric.update_state(&y, &logits).unwrap();
            adam.minimize(&value, tape, model).unwrap();
            sum += f64::from(value.item::<f32>().unwrap()) * places.len() as f64;
        }
        let right: f32 = metric.result().unwrap().item().unwrap();
        history.push([sum / x.shape()[0] as f64, f64::from(right)]);
    }
    history
}

fn series(history: &History, name: &str) -> Vec<f64> {
    history.get(name).unwrap_or_else(|| panic!("no {name} in {history:?}")).to_vec()
}

#[test]
fn fit_is_a_loop_by_hand() {
    let _alone = alone();
    let (x, y) = data(103);
    let model = network();
    let want = by_hand(&model, &x, &y, 16, 3);
    let want_weights = model.get_weights().unwrap();

    let tensors = (Tensor::from_array(&x).unwrap(), Tensor::from_array(&y).unwrap());
    let compiled = || {
        let model = network();
        let options = CompileOptions::new().metrics(accuracy());
        model.compile(Adam::new(0.01), loss(), options).unwrap();
        model
    };
    let options = || FitOptions::new().epochs(3).batch_size(16);
    let on_arrays = compiled();
    let first = on_arrays.fit((&x, &y), options()).unwrap();
    let on_tensors = compiled();
    let second = on_tensors.fit(tensors, options()).unwrap();
    assert_eq!(first, second);
    assert_eq!(first.epochs(), [0, 1, 2]);
    all_near(&series(&first, "loss"), &want.iter().map(|w| w[0]).collect::<Vec<_>>(), "loss");
    assert_eq!(series(&first, "accuracy"), want.iter().map(|w| w[1]).collect::<Vec<_>>());
    // The steps are the same, so the weights are.
    assert_eq!(on_arrays.get_weights().unwrap(), want_weights);
    assert_eq!(on_tensors.get_weights().unwrap(), want_weights);
    assert_eq!(*on_arrays.trainer().history().unwrap(), first);
}

#[test]
fn evaluate_is_a_loop_by_hand() {
    let _alone = alone();
    let (x, y) = data(77);
    let model = network();
    let options = CompileOptions::new().metrics(accuracy());
    model.compile("sgd", loss(), options).unwrap();
    let logs = model.evaluate((&x, &y), EvaluateOptions::new().batch_size(10)).unwrap();

    let (x, y) = (Tensor::from_array(&x).unwrap(), Tensor::from_array(&y).unwrap());
    let logits = model.call(&x, INFERENCE).unwrap();
    let want: f32 = loss().call(&y, &logits).unwrap().item().unwrap();
    let hits = logits.argmax(-1).unwrap().equal(&y).unwrap().cast(tf::DType::F32).unwrap();
    let right: f32 = hits.reduce_mean(()).unwrap().item().unwrap();
    near(logs.get("loss").unwrap(), want.into(), "loss");
    near(logs.get("accuracy").unwrap(), right.into(), "accuracy");
    // Nothing is left of an evaluation in the next.
    assert_eq!(logs, model.evaluate((&x, &y), EvaluateOptions::new().batch_size(10)).unwrap());
    let some = EvaluateOptions::new().batch_size(10).steps(3);
    let first = model.evaluate((&x, &y), some).unwrap();
    let front = tf::range(0, 30, 1).unwrap();
    let of_30 =
        loss().call(&y.gather(&front, 0).unwrap(), &logits.gather(&front, 0).unwrap()).unwrap();
    near(first.get("loss").unwrap(), of_30.item::<f32>().unwrap().into(), "three batches");
}

#[test]
fn predict_joins_all_batches() {
    let _alone = alone();
    let (x, _) = data(101);
    let model = network();
    let x_tensor = Tensor::from_array(&x).unwrap();
    let want = model.call(&x_tensor, INFERENCE).unwrap().to_vec::<f32>().unwrap();
    let got = |y: Tensor| {
        assert_eq!(y.shape(), [101, 3]);
        let got = y.to_vec::<f32>().unwrap();
        let far = got.iter().zip(&want).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(far < 1e-6, "{far}");
    };
    got(model.predict(&x, PredictOptions::new()).unwrap());
    got(model.predict(&x_tensor, PredictOptions::new().batch_size(7)).unwrap());
    got(model.predict((&x_tensor,), PredictOptions::new().batch_size(1000)).unwrap());
    let few = model.predict(&x, PredictOptions::new().batch_size(10).steps(2)).unwrap();
    assert_eq!(few.shape(), [20, 3]);
    assert_eq!(model.predict_on_batch(x_tensor).unwrap()[0].shape(), [101, 3]);
}

/// All kinds of data give the same training.
#[test]
fn data_come_in_many_forms() {
    let _alone = alone();
    let (x, y) = data(40);
    let rows: Vec<Vec<f32>> = x.rows().into_iter().map(|row| row.to_vec()).collect();
    let labels: Vec<i32> = y.to_vec();
    let tensors: Vec<(Tensor, Tensor)> = x
        .axis_chunks_iter(ndarray::Axis(0), 8)
        .zip(y.axis_chunks_iter(ndarray::Axis(0), 8))
        .map(|(x, y)| (Tensor::from_array(&x).unwrap(), Tensor::from_array(&y).unwrap()))
        .collect();
    fn trained<'a>(
        data: impl IntoModelData<'a>,
        batch_size: Option<usize>,
    ) -> (History, Vec<ndarray::ArrayD<f32>>) {
        let model = network();
        model.compile(Adam::new(0.01), loss(), CompileOptions::new().metrics(accuracy())).unwrap();
        let mut options = FitOptions::new().epochs(2).shuffle(false);
        if let Some(size) = batch_size {
            options = options.batch_size(size);
        }
        let history = model.fit(data, options).unwrap();
        (history, model.get_weights().unwrap())
    }
    let want = trained((&x, &y), Some(8));
    assert_eq!(trained((x.clone(), y.clone()), Some(8)), want, "owned arrays");
    let wide = x.mapv(f64::from);
    assert_eq!(trained((&wide, &y.mapv(i64::from)), Some(8)), want, "f64 and i64");
    let mut turned = Array2::zeros((6, 40));
    turned.assign(&x.t());
    assert_eq!(trained((&turned.t(), &y), Some(8)), want, "a transposed view");
    assert_eq!(trained((&rows, &labels), Some(8)), want, "vectors");
    assert_eq!(trained((&rows[..], &labels[..]), Some(8)), want, "slices");
    assert_eq!(trained(&tensors, None), want, "a list of batches");
    assert_eq!(trained(tensors.clone(), None), want, "an owned list of batches");
    assert_eq!(trained(|| tensors.iter().cloned(), None), want, "a closure");
    let batches = || {
        tensors.iter().map(|(x, y)| Batch {
            x: vec![x.clone()],
            y: vec![y.clone()],
            sample_weight: vec![],
        })
    };
    assert_eq!(trained(ModelData::from_fn(batches), None), want, "batches");
}

#[test]
fn images_are_data() {
    let _alone = alone();
    let digits = draw_digits(100, 1);
    let model = || {
        tf::random::set_seed(1);
        let model = Sequential::new().add(Flatten::new()).add(Dense::new(10));
        model.build([1, 28, 28, 1]).unwrap();
        model.compile(Adam::new(0.01), loss(), CompileOptions::new().metrics(accuracy())).unwrap();
        model
    };
    let options = || FitOptions::new().epochs(2).shuffle(false);
    let (a, b) = (model(), model());
    let first = a.fit(&digits, options()).unwrap();
    let floats = |(x, y): (ArrayD<u8>, ArrayD<i32>)| (x.mapv(|p| f32::from(p) / 255.0), y);
    let dataset = Dataset::from_tensor_slices(digits.clone()).unwrap();
    let second = b.fit(dataset.batch(32).unwrap().map(floats), options()).unwrap();
    assert_eq!(first, second);
    assert!(series(&first, "accuracy")[1] > series(&first, "accuracy")[0]);
}

// Keras 3.15.1:
// x = np.arange(12).reshape(6, 2) / 10; y = [0, 1, 2, 0, 1, 2]; model = Sequential([Dense(3,
// kernel_initializer="ones", bias_initializer="zeros")]), whose kernel is then set to [[.1, .2, .3], [.3, .2, .4]];
// compile(SGD(0.5), SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"],
// weighted_metrics=["accuracy"]); fit(x, y, batch_size=4, epochs=2, shuffle=False, verbose=0, ...)
fn as_keras(weights: Option<Vec<f32>>, options: FitOptions<'_>) -> (History, Vec<f32>) {
    let x = Array2::from_shape_fn((6, 2), |(i, j)| (2 * i + j) as f32 / 10.0);
    let y = vec![0, 1, 2, 0, 1, 2];
    let model = Sequential::new().add(Dense::new(3));
    model.build([1, 2]).unwrap();
    let kernel = ndarray::arr2(&[[0.1f32, 0.2, 0.3], [0.3, 0.2, 0.4]]).into_dyn();
    model.set_weights(&[kernel, ndarray::arr1(&[0.0f32; 3]).into_dyn()]).unwrap();
    let metrics = CompileOptions::new().metrics(accuracy()).weighted_metrics(accuracy());
    model.compile(Sgd::new(0.5), loss(), metrics).unwrap();
    let options = options.batch_size(4).epochs(2).shuffle(false);
    let history = match weights {
        Some(weights) => model.fit((&x, &y, &weights), options).unwrap(),
        None => model.fit((&x, &y), options).unwrap(),
    };
    let kernel = model.get_weights().unwrap()[0].iter().copied().collect();
    (history, kernel)
}

#[test]
fn class_and_sample_weights_are_kerass() {
    let _alone = alone();
    let weights = vec![1.0, 0.5, 2.0, 0.0, 3.0, 1.5];
    let (history, kernel) = as_keras(Some(weights), FitOptions::new());
    all_near(&series(&history, "loss"), &KERAS_SAMPLE.0, "loss");
    all_near(&series(&history, "accuracy"), &KERAS_SAMPLE.1, "accuracy");
    all_near(&series(&history, "weighted_accuracy"), &KERAS_SAMPLE.2, "weighted_accuracy");
    all_near(&kernel.iter().map(|&w| w.into()).collect::<Vec<_>>(), &KERAS_SAMPLE.3, "kernel");

    let class_weight = [(0, 2.0), (2, 0.25)];
    let (history, kernel) = as_keras(None, FitOptions::new().class_weight(class_weight));
    all_near(&series(&history, "loss"), &KERAS_CLASS.0, "loss");
    all_near(&series(&history, "accuracy"), &KERAS_CLASS.1, "accuracy");
    all_near(&series(&history, "weighted_accuracy"), &KERAS_CLASS.2, "weighted_accuracy");
    all_near(&kernel.iter().map(|&w| w.into()).collect::<Vec<_>>(), &KERAS_CLASS.3, "kernel");
}

/// `loss`, `accuracy`, `weighted_accuracy` of two epochs, and the kernel after them.
type Reference = ([f64; 2], [f64; 2], [f64; 2], [f64; 6]);

// ..., sample_weight=[1, .5, 2, 0, 3, 1.5]
const KERAS_SAMPLE: Reference = (
    [1.4667123556137085, 1.2957361936569214],
    [0.3333333432674408, 0.3333333432674408],
    [0.4375, 0.4375],
    [
        -0.3164020776748657,
        0.5681357383728027,
        0.3482663631439209,
        -0.15541625022888184,
        0.6059059500694275,
        0.4495103061199188,
    ],
);

// ..., class_weight={0: 2.0, 2: 0.25}
const KERAS_CLASS: Reference = (
    [1.2672702074050903, 1.1652776002883911],
    [0.1666666716337204, 0.3333333432674408],
    [0.03846153989434242, 0.4615384638309479],
    [
        0.0225507915019989,
        0.3748003840446472,
        0.2026488482952118,
        0.24744153022766113,
        0.3871164917945862,
        0.26544198393821716,
    ],
);

#[test]
fn a_validation_split_is_kerass() {
    let _alone = alone();
    // ..., validation_split=0.4
    let (history, kernel) = as_keras(None, FitOptions::new().validation_split(0.4));
    all_near(&series(&history, "loss"), &[1.0795235633850098, 1.0715919733047485], "loss");
    all_near(&series(&history, "val_loss"), &[1.082688331604004, 1.0804377794265747], "val_loss");
    for name in ["accuracy", "weighted_accuracy", "val_accuracy", "val_weighted_accuracy"] {
        all_near(&series(&history, name), &[0.3333333432674408, 0.3333333432674408], name);
    }
    let want = [
        0.036310065537691116,
        0.20274381339550018,
        0.3609461188316345,
        0.23720107972621918,
        0.20366372168064117,
        0.4591352045536041,
    ];
    all_near(&kernel.iter().map(|&w| w.into()).collect::<Vec<_>>(), &want, "kernel");
}

#[test]
fn validation_data_are_measured_as_often_as_asked_for() {
    let _alone = alone();
    let (x, y) = data(50);
    let model = network();
    model.compile(Adam::new(0.01), loss(), CompileOptions::new().metrics(accuracy())).unwrap();
    let options = FitOptions::new().epochs(5).initial_epoch(1).validation_data((&x, &y));
    let history =
        model.fit((&x, &y), options.validation_freq(2).validation_batch_size(50)).unwrap();
    assert_eq!(history.epochs(), [1, 2, 3, 4]);
    assert_eq!(series(&history, "loss").len(), 4);
    // After the second and the fourth epoch.
    let measured = series(&history, "val_loss");
    assert_eq!(measured.len(), 2);
    let names: Vec<&str> = history.iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["accuracy", "loss", "val_accuracy", "val_loss"]);

    // What the last epoch's validation would be, is an evaluation.
    let again = network();
    again.compile(Adam::new(0.01), loss(), CompileOptions::new()).unwrap();
    let options = FitOptions::new().epochs(2).validation_data((&x, &y));
    let history = again.fit((&x, &y), options).unwrap();
    let logs = again.evaluate((&x, &y), EvaluateOptions::new()).unwrap();
    assert_eq!(series(&history, "val_loss")[1], logs.get("loss").unwrap());
}

#[test]
fn steps_per_epoch_goes_on_where_the_last_epoch_stopped() {
    let _alone = alone();
    let x: Vec<Vec<f32>> = (0..10).map(|i| vec![i as f32]).collect();
    let y = vec![vec![0.0f32]; 10];
    // The model notes what it sees.
    let seen = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let model = Noting { dense: Dense::new(1), seen: seen.clone(), trainer: Trainer::new() };
    model.compile(Sgd::new(0.0), MeanSquaredError::new(), CompileOptions::new()).unwrap();
    let options = || FitOptions::new().batch_size(3).shuffle(false).steps_per_epoch(3);
    model.fit((&x, &y), options().epochs(3)).unwrap();
    let want = [vec![0, 1, 2], vec![3, 4, 5], vec![6, 7, 8], vec![9], vec![0, 1, 2], vec![3, 4, 5]];
    let got = std::mem::take(&mut *seen.lock().unwrap());
    assert_eq!(got.len(), 9);
    assert_eq!(got[..6], want);
    // A shuffled epoch has each example once.
    model.fit((&x, &y), FitOptions::new().batch_size(4).epochs(2)).unwrap();
    let got = std::mem::take(&mut *seen.lock().unwrap());
    assert_eq!(got.iter().map(Vec::len).collect::<Vec<_>>(), [4, 4, 2, 4, 4, 2]);
    let orders = [got[..3].concat(), got[3..].concat()];
    assert_ne!(orders[0], orders[1]);
    for mut order in orders {
        order.sort_unstable();
        assert_eq!(order, (0..10).collect::<Vec<_>>());
    }
    // A split takes the last examples away before shuffling.
    model.fit((&x, &y), FitOptions::new().validation_split(0.3)).unwrap();
    let mut got = std::mem::take(&mut *seen.lock().unwrap()).concat();
    got.sort_unstable();
    assert_eq!(got, (0..7).collect::<Vec<_>>());
}

#[derive(Trackable)]
struct Noting {
    dense: Dense,
    #[track(skip)]
    seen: std::sync::Arc<std::sync::Mutex<Vec<Vec<i32>>>>,
    trainer: Trainer,
}

impl Layer for Noting {
    fn call(&self, x: &Tensor, cx: Context<'_>) -> Result<Tensor> {
        if cx.training() {
            let now = x.to_vec::<f32>()?.into_iter().map(|v| v as i32).collect();
            self.seen.lock().unwrap().push(now);
        }
        self.dense.call(x, cx)
    }
}

impl Model for Noting {
    fn trainer(&self) -> &Trainer {
        &self.trainer
    }
}

// ---- several inputs and outputs ---------------------------------------------------------------------------------

/// `(a + b, a - b)`, each through a layer.
#[derive(Trackable)]
struct TwoHeads {
    sum: Dense,
    difference: Dense,
    trainer: Trainer,
}

impl Layer<[Tensor; 2], (Tensor, Tensor)> for TwoHeads {
    fn call(&self, [a, b]: &[Tensor; 2], cx: Context<'_>) -> Result<(Tensor, Tensor)> {
        Ok((self.sum.call(&a.add(b)?, cx)?, self.difference.call(&a.subtract(b)?, cx)?))
    }
}

impl Model<[Tensor; 2], (Tensor, Tensor)> for TwoHeads {
    fn trainer(&self) -> &Trainer {
        &self.trainer
    }

    fn output_names(&self) -> Vec<String> {
        vec!["sum".into(), "difference".into()]
    }
}

fn two_heads() -> TwoHeads {
    let ones = || Dense::new(1).kernel_initializer(Initializer::Ones);
    TwoHeads { sum: ones(), difference: ones(), trainer: Trainer::new() }
}

/// The squares' means over the two outputs, by hand: weights are ones, so the outputs are row sums.
fn of_rows(a: &Array2<f32>, b: &Array2<f32>, sign: f32, y: f32, weights: &[f32]) -> f64 {
    let rows = a.rows().into_iter().zip(b.rows()).zip(weights);
    let one = rows.map(|((a, b), w)| w * (a.sum() + sign * b.sum() - y).powi(2)).sum::<f32>();
    f64::from(one) / weights.len() as f64
}

#[test]
fn outputs_have_losses_weights_and_metrics_each() {
    let _alone = alone();
    let (a, b) = (data(20).0, data(20).0.mapv(|v| 0.5 - v));
    let y = [Array2::from_elem((20, 1), 0.5f32), Array2::from_elem((20, 1), -1.0f32)];
    let ones = vec![1.0; 20];
    let (sum, difference) = (of_rows(&a, &b, 1.0, 0.5, &ones), of_rows(&a, &b, -1.0, -1.0, &ones));
    let by_place = two_heads();
    let options = CompileOptions::new().loss_weights([2.0, 0.5]);
    by_place.compile("sgd", (MeanSquaredError::new(), "mse"), options).unwrap();
    let logs = by_place.evaluate(((&a, &b), (&y[0], &y[1])), EvaluateOptions::new()).unwrap();
    near(logs.get("sum_loss").unwrap(), sum, "sum_loss");
    near(logs.get("difference_loss").unwrap(), difference, "difference_loss");
    near(logs.get("loss").unwrap(), 2.0 * sum + 0.5 * difference, "loss");

    let by_name = two_heads();
    let options = CompileOptions::new()
        .loss_weight_of("difference", 0.5)
        .metrics_of("difference", squares("far"))
        .weighted_metrics_of(0, squares("far"));
    by_name.compile("sgd", [("difference", "mse"), ("sum", "mse")], options).unwrap();
    let weights: Vec<f32> = (0..20).map(|i| (i % 4) as f32).collect();
    let logs = by_name
        .evaluate(
            ((&a, &b), (&y[0], &y[1]), (&weights, &ones)),
            EvaluateOptions::new().batch_size(6),
        )
        .unwrap();
    let weighted = of_rows(&a, &b, 1.0, 0.5, &weights);
    near(logs.get("sum_loss").unwrap(), weighted, "sum_loss with weights");
    near(logs.get("loss").unwrap(), weighted + 0.5 * difference, "loss with weights");
    near(logs.get("difference_far").unwrap(), difference, "difference_far");
    // Weights of 0, 1, 2, 3 have the mean 1.5.
    near(logs.get("sum_far").unwrap(), weighted / 1.5, "sum_far");

    // One of the outputs has a loss, and the data its target alone.
    let one = two_heads();
    one.compile("sgd", [("difference", "mse")], CompileOptions::new()).unwrap();
    let logs = one.evaluate(((&a, &b), &y[1]), EvaluateOptions::new()).unwrap();
    near(logs.get("loss").unwrap(), difference, "loss of one");
    assert_eq!(logs.get("difference_loss"), None);

    let history = by_place.fit(((&a, &b), (&y[0], &y[1])), FitOptions::new().epochs(5)).unwrap();
    let losses = series(&history, "loss");
    assert!(losses[4] < losses[0], "{losses:?}");
    let outputs =
        pollster::block_on(by_place.predict_all_async(((&a, &b),), PredictOptions::new())).unwrap();
    assert_eq!((outputs.len(), outputs[1].shape()), (2, &[20, 1][..]));
}

/// A metric of the test's own: the weighted mean of squared differences.
#[derive(Trackable)]
struct Squares(wgrad::keras::metrics::Mean);

fn squares(name: &str) -> Squares {
    Squares(wgrad::keras::metrics::Mean::new(name))
}

impl Metric for Squares {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn update(&self, y_true: &Tensor, y_pred: &Tensor, weight: Option<&Tensor>) -> Result<()> {
        let squares = y_pred.squared_difference(y_true)?.squeeze([-1])?;
        self.0.update(&squares, weight)
    }

    fn result(&self) -> Result<Tensor> {
        self.0.result()
    }

    fn reset_state(&self) -> Result<()> {
        self.0.reset_state()
    }
}

// ---- what a loss has beside its formula ---------------------------------------------------------------------------

/// Adds the mean of its input's squares to the loss.
#[derive(Trackable)]
struct Penalty;

impl Layer for Penalty {
    fn call(&self, x: &Tensor, cx: Context<'_>) -> Result<Tensor> {
        cx.add_loss(x.square()?.reduce_mean(())?)?;
        Ok(x.clone())
    }
}

#[test]
fn losses_of_layers_and_regularizers_count() {
    let _alone = alone();
    let (x, _) = data(32);
    let y = Array2::<f32>::zeros((32, 2));
    let model = |regularized: bool| {
        tf::random::set_seed(2);
        let mut dense = Dense::new(2);
        if regularized {
            dense = dense.kernel_regularizer(wgrad::keras::regularizers::Regularizer::l2(0.1));
        }
        let model = Sequential::new().add(Penalty).add(dense);
        model.build([1, 6]).unwrap();
        model.compile(Sgd::new(0.1), "mse", CompileOptions::new()).unwrap();
        model
    };
    let (plain, regularized) = (model(false), model(true));
    let loss = |model: &Sequential| {
        model.evaluate((&x, &y), EvaluateOptions::new()).unwrap().get("loss").unwrap()
    };
    let before = (loss(&plain), loss(&regularized));
    let kernel = &plain.get_weights().unwrap()[0];
    near(before.1 - before.0, 0.1 * f64::from(kernel.mapv(|w| w * w).sum()), "the regularizer");
    let predicted = plain.predict(&x, PredictOptions::new()).unwrap().to_vec::<f32>().unwrap();
    let mse = predicted.iter().map(|p| f64::from(p * p)).sum::<f64>() / predicted.len() as f64;
    let penalty = x.iter().map(|x| f64::from(x * x)).sum::<f64>() / x.len() as f64;
    near(before.0, mse + penalty, "the layer's loss");
    for model in [&plain, &regularized] {
        model.fit((&x, &y), FitOptions::new().shuffle(false)).unwrap();
    }
    let sizes = [&plain, &regularized].map(|m| m.get_weights().unwrap()[0].mapv(|w| w * w).sum());
    assert!(sizes[1] < sizes[0], "{sizes:?}");
}

/// Trains with a step of its own.
#[derive(Trackable)]
struct Own {
    dense: Dense,
    dropout: Dropout,
    trainer: Trainer,
}

impl Layer for Own {
    fn call(&self, x: &Tensor, cx: Context<'_>) -> Result<Tensor> {
        self.dense.call(&self.dropout.call(x, cx)?, cx)
    }
}

impl Model for Own {
    fn trainer(&self) -> &Trainer {
        &self.trainer
    }

    fn train_step(&self, batch: &Batch) -> Result<StepLogs> {
        let (tape, losses) = (GradientTape::new(), Losses::new());
        let y_pred = self.call(&batch.x[0], TRAINING.collect(&losses))?;
        let (loss, logs) = self.compute_loss(batch, std::slice::from_ref(&y_pred), &losses)?;
        self.trainer.optimizer()?.minimize(&loss, tape, self)?;
        let size = y_pred.detach_mean()?;
        Ok(logs.add("size", &size))
    }
}

trait DetachMean {
    fn detach_mean(&self) -> Result<Tensor>;
}

impl DetachMean for Tensor {
    fn detach_mean(&self) -> Result<Tensor> {
        self.stop_gradient().abs()?.reduce_mean(())
    }
}

#[test]
fn a_model_may_have_a_step_of_its_own() {
    let _alone = alone();
    let (x, y) = data(48);
    let model = Own { dense: Dense::new(3), dropout: Dropout::new(0.1), trainer: Trainer::new() };
    model.compile(Adam::new(0.02), loss(), CompileOptions::new().metrics(["accuracy"])).unwrap();
    let options = FitOptions::new().epochs(4).validation_data((&x, &y));
    let history = model.fit((&x, &y), options).unwrap();
    let names: Vec<&str> = history.iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["accuracy", "loss", "size", "val_accuracy", "val_loss"]);
    let losses = series(&history, "loss");
    assert!(losses[3] < losses[0], "{losses:?}");
    // What a trainer has is no part of the model.
    assert_eq!(model.variables().len(), 2);
    assert!(!model.summary().contains("rainer"), "{}", model.summary());
    assert_eq!(model.trainer().metrics()[0].0, "accuracy");
}

#[test]
fn single_batches_can_be_trained() {
    let _alone = alone();
    let (x, y) = data(30);
    let (x, y) = (Tensor::from_array(&x).unwrap(), Tensor::from_array(&y).unwrap());
    let model = network();
    model.compile(Adam::new(0.05), loss(), CompileOptions::new().metrics(["accuracy"])).unwrap();
    let first: f32 = model.train_on_batch((&x, &y)).unwrap().get("loss").unwrap().item().unwrap();
    for _ in 0..20 {
        model.train_on_batch((&x, &y)).unwrap();
    }
    let tested: f32 = model.test_on_batch((&x, &y)).unwrap().get("loss").unwrap().item().unwrap();
    assert!(tested < first, "{tested} {first}");
    // As Keras 3.15.1, where train_on_batch and test_on_batch begin with reset_metrics: the numbers are this batch's.
    let names = |logs: &StepLogs| logs.iter().map(|(n, _)| n.to_string()).collect::<Vec<_>>();
    let number = |logs: &StepLogs, name: &str| logs.get(name).unwrap().item::<f32>().unwrap();
    let half =
        |from: usize| (x.slice(&[from, 0], &[15, -1]).unwrap(), y.slice(&[from], &[15]).unwrap());
    let [front, back] = [half(0), half(15)].map(|half| model.test_on_batch(half).unwrap());
    assert_eq!(names(&front), ["loss", "accuracy"]);
    let both = model.test_on_batch((&x, &y)).unwrap();
    for name in ["loss", "accuracy"] {
        let mean = (number(&front, name) + number(&back, name)) / 2.0;
        assert!((mean - number(&both, name)).abs() < 1e-5, "{name}: {mean} {front:?} {back:?}");
    }
    let trained = model.train_on_batch((&x, &y)).unwrap();
    assert_eq!(names(&trained), ["loss", "accuracy"]);
    assert!((number(&trained, "loss") - number(&both, "loss")).abs() < 1e-5);
    model.reset_metrics().unwrap();
    let metric = model.trainer().metrics()[0].1.clone();
    assert_eq!(metric.result().unwrap().item::<f32>().unwrap(), 0.0);
    let none = Tensor::zeros([30]).unwrap();
    let weighted = model.test_on_batch((&x, &y, &none)).unwrap();
    assert_eq!(weighted.get("loss").unwrap().item::<f32>().unwrap(), 0.0);
}

// ---- what it costs -----------------------------------------------------------------------------------------------

/// Counts what the device did in each epoch.
struct Counting {
    seen: Vec<wgrad::DeviceStats>,
}

impl Callback for Counting {
    fn batch_logs(&self) -> wgrad::keras::callbacks::BatchLogs {
        wgrad::keras::callbacks::BatchLogs::Unused
    }

    fn on_epoch_end(&mut self, _: usize, _: &mut Logs, _: &mut Run<'_>) -> Result<()> {
        let device = Device::current()?;
        device.synchronize()?;
        self.seen.push(device.stats());
        Ok(())
    }
}

#[test]
fn the_second_epoch_plans_and_compiles_nothing() {
    let _alone = alone();
    let device = Device::new().unwrap();
    device.scope(|| {
        let (x, y) = data(150);
        let model = network();
        model
            .compile(Adam::new(0.01), loss(), CompileOptions::new().metrics(["accuracy"]))
            .unwrap();
        let mut counting = Counting { seen: Vec::new() };
        // Batches of 32, and one of 22; a validation of 32 and 18.
        let front = (x.slice(ndarray::s![..50, ..]), y.slice(ndarray::s![..50]));
        let options = FitOptions::new().epochs(4).validation_data(front);
        model.fit((&x, &y), options.callback(&mut counting)).unwrap();
        let seen = &counting.seen;
        for epoch in 1..4 {
            let (before, after) = (&seen[epoch - 1], &seen[epoch]);
            assert_eq!(after.plan_misses, before.plan_misses, "plans in epoch {epoch}: {seen:#?}");
            assert_eq!(after.pipelines, before.pipelines, "pipelines in epoch {epoch}");
            if epoch > 1 {
                assert_eq!(after.buffers, before.buffers, "buffers in epoch {epoch}: {seen:#?}");
            }
        }
        // Five batches are not read one by one.
        assert!(seen[3].reads - seen[2].reads <= 8, "{seen:#?}");
    });
}

#[test]
fn a_signal_ends_the_training_and_keeps_the_history() {
    let _alone = alone();
    let (x, y) = data(64);
    let model = network();
    model.compile(Adam::new(0.01), loss(), CompileOptions::new()).unwrap();
    let stop = StopSignal::new();
    let signal = stop.clone();
    let at = LambdaCallback::new().on_train_batch_begin(move |batch, _| {
        if batch == 1 {
            signal.stop();
        }
        Ok(())
    });
    let options = FitOptions::new().epochs(50).batch_size(8).stop_signal(&stop).callback(at);
    let history = model.fit((&x, &y), options.validation_data((&x, &y))).unwrap();
    assert!(history.interrupted());
    // The batch that ran is in the history; a validation would keep the user waiting.
    assert_eq!((history.epochs(), series(&history, "loss").len()), (&[0][..], 1));
    assert_eq!(history.get("val_loss"), None);
    assert_eq!(model.trainer().optimizer().unwrap().iterations(), 2);
}

#[test]
fn fit_runs_on_a_thread_and_as_a_future() {
    let _alone = alone();
    let (x, y) = data(40);
    let model = std::sync::Arc::new(network());
    model.compile(Adam::new(0.01), loss(), CompileOptions::new()).unwrap();
    let there = model.clone();
    let thread = std::thread::spawn(move || {
        there.fit((&x, &y), FitOptions::new()).map(|h| h.epochs().len())
    });
    assert_eq!(thread.join().unwrap().unwrap(), 1);
    let (x, y) = data(40);
    let both = async {
        model.fit_async((&x, &y), FitOptions::new()).await?;
        model.evaluate_async((&x, &y), EvaluateOptions::new()).await?;
        model.predict_async(&x, PredictOptions::new()).await
    };
    assert_eq!(pollster::block_on(both).unwrap().shape(), [40, 3]);
}

/// Sixty epochs of a handful of examples: the device is waited for a few times, not once an epoch.
#[test]
fn short_epochs_do_not_wait_for_the_device() {
    let _alone = alone();
    let device = Device::new().unwrap();
    device.scope(|| {
        let (x, y) = data(4);
        let trained = |callback: Option<LambdaCallback<'_>>| {
            let model = network();
            model
                .compile(Adam::new(0.01), loss(), CompileOptions::new().metrics(["accuracy"]))
                .unwrap();
            let before = device.stats().reads;
            let mut options = FitOptions::new().epochs(60).validation_data((&x, &y)).verbose(0);
            if let Some(callback) = callback {
                options = options.callback(callback);
            }
            let history = model.fit((&x, &y), options).unwrap();
            (history, model.get_weights().unwrap(), device.stats().reads - before)
        };
        let (ahead, weights, reads) = trained(None);
        assert!(reads <= 30, "{reads} reads");
        assert_eq!(ahead.epochs(), (0..60).collect::<Vec<_>>());
        // Who needs an epoch's numbers at once gets them, and the same ones.
        let mut seen = Vec::new();
        let note = LambdaCallback::new().on_epoch_end(|epoch, logs, run| {
            let steps = run.optimizer()?.iterations();
            seen.push((epoch, steps, logs.get("val_loss").unwrap()));
            Ok(())
        });
        let (waited, same, reads) = trained(Some(note));
        assert!((60..=130).contains(&reads), "{reads} reads");
        assert_eq!((&waited, same), (&ahead, weights.clone()));
        let losses = series(&ahead, "val_loss");
        let want: Vec<_> = (0..60).map(|at| (at, at as u64 + 1, losses[at])).collect();
        assert_eq!(seen, want);
        // One that only writes them down hears of them in order, and later.
        let mut seen = Vec::new();
        let note =
            LambdaCallback::new().epoch_logs(EpochLogs::Behind).on_epoch_end(|epoch, logs, _| {
                seen.push((epoch, logs.get("loss").unwrap()));
                Ok(())
            });
        let (behind, _, reads) = trained(Some(note));
        assert!(reads <= 30, "{reads} reads");
        assert_eq!(behind, ahead);
        assert_eq!(seen, series(&ahead, "loss").into_iter().enumerate().collect::<Vec<_>>());
    });
}

/// An error late in a training leaves the history of the epochs before.
#[test]
fn an_error_leaves_the_epochs_that_ended() {
    let _alone = alone();
    let (x, y) = data(8);
    let (x, y) = (Tensor::from_array(&x).unwrap(), Tensor::from_array(&y).unwrap());
    let model = network();
    model.compile(Adam::new(0.01), loss(), CompileOptions::new()).unwrap();
    let mut passes = 0;
    let batches = move || {
        passes += 1;
        let broken = passes == 4;
        let (x, y) = (x.clone(), y.clone());
        std::iter::once_with(move || match broken {
            true => Err(wgrad::Error::Data("the disk is gone".into())),
            false => Ok((x, y)),
        })
    };
    let error = model.fit(batches, FitOptions::new().epochs(9).verbose(0)).unwrap_err().to_string();
    assert!(error.contains("fit: batch 0: the disk is gone"), "{error}");
    let history = model.trainer().history().unwrap();
    assert_eq!((history.epochs(), series(&history, "loss").len()), (&[0, 1, 2][..], 3));
}

// ---- labels --------------------------------------------------------------------------------------------------------

fn ignoring(label: i32) -> SparseCategoricalCrossentropy {
    loss().ignore_class(label)
}

#[test]
fn labels_that_the_loss_ignores_are_no_mistake() {
    let _alone = alone();
    for label in [255, -1] {
        let (x, mut y) = data(20);
        y[3] = label;
        y[17] = label;
        let model = network();
        model.compile(Sgd::new(0.1), ignoring(label), CompileOptions::new()).unwrap();
        let history = model.fit((&x, &y), of_five().validation_data((&x, &y))).unwrap();
        assert!(
            series(&history, "loss")[0].is_finite() && series(&history, "val_loss")[0].is_finite()
        );
        let tensors = (Tensor::from_array(&x).unwrap(), Tensor::from_array(&y).unwrap());
        model.fit((&tensors.0, &tensors.1), of_five()).unwrap();
        model.fit((&x, &y), of_five().class_weight([(0, 2.0)])).unwrap();
        assert!(
            model
                .evaluate((&x, &y), EvaluateOptions::new())
                .unwrap()
                .get("loss")
                .unwrap()
                .is_finite()
        );
        let batches =
            Dataset::from_tensor_slices((x.clone(), y.clone())).unwrap().batch(5).unwrap();
        assert!(series(&model.fit(&batches, options_of_batches()).unwrap(), "loss")[0].is_finite());
        model.train_on_batch(tensors.clone()).unwrap().get("loss").unwrap().item::<f32>().unwrap();
        // Others still are, and the message says which is ignored.
        y[4] = 3;
        let error = model.fit((&x, &y), of_five()).unwrap_err().to_string();
        let want = format!(
            "fit: a label is 3, and the model's output [5, 3] has 3 classes: labels must be from 0 to 2, or {label}"
        );
        assert!(error.starts_with(&want), "{error}");
    }
}

fn of_five<'a>() -> FitOptions<'a> {
    FitOptions::new().batch_size(5).verbose(0)
}

fn options_of_batches<'a>() -> FitOptions<'a> {
    FitOptions::new().verbose(0)
}

#[test]
fn a_label_out_of_range_is_an_error_wherever_it_comes_from() {
    let _alone = alone();
    for wrong in [7, -2] {
        let (x, mut y) = data(40);
        y[33] = wrong;
        let batches =
            || Dataset::from_tensor_slices((x.clone(), y.clone())).unwrap().batch(8).unwrap();
        let compiled = || {
            let model = network();
            model
                .compile(Sgd::new(0.1), loss(), CompileOptions::new().metrics(["accuracy"]))
                .unwrap();
            model
        };
        let refused = |error: wgrad::Error, begin: &str| {
            assert!(matches!(error, wgrad::Error::Index(_)), "{error}");
            let want =
                format!("{begin}a label is {wrong}, and the model's output [8, 3] has 3 classes");
            assert!(error.to_string().starts_with(&want), "{error}");
        };
        let tensors: Vec<(Tensor, Tensor)> = batches()
            .iter()
            .map(|batch| batch.unwrap())
            .map(|(x, y)| (Tensor::from_array(&x).unwrap(), Tensor::from_array(&y).unwrap()))
            .collect();
        refused(compiled().fit(batches(), options_of_batches()).unwrap_err(), "fit: batch 4: ");
        refused(compiled().fit(&tensors, options_of_batches()).unwrap_err(), "fit: batch 4: ");
        let weighted = options_of_batches().class_weight([(1, 2.0)]);
        refused(compiled().fit(batches(), weighted).unwrap_err(), "fit: batch 4: ");
        let options = || EvaluateOptions::new();
        refused(compiled().evaluate(batches(), options()).unwrap_err(), "evaluate: batch 4: ");
        refused(compiled().evaluate((&x, &y), options().batch_size(8)).unwrap_err(), "evaluate: ");
        let (good_x, good_y) = data(40);
        let validated = options_of_batches().validation_data(batches()).epochs(2);
        let error = compiled().fit((&good_x, &good_y), validated).unwrap_err();
        refused(error, "fit: validation data: batch 4: ");
        let validated = options_of_batches().validation_data((&x, &y)).validation_batch_size(8);
        let error = compiled().fit((&good_x, &good_y), validated).unwrap_err();
        refused(error, "fit: validation data: ");
        // The scalars of a single batch are the program's to read, unless the device has reported before.
        for trains in [true, false] {
            let model = compiled();
            let (logs, call) = match trains {
                true => (model.train_on_batch(tensors[4].clone()), "train_on_batch: "),
                false => (model.test_on_batch(tensors[4].clone()), "test_on_batch: "),
            };
            let read = logs.and_then(|logs| logs.get("loss").unwrap().item::<f32>());
            refused(read.unwrap_err(), call);
        }
        // A program's own step that uses the losses of `compile` hears of it, too.
        let model = OwnStep { dense: Dense::new(3), trainer: Trainer::new() };
        model.compile(Sgd::new(0.1), loss(), CompileOptions::new()).unwrap();
        refused(model.fit(&tensors, options_of_batches()).unwrap_err(), "fit: batch 4: ");
    }
}

/// The error comes up to 128 steps late, and the steps until then are those of weights that the batch has not changed.
#[test]
fn a_batch_with_a_wrong_label_changes_no_weight() {
    let _alone = alone();
    let (x, y) = data(24);
    let batch = |at: usize, wrong: Option<i32>| {
        let rows = ndarray::s![8 * at..8 * at + 8, ..];
        let mut y = y.slice(ndarray::s![8 * at..8 * at + 8]).to_owned();
        if let Some(wrong) = wrong {
            y[5] = wrong;
        }
        (Tensor::from_array(&x.slice(rows).to_owned()).unwrap(), Tensor::from_array(&y).unwrap())
    };
    let compiled = |optimizer: &str| {
        let model = network();
        model.call(&batch(0, None).0, INFERENCE).unwrap();
        model.compile(optimizer, loss(), CompileOptions::new().metrics(["accuracy"])).unwrap();
        model
    };
    let good = compiled("sgd");
    let start = good.get_weights().unwrap();
    good.fit(&[batch(0, None), batch(2, None)][..], options_of_batches()).unwrap();
    let good = good.get_weights().unwrap();
    assert_ne!(good, start);
    for wrong in [3, -1, i32::MAX, i32::MIN] {
        let begin = |batch| format!("fit: batch {batch}: a label is ");
        // Twice three steps: all of them have been called when the first numbers are there.
        let model = compiled("sgd");
        let batches = [batch(0, None), batch(1, Some(wrong)), batch(2, None)];
        let error = model.fit(&batches[..], options_of_batches()).unwrap_err().to_string();
        assert!(error.starts_with(&begin(1)), "{error}");
        assert_eq!(model.get_weights().unwrap(), good, "a label {wrong}");
        assert!(model.trainer().history().unwrap().epochs().is_empty());
        // Many epochs: the history has none, and no weight is NaN, also with slots.
        let model = compiled("adam");
        let error = model.fit(&batches[..], options_of_batches().epochs(300)).unwrap_err();
        assert!(error.to_string().starts_with(&begin(1)), "{error}");
        let finite = |list: Vec<ndarray::ArrayD<f32>>| {
            assert!(list.iter().flatten().all(|value| value.is_finite()), "{list:?}");
        };
        finite(model.get_weights().unwrap());
        assert!(model.trainer().history().unwrap().epochs().is_empty());
        let steps = model.trainer().optimizer().unwrap().iterations();
        assert!((3..=2 + 128 + 1).contains(&steps), "{steps}");
        // The model trains on.
        let history = model.fit(&[batch(0, None)][..], options_of_batches()).unwrap();
        assert!(series(&history, "loss")[0].is_finite());
        finite(model.get_weights().unwrap());
    }
    // A step by itself, and a program's own with the losses of `compile`.
    let model = compiled("sgd");
    let logs = model.train_on_batch(batch(1, Some(3)));
    let read = logs.and_then(|logs| logs.get("loss").unwrap().item::<f32>());
    let error = read.unwrap_err().to_string();
    assert!(error.starts_with("train_on_batch: a label is 3"), "{error}");
    assert_eq!(model.get_weights().unwrap(), start);
    let model = OwnStep { dense: Dense::new(3), trainer: Trainer::new() };
    model.compile(Sgd::new(0.1), loss(), CompileOptions::new()).unwrap();
    model.call(&batch(0, None).0, INFERENCE).unwrap();
    let start = model.get_weights().unwrap();
    model.fit(&[batch(1, Some(3))][..], options_of_batches()).unwrap_err();
    assert_eq!(model.get_weights().unwrap(), start);
}

/// A step of its own with the losses of `compile`.
#[derive(Trackable)]
struct OwnStep {
    dense: Dense,
    trainer: Trainer,
}

impl Layer for OwnStep {
    fn call(&self, x: &Tensor, cx: Context<'_>) -> Result<Tensor> {
        self.dense.call(x, cx)
    }
}

impl Model for OwnStep {
    fn trainer(&self) -> &Trainer {
        &self.trainer
    }

    fn train_step(&self, batch: &Batch) -> Result<StepLogs> {
        let (tape, losses) = (GradientTape::new(), Losses::new());
        let y_pred = self.call(&batch.x[0], TRAINING.collect(&losses))?;
        let (loss, logs) = self.compute_loss(batch, &[y_pred], &losses)?;
        self.trainer.optimizer()?.minimize(&loss, tape, self)?;
        Ok(logs)
    }
}

// ---- what is checked before the first step -------------------------------------------------------------------------

#[test]
fn validation_data_are_looked_at_before_the_training() {
    let _alone = alone();
    let (x, y) = data(20);
    let narrow = Array2::<f32>::zeros((20, 5));
    let compiled = || {
        let model = network();
        model.compile(Sgd::new(0.1), loss(), CompileOptions::new()).unwrap();
        model
    };
    let dataset = |x: &Array2<f32>| {
        Dataset::from_tensor_slices((x.clone(), y.clone())).unwrap().batch(4).unwrap()
    };
    let refused = |options: FitOptions<'_>, on_batches: bool| {
        let model = compiled();
        let fitted = match on_batches {
            true => model.fit(dataset(&x), options.epochs(3).verbose(0)),
            false => model.fit((&x, &y), options.epochs(3).verbose(0)),
        };
        let error = fitted.unwrap_err().to_string();
        assert!(error.starts_with("fit: validation data: "), "{error}");
        // No step was made.
        assert_eq!(model.trainer().optimizer().unwrap().iterations(), 0, "{error}");
        error
    };
    for on_batches in [false, true] {
        let error = refused(FitOptions::new().validation_data((&narrow, &y)), on_batches);
        assert!(error.contains("[20, 5]") && error.contains("layer 'dense'"), "{error}");
        refused(FitOptions::new().validation_data(dataset(&narrow)), on_batches);
        // Labels of another shape, and none at all.
        refused(FitOptions::new().validation_data((&x, &narrow)), on_batches);
        refused(FitOptions::new().validation_data((&x,)), on_batches);
    }
    // What comes only with the batches is named, too.
    let batches = || [(Tensor::zeros([4, 5]).unwrap(), Tensor::zeros([4]).unwrap())];
    let model = compiled();
    let options = FitOptions::new().validation_data(batches).verbose(0);
    let error = model.fit((&x, &y), options).unwrap_err().to_string();
    assert!(error.starts_with("fit: validation data: batch 0: layer 'dense'"), "{error}");
}

#[test]
fn a_message_names_the_call() {
    let _alone = alone();
    let (x, y) = data(10);
    let model = network();
    let batch = || (Tensor::from_array(&x).unwrap(), Tensor::from_array(&y).unwrap());
    let calls: [(&str, Result<()>); 5] = [
        ("fit", model.fit((&x, &y), FitOptions::new()).map(drop)),
        ("evaluate", model.evaluate((&x, &y), EvaluateOptions::new()).map(drop)),
        ("train_on_batch", model.train_on_batch(batch()).map(drop)),
        ("test_on_batch", model.test_on_batch(batch()).map(drop)),
        ("reset_metrics", model.reset_metrics()),
    ];
    for (call, result) in calls {
        let error = result.unwrap_err().to_string();
        assert!(error.starts_with(&format!("{call}: the model is not compiled")), "{error}");
    }
    // A single example, or examples that nobody has batched.
    model.compile(Sgd::new(0.1), loss(), CompileOptions::new()).unwrap();
    let column = y.clone().insert_axis(ndarray::Axis(1));
    let one = Dataset::from_tensor_slices((x.clone(), column)).unwrap();
    let error = model.fit(&one, FitOptions::new()).unwrap_err().to_string();
    assert!(error.starts_with("fit: ") && error.contains(".batch("), "{error}");
    let error = model.evaluate(&one, EvaluateOptions::new()).unwrap_err().to_string();
    assert!(error.starts_with("evaluate: ") && error.contains(".batch("), "{error}");
    let inputs = Dataset::from_tensor_slices(x.clone()).unwrap();
    let error = model.predict(&inputs, PredictOptions::new()).unwrap_err().to_string();
    assert!(error.starts_with("predict: ") && error.contains(".batch("), "{error}");
    let row = Tensor::from_array(&x.row(0)).unwrap();
    let error = model.predict(&row, PredictOptions::new()).unwrap_err().to_string();
    assert!(error.starts_with("predict: ") && error.contains("x.expand_dims(0)"), "{error}");
}

// ---- predictions -------------------------------------------------------------------------------------------------

#[test]
fn several_inputs_and_outputs_are_predicted() {
    let _alone = alone();
    let (x, _) = data(10);
    let (a, b) = (Tensor::from_array(&x).unwrap(), Tensor::ones([10, 2]).unwrap());
    let left = tf::keras::Input::new([6]);
    let right = tf::keras::Input::new([2]);
    use tf::keras::LayerExt;
    let sum = Dense::new(3).on(&left).unwrap().add(Dense::new(3).on(&right).unwrap()).unwrap();
    let two = tf::keras::Functional::new([&left, &right], [&sum, &left]).unwrap();
    let want = two.call(&[a.clone(), b.clone()], INFERENCE).unwrap();
    let all = two.predict_all((&a, &b), PredictOptions::new().batch_size(4)).unwrap();
    assert_eq!(all.len(), 2);
    for (got, want) in all.iter().zip(&want) {
        assert_eq!(got.to_vec::<f32>().unwrap(), want.to_vec::<f32>().unwrap());
    }
    // As before, and a `y` that follows them is left alone.
    let y = Tensor::zeros([10]).unwrap();
    assert_eq!(two.predict_all(((&a, &b),), PredictOptions::new()).unwrap().len(), 2);
    assert_eq!(two.predict_all(((&a, &b), &y), PredictOptions::new()).unwrap().len(), 2);
    let error = two.predict((&a, &b), PredictOptions::new()).unwrap_err().to_string();
    assert!(error.contains("ask for them with predict_all"), "{error}");
    let one = tf::keras::Functional::new([&left, &right], &sum).unwrap();
    let got = one.predict((&a, &b), PredictOptions::new()).unwrap();
    assert_eq!(got.to_vec::<f32>().unwrap(), want[0].to_vec::<f32>().unwrap());
    // A model of one input takes x of (x, y).
    assert_eq!(network().predict((&a, &b), PredictOptions::new()).unwrap().shape(), [10, 3]);
    // Neither one nor two fit.
    let error = two.predict((&b, &a), PredictOptions::new()).unwrap_err().to_string();
    assert!(error.contains("2"), "{error}");
}

// ---- metrics of the model's own ----------------------------------------------------------------------------------

/// Counts its batches in a metric that it owns.
#[derive(Trackable)]
struct Watched {
    dense: Dense,
    seen: tf::keras::metrics::Sum,
    trainer: Trainer,
}

impl Layer for Watched {
    fn call(&self, x: &Tensor, cx: Context<'_>) -> Result<Tensor> {
        self.dense.call(x, cx)
    }
}

impl Model for Watched {
    fn trainer(&self) -> &Trainer {
        &self.trainer
    }

    fn train_step(&self, batch: &Batch) -> Result<StepLogs> {
        let tape = GradientTape::new();
        let loss = self.call(&batch.x[0], TRAINING)?.square()?.reduce_mean(())?;
        self.trainer.optimizer()?.minimize(&loss, tape, self)?;
        self.seen.update_state(&Tensor::ones([1])?)?;
        Ok(StepLogs::new().add("loss", &loss).add("seen", &self.seen.result()?))
    }
}

// Keras 3.15.1 gives 1 to 4 in each of three epochs for a `metrics.Mean` that a model owns and counts in.
#[test]
fn metrics_that_a_model_owns_begin_again_with_each_epoch() {
    let _alone = alone();
    let model = Watched {
        dense: Dense::new(1),
        seen: tf::keras::metrics::Sum::new("seen"),
        trainer: Trainer::new(),
    };
    model.compile(Sgd::new(0.1), "mse", CompileOptions::new()).unwrap();
    let (x, y) = (Tensor::ones([8, 2]).unwrap(), Tensor::ones([8, 1]).unwrap());
    let history =
        model.fit((&x, &y), FitOptions::new().epochs(3).batch_size(2).verbose(0)).unwrap();
    // The mean of 1, 2, 3, 4.
    assert_eq!(series(&history, "seen"), [2.5, 2.5, 2.5]);
    assert_eq!(model.seen.result().unwrap().item::<f32>().unwrap(), 4.0);
    model.reset_metrics().unwrap();
    assert_eq!(model.seen.result().unwrap().item::<f32>().unwrap(), 0.0);
}
