//! A network for MNIST that is saved during training, and tested by another process.
//!
//! `cargo example checkpoint -- --mode train` saves it every 100 batches as `./save/model.ckpt-1`, `-2`, and so on; `--mode
//! test` restores the newest checkpoint before the model's first call: the weights are set at the first input. With
//! `--manager`, the last three checkpoints are kept, numbered by batch. Without the real files it trains on drawn digits and
//! prints this.

#[path = "support/say.rs"]
mod say;

use std::path::PathBuf;
use std::process::ExitCode;

use lexopt::prelude::*;
use say::{Result, say};
use wgrad as tf;
use wgrad::data::mnist::{Images, Mnist, MnistOptions};
use wgrad::keras::layers::{Dense, Flatten};
use wgrad::keras::metrics::SparseCategoricalAccuracy;
use wgrad::keras::optimizers::Adam;
use wgrad::prelude::*;
use wgrad::random;
use wgrad::train::{Checkpoint, CheckpointManager, CheckpointSaveOptions, latest_checkpoint};

const USAGE: &str = "Train a network on MNIST and save it on the way, or test what was saved.

Usage: checkpoint [OPTIONS]

Options:
  --mode <MODE>            train or test [default: train]
  --manager                Keep the last three checkpoints alone, numbered by the batch
  --num-epochs <EPOCHS>    Passes through the training data [default: 1]
  --batch-size <SIZE>      Images in a batch [default: 50]
  --learning-rate <RATE>   Adam's [default: 0.001]
  --save <FOLDER>          Folder of the checkpoints [default: ./save]
  --data <DATA>            Folder of the four MNIST files
  --seed <SEED>            Seed of the random numbers [default: 1]";

struct Flags {
    tests: bool,
    manager: bool,
    epochs: usize,
    batch: usize,
    rate: f32,
    save: PathBuf,
    data: Option<PathBuf>,
    seed: u64,
}

/// `Err(None)` if help was requested.
fn parse() -> std::result::Result<Flags, Option<lexopt::Error>> {
    let mut flags = Flags {
        tests: false,
        manager: false,
        epochs: 1,
        batch: 50,
        rate: 1e-3,
        save: "save".into(),
        data: None,
        seed: 1,
    };
    let mut parser = lexopt::Parser::from_env();
    while let Some(argument) = parser.next()? {
        match argument {
            Long("mode") => {
                flags.tests = match parser.value()?.to_str() {
                    Some("train") => false,
                    Some("test") => true,
                    _ => return Err(Some("--mode must be train or test".into())),
                }
            }
            Long("manager") => flags.manager = true,
            Long("num-epochs") => flags.epochs = parser.value()?.parse()?,
            Long("batch-size") => flags.batch = parser.value()?.parse()?,
            Long("learning-rate") => flags.rate = parser.value()?.parse()?,
            Long("save") => flags.save = parser.value()?.into(),
            Long("data") => flags.data = Some(parser.value()?.into()),
            Long("seed") => flags.seed = parser.value()?.parse()?,
            Short('h') | Long("help") => return Err(None),
            other => return Err(Some(other.unexpected())),
        }
    }
    Ok(flags)
}

#[derive(Trackable)]
struct Mlp {
    flatten: Flatten,
    dense1: Dense,
    dense2: Dense,
}

impl Mlp {
    fn new() -> Self {
        Mlp {
            flatten: Flatten::new(),
            dense1: Dense::new(100).activation(Activation::Relu),
            dense2: Dense::new(10),
        }
    }
}

impl Layer for Mlp {
    fn call(&self, images: &Tensor, cx: Context<'_>) -> tf::Result<Tensor> {
        let x = self.dense1.call(&self.flatten.call(images, cx)?, cx)?;
        self.dense2.call(&x, cx)
    }
}

fn main() -> ExitCode {
    match parse() {
        Ok(flags) => say::exit_code(run(&flags)),
        Err(None) => {
            println!("{USAGE}");
            ExitCode::SUCCESS
        }
        Err(Some(problem)) => {
            eprintln!("error: {problem}\n\n{USAGE}");
            ExitCode::from(2)
        }
    }
}

fn run(flags: &Flags) -> Result<()> {
    random::set_seed(flags.seed);
    let options = MnistOptions::new().dir(flags.data.clone()).download(true).seed(flags.seed);
    let mnist = Mnist::load(&options)?;
    say!("data      {}", mnist.source);
    match flags.tests {
        true => test(flags, mnist.test),
        false => train(flags, mnist.train),
    }
}

fn train(flags: &Flags, images: Images) -> Result<()> {
    let model = Mlp::new();
    let optimizer = Adam::new(flags.rate);
    let checkpoint = Checkpoint::new().with("myAwesomeModel", &model);
    let manager = CheckpointManager::new(&checkpoint, &flags.save)?;
    let manager = manager.checkpoint_name("model.ckpt").max_to_keep(3);
    let count = images.len();
    let batches = Dataset::from_tensor_slices(images)?.shuffle(count).repeat(flags.epochs);
    let batches = batches.batch(flags.batch).to_tensors().map(scaled);
    for (batch_index, batch) in batches.iter().enumerate() {
        let (images, labels) = batch?;
        let tape = GradientTape::new();
        let logits = model.call(&images, TRAINING)?;
        let loss = tf::sparse_softmax_cross_entropy_with_logits(&labels, &logits)?;
        let loss = loss.reduce_mean(())?;
        optimizer.minimize(&loss, tape, &model)?;
        if !(batch_index + 1).is_multiple_of(100) {
            continue;
        }
        let path = match flags.manager {
            true => manager.save_with(
                CheckpointSaveOptions::new().checkpoint_number(batch_index as u64 + 1),
            )?,
            false => Some(checkpoint.save(flags.save.join("model.ckpt"))?),
        };
        if let Some(path) = path {
            let loss = loss.item::<f32>()?;
            say!("batch {:5}  loss {loss:.4}  saved {}", batch_index + 1, path.display());
        }
    }
    Ok(())
}

fn test(flags: &Flags, images: Images) -> Result<()> {
    let model_to_be_restored = Mlp::new();
    let checkpoint = Checkpoint::new().with("myAwesomeModel", &model_to_be_restored);
    let Some(newest) = latest_checkpoint(&flags.save)? else {
        let folder = flags.save.display();
        return Err(format!("{folder} has no checkpoint; train first: --mode train").into());
    };
    checkpoint.restore(&newest)?.expect_partial();
    let accuracy = SparseCategoricalAccuracy::new("accuracy");
    let count = images.len();
    for batch in &Dataset::from_tensor_slices(images)?.batch(500).to_tensors().map(scaled) {
        let (images, labels) = batch?;
        accuracy.update_state(&labels, &model_to_be_restored.call(&images, INFERENCE)?)?;
    }
    let accuracy = 100.0 * accuracy.result()?.item::<f32>()?;
    say!("{}: {accuracy:.2} % of {count} test images", newest.display());
    Ok(())
}

/// The pixels, which are bytes, scaled to 0 to 1.
fn scaled((images, labels): (Tensor, Tensor)) -> tf::Result<(Tensor, Tensor)> {
    Ok((images.cast(DType::F32)? / 255.0, labels))
}
