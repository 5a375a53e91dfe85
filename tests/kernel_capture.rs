//! The files that `WGRAD_KERNEL_CAPTURE` writes; and programs and trainings that `cargo xtask races` runs with it, at sizes
//! where loops have several iterations.

#![allow(clippy::unwrap_used)]

#[path = "support/driver.rs"]
mod driver;
#[path = "support/folder.rs"]
mod folder;
#[path = "support/programs/mod.rs"]
mod programs;

use std::path::Path;
use std::process::{Command, Output};

use programs::check::cases;
use programs::flavours::{
    ELEMENTWISE, EMPTY, Flavour, INDICES, LONG, MIXED, MOTIFS, PRODUCTS, REDUCES, SMOOTH, VIEWS,
    WIDE,
};
use programs::run::{Devices, Mode, run, run_with_gradients};
use programs::{generate, recurrences};
use wgrad::keras::layers::{
    BatchNormalization, Conv2D, Dense, DepthwiseConv2D, Dropout, Embedding, Flatten,
    GlobalAveragePooling1D, Gru, LayerNormalization, Lstm, MaxPooling2D, MultiHeadAttention,
};
use wgrad::keras::losses::{Loss, SparseCategoricalCrossentropy};
use wgrad::keras::optimizers::{Adam, Optimizer, Sgd};
use wgrad::keras::{
    Activation, Context, DTypePolicy, Layer, Sequential, TRAINING, set_dtype_policy,
};
use wgrad::{DType, Device, GradientTape, Padding, Result, Tensor, Trackable};

/// Runs one of the tests below in a separate process, with these variables.
fn in_a_process(test: &str, variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([test, "--exact", "--ignored", "--nocapture"]);
    for name in ["", "_EVERY", "_BYTES", "_ADAPTERS"] {
        command.env_remove(format!("WGRAD_KERNEL_CAPTURE{name}"));
    }
    command.envs(variables.iter().copied()).output().unwrap()
}

fn words(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// The names of files with this ending.
fn files(folder: &Path, ending: &str) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter(|name| name.ends_with(ending)).collect();
    names.sort();
    names
}

#[test]
#[ignore = "other tests run it in a process of its own"]
fn ten_steps() {
    let device = Device::new().unwrap();
    device.scope(|| {
        let x = Tensor::from_slice(&[1.0f32, 2.0, 3.0], [3]).unwrap();
        for step in 0..10 {
            let y = x.multiply(step as f32 + 0.5).unwrap();
            assert_eq!(y.to_vec::<f32>().unwrap()[1], 2.0 * (step as f32 + 0.5));
        }
    });
}

#[test]
fn a_plan_is_written_once_with_what_was_in_its_buffers() {
    let folder = folder::Folder::new("kernel-capture");
    let path = folder.path("plans");
    let name = path.to_str().unwrap();
    let output = in_a_process("ten_steps", &[("WGRAD_KERNEL_CAPTURE", name)]);
    assert!(output.status.success(), "{}", words(&output));
    let plans = files(&path, ".plan");
    assert_eq!((plans.len(), files(&path, ".wgsl").len()), (1, 1));
    let bytes = std::fs::read(path.join(&plans[0])).unwrap();
    let mut parts = bytes.splitn(3, |byte| *byte == b'\n');
    assert_eq!(parts.next().unwrap(), b"wgrad plan 1");
    let header: serde_json::Value = serde_json::from_slice(parts.next().unwrap()).unwrap();
    assert_eq!(header["launches"][0]["grid"], serde_json::json!([1, 1, 1]));
    assert_eq!(header["results"][0]["dtype"], "f32");
    // The leaf, padded to a whole vector, and the result of the first step.
    let floats: Vec<f32> = bytemuck::pod_collect_to_vec(parts.next().unwrap());
    assert_eq!(floats[..3], [1.0, 2.0, 3.0]);
    assert_eq!(floats[floats.len() / 2..][..3], [0.5, 1.0, 1.5]);
    // Another process writes no new files.
    let written = std::fs::metadata(path.join(&plans[0])).unwrap().modified().unwrap();
    assert!(in_a_process("ten_steps", &[("WGRAD_KERNEL_CAPTURE", name)]).status.success());
    assert_eq!(std::fs::metadata(path.join(&plans[0])).unwrap().modified().unwrap(), written);
}

#[test]
fn every_nth_run_is_written_and_large_plans_are_not() {
    let folder = folder::Folder::new("kernel-capture-every");
    let count = |name: &str, variables: &[(&str, &str)]| {
        let path = folder.path(name);
        let mut all = vec![("WGRAD_KERNEL_CAPTURE", path.to_str().unwrap())];
        all.extend(variables);
        let output = in_a_process("ten_steps", &all);
        assert!(output.status.success(), "{}", words(&output));
        files(&path, ".plan").len()
    };
    // The first of ten runs, and every third one after it.
    assert_eq!(count("every", &[("WGRAD_KERNEL_CAPTURE_EVERY", "3")]), 4);
    assert_eq!(count("bytes", &[("WGRAD_KERNEL_CAPTURE_BYTES", "8")]), 0);
    // The kernel is the same on a processor and on a GPU, if it does not use subgroups.
    let adapters = [("WGRAD_KERNEL_CAPTURE_ADAPTERS", "gpu, short-loops")];
    assert!(count("adapters", &adapters) <= 2);
}

#[test]
fn variables_that_mean_nothing_are_refused() {
    let folder = folder::Folder::new("kernel-capture-refused");
    let path = folder.path("plans");
    for (variable, value, complaint) in [
        ("WGRAD_KERNEL_CAPTURE_EVERY", "often", "is 'often', and should be a number from 1 on"),
        ("WGRAD_KERNEL_CAPTURE_BYTES", "0", "is '0', and should be a number from 1 on"),
        ("WGRAD_KERNEL_CAPTURE_ADAPTERS", "gpu,vpu", "has 'vpu'; there are gpu,"),
    ] {
        let all = [("WGRAD_KERNEL_CAPTURE", path.to_str().unwrap()), (variable, value)];
        let output = in_a_process("ten_steps", &all);
        let said = words(&output);
        assert!(!output.status.success() && said.contains(complaint), "{said}");
    }
    // A failure to write is an error, too.
    let file = folder.write("file", b"");
    let output = in_a_process("ten_steps", &[("WGRAD_KERNEL_CAPTURE", file.to_str().unwrap())]);
    assert!(!output.status.success() && words(&output).contains("file"), "{}", words(&output));
}

/// The first seed of random programs: `WGRAD_CAPTURE_SEED`, or 0.
fn first_seed() -> u64 {
    match std::env::var("WGRAD_CAPTURE_SEED") {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("WGRAD_CAPTURE_SEED is {text:?}")),
        Err(_) => 0,
    }
}

/// Runs random programs, by default 300, or as `WGRAD_PROPERTY_CASES` sets; `tests/fusion/random_programs.rs` checks their
/// results.
#[test]
#[ignore = "it checks little unless WGRAD_KERNEL_CAPTURE is set; `cargo xtask races` runs it"]
fn random_programs() {
    let devices = Devices::new();
    let seeds = |share: u64| first_seed()..first_seed() + cases(share);
    let flavours: [(Flavour, u64); 10] = [
        (ELEMENTWISE, 36),
        (VIEWS, 30),
        (REDUCES, 36),
        (LONG, 27),
        (PRODUCTS, 30),
        (MOTIFS, 36),
        (INDICES, 27),
        (EMPTY, 6),
        (MIXED, 36),
        (WIDE, 12),
    ];
    let mut count = 0;
    for (flavour, share) in flavours {
        for seed in seeds(share) {
            let program = generate::generate(flavour, seed);
            run(&program, &devices, Mode::Fused)
                .unwrap_or_else(|e| panic!("{} {seed}: {e}\n{program}", flavour.name));
            count += 1;
        }
    }
    for seed in seeds(24) {
        let program = generate::generate_loss(SMOOTH, seed);
        run_with_gradients(&program, &devices, Mode::Fused)
            .unwrap_or_else(|e| panic!("gradients {seed}: {e}\n{program}"));
        count += 1;
    }
    // In addition to the 300: hundreds of iterations.
    for seed in seeds(16) {
        let recurrence = recurrences::Recurrence::random(seed);
        let program = recurrence.unrolled();
        let compute = if recurrence.gradients { run_with_gradients } else { run };
        compute(&program, &devices, Mode::Fused)
            .unwrap_or_else(|e| panic!("recurrence {seed}: {e}\n{recurrence}"));
    }
    println!("{count} programs");
    assert!(count >= 11);
}

/// A batch: numbers from -1 to 1, and labels from 0 to `classes` - 1.
fn batch(shape: &[usize], classes: usize, step: usize) -> (Tensor, Tensor) {
    let count: usize = shape.iter().product();
    let value = |i: usize| ((i * 7919 + step * 104_729) % 2003) as f32 / 1001.5 - 1.0;
    let values: Vec<f32> = (0..count).map(value).collect();
    let labels: Vec<i32> = (0..shape[0]).map(|i| ((i * 5 + step) % classes) as i32).collect();
    (Tensor::from_slice(&values, shape).unwrap(), Tensor::from_slice(&labels, [shape[0]]).unwrap())
}

/// Three training steps; the loss must stay finite. `WGRAD_CAPTURE_TRAINING` names the only training that runs.
fn train(
    name: &str,
    model: &dyn Layer,
    optimizer: &dyn Optimizer,
    input: &[usize],
    tokens: Option<usize>,
) {
    if std::env::var("WGRAD_CAPTURE_TRAINING").is_ok_and(|only| only != name) {
        return;
    }
    let mean = SparseCategoricalCrossentropy::new().from_logits(true);
    let mut losses = Vec::new();
    for step in 0..3 {
        let (mut x, y) = batch(input, 5, step);
        if let Some(tokens) = tokens {
            x = x
                .add(1.0)
                .unwrap()
                .multiply(tokens as f32 / 2.1)
                .unwrap()
                .cast(DType::I32)
                .unwrap();
        }
        let tape = GradientTape::new();
        let logits = model.call(&x, TRAINING).unwrap().cast(DType::F32).unwrap();
        let loss = mean.call(&y, &logits).unwrap();
        optimizer.minimize(&loss, tape, &model.trainable_variables()).unwrap();
        losses.push(loss.item::<f32>().unwrap());
    }
    println!("{name}: {losses:?}");
    assert!(losses.iter().all(|loss| loss.is_finite()), "{name}: {losses:?}");
}

/// A transformer block.
#[derive(Trackable)]
struct Block {
    attention: MultiHeadAttention,
    first: LayerNormalization,
    wide: Dense,
    narrow: Dense,
    second: LayerNormalization,
    drop: Dropout,
}

impl Block {
    fn new(heads: usize, width: usize) -> Self {
        Block {
            attention: MultiHeadAttention::new(heads, width / heads),
            first: LayerNormalization::new(),
            wide: Dense::new(3 * width).activation(Activation::Gelu),
            narrow: Dense::new(width),
            second: LayerNormalization::new(),
            drop: Dropout::new(0.1),
        }
    }
}

impl Layer for Block {
    fn call(&self, x: &Tensor, cx: Context<'_>) -> Result<Tensor> {
        let seen = self.attention.call(&[x.clone(), x.clone()][..], cx)?;
        let x = self.first.call(&x.add(self.drop.call(&seen, cx)?)?, cx)?;
        let more = self.narrow.call(&self.wide.call(&x, cx)?, cx)?;
        self.second.call(&x.add(self.drop.call(&more, cx)?)?, cx)
    }
}

fn trainings() {
    let adam = || Adam::new(1e-2);
    let mlp = Sequential::new()
        .add(Dense::new(72).activation(Activation::Relu))
        .add(BatchNormalization::new())
        .add(Dense::new(36).activation(Activation::Tanh))
        .add(Dropout::new(0.2))
        .add(Dense::new(5));
    train("MLP", &mlp, &adam(), &[33, 70], None);
    let cnn = Sequential::new()
        .add(Conv2D::new(9, [3, 3]).padding(Padding::Same).activation(Activation::Relu))
        .add(MaxPooling2D::new([2, 2]))
        .add(Conv2D::new(12, [5, 5]).activation(Activation::Relu))
        .add(DepthwiseConv2D::new([3, 3]).padding(Padding::Same))
        .add(BatchNormalization::new())
        .add(Flatten::new())
        .add(Dense::new(5));
    train("CNN", &cnn, &adam(), &[6, 18, 18, 3], None);
    let lstm = Sequential::new()
        .add(Embedding::new(11, 12))
        .add(Lstm::new(20).return_sequences(true))
        .add(Lstm::new(9))
        .add(Dense::new(5));
    train("LSTM", &lstm, &adam(), &[10, 13], Some(11));
    let gru = Sequential::new().add(Gru::new(16)).add(Dense::new(5));
    train("GRU", &gru, &Sgd::new(0.05).momentum(0.9), &[9, 12, 7], None);
    let transformer = Sequential::new()
        .add(Embedding::new(11, 24))
        .add(Block::new(3, 24))
        .add(Block::new(2, 24))
        .add(GlobalAveragePooling1D::new())
        .add(Dense::new(5));
    train("transformer", &transformer, &adam(), &[4, 37], Some(11));
}

#[test]
#[ignore = "it checks little unless WGRAD_KERNEL_CAPTURE is set; `cargo xtask races` runs it"]
fn trainings_in_f32() {
    trainings();
}

#[test]
#[ignore = "it checks little unless WGRAD_KERNEL_CAPTURE is set; `cargo xtask races` runs it in a process of its own"]
fn trainings_in_f16() {
    set_dtype_policy(DTypePolicy::MIXED_FLOAT16);
    trainings();
}
