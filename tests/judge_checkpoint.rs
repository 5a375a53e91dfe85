//! TensorFlow restores what wgrad saved and trains on, and the other way round: `cargo xtask judge`.

#![allow(clippy::unwrap_used)]

#[path = "support/folder.rs"]
mod folder;

use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

use folder::Folder;
use serde_json::{Value, json};
use wgrad::keras::layers::{
    Add, BatchNormalization, Bidirectional, Conv2D, Dense, DepthwiseConv2D, Dropout, Embedding,
    GRU, GlobalAveragePooling1D, GlobalAveragePooling2D, LSTM, LayerNormalization,
    MultiHeadAttention, ReLU, SeparableConv2D, TimeDistributed,
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
use wgrad::{GradientTape, Padding, Result, Tensor, Trackable};

/// A model and an optimizer of the script.
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

#[allow(clippy::large_enum_variant)] // There is one at a time.
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
                let y = ReLU::new().on(&y).unwrap();
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
                    .add(Bidirectional::new(LSTM::new(3).return_sequences(true)))
                    .add(TimeDistributed::new(Dense::new(3)))
                    .add(GRU::new(2)),
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
        // And back, before the model was ever called.
        let run = Run::new(case);
        let status = run.checkpoint().restore(folder.path(case).join("keras-1")).unwrap();
        status.assert_consumed().unwrap_or_else(|error| panic!("{case}: {error}"));
        assert_eq!(run.step.load(Ordering::Relaxed), 6, "{case}");
        let resumed: Vec<f32> = (0..3).map(|_| run.train()).collect();
        close(case, "losses behind Keras's checkpoint", &resumed, &theirs("losses")[3..]);
    }
}

fn close(case: &str, what: &str, ours: &[f32], theirs: &[f64]) {
    assert_eq!(ours.len(), theirs.len(), "{case}: {what}");
    for (at, (ours, theirs)) in ours.iter().zip(theirs).enumerate() {
        let ours = f64::from(*ours);
        let differ = (ours - theirs).abs();
        assert!(
            differ <= 2e-4 * theirs.abs().max(0.05),
            "{case}: {what}, number {at}: {ours} here, {theirs} in TensorFlow"
        );
    }
}
