//! Measures `fit` against a manual loop: epochs of the MNIST MLP, alternating in one process, and the ratio of the medians.
//! `cargo bench --bench fit`.
#![allow(missing_docs, clippy::unwrap_used)]

use std::time::{Duration, Instant};

use wgrad as tf;
use wgrad::Device;
use wgrad::data::drawn_digits::draw_digits;
use wgrad::data::mnist::Images;
use wgrad::keras::layers::{Dense, Flatten};
use wgrad::keras::losses::{Loss, SparseCategoricalCrossentropy};
use wgrad::keras::metrics::{Metric, SparseCategoricalAccuracy};
use wgrad::keras::optimizers::{Adam, Optimizer};
use wgrad::keras::{Activation, CompileOptions, FitOptions, Layer, Model, Sequential, TRAINING};

const BATCH: usize = 50;
const IMAGES: usize = 6_000;
const EPOCHS: usize = 15;

fn mlp() -> Sequential {
    Sequential::new()
        .add(Flatten::new())
        .add(Dense::new(100).activation(Activation::Relu))
        .add(Dense::new(10))
}

fn loss() -> SparseCategoricalCrossentropy {
    SparseCategoricalCrossentropy::new().from_logits(true)
}

/// An epoch of a manual loop that reads nothing in between.
fn by_hand(
    images: &Images,
    model: &Sequential,
    adam: &Adam,
    accuracy: &SparseCategoricalAccuracy,
) -> tf::Result<f32> {
    let order = tf::random::global().permutation(images.len())?;
    accuracy.reset_state()?;
    let mut losses = Vec::new();
    for places in order.chunks(BATCH) {
        let (x, y) = images.tensors(places)?;
        let tape = tf::GradientTape::new();
        let logits = model.call(&x, TRAINING)?;
        let value = loss().call(&y, &logits)?;
        accuracy.update_state(&y, &logits)?;
        adam.minimize(&value, tape, model)?;
        losses.push(value);
    }
    let mean = tf::stack(losses.iter().collect::<Vec<_>>(), 0)?.reduce_mean(())?;
    mean.item::<f32>()?;
    accuracy.result()?.item()
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64() * 1e3
}

fn main() {
    // `cargo test` runs benches with this argument to check that they work.
    let epochs = if std::env::args().any(|arg| arg == "--test") { 1 } else { EPOCHS };
    let images = draw_digits(IMAGES, 1);
    let (model, adam, accuracy) =
        (mlp(), Adam::new(1e-3), SparseCategoricalAccuracy::new("accuracy"));
    let fitted = mlp();
    let options = CompileOptions::new().metrics(["accuracy"]);
    fitted.compile(Adam::new(1e-3), loss(), options).unwrap();
    let fit = || {
        let options = FitOptions::new().batch_size(BATCH).verbose(0);
        fitted.fit(&images, options).unwrap();
    };
    // Creates plans and pipelines.
    by_hand(&images, &model, &adam, &accuracy).unwrap();
    fit();
    let (mut hand, mut with_fit) = (Vec::new(), Vec::new());
    for _ in 0..epochs {
        let began = Instant::now();
        by_hand(&images, &model, &adam, &accuracy).unwrap();
        hand.push(began.elapsed());
        let began = Instant::now();
        fit();
        with_fit.push(began.elapsed());
    }
    let (hand, with_fit) = (median(hand), median(with_fit));
    let steps = (IMAGES / BATCH) as f64;
    println!("{}", Device::current().unwrap().adapter());
    println!("an epoch of {steps} steps by hand: {hand:.1} ms, {:.3} ms a step", hand / steps);
    println!(
        "an epoch of {steps} steps by fit:  {with_fit:.1} ms, {:.3} ms a step",
        with_fit / steps
    );
    println!("fit / by hand: {:.3}", with_fit / hand);
}
