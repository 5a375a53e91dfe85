//! Three kinds of models: stacks, functional models and structs, nested in each other; their names, tables and weights.

#![allow(clippy::unwrap_used)]

use crate::{names, values};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use wgrad::keras::layers::{Conv1D, Conv2D, Dense, Dropout, Flatten};
use wgrad::keras::optimizers::{Optimizer, Sgd};
use wgrad::keras::{
    Activation, CompileOptions, Context, EvaluateOptions, FitOptions, Functional, INFERENCE,
    Initializer, Input, Layer, LayerExt, Model, PredictOptions, Sequential, SymbolicTensor,
    TRAINING, Weight,
};
use wgrad::random::Generator;
use wgrad::{
    DType, Device, Error, GradientTape, Result, SummaryOptions, Tensor, Trackable, constant,
};

/// Adds its inputs.
#[derive(Trackable)]
struct Sum;

impl Layer<[Tensor]> for Sum {
    fn call(&self, xs: &[Tensor], _cx: Context<'_>) -> Result<Tensor> {
        let (first, rest) = xs.split_first().unwrap();
        rest.iter().try_fold(first.clone(), |sum, x| sum.add(x))
    }
}

/// A custom layer with two results: `x kernel` and its square.
#[derive(Trackable)]
struct Two {
    kernel: Weight,
}

impl Layer<Tensor, (Tensor, Tensor)> for Two {
    fn call(&self, x: &Tensor, _cx: Context<'_>) -> Result<(Tensor, Tensor)> {
        let y = x.matmul(self.kernel.get(x, [x.shape()[1], 3])?)?;
        Ok((y.clone(), y.square()?))
    }
}

fn ones(units: usize) -> Dense {
    Dense::new(units).kernel_initializer(Initializer::Ones)
}

// ---- shapes ------------------------------------------------------------------------------------------------

#[test]
fn shapes_are_found_without_data() {
    let image = Input::new([28, 28, 1]).with_name("image");
    let y = Conv2D::new(8, [3, 3]).on(&image).unwrap();
    assert_eq!(y.to_string(), "(None, 26, 26, 8) f32");
    let y = Flatten::new().on(&y).unwrap();
    assert_eq!(y.shape(), [None, Some(5408)]);

    // Variable sizes stay unknown, also through layers that halve them.
    let any = Input::new([None, None, Some(3)]);
    let y = Conv2D::new(4, [5, 5]).strides([2, 2]).on(&any).unwrap();
    assert_eq!(y.to_string(), "(None, None, None, 4) f32");
    let pooled = y.map("mean", |x| x.reduce_mean([1, 2])).unwrap();
    assert_eq!(pooled.to_string(), "(None, 4) f32");
    let flat = y.map("rows", |x| x.reshape([x.shape()[0] as i64, -1, 4])).unwrap();
    assert_eq!(flat.to_string(), "(None, None, 4) f32");

    let fixed = Input::new([5]).with_batch_size(4).with_dtype(DType::I32);
    let y = fixed.map("float", |x| x.cast(DType::F32)).unwrap();
    assert_eq!(y.to_string(), "(4, 5) f32");
    let scalar = Input::new(());
    assert_eq!(scalar.multiply(2.0).unwrap().to_string(), "(None) f32");
}

#[test]
fn layers_that_refuse_small_sizes_are_tried_with_larger_ones() {
    // Windows of 101 do not fit in any of the first sizes.
    let x = Input::new([None, Some(1)]);
    let windowed = x.map("window", |x| {
        let n = x.shape()[1].checked_sub(100).filter(|n| *n > 0);
        let n = n.ok_or(wgrad::Error::Shape("too short".into()))?;
        x.slice(&[0, 0, 0], &[-1, n as i64, -1])
    });
    let windowed = windowed.unwrap();
    assert_eq!(windowed.to_string(), "(None, None, 1) f32");
    // The next layer is tried with the same sizes, and a layer that halves them fits one that doubles them.
    let both = SymbolicTensor::map_all("both", [&windowed, &*x], |x| {
        assert_eq!(x[0].shape()[1] + 100, x[1].shape()[1]);
        Ok(x[1].clone())
    });
    assert_eq!(both.unwrap().shape(), [None, None, Some(1)]);
    let halves = x.map("halves", |x| x.reshape([x.shape()[0] as i64, -1, 2])).unwrap();
    let again = SymbolicTensor::map_all("again", [&halves, &*x], |x| {
        assert_eq!(x[0].shape()[1] * 2, x[1].shape()[1]);
        x[0].reshape([x[1].shape()[0] as i64, x[1].shape()[1] as i64, 1])
    });
    assert_eq!(again.unwrap().shape(), [None, None, Some(1)]);
}

#[test]
fn building_computes_nothing_but_weights() {
    let device = Device::new().unwrap();
    device.scope(|| {
        let x = Input::new([64]);
        let mut y = Dense::new(64).on(&x).unwrap();
        for _ in 0..5 {
            y = Dense::new(64).activation(Activation::Relu).on(&y).unwrap().add(&x).unwrap();
        }
        let model = Functional::new(&x, &y).unwrap();
        // A kernel is drawn in one launch, and a bias is uploaded.
        let launched = device.stats().kernels;
        assert!(launched <= 6, "{launched} kernels were launched for six layers");
        assert_eq!(model.count_params(), 6 * (64 * 64 + 64));
    });
}

#[test]
fn building_records_nothing_and_changes_no_variable() {
    /// Counts its calls.
    #[derive(Trackable)]
    struct Counter {
        count: Weight,
    }
    impl Layer for Counter {
        fn call(&self, x: &Tensor, _cx: Context<'_>) -> Result<Tensor> {
            let count = self.count.variable(x, [])?;
            count.assign_add(1.0)?;
            count.assign(count.read())?;
            x.add(count)
        }
    }
    let tape = GradientTape::new();
    let x = Input::new([2]);
    let counter = Counter { count: Weight::zeros() };
    let model = Functional::new(&x, counter.on(&x).unwrap()).unwrap();
    assert!(tape.watched_variables().is_empty());
    assert_eq!(model.variables()[0].read().item::<f32>().unwrap(), 0.0);
    let y = model.call(&Tensor::zeros([1, 2]).unwrap(), TRAINING).unwrap();
    assert_eq!(values(&y), [1.0, 1.0]);
    assert_eq!(model.variables()[0].read().item::<f32>().unwrap(), 1.0);
}

// ---- results of models --------------------------------------------------------------------------------------

#[test]
fn branches_merge() {
    let (a, b) = (Input::new([2]).with_name("a"), Input::new([3]).with_name("b"));
    let left = ones(4).on(&a).unwrap();
    let right = ones(4).on(&b).unwrap();
    let sum = Sum.on_all([&left, &right]).unwrap();
    let model = Functional::new([&a, &b], [&sum, &left]).unwrap();
    let inputs = [constant([[1.0, 2.0]]).unwrap(), constant([[10.0, 20.0, 30.0]]).unwrap()];
    let results = model.call(&inputs, INFERENCE).unwrap();
    assert_eq!(values(&results[0]), [63.0; 4]);
    assert_eq!(values(&results[1]), [3.0; 4]);
    assert_eq!(names(&model), ["dense/kernel", "dense/bias", "dense_1/kernel", "dense_1/bias"]);
    assert_eq!(model.input_names(), ["a", "b"]);
    assert_eq!(model.output_names(), ["sum", "dense"]);
}

#[test]
fn a_shared_layer_is_tracked_once() {
    let (a, b) = (Input::new([2]), Input::new([2]));
    let shared = Arc::new(ones(2));
    let ya = shared.clone().on(&a).unwrap();
    let yb = shared.clone().on(&b).unwrap();
    let yy = shared.on(&ya).unwrap();
    let model = Functional::new((&a, &b), (&yb, &yy)).unwrap();
    assert_eq!(names(&model), ["dense/kernel", "dense/bias"]);
    assert_eq!(model.layers().count(), 1);
    let x = [constant([[1.0, 2.0]]).unwrap(), constant([[3.0, 4.0]]).unwrap()];
    let y = model.call(&x, INFERENCE).unwrap();
    assert_eq!((values(&y[0]), values(&y[1])), (vec![7.0, 7.0], vec![6.0, 6.0]));

    // Stateless layers are not shared by mistake.
    let x = Input::new([2]);
    let y = Sum.on_all([&Sum.on_all(&x).unwrap(), &*x]).unwrap();
    assert_eq!(Functional::new(&x, &y).unwrap().layers().count(), 2);
}

#[test]
fn layers_may_have_several_results() {
    let x = Input::new([2]);
    let (y, square) = Two { kernel: Weight::ones() }.on_all(&x).unwrap();
    let model = Functional::new(&x, square.subtract(&y).unwrap()).unwrap();
    let y = model.call(&constant([[1.0, 3.0]]).unwrap(), INFERENCE).unwrap();
    assert_eq!(values(&y), [12.0; 3]);
}

#[test]
fn operators_take_symbols_and_numbers() {
    let x = Input::new([2]);
    let y = &(&(&*x + 1.0) * &*x) - &(2.0 / &*x);
    let model = Functional::new(&x, &-&y).unwrap();
    let y = model.call(&constant([[1.0, 2.0]]).unwrap(), INFERENCE).unwrap();
    assert_eq!(values(&y), [0.0, -5.0]);
    let names: Vec<&str> = model.layers().map(|(name, _)| name).collect();
    assert_eq!(names, ["add", "multiply", "true_divide", "subtract", "negative"]);
}

#[test]
fn dropout_hears_of_training() {
    let x = Input::new([1000]);
    let model = Functional::new(&x, Dropout::new(0.5).on(&x).unwrap()).unwrap();
    let ones = Tensor::ones([1, 1000]).unwrap();
    assert_eq!(values(&model.call(&ones, INFERENCE).unwrap()), [1.0; 1000]);
    assert!(values(&model.call(&ones, TRAINING).unwrap()).contains(&0.0));
}

#[test]
fn parts_of_a_model_are_models() {
    let x = Input::new([3]);
    let hidden = ones(4).on_named("hidden", &x).unwrap();
    let y = ones(2).on(&hidden).unwrap();
    let whole = Functional::new(&x, &y).unwrap();
    let features = Functional::new(&x, whole.layer_outputs("hidden").unwrap()).unwrap();
    let head = Functional::new(&hidden, &y).unwrap();
    let input = constant([[1.0, 2.0, 3.0]]).unwrap();
    let between = features.call(&input, INFERENCE).unwrap();
    assert_eq!(values(&between), [6.0; 4]);
    assert_eq!(values(&head.call(&between, INFERENCE).unwrap()), [24.0; 2]);
    assert_eq!(values(&whole.call(&input, INFERENCE).unwrap()), [24.0; 2]);

    // They share the weights.
    features.variables()[0].assign(Tensor::zeros([3, 4]).unwrap()).unwrap();
    assert_eq!(values(&whole.call(&input, INFERENCE).unwrap()), [0.0; 2]);

    // A frozen base with a new head.
    whole.get_layer("hidden").unwrap().set_trainable(false);
    let transfer = Functional::new(&x, Dense::new(5).on_named("new", &hidden).unwrap()).unwrap();
    assert_eq!(names(&transfer), ["hidden/kernel", "hidden/bias", "new/kernel", "new/bias"]);
    assert_eq!(transfer.trainable_variables().len(), 2);
}

/// `x + dense(x)`.
#[derive(Trackable)]
struct Residual {
    dense: Dense,
}

impl Layer for Residual {
    fn call(&self, x: &Tensor, cx: Context<'_>) -> Result<Tensor> {
        x.add(self.dense.call(x, cx)?)
    }
}

/// A struct with a stack and a functional model.
#[derive(Trackable)]
struct Mixed {
    stack: Sequential,
    graph: Functional,
}

impl Layer for Mixed {
    fn call(&self, x: &Tensor, cx: Context<'_>) -> Result<Tensor> {
        self.graph.call(&self.stack.call(x, cx)?, cx)
    }
}

fn mixed() -> Mixed {
    let x = Input::new([4]);
    let inner = Sequential::new().add(Residual { dense: Dense::new(4) }).add(Dense::new(3));
    let graph = Functional::new(&x, inner.on(&x).unwrap()).unwrap();
    Mixed {
        stack: Sequential::new().add(Dense::new(4)).add(Residual { dense: Dense::new(4) }),
        graph,
    }
}

#[test]
fn models_of_all_kinds_nest_in_each_other() {
    let x = Input::new([2]);
    let y = mixed().on_named("mixed", &x).unwrap();
    let outer = Functional::new(&x, &y).unwrap();
    let model = Sequential::new().add_named("outer", outer).add(Dense::new(1));
    let input = constant([[1.0, -1.0]]).unwrap();
    let before = values(&model.call(&input, INFERENCE).unwrap());
    let all = names(&model);
    assert_eq!(all[0], "outer/mixed/stack/dense/kernel");
    assert_eq!(all[2], "outer/mixed/stack/residual/dense/kernel");
    assert_eq!(all[4], "outer/mixed/graph/sequential/residual/dense/kernel");
    assert_eq!(model.count_params(), 12 + 20 + 20 + 15 + 4);

    // Trained, saved and restored like any other.
    let step = |model: &Sequential| {
        let tape = GradientTape::new();
        let loss = model.call(&input, TRAINING).unwrap().square().unwrap().reduce_sum(()).unwrap();
        Sgd::new(0.05).minimize(&loss, tape, model).unwrap();
    };
    step(&model);
    let after = values(&model.call(&input, INFERENCE).unwrap());
    assert_ne!(before, after);
    let saved = pollster::block_on(model.to_safetensors_async()).unwrap();
    let outer = Functional::new(&x, mixed().on_named("mixed", &x).unwrap()).unwrap();
    let fresh = Sequential::new().add_named("outer", outer).add(Dense::new(1));
    fresh.load_safetensors(&saved).unwrap();
    assert_eq!(values(&fresh.call(&input, INFERENCE).unwrap()), after);
    fresh.set_trainable(false);
    assert!(fresh.trainable_variables().is_empty());
}

#[test]
fn models_of_several_inputs_nest() {
    let (a, b) = (Input::new([2]), Input::new([2]));
    let inner = Functional::new([&a, &b], [a.add(&b).unwrap(), a.multiply(&b).unwrap()]).unwrap();
    let (x, y) = (Input::new([2]), Input::new([2]));
    let both = inner.clone().on_all([&x, &y]).unwrap();
    let again = inner.on_all([&both[0], &both[1]]).unwrap();
    let outer = Functional::new([&x, &y], &again[0]).unwrap();
    let input = [constant([[1.0, 2.0]]).unwrap(), constant([[3.0, 4.0]]).unwrap()];
    assert_eq!(values(&outer.call(&input, INFERENCE).unwrap()[0]), [4.0 + 3.0, 6.0 + 8.0]);
    // The inner model is one layer, called twice.
    assert_eq!(outer.layers().count(), 1);
}

#[test]
fn long_chains_take_linear_time_and_no_deep_stack() {
    let x = Input::new([2]);
    let mut y = x.add(1.0).unwrap();
    for _ in 1..20_000 {
        y = y.add(1.0).unwrap();
    }
    let model = Functional::new(&x, &y).unwrap();
    drop((x, y));
    assert_eq!(model.layers().count(), 20_000);
    drop(model);
}

/// A layer that must be tried with other sizes is tried once for everything computed from it.
#[test]
fn layers_before_symbols_of_other_sizes_are_tried_once() -> Result<()> {
    const COUNT: usize = 10_000;
    let calls = Arc::new(AtomicUsize::new(0));
    let x = Input::new([None, Some(1)]);
    // A window that does not fit in the first sizes, 64, 192 and 32.
    let mut long = Conv1D::new(1, 200).on(&x)?;
    let mut short = (*x).clone();
    for _ in 0..COUNT {
        let calls = calls.clone();
        short = short.map("short", move |x| {
            // Three times when it is made, and three times again with longer sizes.
            match calls.fetch_add(1, Ordering::Relaxed) < 6 * COUNT {
                true => Ok(x.clone()),
                false => Err(Error::Data("a layer was tried too often".into())),
            }
        })?;
        long = SymbolicTensor::map_all("long", [&long, &short], |x| Ok(x[0].clone()))?;
    }
    assert_eq!(long.to_string(), "(None, None, 1) f32");
    assert_eq!(calls.load(Ordering::Relaxed), 6 * COUNT);
    Ok(())
}

#[test]
fn ten_thousand_inputs_and_outputs_have_their_names() -> Result<()> {
    const COUNT: usize = 10_000;
    let inputs: Vec<Input> =
        (0..COUNT).map(|at| Input::new([1]).with_name(&format!("x{at}"))).collect();
    let outputs = inputs.iter().map(|x| x.add(1.0)).collect::<Result<Vec<_>>>()?;
    let model = Functional::new(&inputs, &outputs)?;
    let (inputs, outputs) = (model.input_names(), model.output_names());
    assert_eq!((inputs.len(), outputs.len()), (COUNT, COUNT));
    for at in [0, 1, 2, COUNT - 1] {
        let number = if at == 0 { String::new() } else { format!("_{at}") };
        assert_eq!((inputs[at], outputs[at]), (&*format!("x{at}"), &*format!("add{number}")));
    }
    Ok(())
}

#[test]
fn a_step_of_a_functional_model_settles() {
    let device = Device::new().unwrap();
    device.scope(|| {
        let (a, b) = (Input::new([8]), Input::new([8]));
        let relu = |x: &SymbolicTensor| Dense::new(16).activation(Activation::Relu).on(x).unwrap();
        let y = Dense::new(4).on(&relu(&a).add(relu(&b)).unwrap()).unwrap();
        let model = Functional::new([&a, &b], &y).unwrap();
        let sgd = Sgd::new(0.01);
        let x = [Tensor::ones([32, 8]).unwrap(), Tensor::ones([32, 8]).unwrap()];
        let step = || {
            let tape = GradientTape::new();
            let y = model.call(&x, TRAINING).unwrap();
            let loss = y[0].square().unwrap().reduce_mean(()).unwrap();
            sgd.minimize(&loss, tape, &model).unwrap();
        };
        (0..3).for_each(|_| step());
        let before = device.stats();
        (0..5).for_each(|_| step());
        let after = device.stats();
        assert_eq!(after.plan_misses, before.plan_misses);
        assert_eq!(after.pipelines, before.pipelines);
        assert_eq!(after.buffers, before.buffers);
    });
}

#[test]
fn fit_takes_several_inputs_and_outputs() {
    let (a, b) = (Input::new([2]).with_name("a"), Input::new([3]).with_name("b"));
    let both = Sum.on_all([Dense::new(4).on(&a).unwrap(), Dense::new(4).on(&b).unwrap()]).unwrap();
    let y = Dense::new(1).on_named("left", &both).unwrap();
    let z = Dense::new(2).on_named("right", &both).unwrap();
    let model = Functional::new([&a, &b], [&y, &z]).unwrap();
    model.compile("sgd", "mse", CompileOptions::new()).unwrap();
    let x = [Tensor::ones([16, 2]).unwrap(), Tensor::ones([16, 3]).unwrap()];
    let targets = [Tensor::zeros([16, 1]).unwrap(), Tensor::zeros([16, 2]).unwrap()];
    let options = || FitOptions::new().epochs(5).verbose(0);
    let history = model.fit(([&x[0], &x[1]], [&targets[0], &targets[1]]), options()).unwrap();
    let loss = history.get("loss").unwrap();
    assert!(loss[4] < loss[0], "{loss:?}");
    assert!(history.get("left_loss").is_some() && history.get("right_loss").is_some());

    // One input and one output.
    let model = Functional::new(&a, Dense::new(1).on(&a).unwrap()).unwrap();
    model.compile("sgd", "mse", CompileOptions::new().metrics(["mae"])).unwrap();
    let history = model.fit((&x[0], &targets[0]), options()).unwrap();
    assert!(history.get("mae").is_some());
    assert_eq!(model.predict(&x[0], PredictOptions::new()).unwrap().shape(), [16, 1]);
}

/// As in Keras, which also prints the table.
#[test]
fn inputs_that_no_output_depends_on_are_given_and_ignored() {
    let (a, b, c) = (
        Input::new([4]).with_name("a"),
        Input::new([3]).with_name("b"),
        Input::new([2]).with_name("c"),
    );
    let hidden = Dense::new(5).on_named("hidden", &a).unwrap();
    let y = Dense::new(2).on_named("out", &hidden).unwrap();
    let model = Functional::new([&c, &a, &b], &y).unwrap().with_name("unused");
    assert_eq!(
        model.summary_with(SummaryOptions::new().line_length(76)),
        "\
Model: \"unused\"
┏━━━━━━━━━━━━━━━━━━━━━┳━━━━━━━━━━━━━━━━━━━┳━━━━━━━━━━━━┳━━━━━━━━━━━━━━━━━━━┓
┃ Layer (type)        ┃ Output Shape      ┃    Param # ┃ Connected to      ┃
┡━━━━━━━━━━━━━━━━━━━━━╇━━━━━━━━━━━━━━━━━━━╇━━━━━━━━━━━━╇━━━━━━━━━━━━━━━━━━━┩
│ a (InputLayer)      │ (None, 4)         │          0 │ -                 │
├─────────────────────┼───────────────────┼────────────┼───────────────────┤
│ hidden (Dense)      │ (None, 5)         │         25 │ a[0][0]           │
├─────────────────────┼───────────────────┼────────────┼───────────────────┤
│ c (InputLayer)      │ (None, 2)         │          0 │ -                 │
├─────────────────────┼───────────────────┼────────────┼───────────────────┤
│ b (InputLayer)      │ (None, 3)         │          0 │ -                 │
├─────────────────────┼───────────────────┼────────────┼───────────────────┤
│ out (Dense)         │ (None, 2)         │         12 │ hidden[0][0]      │
└─────────────────────┴───────────────────┴────────────┴───────────────────┘
 Total params: 37 (148.00 B)
 Trainable params: 37 (148.00 B)
 Non-trainable params: 0 (0.00 B)
"
    );
    assert_eq!(model.input_names(), ["c", "a", "b"]);
    let alone = Functional::new(&a, &y).unwrap();
    let random = |seed, width| Generator::from_seed(seed).normal([6, width]).unwrap();
    let xs = [random(1, 2), random(2, 4), random(3, 3)];
    let want = values(&alone.call(&xs[1], INFERENCE).unwrap());
    assert_eq!(values(&model.call(&xs, INFERENCE).unwrap()[0]), want);
    let predicted = model.predict((&xs[0], &xs[1], &xs[2]), PredictOptions::new()).unwrap();
    assert_eq!(values(&predicted), want);
    // They are arguments of a call, and must fit.
    let error = model.call(&[xs[1].clone()], INFERENCE).map(drop).unwrap_err().to_string();
    assert_eq!(
        error,
        "Functional: the model has 3 inputs and was called with 1 tensor. Its inputs are c, a, b."
    );
    let wrong = [xs[1].clone(), xs[1].clone(), xs[2].clone()];
    let error = model.call(&wrong, INFERENCE).map(drop).unwrap_err().to_string();
    assert!(error.starts_with("Functional: the input 'c' is [6, 4]; it must be "), "{error}");

    let target = Tensor::zeros([6, 2]).unwrap();
    let start = model.get_weights().unwrap();
    let options = || FitOptions::new().epochs(3).verbose(0).shuffle(false);
    let mut trained = Vec::new();
    for on_all in [true, false] {
        model.set_weights(&start).unwrap();
        let history = match on_all {
            true => {
                model.compile("sgd", "mse", CompileOptions::new()).unwrap();
                model.fit(((&xs[0], &xs[1], &xs[2]), &target), options())
            }
            false => {
                alone.compile("sgd", "mse", CompileOptions::new()).unwrap();
                alone.fit((&xs[1], &target), options())
            }
        };
        let losses = history.unwrap().get("loss").unwrap().to_vec();
        assert!(losses[2] < losses[0], "{losses:?}");
        trained.push((losses, model.get_weights().unwrap()));
    }
    assert_eq!(trained[0], trained[1]);

    // A nested model: the layers before its unused input get no gradient, and stay unchanged.
    let lost = Dense::new(2).on_named("lost", &b).unwrap();
    let y = model.clone().on_all([&lost, &*a, &*b]).unwrap();
    let outer = Functional::new([&a, &b], y).unwrap();
    let unchanged = || -> Vec<Vec<f32>> {
        let variables = outer.get_layer("lost").unwrap().variables();
        variables.iter().map(|variable| values(&variable.read())).collect()
    };
    let before = unchanged();
    outer.compile("adam", "mse", CompileOptions::new()).unwrap();
    let history = outer.fit(((&xs[1], &xs[2]), &target), options()).unwrap();
    assert!(history.get("loss").unwrap()[2] < history.get("loss").unwrap()[0]);
    assert_eq!(unchanged(), before);
}

#[test]
fn a_model_trains_on_the_device_of_its_variables() {
    let own = Device::new().unwrap();
    let model = Sequential::new().add(Dense::new(3)).add(Dense::new(1));
    own.scope(|| model.build([1, 2])).unwrap();
    let x = ndarray::Array2::from_shape_fn((40, 2), |(i, j)| (i as f32 / 40.0) - j as f32);
    let y = x.sum_axis(ndarray::Axis(1)).insert_axis(ndarray::Axis(1));
    model.compile("adam", "mse", CompileOptions::new()).unwrap();
    let history = model.fit((&x, &y), FitOptions::new().epochs(2).verbose(0)).unwrap();
    assert_eq!(history.get("loss").map(<[f64]>::len), Some(2));
    model.evaluate((&x, &y), EvaluateOptions::new().verbose(0)).unwrap();
    let predicted = model.predict(&x, PredictOptions::new()).unwrap();
    assert!(predicted.device() == &own && predicted.shape() == [40, 1]);
    for variable in model.variables() {
        assert!(variable.read().device() == &own);
    }
    model.train_on_batch((x.clone(), y.clone())).unwrap();
    model.test_on_batch((x.clone(), y.clone())).unwrap();
    assert!(model.predict_on_batch(x.clone()).unwrap()[0].device() == &own);
    // A batch on another device is refused.
    let there = Tensor::ones([4, 2]).unwrap();
    let error = model.predict(&there, PredictOptions::new()).unwrap_err();
    assert!(error.to_string().ends_with("x.to(&device)."), "{error}");
}

// ---- tables ------------------------------------------------------------------------------------------------

// Keras 3.15 prints these tables.

#[test]
fn a_stack_has_keras_table() {
    let model = Sequential::new()
        .add(Flatten::new())
        .add(Dense::new(100).activation(Activation::Relu))
        .add(Dense::new(10));
    model.build([1, 28, 28, 1]).unwrap();
    assert_eq!(
        model.summary_with(SummaryOptions::new().line_length(88)),
        "\
Model: \"sequential\"
┏━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━┳━━━━━━━━━━━━━━━━━━━━━━━━━━━━━┳━━━━━━━━━━━━━━━━━┓
┃ Layer (type)                         ┃ Output Shape                ┃         Param # ┃
┡━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━╇━━━━━━━━━━━━━━━━━━━━━━━━━━━━━╇━━━━━━━━━━━━━━━━━┩
│ flatten (Flatten)                    │ (None, 784)                 │               0 │
├──────────────────────────────────────┼─────────────────────────────┼─────────────────┤
│ dense (Dense)                        │ (None, 100)                 │          78,500 │
├──────────────────────────────────────┼─────────────────────────────┼─────────────────┤
│ dense_1 (Dense)                      │ (None, 10)                  │           1,010 │
└──────────────────────────────────────┴─────────────────────────────┴─────────────────┘
 Total params: 79,510 (310.59 KB)
 Trainable params: 79,510 (310.59 KB)
 Non-trainable params: 0 (0.00 B)
"
    );
}

// The output of Keras 3.15 in a terminal of 80 columns.
#[test]
fn a_table_fits_into_a_terminal() {
    let model = Sequential::new().add(Flatten::new()).add(Dense::new(10));
    model.build([1, 28, 28]).unwrap();
    assert_eq!(
        model.summary(),
        "\
Model: \"sequential\"
┏━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━┳━━━━━━━━━━━━━━━━━━━━━━━━┳━━━━━━━━━━━━━━━┓
┃ Layer (type)                    ┃ Output Shape           ┃       Param # ┃
┡━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━╇━━━━━━━━━━━━━━━━━━━━━━━━╇━━━━━━━━━━━━━━━┩
│ flatten (Flatten)               │ (None, 784)            │             0 │
├─────────────────────────────────┼────────────────────────┼───────────────┤
│ dense (Dense)                   │ (None, 10)             │         7,850 │
└─────────────────────────────────┴────────────────────────┴───────────────┘
 Total params: 7,850 (30.66 KB)
 Trainable params: 7,850 (30.66 KB)
 Non-trainable params: 0 (0.00 B)
"
    );
    let options = [SummaryOptions::new(), SummaryOptions::new().show_trainable(true)];
    for options in options {
        let text = two_inputs().summary_with(options);
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }
}

fn two_inputs() -> Functional {
    let image = Input::new([28, 28, 1]).with_name("image");
    let words = Input::new([None]).with_name("words");
    let x = Flatten::new().on(&Conv2D::new(8, [3, 3]).on(&image).unwrap()).unwrap();
    let mean = words.map("mean", |x| x.reduce_mean(wgrad::Axes::from(-1).keepdims(true))).unwrap();
    let inner = Sequential::new().with_name("inner").add(Dense::new(16)).add(Dense::new(4));
    let shared = Arc::new(Dense::new(4));
    let side = shared.clone().on(&Dense::new(4).on(&mean).unwrap()).unwrap();
    let sum =
        Sum.on_all([inner.on_named("inner", &x).unwrap(), shared.on(&side).unwrap()]).unwrap();
    let y = Dense::new(1).on_named("a_very_long_layer_name_that_wraps_around", &sum).unwrap();
    Functional::new([&image, &words], &y).unwrap().with_name("two")
}

#[test]
fn a_model_that_branches_says_what_is_connected() {
    assert_eq!(
        two_inputs().summary_with(SummaryOptions::new().expand_nested(true).line_length(108)),
        "\
Model: \"two\"
┏━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━┳━━━━━━━━━━━━━━━━━━━━━━━━━━━┳━━━━━━━━━━━━━━━━━┳━━━━━━━━━━━━━━━━━━━━━━━━━━━━┓
┃ Layer (type)                  ┃ Output Shape              ┃         Param # ┃ Connected to               ┃
┡━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━╇━━━━━━━━━━━━━━━━━━━━━━━━━━━╇━━━━━━━━━━━━━━━━━╇━━━━━━━━━━━━━━━━━━━━━━━━━━━━┩
│ words (InputLayer)            │ (None, None)              │               0 │ -                          │
├───────────────────────────────┼───────────────────────────┼─────────────────┼────────────────────────────┤
│ image (InputLayer)            │ (None, 28, 28, 1)         │               0 │ -                          │
├───────────────────────────────┼───────────────────────────┼─────────────────┼────────────────────────────┤
│ mean (Lambda)                 │ (None, 1)                 │               0 │ words[0][0]                │
├───────────────────────────────┼───────────────────────────┼─────────────────┼────────────────────────────┤
│ conv2d (Conv2D)               │ (None, 26, 26, 8)         │              80 │ image[0][0]                │
├───────────────────────────────┼───────────────────────────┼─────────────────┼────────────────────────────┤
│ dense (Dense)                 │ (None, 4)                 │               8 │ mean[0][0]                 │
├───────────────────────────────┼───────────────────────────┼─────────────────┼────────────────────────────┤
│ flatten (Flatten)             │ (None, 5408)              │               0 │ conv2d[0][0]               │
├───────────────────────────────┼───────────────────────────┼─────────────────┼────────────────────────────┤
│ dense_1 (Dense)               │ (None, 4)                 │              20 │ dense[0][0], dense_1[0][0] │
├───────────────────────────────┼───────────────────────────┼─────────────────┼────────────────────────────┤
│ inner (Sequential)            │ (None, 4)                 │          86,612 │ flatten[0][0]              │
├───────────────────────────────┼───────────────────────────┼─────────────────┼────────────────────────────┤
│    └ dense (Dense)            │ (None, 16)                │          86,544 │ -                          │
├───────────────────────────────┼───────────────────────────┼─────────────────┼────────────────────────────┤
│    └ dense_1 (Dense)          │ (None, 4)                 │              68 │ -                          │
├───────────────────────────────┼───────────────────────────┼─────────────────┼────────────────────────────┤
│ sum (Sum)                     │ (None, 4)                 │               0 │ inner[0][0], dense_1[1][0] │
├───────────────────────────────┼───────────────────────────┼─────────────────┼────────────────────────────┤
│ a_very_long_layer_name_that_… │ (None, 1)                 │               5 │ sum[0][0]                  │
│ (Dense)                       │                           │                 │                            │
└───────────────────────────────┴───────────────────────────┴─────────────────┴────────────────────────────┘
 Total params: 86,725 (338.77 KB)
 Trainable params: 86,725 (338.77 KB)
 Non-trainable params: 0 (0.00 B)
"
    );
}

#[test]
fn a_narrow_table_wraps_and_says_what_trains() {
    let x = Input::new([28, 28, 1]).with_name("image");
    let y = Conv2D::new(8, [3, 3]).on(&x).unwrap();
    let model = Functional::new(&x, Flatten::new().on(&y).unwrap()).unwrap();
    model.get_layer("conv2d").unwrap().set_trainable(false);
    let options = SummaryOptions::new().line_length(50).show_trainable(true);
    assert_eq!(
        model.summary_with(options),
        "\
Model: \"functional\"
┏━━━━━━━━━━━━━━━━━━━┳━━━━━━━━━━━━━━━┳━━━━━━━┳━━━━┓
┃                   ┃               ┃ Param ┃    ┃
┃ Layer (type)      ┃ Output Shape  ┃     # ┃ T… ┃
┡━━━━━━━━━━━━━━━━━━━╇━━━━━━━━━━━━━━━╇━━━━━━━╇━━━━┩
│ image             │ (None, 28,    │     0 │ -  │
│ (InputLayer)      │ 28, 1)        │       │    │
├───────────────────┼───────────────┼───────┼────┤
│ conv2d (Conv2D)   │ (None, 26,    │    80 │ N  │
│                   │ 26, 8)        │       │    │
├───────────────────┼───────────────┼───────┼────┤
│ flatten (Flatten) │ (None, 5408)  │     0 │ -  │
└───────────────────┴───────────────┴───────┴────┘
 Total params: 80 (320.00 B)
 Trainable params: 0 (0.00 B)
 Non-trainable params: 80 (320.00 B)
"
    );
}

#[test]
fn a_struct_lists_its_parts() {
    let model = mixed();
    assert!(
        model.summary().contains("│ stack (Sequential)              │ ?"),
        "{}",
        model.summary()
    );
    model.call(&Tensor::ones([1, 2]).unwrap(), INFERENCE).unwrap();
    let text = model.summary_with(SummaryOptions::new().expand_nested(true));
    for part in [
        "Model: \"mixed\"",
        "│ stack (Sequential) ",
        "│    └ residual (Residual) ",
        "│       └ dense (Dense) ",
    ] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
}

// ---- pictures ----------------------------------------------------------------------------------------------

#[test]
fn graphviz_has_a_node_for_each_layer_and_a_cluster_for_each_model() {
    let model = Sequential::new().add(Flatten::new()).add(Dense::new(10));
    assert!(model.to_dot().contains(r#"n0 [label="{flatten (Flatten)|{output: ?}}"];"#));
    model.build([1, 4, 2]).unwrap();
    assert_eq!(
        model.to_dot(),
        r#"digraph "sequential" {
  compound=true;
  node [shape=record];
  n0 [label="{flatten (Flatten)|{input: (None, 4, 2)|output: (None, 8)}}"];
  n1 [label="{dense (Dense)|{input: (None, 8)|output: (None, 10)}}"];
  n0 -> n1;
}
"#
    );
    assert_eq!(
        two_inputs().to_dot(),
        r#"digraph "two" {
  compound=true;
  node [shape=record];
  n0 [label="{words (InputLayer)|{output: (None, None)}}"];
  n1 [label="{image (InputLayer)|{output: (None, 28, 28, 1)}}"];
  n2 [label="{mean (Lambda)|{input: (None, None)|output: (None, 1)}}"];
  n3 [label="{conv2d (Conv2D)|{input: (None, 28, 28, 1)|output: (None, 26, 26, 8)}}"];
  n4 [label="{dense (Dense)|{input: (None, 1)|output: (None, 4)}}"];
  n5 [label="{flatten (Flatten)|{input: (None, 26, 26, 8)|output: (None, 5408)}}"];
  n6 [label="{dense_1 (Dense)|{input: (None, 4)|output: (None, 4)}}"];
  subgraph cluster_0 {
    label="inner (Sequential)";
    n7 [label="{dense (Dense)|{input: (None, 5408)|output: (None, 16)}}"];
    n8 [label="{dense_1 (Dense)|{input: (None, 16)|output: (None, 4)}}"];
    n7 -> n8;
  }
  n9 [label="{sum (Sum)|{input: (None, 4), (None, 4)|output: (None, 4)}}"];
  n10 [label="{a_very_long_layer_name_that_wraps_around (Dense)|{input: (None, 4)|output: (None, 1)}}"];
  n0 -> n2;
  n1 -> n3;
  n2 -> n4;
  n3 -> n5;
  n4 -> n6;
  n6 -> n6;
  n5 -> n7 [lhead=cluster_0];
  n6 -> n9;
  n8 -> n9 [ltail=cluster_0];
  n9 -> n10;
}
"#
    );
}

/// The numbers after `name="` in each line that begins with `start`.
fn attributes(svg: &str, start: &str, name: &str) -> Vec<f64> {
    let lines = svg.lines().filter(|line| line.starts_with(start));
    let value = |line: &str| {
        let rest = line.split(&format!(" {name}=\"")).nth(1).unwrap();
        rest.split('"').next().unwrap().parse::<f64>().unwrap()
    };
    lines.map(value).collect()
}

#[test]
fn an_image_has_a_box_for_each_layer_and_none_lies_on_another() {
    let svg = two_inputs().to_svg();
    let of = |name| attributes(&svg, "<rect", name);
    let (x, y, width, height) = (of("x"), of("y"), of("width"), of("height"));
    assert_eq!(x.len(), 12);
    let apart = |a: usize, b: usize| {
        x[a] + width[a] <= x[b]
            || x[b] + width[b] <= x[a]
            || y[a] + height[a] <= y[b]
            || y[b] + height[b] <= y[a]
    };
    let within = |a: usize, b: usize| {
        x[a] >= x[b]
            && y[a] >= y[b]
            && x[a] + width[a] <= x[b] + width[b]
            && y[a] + height[a] <= y[b] + height[b]
    };
    for a in 0..x.len() {
        for b in 0..a {
            assert!(
                apart(a, b) || within(a, b) || within(b, a),
                "boxes {a} and {b} overlap in\n{svg}"
            );
        }
    }
    // An arrow per input, one inside the inner model, and the head of all arrows.
    assert_eq!(svg.matches("<path").count(), 9 + 1 + 1 + 1);
    assert!(
        svg.contains(">inner (Sequential)</text>") && svg.contains(">86,544 parameters</text>")
    );

    let named = Sequential::new().add_named("<b> & \"c\"", Dense::new(1));
    assert!(named.to_svg().contains("&lt;b&gt; &amp; &quot;c&quot; (Dense)"));
}

#[test]
fn pictures_of_large_models_are_made_at_once() {
    let x = Input::new([2]);
    let mut last = x.add(1.0).unwrap();
    let mut y = last.clone();
    for _ in 0..2000 {
        // Each has the previous two as inputs.
        (last, y) = (y.clone(), y.add(&last).unwrap());
    }
    let model = Functional::new(&x, &y).unwrap();
    let start = std::time::Instant::now();
    assert_eq!(model.to_dot().matches(" [label=").count(), 2002);
    let svg = model.to_svg();
    assert_eq!(svg.matches("<rect").count(), 2002);
    assert!(start.elapsed().as_secs() < 5, "{:?}", start.elapsed());
    // Lanes are reused: arrows over one layer need only two of them.
    assert!(attributes(&svg, "<svg", "width")[0] < 500.0);
}
