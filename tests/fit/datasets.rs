//! Training, evaluating and calling models on datasets.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::thread::{self, ThreadId};

use ndarray::{Array1, Array2, ArrayD};
use wgrad as tf;
use wgrad::data::drawn_digits::draw_digits;
use wgrad::data::{Dataset, ShuffleOptions};
use wgrad::keras::callbacks::{Callback, Run};
use wgrad::keras::layers::{Conv2D, Dense, Flatten, LayerNormalization, MaxPooling2D, Rescaling};
use wgrad::keras::losses::SparseCategoricalCrossentropy;
use wgrad::keras::optimizers::{Adam, Sgd};
use wgrad::keras::{
    CompileOptions, Context, EvaluateOptions, FitOptions, Functional, INFERENCE, Initializer,
    Input, Layer, LayerExt, Logs, Model, PredictOptions, Sequential, Trainer,
};
use wgrad::{DType, Device, DeviceStats, Result, Tensor, Trackable};

use crate::alone;

fn arrays(rows: usize) -> (Array2<f32>, Array1<i32>) {
    let x = Array2::from_shape_fn((rows, 4), |(i, j)| ((i * 7 + j * 3) % 11) as f32 / 11.0);
    let y = Array1::from_shape_fn(rows, |i| (i % 3) as i32);
    (x, y)
}

fn examples(rows: usize) -> Dataset<(Array1<f32>, i32)> {
    Dataset::from_tensor_slices(arrays(rows)).unwrap()
}

/// A network with the same weights each time.
fn network() -> Sequential {
    tf::random::set_seed(3);
    let model = Sequential::new().add(Dense::new(3));
    model.build([1, 4]).unwrap();
    let loss = SparseCategoricalCrossentropy::new().from_logits(true);
    model.compile(Adam::new(0.01), loss, CompileOptions::new().metrics(["accuracy"])).unwrap();
    model
}

type Weights = Vec<ArrayD<f32>>;

#[test]
fn a_dataset_trains_as_its_arrays() {
    let _alone = alone();
    let (x, y) = arrays(50);
    let a = network();
    let options = || FitOptions::new().epochs(3);
    let want = a.fit((&x, &y), options().shuffle(false).batch_size(8)).unwrap();
    let batches = examples(50).batch(8);
    let same = |data: Dataset<(ArrayD<f32>, ArrayD<i32>)>| {
        let model = network();
        let history = model.fit(data, options()).unwrap();
        (history, model.get_weights().unwrap())
    };
    let want = (want, a.get_weights().unwrap());
    assert_eq!(same(batches.clone()), want);
    assert_eq!(same(batches.prefetch(3)), want);
    let model = network();
    let history = model.fit(batches.to_tensors(), options()).unwrap();
    assert_eq!((history, model.get_weights().unwrap()), want, "tensors");
    // Dtypes that a device does not have: f64 and i64.
    let wide = batches.map(|(x, y)| (x.mapv(f64::from), y.mapv(i64::from)));
    let model = network();
    let history = model.fit(&wide, options()).unwrap();
    assert_eq!((history, model.get_weights().unwrap()), want, "f64 and i64");
    let bytes = batches.map(|(x, y)| (x, y.mapv(|y| y as u8)));
    let model = network();
    let history = model.fit(&bytes, options()).unwrap();
    assert_eq!((history, model.get_weights().unwrap()), want, "labels as bytes");
    assert_eq!(
        model.evaluate(&batches, EvaluateOptions::new()).unwrap(),
        a.evaluate((&x, &y), EvaluateOptions::new().batch_size(8)).unwrap()
    );
    let only_x = batches.map(|(x, _)| x);
    let predicted = model.predict(&only_x, PredictOptions::new()).unwrap();
    let wanted = a.predict(&x, PredictOptions::new()).unwrap();
    assert_eq!(predicted.to_array::<f32>().unwrap(), wanted.to_array::<f32>().unwrap());
}

#[test]
fn a_validation_is_a_dataset_as_well() {
    let _alone = alone();
    let (x, y) = arrays(20);
    let (train, test) = (examples(50).batch(8), examples(20).batch(7));
    let history =
        network().fit(&train, FitOptions::new().epochs(2).validation_data(&test)).unwrap();
    let model = network();
    let arrays = FitOptions::new().epochs(2).validation_data((&x, &y)).validation_batch_size(7);
    assert_eq!(history, model.fit(&train, arrays).unwrap());
    assert!(history.get("val_loss").is_some());
}

#[test]
fn each_epoch_shuffles_again_and_a_seed_fixes_all() {
    let _alone = alone();
    let shuffled = |seed| {
        let options = ShuffleOptions::new().seed(seed);
        examples(50).shuffle_with(50, options).batch(8)
    };
    let (model, data) = (network(), shuffled(1));
    model.fit(&data, FitOptions::new().epochs(3)).unwrap();
    // The same passes in a manual loop.
    let (by_hand, data) = (network(), shuffled(1));
    let mut orders = HashSet::new();
    for _ in 0..3 {
        let mut order = Vec::new();
        for batch in &data {
            let (x, y) = batch.unwrap();
            order.extend(x.iter().map(|value| value.to_bits()));
            by_hand.train_on_batch((x, y)).unwrap();
        }
        orders.insert(order);
    }
    assert_eq!(orders.len(), 3, "an epoch has the order of another");
    assert_eq!(model.get_weights().unwrap(), by_hand.get_weights().unwrap());
    // Without its own seed, the order comes from the global generator.
    let trained = || {
        let model = network();
        tf::random::set_seed(5);
        let data = examples(50).shuffle(50).batch(8);
        model.fit(&data, FitOptions::new().epochs(2)).unwrap();
        model.get_weights().unwrap()
    };
    assert_eq!(trained(), trained());
}

#[test]
fn epochs_of_an_endless_dataset_go_on_where_it_stood() {
    let _alone = alone();
    let endless = || {
        let options = ShuffleOptions::new().seed(2);
        examples(40).shuffle_with(10, options).repeat(None).batch(8)
    };
    let trained = |data: Dataset<(ArrayD<f32>, ArrayD<i32>)>, options: FitOptions<'_>| -> Weights {
        let model = network();
        model.fit(data, options).unwrap();
        model.get_weights().unwrap()
    };
    let epochs = trained(endless(), FitOptions::new().epochs(4).steps_per_epoch(3));
    assert_eq!(epochs, trained(endless().take(12), FitOptions::new()));
    // One that ends is restarted in the middle of an epoch: 5 batches in epochs of 3.
    let finite = examples(40).batch(8);
    let epochs = trained(finite.clone(), FitOptions::new().epochs(4).steps_per_epoch(3));
    assert_eq!(epochs, trained(finite.repeat(None).take(12), FitOptions::new()));
}

#[test]
fn classes_weigh_in_a_dataset_as_in_arrays() {
    let _alone = alone();
    let (x, y) = arrays(50);
    let options = || FitOptions::new().shuffle(false).class_weight([(0, 3.0), (2, 0.5)]);
    let want = network().fit((&x, &y), options().batch_size(8)).unwrap();
    assert_eq!(network().fit(examples(50).batch(8), options()).unwrap(), want);
}

/// The steps that a callback sees.
#[derive(Default)]
struct Steps {
    reported: Vec<Option<usize>>,
    stats: Vec<DeviceStats>,
}

impl Callback for Steps {
    fn on_train_begin(&mut self, run: &mut Run<'_>) -> Result<()> {
        self.reported.push(run.steps());
        Ok(())
    }

    fn on_epoch_end(&mut self, _: usize, _: &mut Logs, _: &mut Run<'_>) -> Result<()> {
        let device = Device::current()?;
        device.synchronize()?;
        self.stats.push(device.stats());
        Ok(())
    }
}

#[test]
fn the_cardinality_gives_the_steps() {
    let _alone = alone();
    let batches = examples(50).batch(8);
    for (data, steps) in [(batches.clone(), Some(7)), (batches.filter(|_| true), None)] {
        let mut seen = Steps::default();
        network().fit(&data, FitOptions::new().callback(&mut seen)).unwrap();
        assert_eq!(seen.reported, [steps]);
    }
}

#[test]
fn later_epochs_plan_and_compile_nothing() {
    let _alone = alone();
    Device::new().unwrap().scope(|| {
        let digits = Dataset::from_tensor_slices(draw_digits(100, 1)).unwrap();
        // Batches of 32 and one of 4.
        let batches = digits.shuffle(100).batch(32);
        let model = Sequential::new()
            .add(Rescaling::new(1.0 / 255.0))
            .add(Flatten::new())
            .add(Dense::new(10));
        let loss = SparseCategoricalCrossentropy::new().from_logits(true);
        model.compile("adam", loss, CompileOptions::new().metrics(["accuracy"])).unwrap();
        let mut seen = Steps::default();
        model.fit(&batches, FitOptions::new().epochs(4).callback(&mut seen)).unwrap();
        for pair in seen.stats.windows(2).skip(1) {
            let [before, after] = pair else { panic!("two") };
            assert_eq!(after.plan_misses, before.plan_misses, "plans");
            assert_eq!(after.pipelines, before.pipelines, "pipelines");
            let first = &seen.stats[1..3];
            let kernels = first[1].kernels - first[0].kernels;
            assert_eq!(after.kernels - before.kernels, kernels, "kernels");
        }
    });
}

#[test]
fn a_loop_by_hand_settles() {
    let _alone = alone();
    let device = Device::new().unwrap();
    device.scope(|| {
        let digits = Dataset::from_tensor_slices(draw_digits(200, 1)).unwrap();
        let batches = digits
            .shuffle(200)
            .batch(20)
            .repeat(None)
            .take(30)
            .to_tensors()
            .map(|(x, y): (Tensor, Tensor)| Ok((x.cast(DType::F32)? / 255.0, y)));
        let model = Sequential::new().add(Flatten::new()).add(Dense::new(10));
        let adam = Adam::new(1e-3);
        let mut kernels = Vec::new();
        let mut before = device.stats();
        for (step, batch) in batches.iter().enumerate() {
            let (x, y) = batch.unwrap();
            let tape = tf::GradientTape::new();
            let logits = model.call(&x, tf::keras::TRAINING).unwrap();
            let loss = tf::sparse_softmax_cross_entropy_with_logits(&y, &logits).unwrap();
            use tf::keras::optimizers::Optimizer;
            adam.minimize(&loss.reduce_mean(()).unwrap(), tape, &model).unwrap();
            device.synchronize().unwrap();
            let now = device.stats();
            if step >= 2 {
                assert_eq!(now.plan_misses, before.plan_misses, "step {step} plans");
                assert_eq!(now.pipelines, before.pipelines, "step {step} compiles");
                kernels.push(now.kernels - before.kernels);
            }
            before = now;
        }
        assert!(kernels.iter().all(|count| *count == kernels[0]), "{kernels:?}");
    });
}

#[test]
fn the_rows_of_a_tensor_need_one_plan() {
    let _alone = alone();
    let device = Device::new().unwrap();
    device.scope(|| {
        let x = Tensor::from_array(&arrays(40).0).unwrap();
        let rows = Dataset::from_tensor_slices((x.clone(), x.cast(DType::I32).unwrap())).unwrap();
        let batches = rows.batch(4);
        let mut plans = Vec::new();
        for (at, batch) in batches.iter().enumerate() {
            let (batch, _) = batch.unwrap();
            assert_eq!(batch.shape(), [4, 4]);
            let wanted = arrays(40).0.row(4 * at + 1).to_vec();
            assert_eq!(batch.to_vec::<f32>().unwrap()[4..8], wanted);
            plans.push(device.stats().plan_misses);
        }
        assert!(plans[2..].iter().all(|misses| *misses == plans[2]), "{plans:?}");
    });
}

#[test]
fn the_host_works_ahead_in_a_thread_and_tensors_are_the_callers() {
    let _alone = alone();
    let threads: Arc<Mutex<[HashSet<ThreadId>; 2]>> = Arc::default();
    let note = |at: usize| {
        let threads = threads.clone();
        move || threads.lock().unwrap()[at].insert(thread::current().id())
    };
    let (host, device) = (note(0), note(1));
    let batches = examples(50)
        .batch(8)
        .map(move |batch| {
            host();
            batch
        })
        .to_tensors()
        .map(move |batch: (Tensor, Tensor)| {
            device();
            batch
        });
    network().fit(&batches, FitOptions::new().epochs(2)).unwrap();
    let [host, device] = threads.lock().unwrap().clone();
    assert_eq!(device, HashSet::from([thread::current().id()]));
    assert!(!host.contains(&thread::current().id()));
}

#[test]
fn several_inputs_and_weights_are_tuples() {
    let _alone = alone();
    let [a, b] = [Input::new([4]), Input::new([4])];
    tf::random::set_seed(1);
    let y = Dense::new(1).on(&a.add(&b).unwrap()).unwrap();
    let model = Functional::new([&a, &b], &y).unwrap();
    model.compile(Sgd::new(0.1), "mse", CompileOptions::new()).unwrap();
    let (x, _) = arrays(30);
    let weights = Array1::from_elem(30, 0.5f32);
    let sums = x.sum_axis(ndarray::Axis(1)).insert_axis(ndarray::Axis(1));
    let dataset = Dataset::from_tensor_slices((
        (x.clone(), x.mapv(f64::from)),
        sums.clone(),
        weights.clone(),
    ));
    let batches = dataset.unwrap().batch(8);
    let options = || FitOptions::new().epochs(2).shuffle(false);
    let start = model.get_weights().unwrap();
    let got = model.fit(&batches, options()).unwrap();
    model.set_weights(&start).unwrap();
    model.compile(Sgd::new(0.1), "mse", CompileOptions::new()).unwrap();
    let want = model.fit(((&x, &x), &sums, &weights), options().batch_size(8)).unwrap();
    assert_eq!(got, want);
    let inputs = batches.map(|(x, _, _)| (x,));
    let predicted = model.predict(&inputs, PredictOptions::new()).unwrap();
    assert_eq!(predicted.shape(), [30, 1]);
}

/// A custom model, which casts nothing.
#[derive(Trackable)]
struct Mine {
    dense: Dense,
    trainer: Trainer,
}

impl Layer for Mine {
    fn call(&self, x: &Tensor, cx: Context<'_>) -> Result<Tensor> {
        self.dense.call(&x.reshape([-1, 784])?, cx)
    }
}

impl Model for Mine {
    fn trainer(&self) -> &Trainer {
        &self.trainer
    }
}

// Keras 3 casts the input of a Sequential or a functional model to its input dtype, float32, and Dense multiplies uint8 as
// float32 in a custom model.
#[test]
fn bytes_are_floats_to_a_model() {
    let _alone = alone();
    let bytes = Dataset::from_tensor_slices(draw_digits(40, 1)).unwrap().batch(20);
    let floats = bytes.map(|(x, y)| (x.mapv(f32::from), y));
    let loss = || SparseCategoricalCrossentropy::new().from_logits(true);
    let stacks: [fn() -> Sequential; 4] = [
        || Sequential::new().add(Flatten::new()),
        || Sequential::new().add(Conv2D::new(2, [3, 3])).add(Flatten::new()),
        || Sequential::new().add(MaxPooling2D::new([2, 2])).add(Flatten::new()),
        || Sequential::new().add(LayerNormalization::new()).add(Flatten::new()),
    ];
    for stack in stacks {
        let model = || {
            tf::random::set_seed(1);
            let model = stack().add(Dense::new(10));
            model.build([1, 28, 28, 1]).unwrap();
            model.compile(Adam::new(1e-3), loss(), CompileOptions::new()).unwrap();
            model
        };
        let (a, b) = (model(), model());
        let (got, want) =
            (a.fit(&bytes, FitOptions::new()).unwrap(), b.fit(&floats, FitOptions::new()).unwrap());
        assert_eq!(got, want);
        assert_eq!(a.get_weights().unwrap(), b.get_weights().unwrap());
    }
    let x = Input::new([28, 28, 1]);
    let kernel = Initializer::Constant(0.5);
    let y = Dense::new(1).kernel_initializer(kernel).on(&Flatten::new().on(&x).unwrap()).unwrap();
    let functional = Functional::new(&x, &y).unwrap();
    let mine = Mine { dense: Dense::new(10), trainer: Trainer::new() };
    mine.compile("sgd", loss(), CompileOptions::new()).unwrap();
    mine.fit(&bytes, FitOptions::new()).unwrap();
    let (x, _) = bytes.iter().next().unwrap().unwrap();
    let sum: f32 = x.iter().take(784).map(|pixel| f32::from(*pixel)).sum();
    let x = Tensor::from_array(&x).unwrap();
    let y = functional.call(&x, INFERENCE).unwrap().to_vec::<f32>().unwrap();
    assert!((y[0] - 0.5 * sum).abs() < 1e-3 * sum, "{} and {sum}", y[0]);
}
