//! The loss of an MLP over 1,000 batches as a curve in TensorBoard.
//!
//! `cargo example tensorboard`, then `tensorboard --logdir out/tensorboard` (from `pip install tensorboard`) shows the loss of
//! every tenth batch. Training does not wait for the numbers: the writer reads them once the device has computed them.

#[path = "support/flags.rs"]
mod flags;
#[path = "support/say.rs"]
mod say;

use std::process::ExitCode;

use flags::Flags;
use say::{Result, say};
use wgrad as tf;
use wgrad::data::Dataset;
use wgrad::data::mnist::{Mnist, MnistOptions};
use wgrad::keras::layers::{Dense, Flatten, Layer};
use wgrad::keras::optimizers::{Adam, Optimizer};
use wgrad::keras::{Activation, Sequential, TRAINING};
use wgrad::summary;

fn main() -> ExitCode {
    let about =
        "Write the loss of a network on MNIST for TensorBoard.\n\nUsage: tensorboard [OPTIONS]";
    say::exit_code(run(&Flags::parse(about, 1000)))
}

fn run(flags: &Flags) -> Result<()> {
    tf::random::set_seed(flags.seed);
    say!("adapter   {}", tf::Device::current()?.adapter());
    let options = MnistOptions::new().dir(flags.data.clone()).download(true).seed(flags.seed);
    let mnist = Mnist::load(&options)?;
    say!("data      {}", mnist.source);

    let model = Sequential::new()
        .add(Flatten::new())
        .add(Dense::new(100).activation(Activation::Relu))
        .add(Dense::new(10));
    let optimizer = Adam::new(1e-3);
    let count = mnist.train.len();
    let batches = Dataset::from_tensor_slices(mnist.train)?
        .shuffle(count)
        .batch(50)
        .repeat(None)
        .take(flags.steps)
        .to_tensors();

    let logs = flags.out.join("tensorboard");
    let writer = summary::create_file_writer(&logs)?;
    let file = writer.path();
    let default = writer.as_default();
    for (step, batch) in batches.iter().enumerate() {
        let (images, labels) = batch?;
        let images = images.cast(tf::DType::F32)? / 255.0;
        let tape = tf::GradientTape::new();
        let logits = model.call(&images, TRAINING)?;
        let losses = tf::sparse_softmax_cross_entropy_with_logits(&labels, &logits)?;
        let loss = losses.reduce_mean(())?;
        optimizer.minimize(&loss, tape, &model)?;

        let _recording = summary::record_if(step % 10 == 0);
        summary::scalar("loss", &loss, step)?;
    }
    drop(default);
    writer.close()?;

    let losses: Vec<f64> =
        summary::read(&file)?.iter().filter_map(|event| event.scalar()).collect();
    let (first, last) = (losses.first().unwrap_or(&f64::NAN), losses.last().unwrap_or(&f64::NAN));
    say!("losses    {} of {} batches, from {first:.4} to {last:.4}", losses.len(), flags.steps);
    say!("look      tensorboard --logdir {}", logs.display());
    Ok(())
}
