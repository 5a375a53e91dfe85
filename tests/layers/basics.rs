//! Layers, models, losses, metrics and optimizers as a program uses them; `tests/oracle.rs` has TensorFlow's numbers.

use wgrad::keras::layers::{
    Activate, AveragePooling2D, Conv1D, Conv2D, Dense, Dropout, Flatten, MaxPooling2D,
};
use wgrad::keras::losses::{
    CategoricalCrossentropy, Loss, MeanSquaredError, Reduction, SparseCategoricalCrossentropy,
};
use wgrad::keras::metrics::{Mean, Metric, SparseCategoricalAccuracy};
use wgrad::keras::optimizers::{Adam, Optimizer, Sgd};
use wgrad::keras::{Activation, INFERENCE, Initializer, Layer, Sequential, TRAINING};
use wgrad::random::{self, Generator};
use wgrad::{
    Device, DeviceFault, Error, GradientTape, Padding, Parts, Tensor, Trackable, Variable, constant,
};

use super::{names, values};

fn scce() -> SparseCategoricalCrossentropy {
    SparseCategoricalCrossentropy::new().from_logits(true)
}

// ---- layers -------------------------------------------------------------------------------------------------

#[test]
fn dense_sums_its_inputs() {
    let layer = Dense::new(2).bias_initializer(Initializer::Constant(0.5));
    layer.call(&Tensor::zeros([1, 3]).unwrap(), INFERENCE).unwrap();
    layer.variables()[0].assign(constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]).unwrap()).unwrap();
    let x = constant([[1.0, 0.0, -1.0], [2.0, 1.0, 0.0]]).unwrap();
    // [1 - 5, 2 - 6] + 0.5 and [2 + 3, 4 + 4] + 0.5
    assert_eq!(values(&layer.call(&x, INFERENCE).unwrap()), [-3.5, -3.5, 5.5, 8.5]);

    let deep = x.reshape([1, 2, 1, 3]).unwrap();
    let y = layer.call(&deep, INFERENCE).unwrap();
    assert_eq!(y.shape(), [1, 2, 1, 2]);
    assert_eq!(values(&y), [-3.5, -3.5, 5.5, 8.5]);
    assert_eq!(layer.call(&Tensor::zeros([0, 3]).unwrap(), INFERENCE).unwrap().shape(), [0, 2]);
}

#[test]
fn layers_size_themselves_at_their_first_input() {
    let layer = Dense::new(4);
    assert!(layer.variables().is_empty());
    layer.call(&Tensor::zeros([2, 3]).unwrap(), INFERENCE).unwrap();
    assert_eq!(names(&layer), ["kernel", "bias"]);
    assert_eq!(layer.variables()[0].shape(), [3, 4]);

    let error = layer.call(&Tensor::zeros([2, 5]).unwrap(), INFERENCE).unwrap_err();
    assert!(matches!(error, Error::Shape(_)));
    assert_eq!(
        error.to_string(),
        "the input is [2, 5], for which a weight has to be [5, 4]; the first input was [2, 3], and its weight is [3, 4]. \
         Give the layer inputs of one size, or make a new layer."
    );
    let error = layer.call(&Tensor::zeros([3]).unwrap(), INFERENCE).unwrap_err().to_string();
    assert!(error.starts_with("Dense: the input is [3]; it must be [.., D]"), "{error}");

    let conv = Conv2D::new(2, [3, 3]).use_bias(false);
    conv.call(&Tensor::zeros([1, 5, 5, 4]).unwrap(), INFERENCE).unwrap();
    assert_eq!(conv.variables()[0].shape(), [3, 3, 4, 2]);
    assert_eq!(conv.variables().len(), 1);
    let error =
        conv.call(&Tensor::zeros([1, 5, 5, 3]).unwrap(), INFERENCE).unwrap_err().to_string();
    assert!(error.starts_with("the input is [1, 5, 5, 3]"), "{error}");
    let error = conv.call(&Tensor::zeros([5, 5, 4]).unwrap(), INFERENCE).unwrap_err().to_string();
    assert!(error.contains("must be [N, H, W, C]"), "{error}");
}

#[test]
fn small_layers_do_what_they_say() {
    let x = wgrad::range(0.0, 16.0, 1.0).unwrap().reshape([1, 4, 4, 1]).unwrap();
    let call = |layer: &dyn Layer| layer.call(&x, TRAINING).unwrap();
    assert_eq!(values(&call(&MaxPooling2D::new([2, 2]))), [5.0, 7.0, 13.0, 15.0]);
    assert_eq!(values(&call(&AveragePooling2D::new([2, 2]))), [2.5, 4.5, 10.5, 12.5]);
    let overlapping = MaxPooling2D::new([2, 2]).strides([2, 1]).padding(Padding::Same);
    assert_eq!(values(&call(&overlapping)), [5.0, 6.0, 7.0, 7.0, 13.0, 14.0, 15.0, 15.0]);
    assert_eq!(call(&Flatten::new()).shape(), [1, 16]);
    assert_eq!(
        Flatten::new().call(&constant([1.0, 2.0]).unwrap(), INFERENCE).unwrap().shape(),
        [2, 1]
    );
    assert!(Flatten::new().call(&constant(1.0).unwrap(), INFERENCE).is_err());
    let y = Activate::new(Activation::Relu6)
        .call(&constant([-1.0, 3.0, 9.0]).unwrap(), INFERENCE)
        .unwrap();
    assert_eq!(values(&y), [0.0, 3.0, 6.0]);
}

#[test]
fn activations_meet_their_formulas() {
    let x = constant([-2.0, -0.5, 0.0, 1.5]).unwrap();
    let near = |name: &str, f: fn(f32) -> f32| {
        let got = values(&name.parse::<Activation>().unwrap().apply(&x).unwrap());
        for (got, want) in got.iter().zip([-2.0f32, -0.5, 0.0, 1.5].map(f)) {
            assert!((got - want).abs() < 1e-5, "{name}: {got} {want}");
        }
    };
    near("linear", |x| x);
    near("leaky_relu", |x| if x > 0.0 { x } else { 0.2 * x });
    near("hard_sigmoid", |x| (x / 6.0 + 0.5).clamp(0.0, 1.0));
    near("softplus", |x| x.exp().ln_1p());
    near("softsign", |x| x / (1.0 + x.abs()));
    near("silu", |x| x / (1.0 + (-x).exp()));
    near("mish", |x| x * x.exp().ln_1p().tanh());
    near("exponential", f32::exp);
    let row = Activation::LogSoftmax.apply(&x.expand_dims(0).unwrap()).unwrap();
    let shares: f32 = values(&row).iter().map(|v| v.exp()).sum();
    assert!((shares - 1.0).abs() < 1e-6);
}

#[test]
fn dropout_leaves_out_its_part() {
    let n = 100_000;
    let x = Tensor::ones([n]).unwrap();
    let layer = Dropout::new(0.3).seed(5);
    assert_eq!(values(&layer.call(&x, INFERENCE).unwrap()), vec![1.0; n]);
    let first = values(&layer.call(&x, TRAINING).unwrap());
    let kept = first.iter().filter(|&&v| v != 0.0).count() as f64 / n as f64;
    // Five deviations of a binomial fraction: 5 sqrt(0.3 0.7 / 1e5) = 0.0072.
    assert!((kept - 0.7).abs() < 0.0073, "{kept}");
    assert!(first.iter().all(|&v| v == 0.0 || (v - 1.0 / 0.7).abs() < 1e-6));
    assert_ne!(first, values(&layer.call(&x, TRAINING).unwrap()));
    assert_eq!(first, values(&Dropout::new(0.3).seed(5).call(&x, TRAINING).unwrap()));

    let error = Dropout::new(1.5).call(&x, TRAINING).unwrap_err().to_string();
    assert!(error.starts_with("Dropout: the rate is 1.5"), "{error}");
}

// ---- initializers -------------------------------------------------------------------------------------------

#[test]
fn plain_initializers_and_seeds() {
    let draw = |i: Initializer, seed| values(&i.init([1000], &Generator::from_seed(seed)).unwrap());
    assert_eq!(draw(Initializer::Zeros, 1), [0.0; 1000]);
    assert_eq!(draw(Initializer::Ones, 1), [1.0; 1000]);
    assert_eq!(draw(Initializer::Constant(2.5), 1), [2.5; 1000]);
    let uniform = draw(Initializer::RandomUniform { low: 2.0, high: 3.0 }, 1);
    assert!(uniform.iter().all(|&w| (2.0..3.0).contains(&w)));
    let cut = draw(Initializer::TruncatedNormal { mean: 1.0, stddev: 0.5 }, 1);
    assert!(cut.iter().all(|&w| (0.0..=2.0).contains(&w)));
    let normal = draw(Initializer::RandomNormal { mean: 1.0, stddev: 0.5 }, 1);
    assert!((normal.iter().sum::<f32>() / 1000.0 - 1.0).abs() < 0.08);
    assert_eq!(draw(Initializer::HeNormal, 3), draw(Initializer::HeNormal, 3));
    assert_ne!(draw(Initializer::HeNormal, 3), draw(Initializer::HeNormal, 4));
}

// ---- models -------------------------------------------------------------------------------------------------

fn small_model() -> Sequential {
    Sequential::new().add(Dense::new(4).activation(Activation::Relu)).add(Dense::new(3))
}

#[test]
fn a_model_knows_its_parts() {
    let model = Sequential::new()
        .add(Conv2D::new(8, [5, 5]).padding(Padding::Same).activation(Activation::Relu))
        .add(MaxPooling2D::new([2, 2]))
        .add(Flatten::new())
        .add(Dropout::new(0.5))
        .add(Dense::new(64))
        .add(Dense::new(10));
    assert_eq!(model.count_params(), 0);
    model.build([1, 28, 28, 1]).unwrap();
    let layers: Vec<&str> = model.layers().map(|(name, _)| name).collect();
    assert_eq!(layers, ["conv2d", "max_pooling2d", "flatten", "dropout", "dense", "dense_1"]);
    assert_eq!(model.variables().len(), 6);
    assert_eq!(model.trainable_variables().len(), 6);
    assert_eq!(names(&model)[4], "dense_1/kernel");
    // 5 5 8 + 8, 14 14 8 64 + 64, 64 10 + 10
    assert_eq!(model.count_params(), 208 + 100_416 + 650);
    let summary = model.summary_with(wgrad::SummaryOptions::new().line_length(88));
    for line in [
        "│ conv2d (Conv2D)                      │ (None, 28, 28, 8)           │             208 │",
        "│ max_pooling2d (MaxPooling2D)         │ (None, 14, 14, 8)           │               0 │",
        "│ dense (Dense)                        │ (None, 64)                  │         100,416 │",
        " Total params: 101,274 (395.60 KB)",
    ] {
        assert!(summary.contains(line), "{summary}");
    }
}

#[test]
fn errors_name_the_layer() {
    let model = small_model().add(MaxPooling2D::new([2, 2]));
    let error = model.call(&Tensor::zeros([2, 5]).unwrap(), INFERENCE).unwrap_err();
    assert!(matches!(error, Error::Shape(_)));
    assert!(error.to_string().starts_with("layer 'max_pooling2d': MaxPool"), "{error}");
    let model = Sequential::new().add(Conv1D::new(1, 1));
    let error = model.call(&constant([[[1], [2]]]).unwrap(), INFERENCE).unwrap_err();
    assert!(matches!(error, Error::DType(_)), "{error}");
    assert!(error.to_string().starts_with("layer 'conv1d': "), "{error}");
}

#[test]
fn weights_go_to_the_host_and_back() {
    let (a, b) = (small_model(), small_model());
    let x = constant([[1.0, -2.0]]).unwrap();
    let y = values(&a.call(&x, INFERENCE).unwrap());
    let weights = a.get_weights().unwrap();
    let error = b.set_weights(&weights[1..]).unwrap_err();
    assert!(matches!(error, Error::Checkpoint(_)));
    assert!(error.to_string().contains("has 4 variables, and 3 arrays were given"), "{error}");
    // Also before the first call: the layers start with these weights.
    b.set_weights(&weights).unwrap();
    assert_eq!(values(&b.call(&x, INFERENCE).unwrap()), y);
    let c = small_model();
    c.build([1, 2]).unwrap();
    c.set_weights(&weights).unwrap();
    assert_eq!(values(&c.call(&x, INFERENCE).unwrap()), y);

    let mut wrong = weights.clone();
    wrong.swap(0, 1);
    let error = b.set_weights(&wrong).unwrap_err().to_string();
    assert!(
        error.starts_with("set_weights: the variable 'dense/kernel' is [2, 4] and its array [4]."),
        "{error}"
    );
}

#[test]
fn training_goes_on_on_another_device() {
    let (first, second) = (Device::new().unwrap(), Device::new().unwrap());
    let model = small_model();
    let optimizer = Adam::new(0.01);
    let step = |optimizer: &Adam| {
        let (x, y) = (constant([[1.0, 2.0]])?, constant([1])?);
        let tape = GradientTape::new();
        let loss = scce().call(&y, &model.call(&x, TRAINING)?)?;
        optimizer.minimize(&loss, tape, &model)?;
        loss.item::<f32>()
    };
    let before = first.scope(|| step(&optimizer)).unwrap();
    let weights = model.get_weights().unwrap();
    second.scope(|| {
        model.set_weights(&weights).unwrap();
        let error = step(&optimizer).unwrap_err();
        assert!(matches!(error, Error::Device(DeviceFault::Mismatch, _)), "{error}");
        assert!(
            error.to_string().starts_with("adam: the slot 'momentum' of 'dense/kernel' is on"),
            "{error}"
        );
        for slot in optimizer.variables() {
            slot.assign(Tensor::zeros(slot.shape()).unwrap()).unwrap();
        }
        assert!(step(&optimizer).unwrap() < before);
        assert_eq!(optimizer.iterations(), 2);
    });
}

// ---- losses -------------------------------------------------------------------------------------------------

#[test]
fn losses_by_hand() {
    let truth = constant([[0.0, 1.0], [1.0, 0.0]]).unwrap();
    // The second row is first scaled to 0.2, 0.8.
    let shares = constant([[0.5, 0.5], [0.1, 0.4]]).unwrap();
    let want = (2f32.ln() + 5f32.ln()) / 2.0;
    let loss = CategoricalCrossentropy::default().call(&truth, &shares).unwrap();
    assert!((loss.item::<f32>().unwrap() - want).abs() < 1e-6);
    let logits = CategoricalCrossentropy::new().from_logits(true);
    let loss = logits.call(&truth, &shares.log().unwrap()).unwrap();
    assert!((loss.item::<f32>().unwrap() - want).abs() < 1e-6);
    // A confident wrong prediction costs -ln(1e-7), not infinity.
    let loss = CategoricalCrossentropy::default();
    let loss =
        loss.call(&constant([[1.0, 0.0]]).unwrap(), &constant([[0.0, 1.0]]).unwrap()).unwrap();
    assert!((loss.item::<f32>().unwrap() - 16.118_095).abs() < 1e-3);

    let apart = MeanSquaredError::new().reduction(Reduction::None);
    let loss = apart.call(&truth, &constant([[1.0, 1.0], [1.0, 2.0]]).unwrap()).unwrap();
    assert_eq!(values(&loss), [0.5, 2.0]);
    let error = apart.call(&constant([1.0, 2.0]).unwrap(), &truth).unwrap_err().to_string();
    assert!(error.starts_with("MeanSquaredError: y_true is [2] and y_pred is [2, 2]"), "{error}");

    // Labels may be a column, as in files.
    let column = scce().call(&constant([[1], [0]]).unwrap(), &truth).unwrap();
    let flat = scce().call(&constant([1, 0]).unwrap(), &truth).unwrap();
    assert_eq!(values(&column), values(&flat));
}

// ---- metrics ------------------------------------------------------------------------------------------------

#[test]
fn metrics_begin_again_and_stay_on_the_device() {
    let device = Device::new().unwrap();
    device.scope(|| {
        let accuracy = SparseCategoricalAccuracy::new("accuracy");
        assert_eq!(accuracy.result().unwrap().item::<f32>().unwrap(), 0.0);
        let scores = constant([[0.1, 0.9], [0.9, 0.1]]).unwrap();
        device.flush().unwrap();
        let reads = device.stats().reads;
        for _ in 0..10 {
            accuracy.update_state(&constant([[1], [1]]).unwrap(), &scores).unwrap();
        }
        let result = accuracy.result().unwrap();
        assert_eq!(device.stats().reads, reads);
        assert_eq!(result.item::<f32>().unwrap(), 0.5);
        assert_eq!(names(&accuracy), ["total", "weight"]);
        accuracy.reset_state().unwrap();
        assert_eq!(accuracy.result().unwrap().item::<f32>().unwrap(), 0.0);
        accuracy.update_state(&constant([1, 0]).unwrap(), &scores).unwrap();
        assert_eq!(accuracy.result().unwrap().item::<f32>().unwrap(), 1.0);
        let error = accuracy.update_state(&constant([1]).unwrap(), &scores).unwrap_err();
        assert!(matches!(error, Error::Shape(_)), "{error}");
    });
}

#[test]
fn a_metric_outlives_a_failed_step() {
    let device = Device::new().unwrap();
    device.scope(|| {
        let mean = Mean::new("loss");
        let [x, y, z] = [1.0, 2.0, 4.0].map(|v| Tensor::from_slice(&[v; 100], [100]).unwrap());
        mean.update_state(&x).unwrap();
        assert_eq!(mean.result().unwrap().item::<f32>().unwrap(), 1.0);
        device.trim().unwrap();
        device.set_memory_limit(Some(device.stats().live_bytes)).unwrap();
        mean.update_state(&y).unwrap();
        assert!(device.flush().unwrap_err().is_out_of_memory());
        device.set_memory_limit(None).unwrap();
        mean.update_state(&z).unwrap();
        assert_eq!(mean.result().unwrap().item::<f32>().unwrap(), 2.5);
    });
}

// ---- optimizers ---------------------------------------------------------------------------------------------

#[test]
fn slots_are_named_after_variables() {
    let model = small_model();
    model.build([1, 2]).unwrap();
    let adam = Adam::new(1e-3);
    adam.build(&model).unwrap();
    let both: [(&str, &dyn Trackable); 2] = [("model", &model), ("optimizer", &adam)];
    struct Named<'a>([(&'a str, &'a dyn Trackable); 2]);
    impl Trackable for Named<'_> {
        fn track(&self, parts: &mut Parts<'_>) {
            self.0.iter().for_each(|(name, part)| parts.add(name, *part));
        }
    }
    assert_eq!(
        names(&Named(both))[4..7],
        [
            "optimizer/momentum/model/dense/kernel",
            "optimizer/velocity/model/dense/kernel",
            "optimizer/momentum/model/dense/bias"
        ]
    );
    // Without the model, the optimizer does not know the variables' names.
    assert_eq!(names(&adam)[..3], ["momentum/0", "velocity/0", "momentum/1"]);
    let slots = adam.variables();
    assert!(slots.iter().all(|slot| !slot.trainable()));
    assert_eq!(adam.learning_rate(), 1e-3);
    adam.set_iterations(7);
    assert_eq!(adam.iterations(), 7);
}

#[test]
fn steps_without_gradients() {
    let (a, b) = (Variable::new(constant(1.0).unwrap()), Variable::new(constant(2.0).unwrap()));
    let both = [a.clone(), b.clone()];
    let sgd = Sgd::new(0.5);
    let error = sgd.apply_gradients(&[None, None], &both).unwrap_err();
    assert!(matches!(error, Error::Gradient(_)));
    assert!(error.to_string().contains("none of ['0', '1']"), "{error}");
    let error = sgd.apply_gradients(&[None], &both).unwrap_err();
    assert!(matches!(error, Error::Shape(_)));
    assert!(
        error.to_string().contains("1 gradients were given for 2 trainable variables"),
        "{error}"
    );
    let error = sgd.apply_gradients(&[Some(constant([1.0]).unwrap()), None], &both).unwrap_err();
    assert!(error.to_string().contains("the variable '0' is [] and its gradient [1]"), "{error}");
    assert_eq!(sgd.iterations(), 0);

    let tape = GradientTape::new();
    let loss = &b * &b;
    sgd.minimize(&loss, tape, &both).unwrap();
    assert_eq!([a, b].map(|v| v.read().item::<f32>().unwrap()), [1.0, 0.0]);
    assert_eq!(sgd.iterations(), 1);
}

/// Makes one step, and adds the loss to the mean.
fn step(
    model: &Sequential,
    adam: &Adam,
    mean: &Mean,
    x: &Tensor,
    y: &Tensor,
) -> wgrad::Result<f32> {
    let tape = GradientTape::new();
    let loss = scce().call(y, &model.call(x, TRAINING)?)?;
    adam.minimize(&loss, tape, &model.trainable_variables())?;
    mean.update_state(&loss)?;
    loss.item::<f32>()
}

#[test]
fn a_failed_step_changes_nothing() {
    let device = Device::new().unwrap();
    device.scope(|| {
        let model = small_model();
        let (adam, mean) = (Adam::new(0.01), Mean::new("loss"));
        let x = Tensor::ones([64, 50]).unwrap();
        let y = Tensor::full([64], 1).unwrap();
        model.build([64, 50]).unwrap();
        for done in 0..2 {
            let state = || {
                let slots = adam.variables().iter().map(|v| values(&v.read())).collect::<Vec<_>>();
                (model.get_weights().unwrap(), slots)
            };
            let before = state();
            // The held memory fits, and nothing more.
            device.trim().unwrap();
            device.set_memory_limit(Some(device.stats().live_bytes)).unwrap();
            for _ in 0..2 {
                let error = step(&model, &adam, &mean, &x, &y).unwrap_err();
                assert!(error.is_out_of_memory(), "{error}");
            }
            device.set_memory_limit(None).unwrap();
            assert_eq!(state(), before);
            assert_eq!(adam.iterations(), done);
            step(&model, &adam, &mean, &x, &y).unwrap();
            assert_eq!(adam.iterations(), done + 1);
            assert!(mean.result().unwrap().item::<f32>().unwrap().is_finite());
        }
    });
}

#[test]
fn later_steps_plan_and_allocate_nothing() {
    let device = Device::new().unwrap();
    device.scope(|| {
        let model = small_model();
        let (adam, mean) = (Adam::new(0.01), Mean::new("loss"));
        let (x, y) = (Tensor::ones([64, 50]).unwrap(), Tensor::full([64], 1).unwrap());
        let once = || {
            let before = device.stats();
            step(&model, &adam, &mean, &x, &y).unwrap();
            (before, device.stats())
        };
        for _ in 0..4 {
            once();
        }
        for _ in 0..3 {
            let (before, after) = once();
            assert_eq!(after.plan_misses, before.plan_misses);
            assert_eq!(after.pipelines, before.pipelines);
            assert_eq!(after.buffers, before.buffers);
            // The name is the optimizer's, as the loss that is read afterwards is computed with it.
            if std::env::var_os("WGRAD_EAGER_SYNC").is_none() {
                assert_eq!(after.flushes, before.flushes + 1);
            }
        }
    });
}

#[test]
fn the_seed_decides_where_training_starts() {
    // Other tests also draw from the global generator, so each start has its own.
    let weights = |seed| {
        let generator = Generator::from_seed(seed);
        values(&Initializer::GlorotUniform.init([3, 4], &generator.split()).unwrap())
    };
    assert_eq!(weights(1), weights(1));
    assert_ne!(weights(1), weights(2));
    random::set_seed(1);
    let layers = [Dense::new(2), Dense::new(2)];
    let kernels = layers.map(|layer| {
        layer.call(&Tensor::zeros([1, 8]).unwrap(), INFERENCE).unwrap();
        values(&layer.variables()[0].read())
    });
    assert_ne!(kernels[0], kernels[1]);
}

#[test]
fn an_optimizer_says_that_nothing_is_trainable() {
    let model = Sequential::new().add(Dense::new(2));
    let sgd = Sgd::new(0.1);
    let step = || {
        let tape = GradientTape::new();
        let loss = model.call(&Tensor::ones([1, 3])?, TRAINING)?.sum(())?;
        sgd.minimize(&loss, tape, &model)
    };
    let tape = GradientTape::new();
    let early = sgd.minimize(&Tensor::scalar(1f32).unwrap(), tape, &model);
    model.build([1, 3]).unwrap();
    model.set_trainable(false);
    let text = "sgd: there is no trainable variable to change. A model has none before its first call, nor while \
                set_trainable(false) freezes it.";
    for error in [early, step()].map(Result::unwrap_err) {
        assert!(matches!(error, Error::Gradient(_)) && error.to_string() == text, "{error}");
    }
    model.set_trainable(true);
    step().unwrap();
}
