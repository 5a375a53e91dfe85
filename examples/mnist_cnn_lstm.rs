//! The CNN + LSTM of TensorFlow's early eager guide, trained on MNIST with a tape.
//!
//! `cargo example mnist_cnn_lstm` runs it. Two convolutions compute 64 features at 7 x 7 positions each; the LSTM reads the
//! features one after another. It writes summaries every 10 steps and a checkpoint every 100, and resumes from the newest one.
//! Without the real files it trains on drawn digits and prints this.

#[path = "support/flags.rs"]
mod flags;
#[path = "support/say.rs"]
mod say;
#[path = "support/settled.rs"]
mod settled;

use std::process::ExitCode;
use std::time::Instant;

use flags::Flags;
use say::{Result, say};
use settled::Settled;
use wgrad as tf;
use wgrad::data::mnist::{Mnist, MnistOptions};
use wgrad::keras::layers::{Conv2D, Dense, Lstm, MaxPooling2D};
use wgrad::keras::losses::SparseCategoricalCrossentropy;
use wgrad::keras::metrics::{Mean, SparseCategoricalAccuracy};
use wgrad::keras::optimizers::Adam;
use wgrad::prelude::*;
use wgrad::summary;
use wgrad::train::{Checkpoint, CheckpointManager};

/// A custom model is a struct: the derive finds the variables.
#[derive(Trackable)]
struct MnistModel {
    conv1: Conv2D,
    pool1: MaxPooling2D,
    conv2: Conv2D,
    pool2: MaxPooling2D,
    lstm: Lstm,
    dense: Dense,
}

impl MnistModel {
    fn new() -> Self {
        let conv = |filters| {
            let conv = Conv2D::new(filters, [5, 5]).padding(tf::Padding::Same);
            conv.activation(Activation::Relu)
        };
        MnistModel {
            conv1: conv(32),
            pool1: MaxPooling2D::new([2, 2]),
            conv2: conv(64),
            pool2: MaxPooling2D::new([2, 2]),
            lstm: Lstm::new(128),
            dense: Dense::new(10),
        }
    }
}

impl Layer for MnistModel {
    fn call(&self, images: &Tensor, cx: Context<'_>) -> tf::Result<Tensor> {
        let x = images.reshape([-1, 28, 28, 1])?;
        let x = self.pool1.call(&self.conv1.call(&x, cx)?, cx)?;
        let x = self.pool2.call(&self.conv2.call(&x, cx)?, cx)?;
        // 7 x 7 positions of 64 features become a sequence of 64 features, each with 49 values.
        let sequence = x.reshape([-1, 49, 64])?.transpose([0, 2, 1])?;
        self.dense.call(&self.lstm.call(&sequence, cx)?, cx)
    }
}

fn main() -> ExitCode {
    let about = "Train a CNN with an LSTM on MNIST.\n\nUsage: mnist_cnn_lstm [OPTIONS]";
    say::exit_code(run(&Flags::parse(about, 100)))
}

fn run(flags: &Flags) -> Result<()> {
    tf::random::set_seed(flags.seed);
    say!("adapter   {}", Device::current()?.adapter());
    let options = MnistOptions::new().dir(flags.data.clone()).download(true).seed(flags.seed);
    let mnist = Mnist::load(&options)?;
    say!("data      {}", mnist.source);

    let model = MnistModel::new();
    let optimizer = Adam::new(1e-3);
    let loss_of = SparseCategoricalCrossentropy::new().from_logits(true);
    let (mean_loss, accuracy) = (Mean::new("loss"), SparseCategoricalAccuracy::new("accuracy"));
    let started = Instant::now();
    let folder = flags.out.join("mnist_cnn_lstm");
    let checkpoint = Checkpoint::new().with("model", &model).with("optimizer", &optimizer);
    let manager = CheckpointManager::new(&checkpoint, &folder)?;
    let manager = manager.max_to_keep(3);
    if let Some(path) = manager.restore_or_initialize()? {
        let (path, step) = (path.display(), optimizer.iterations());
        say!("resumes   at step {step}, {path}; remove the folder to start again");
    }
    let left = flags.steps.saturating_sub(optimizer.iterations() as usize);
    let mut settled = Settled::new(left)?;
    let count = mnist.train.len();
    let batches = Dataset::from_tensor_slices(mnist.train)?
        .shuffle(count)
        .batch(50)
        .repeat(None)
        .take(left)
        .to_tensors()
        .map(scaled);
    let writer = summary::create_file_writer(&folder)?;
    let default = writer.as_default();
    for batch in &batches {
        let (images, labels) = batch?;
        let tape = GradientTape::new();
        let logits = model.call(&images, TRAINING)?;
        let loss = loss_of.call(&labels, &logits)?;
        let variables = model.trainable_variables();
        let gradients = tape.gradient(&loss, &variables)?;
        optimizer.apply_gradients(&gradients, &variables)?;

        mean_loss.update_state(&loss)?;
        accuracy.update_state(&labels, &logits)?;
        // The optimizer counts the steps.
        let step = optimizer.iterations();
        settled.note(step as usize);
        if step.is_multiple_of(100) {
            manager.save()?;
        }
        if step.is_multiple_of(10) {
            let loss = mean_loss.result()?.item::<f32>()?;
            let right = accuracy.result()?.item::<f32>()?;
            let time = started.elapsed().as_secs_f64();
            say!("step {step:5}  loss {loss:.4}  accuracy {right:.3}  {time:.1} s");
            summary::scalar("loss", loss, step)?;
            summary::scalar("accuracy", right, step)?;
            mean_loss.reset_state()?;
            accuracy.reset_state()?;
        }
    }

    drop(default);
    writer.close()?;
    if let Some(report) = settled.report() {
        say!("{report}");
    }
    accuracy.reset_state()?;
    let count = mnist.test.len().min(2_000);
    let test = Dataset::from_tensor_slices(mnist.test)?.take(count).batch(500);
    for batch in &test.to_tensors().map(scaled) {
        let (images, labels) = batch?;
        accuracy.update_state(&labels, &model.call(&images, INFERENCE)?)?;
    }
    let accuracy = 100.0 * accuracy.result()?.item::<f32>()?;
    say!("after {} steps: {accuracy:.2} % of {count} test images", optimizer.iterations());
    Ok(())
}

/// The pixels, which are bytes, scaled to 0 to 1.
fn scaled((images, labels): (Tensor, Tensor)) -> tf::Result<(Tensor, Tensor)> {
    Ok((images.cast(DType::F32)? / 255.0, labels))
}
