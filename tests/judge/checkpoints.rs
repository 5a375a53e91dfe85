//! TensorFlow restores wgrad's checkpoints and continues training, and vice versa: `cargo xtask judge`.

#![allow(clippy::unwrap_used)]

use crate::support::folder;

use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

use folder::Folder;
use serde_json::{Value, json};
use wgrad::keras::layers::{
    Add, BatchNormalization, Bidirectional, Concatenate, Conv2D, Dense, DepthwiseConv2D, Dropout,
    Embedding, GlobalAveragePooling1D, GlobalAveragePooling2D, Gru, LayerNormalization, Lstm,
    Masking, MultiHeadAttention, Relu, SeparableConv2D, Subtract, TimeDistributed,
};
use wgrad::keras::optimizers::schedules::ExponentialDecay;
use wgrad::keras::optimizers::{
    Adadelta, Adafactor, Adagrad, Adam, AdamW, Adamax, Ftrl, Lamb, Lion, LossScaleOptimizer, Nadam,
    Optimizer, RmsProp, Sgd,
};
use wgrad::keras::{
    Activation, Context, Functional, INFERENCE, Input, Layer, LayerExt, Sequential, TRAINING,
};
use wgrad::train::Checkpoint;
use wgrad::{DType, GradientTape, Padding, Result, Tensor, Trackable};

/// The models and optimizers of the script.
const CASES: [&str; 22] = [
    "mlp-sgd",
    "mlp-momentum",
    "mlp-adam",
    "mlp-amsgrad",
    "mlp-adamw",
    "mlp-rmsprop",
    "mlp-adagrad",
    "mlp-adadelta",
    "mlp-adamax",
    "mlp-nadam",
    "mlp-ftrl",
    "mlp-lion",
    "mlp-lamb",
    "mlp-adafactor",
    "mlp-averages",
    "mlp-schedule",
    "mlp-scaled",
    "lazy-adam",
    "cnn-momentum",
    "rnn-rmsprop",
    "attention-adam",
    "net-adam",
];

#[derive(Trackable)]
struct Net {
    first: Dense,
    blocks: Vec<Dense>,
    head: Dense,
}

#[allow(clippy::large_enum_variant)] // Only one exists at a time.
enum Model {
    Sequential(Sequential),
    Functional(Functional),
    Net(Net),
}

impl Model {
    fn new(name: &str) -> Self {
        let tanh = || Dense::new(4).activation(Activation::Tanh);
        match name {
            "mlp" => {
                let model = Sequential::new().add(tanh()).add(Dropout::new(0.0));
                Model::Sequential(model.add(Dense::new(2)))
            }
            "lazy" => {
                let model = Sequential::new().add(tanh()).add(LayerNormalization::new());
                Model::Sequential(model.add(Dense::new(2)))
            }
            "cnn" => {
                let x = Input::new([6, 6, 2]);
                let y =
                    Conv2D::new(3, [3, 3]).padding(Padding::Same).use_bias(false).on(&x).unwrap();
                let y = BatchNormalization::new().on(&y).unwrap();
                let y = Relu::new().on(&y).unwrap();
                let side = DepthwiseConv2D::new([3, 3]).padding(Padding::Same).on(&y).unwrap();
                let y = Add::new().on_all([&y, &side]).unwrap();
                let y = SeparableConv2D::new(4, [3, 3]).on(&y).unwrap();
                let y = GlobalAveragePooling2D::new().on(&y).unwrap();
                let y = Dense::new(2).on(&y).unwrap();
                Model::Functional(Functional::new(&x, &y).unwrap())
            }
            "rnn" => Model::Sequential(
                Sequential::new()
                    .add(Embedding::new(7, 3))
                    .add(Bidirectional::new(Lstm::new(3).return_sequences(true)))
                    .add(TimeDistributed::new(Dense::new(3)))
                    .add(Gru::new(2)),
            ),
            "attention" => {
                let (a, b) = (Input::new([4, 6]), Input::new([4, 6]));
                let y =
                    MultiHeadAttention::new(2, 3).on_all::<[Tensor], Tensor>([&*a, &*b]).unwrap();
                let y = Add::new().on_all([&*a, &y]).unwrap();
                let y = LayerNormalization::new().on(&y).unwrap();
                let nested = Sequential::new()
                    .add(Dense::new(5).activation(Activation::Relu))
                    .add(Dense::new(6));
                let side = nested.on(&y).unwrap();
                let y = Add::new().on_all([&y, &side]).unwrap();
                let y = GlobalAveragePooling1D::new().on(&y).unwrap();
                let y = Dense::new(2).on(&y).unwrap();
                Model::Functional(Functional::new([&a, &b], &y).unwrap())
            }
            "net" => Model::Net(Net {
                first: tanh(),
                blocks: vec![Dense::new(3), Dense::new(3)],
                head: Dense::new(2),
            }),
            other => panic!("no model {other}"),
        }
    }

    fn call(&self, x: &Tensor, cx: Context<'_>) -> Result<Tensor> {
        match self {
            Model::Sequential(model) => model.call(x, cx),
            Model::Functional(model) if x.rank() == 3 => {
                let inputs = [x.clone(), x.multiply(0.5)?];
                Ok(Layer::<[Tensor], Vec<Tensor>>::call(model, &inputs, cx)?.remove(0))
            }
            Model::Functional(model) => model.call(x, cx),
            Model::Net(net) => {
                let y = net.first.call(x, cx)?;
                let y = net.blocks.iter().try_fold(y, |y, block| block.call(&y, cx))?;
                net.head.call(&y, cx)
            }
        }
    }

    fn part(&self) -> &dyn Trackable {
        match self {
            Model::Sequential(model) => model,
            Model::Functional(model) => model,
            Model::Net(model) => model,
        }
    }
}

fn optimizer(name: &str) -> Box<dyn Optimizer> {
    match name {
        "sgd" => Box::new(Sgd::new(0.05)),
        "momentum" => Box::new(Sgd::new(0.05).momentum(0.9).nesterov(true)),
        "adam" => Box::new(Adam::new(0.01)),
        "amsgrad" => Box::new(Adam::new(0.01).amsgrad(true)),
        "adamw" => Box::new(AdamW::new(0.01)),
        "rmsprop" => Box::new(RmsProp::new(0.01).momentum(0.5).centered(true)),
        "adagrad" => Box::new(Adagrad::new(0.1)),
        "adadelta" => Box::new(Adadelta::new(0.5)),
        "adamax" => Box::new(Adamax::new(0.01)),
        "nadam" => Box::new(Nadam::new(0.01)),
        "ftrl" => Box::new(Ftrl::new(0.1)),
        "lion" => Box::new(Lion::new(0.01)),
        "lamb" => Box::new(Lamb::new(0.01)),
        "adafactor" => Box::new(Adafactor::new(0.01)),
        "averages" => {
            Box::new(Sgd::new(0.05).momentum(0.9).use_ema(true).gradient_accumulation_steps(2))
        }
        "schedule" => Box::new(Adam::new(ExponentialDecay::new(0.05, 2, 0.5))),
        "scaled" => Box::new(LossScaleOptimizer::new(Adam::new(0.01))),
        other => panic!("no optimizer {other}"),
    }
}

struct Run {
    model: Model,
    optimizer: Box<dyn Optimizer>,
    step: AtomicU64,
    x: Tensor,
}

impl Run {
    fn new(case: &str) -> Self {
        let (model, name) = case.split_once('-').unwrap();
        wgrad::random::set_seed(1);
        let x = input(model);
        Run { model: Model::new(model), optimizer: optimizer(name), step: AtomicU64::new(0), x }
    }

    fn checkpoint(&self) -> Checkpoint<'_> {
        let checkpoint = Checkpoint::new().with("model", self.model.part());
        checkpoint.with("optimizer", &self.optimizer).with("step", &self.step)
    }

    fn predict(&self) -> Vec<f32> {
        self.model.call(&self.x, INFERENCE).unwrap().to_vec().unwrap()
    }

    fn train(&self) -> f32 {
        let tape = GradientTape::new();
        let y = self.model.call(&self.x, TRAINING).unwrap();
        let loss = y.square().unwrap().reduce_mean(()).unwrap();
        self.optimizer.minimize(&loss, tape, self.model.part()).unwrap();
        self.step.fetch_add(1, Ordering::Relaxed);
        loss.item().unwrap()
    }
}

fn shape(model: &str) -> Vec<usize> {
    match model {
        "cnn" => vec![3, 6, 6, 2],
        "rnn" => vec![3, 5],
        "attention" => vec![3, 4, 6],
        _ => vec![4, 6],
    }
}

fn input(model: &str) -> Tensor {
    let shape = shape(model);
    let count: usize = shape.iter().product();
    match model {
        "rnn" => Tensor::from_slice(&(0..count as i32).map(|i| i % 7).collect::<Vec<_>>(), shape),
        _ => Tensor::from_slice(&(0..count).map(|i| (i as f32).sin()).collect::<Vec<_>>(), shape),
    }
    .unwrap()
}

#[test]
#[ignore = "takes a Python with TensorFlow, in WGRAD_JUDGE_PYTHON: `cargo xtask judge`"]
fn tensorflow_and_wgrad_go_on_from_each_others_checkpoints() {
    let folder = Folder::new("judge-checkpoint");
    let mut inputs = serde_json::Map::new();
    for model in ["mlp", "lazy", "cnn", "rnn", "attention", "net"] {
        let x = input(model);
        let values = match model {
            "rnn" => json!(x.to_vec::<i32>().unwrap()),
            _ => json!(x.to_vec::<f32>().unwrap()),
        };
        let dtype = if model == "rnn" { "int32" } else { "float32" };
        let x = json!({"shape": shape(model), "dtype": dtype, "values": values});
        inputs.insert(model.to_string(), x);
    }
    std::fs::write(folder.path("x.json"), Value::Object(inputs).to_string()).unwrap();
    std::fs::write(folder.path("cases.json"), json!(CASES).to_string()).unwrap();
    let mut wanted = Vec::new();
    for case in CASES {
        let run = Run::new(case);
        for _ in 0..3 {
            run.train();
        }
        let path = run.checkpoint().save(folder.path(case).join("wgrad")).unwrap();
        let predictions = run.predict();
        let losses: Vec<f32> = (0..6).map(|_| run.train()).collect();
        wanted.push((case, path, predictions, losses));
    }

    let python = std::env::var("WGRAD_JUDGE_PYTHON").expect("`cargo xtask judge` names a Python");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/checkpoint/train_on.py");
    let output = Command::new(python).arg(script).arg(folder.path("")).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    println!("TensorFlow {}", found["tensorflow"].as_str().unwrap());

    for (case, path, predictions, losses) in wanted {
        let theirs = |what: &str| -> Vec<f64> {
            let list = found[case][what].as_array().unwrap();
            list.iter().map(|number| number.as_f64().unwrap()).collect()
        };
        close(case, "predictions", &predictions, &theirs("predictions"));
        close(case, "losses", &losses, &theirs("losses"));
        let variables: Value = wgrad::train::list_variables(&path)
            .unwrap()
            .into_iter()
            .map(|(name, shape)| json!([name, shape]))
            .collect();
        assert_eq!(variables, found[case]["variables"], "{case}");
        // And back, before the model's first call.
        let run = Run::new(case);
        let status = run.checkpoint().restore(folder.path(case).join("keras-1")).unwrap();
        status.assert_consumed().unwrap_or_else(|error| panic!("{case}: {error}"));
        assert_eq!(run.step.load(Ordering::Relaxed), 6, "{case}");
        let resumed: Vec<f32> = (0..3).map(|_| run.train()).collect();
        close(case, "losses behind Keras's checkpoint", &resumed, &theirs("losses")[3..]);
    }
}

/// Models in which Keras numbers more than the layers, or whose optimizers have lists that are easily confused.
const MODELS: [&str; 13] = [
    "mask",
    "bimask",
    "masking",
    "join",
    "concat",
    "heads",
    "branches",
    "unused",
    "shared",
    "nested",
    "frozenbefore",
    "frozenafter",
    "gan",
];

#[allow(clippy::large_enum_variant)] // Only one exists at a time.
enum Model2 {
    Sequential(Sequential),
    Functional(Functional),
    Gan(Sequential, Sequential),
}

/// A model of `models.py` during training.
struct Program {
    case: &'static str,
    model: Model2,
    optimizers: [Adam; 2],
    inputs: Vec<Tensor>,
}

fn ids() -> Input {
    Input::new([5]).with_dtype(DType::I32)
}

fn words() -> Embedding {
    Embedding::new(7, 3).mask_zero(true)
}

fn tanh() -> Dense {
    Dense::new(4).activation(Activation::Tanh)
}

fn model(case: &str) -> Result<Model2> {
    let dense = || Dense::new(2);
    let functional = |x: &Input, y: &wgrad::keras::SymbolicTensor| Functional::new(x, y);
    Ok(Model2::Functional(match case {
        "mask" => {
            let x = ids();
            functional(&x, &dense().on(&Lstm::new(3).on(&words().on(&x)?)?)?)?
        }
        "bimask" => {
            let model = Sequential::new().add(words());
            let model = model.add(Bidirectional::new(Gru::new(3).return_sequences(true)));
            return Ok(Model2::Sequential(model.add(Lstm::new(2)).add(dense())));
        }
        "masking" => {
            let model = Sequential::new().add(Masking::new());
            let model = model.add(TimeDistributed::new(Dense::new(3)));
            return Ok(Model2::Sequential(model.add(Lstm::new(3)).add(dense())));
        }
        "join" => {
            let (a, b) = (ids(), ids());
            let (x, y) = (words().on(&a)?, words().on(&b)?);
            let y = Lstm::new(3).on(&Add::new().on_all([&x, &y])?)?;
            Functional::new([&a, &b], dense().on(&y)?)?
        }
        "concat" => {
            let (a, b) = (ids(), ids());
            let (x, y) = (words().on(&a)?, words().on(&b)?);
            let y = Gru::new(3).on(&Concatenate::new().on_all([&x, &y])?)?;
            Functional::new([&a, &b], dense().on(&y)?)?
        }
        "heads" => {
            let x = ids();
            let y = words().on(&x)?;
            let z = MultiHeadAttention::new(2, 3).on_all::<[Tensor], Tensor>([&y, &y])?;
            let y = LayerNormalization::new().on(&Add::new().on_all([&y, &z])?)?;
            functional(&x, &dense().on(&GlobalAveragePooling1D::new().on(&y)?)?)?
        }
        "branches" => {
            let x = Input::new([5, 2]);
            let (y, z) = (Dense::new(3).on(&x)?, Dense::new(3).on(&x)?);
            let (y, z) = (Lstm::new(2).on(&Masking::new().on(&y)?)?, Lstm::new(2).on(&z)?);
            functional(&x, &dense().on(&Subtract::new().on_all([&y, &z])?)?)?
        }
        "unused" => {
            let x = Input::new([4]);
            let y = tanh().on(&x)?;
            Functional::new(&x, [&Dense::new(4).on(&y)?, &Dense::new(4).on(&y)?])?
        }
        "shared" => {
            let (a, b) = (Input::new([4]), Input::new([4]));
            let layer = std::sync::Arc::new(tanh());
            let both = [&layer.clone().on(&a)?, &layer.on(&b)?];
            Functional::new([&a, &b], dense().on(&Concatenate::new().on_all(both)?)?)?
        }
        "nested" => {
            let x = ids();
            let inner = Sequential::new().add(Dense::new(3));
            let inner = inner.add(Lstm::new(3).return_sequences(true));
            functional(&x, &dense().on(&Gru::new(3).on(&inner.on(&words().on(&x)?)?)?)?)?
        }
        "frozenbefore" | "frozenafter" => {
            let x = Input::new([4]);
            functional(&x, &Dense::new(4).on(&tanh().on(&tanh().on(&x)?)?)?)?
        }
        "gan" => {
            let part = |last| Sequential::new().add(tanh()).add(Dense::new(last));
            return Ok(Model2::Gan(part(4), part(1)));
        }
        other => panic!("no model {other}"),
    }))
}

impl Program {
    fn new(case: &'static str) -> Self {
        let sin = |count: usize, shape: &[usize], from: usize| {
            let values: Vec<f32> = (from..from + count).map(|i| (i as f32).sin()).collect();
            Tensor::from_slice(&values, shape).unwrap()
        };
        let number = |seed: i32| {
            let values: Vec<i32> =
                (0..15).map(|i| if i % 5 > 2 { 0 } else { 1 + (i * seed) % 6 }).collect();
            Tensor::from_slice(&values, [3, 5]).unwrap()
        };
        let inputs = match case {
            "masking" | "branches" => {
                let x: Vec<f32> =
                    (0..30).map(|i| if i % 10 > 6 { 0.0 } else { (i as f32).cos() }).collect();
                vec![Tensor::from_slice(&x, [3, 5, 2]).unwrap()]
            }
            "unused" | "frozenbefore" | "frozenafter" => vec![sin(12, &[3, 4], 0)],
            "shared" | "gan" => vec![sin(12, &[3, 4], 0), sin(12, &[3, 4], 5)],
            "join" | "concat" => vec![number(3), number(5)],
            _ => vec![number(3)],
        };
        let optimizers = match case {
            "gan" => [Adam::new(0.01), Adam::new(0.02)],
            _ => [Adam::new(0.01), Adam::new(0.01)],
        };
        let program = Program { case, model: model(case).unwrap(), optimizers, inputs };
        if case == "frozenbefore" {
            program.freeze();
        }
        program
    }

    fn freeze(&self) {
        let Model2::Functional(model) = &self.model else { panic!("no part to freeze") };
        model.get_layer("dense").unwrap().set_trainable(false);
    }

    fn checkpoint(&self) -> Checkpoint<'_> {
        let [first, second] = &self.optimizers;
        let part: &dyn Trackable = match &self.model {
            Model2::Sequential(model) => model,
            Model2::Functional(model) => model,
            Model2::Gan(generator, discriminator) => {
                let checkpoint = Checkpoint::new().with("generator", generator);
                let checkpoint = checkpoint.with("discriminator", discriminator);
                return checkpoint.with("d_optimizer", first).with("g_optimizer", second);
            }
        };
        Checkpoint::new().with("model", part).with("optimizer", first)
    }

    fn predict(&self, cx: Context<'_>) -> Result<Tensor> {
        let x = &self.inputs[0];
        match &self.model {
            Model2::Sequential(model) => model.call(x, cx),
            Model2::Functional(model) => {
                Ok(Layer::<[Tensor], Vec<Tensor>>::call(model, &self.inputs, cx)?.remove(0))
            }
            Model2::Gan(generator, discriminator) => {
                discriminator.call(&generator.call(x, cx)?, cx)
            }
        }
    }

    fn train(&self) -> f32 {
        let [first, second] = &self.optimizers;
        let tape = GradientTape::new();
        let mean = |x: Tensor| x.square().unwrap().reduce_mean(()).unwrap();
        let y = mean(self.predict(TRAINING).unwrap());
        let part: &dyn Trackable = match &self.model {
            Model2::Sequential(model) => model,
            Model2::Functional(model) => model,
            Model2::Gan(generator, discriminator) => {
                let real = discriminator.call(&self.inputs[1], TRAINING).unwrap();
                let loss = mean(real.subtract(1.0).unwrap()).add(&y).unwrap();
                first.minimize(&loss, tape, discriminator).unwrap();
                let tape = GradientTape::new();
                let fake = self.predict(TRAINING).unwrap();
                let of_generator = mean(fake.subtract(1.0).unwrap());
                second.minimize(&of_generator, tape, generator).unwrap();
                return loss.add(&of_generator).unwrap().item().unwrap();
            }
        };
        first.minimize(&y, tape, part).unwrap();
        y.item().unwrap()
    }

    /// Like `train`, but starts a program that saves after three steps.
    fn start(&self) {
        self.train();
        self.train();
        if self.case == "frozenafter" {
            self.freeze();
        }
        self.train();
    }
}

/// The model's parts have Keras's numbers, and all trainable variables are in the optimizer's lists.
#[test]
#[ignore = "takes a Python with TensorFlow, in WGRAD_JUDGE_PYTHON: `cargo xtask judge`"]
fn masks_heads_and_frozen_parts_keep_their_places_in_tensorflow() {
    let folder = Folder::new("judge-checkpoint-models");
    let mut inputs = serde_json::Map::new();
    let mut wanted = Vec::new();
    for case in MODELS {
        let program = Program::new(case);
        let one = |x: &Tensor| match x.dtype() {
            DType::I32 => {
                json!({"shape": x.shape(), "dtype": "int32", "values": x.to_vec::<i32>().unwrap()})
            }
            _ => {
                json!({"shape": x.shape(), "dtype": "float32", "values": x.to_vec::<f32>().unwrap()})
            }
        };
        inputs.insert(case.to_string(), program.inputs.iter().map(one).collect());
        program.start();
        std::fs::create_dir_all(folder.path(case)).unwrap();
        program.checkpoint().write(folder.path(case).join("wgrad")).unwrap();
        let predictions: Vec<f32> = program.predict(INFERENCE).unwrap().to_vec().unwrap();
        let losses: Vec<f32> = (0..6).map(|_| program.train()).collect();
        wanted.push((case, predictions, losses));
    }
    std::fs::write(folder.path("x.json"), Value::Object(inputs).to_string()).unwrap();

    let python = std::env::var("WGRAD_JUDGE_PYTHON").expect("`cargo xtask judge` names a Python");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/checkpoint/models.py");
    let output = Command::new(python).arg(script).arg(folder.path("")).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    assert!(!stderr.contains("Inconsistent references"), "{stderr}");
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();

    for (case, predictions, losses) in wanted {
        let theirs = |what: &str| -> Vec<f64> {
            let list = found[case][what].as_array().unwrap();
            list.iter().map(|number| number.as_f64().unwrap()).collect()
        };
        close(case, "predictions", &predictions, &theirs("predictions"));
        close(case, "losses", &losses, &theirs("losses"));
        // And back, before the first step.
        let program = Program::new(case);
        let status = program.checkpoint().read(folder.path(case).join("keras")).unwrap();
        status.assert_consumed().unwrap_or_else(|error| panic!("{case}: {error}"));
        if case == "frozenafter" {
            program.freeze();
        }
        let resumed: Vec<f32> = (0..3).map(|_| program.train()).collect();
        close(case, "losses behind Keras's checkpoint", &resumed, &theirs("losses")[3..]);
    }
}

fn close(case: &str, what: &str, ours: &[f32], theirs: &[f64]) {
    assert_eq!(ours.len(), theirs.len(), "{case}: {what}");
    for (at, (ours, theirs)) in ours.iter().zip(theirs).enumerate() {
        let ours = f64::from(*ours);
        let differ = (ours - theirs).abs();
        assert!(
            differ <= 2e-4 * theirs.abs().max(2e-3),
            "{case}: {what}, number {at}: {ours} here, {theirs} in TensorFlow"
        );
    }
}
