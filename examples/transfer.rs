//! Transfer learning: train a network on the digits 0 to 4, freeze its feature layers, and give it a new head for 5 to 9.
//!
//! `cargo example transfer` runs it. The frozen layers' variables stay unchanged to the last bit, and few examples suffice for
//! the head.

#[path = "support/flags.rs"]
mod flags;
#[path = "support/say.rs"]
mod say;

use std::process::ExitCode;
use std::sync::Arc;

use flags::Flags;
use say::{Result, say};
use wgrad as tf;
use wgrad::data::mnist::{Images, Mnist, MnistOptions};
use wgrad::keras::layers::{Conv2D, Dense, Dropout, Flatten, MaxPooling2D};
use wgrad::keras::optimizers::Adam;
use wgrad::keras::{EvaluateOptions, Verbose};
use wgrad::prelude::*;

const BATCH: usize = 50;

/// The feature layers: from an image to 64 numbers.
fn base() -> Sequential {
    Sequential::new()
        .add(Conv2D::new(16, [3, 3]).activation(Activation::Relu))
        .add(MaxPooling2D::new([2, 2]))
        .add(Conv2D::new(32, [3, 3]).activation(Activation::Relu))
        .add(MaxPooling2D::new([2, 2]))
        .add(Flatten::new())
        .add(Dense::new(64).activation(Activation::Relu))
}

/// `count` images of five digits from `first` on, with labels 0 to 4.
fn digits(images: &Images, first: u8, count: usize) -> Result<(Tensor, Tensor)> {
    let wanted = |label: u8| (first..first + 5).contains(&label);
    let places: Vec<usize> = (0..images.len()).filter(|&i| wanted(images.labels[i])).collect();
    let (x, y) = images.tensors(&places[..count.min(places.len())])?;
    Ok((x, y.subtract(i32::from(first))?))
}

fn main() -> ExitCode {
    let about = "Train on some digits, then a new head on the others.\n\nUsage: transfer [OPTIONS]";
    say::exit_code(run(&Flags::parse(about, 200)))
}

fn run(flags: &Flags) -> Result<()> {
    tf::random::set_seed(flags.seed);
    say!("adapter   {}", Device::current()?.adapter());
    let options = MnistOptions::new().dir(flags.data.clone()).download(true).seed(flags.seed);
    let mnist = Mnist::load(&options)?;
    say!("data      {}", mnist.source);

    // One base in two models, which share its layers.
    let base = Arc::new(base());
    let first = Sequential::new().add(base.clone()).add(Dropout::new(0.3)).add(Dense::new(5));
    train("0 to 4, all layers", &first, 1e-3, &mnist, 0, flags.steps * BATCH)?;

    base.set_trainable(false);
    let before = base.get_weights()?;
    let second = Sequential::new().add(base.clone()).add(Dense::new(5));
    train("5 to 9, a new head", &second, 1e-2, &mnist, 5, 10 * BATCH)?;
    say!(
        "{} of {} parameters were trained, the base is {}",
        second
            .trainable_variables()
            .iter()
            .map(|v| v.shape().iter().product::<usize>())
            .sum::<usize>(),
        second.count_params(),
        if base.get_weights()? == before { "as it was" } else { "another" }
    );

    // Fine-tuning: all layers again, with small steps.
    base.set_trainable(true);
    train("5 to 9, fine-tuned", &second, 1e-3, &mnist, 5, 10 * BATCH)
}

fn train(
    what: &str,
    model: &Sequential,
    learning_rate: f32,
    mnist: &Mnist,
    digit: u8,
    examples: usize,
) -> Result<()> {
    let loss = tf::keras::losses::SparseCategoricalCrossentropy::new().from_logits(true);
    model.compile(Adam::new(learning_rate), loss, CompileOptions::new().metrics(["accuracy"]))?;
    let (x, y) = digits(&mnist.train, digit, examples)?;
    let epochs = if digit == 0 { 1 } else { 5 };
    let options = FitOptions::new().batch_size(BATCH).epochs(epochs).verbose(Verbose::Silent);
    model.fit((&x, &y), options)?;
    let (x, y) = digits(&mnist.test, digit, 1_000)?;
    let logs = model.evaluate((&x, &y), EvaluateOptions::new().verbose(Verbose::Silent))?;
    let accuracy = 100.0 * logs.get("accuracy").ok_or("the metric is in the logs")?;
    say!("{what:20} {} examples, {accuracy:.2} % of the test images", epochs * examples);
    Ok(())
}
