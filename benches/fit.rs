//! Measures `fit` against a manual loop and against eager steps: epochs on drawn digits, alternating in one process, and the
//! ratios of the medians. Also measures the host alone, on a device that runs nothing. `cargo bench --bench fit`.
#![allow(missing_docs, clippy::unwrap_used)]

#[path = "support/idle_device.rs"]
mod idle_device;

use std::time::{Duration, Instant};

use idle_device::idle_device;
use wgrad as tf;
use wgrad::Device;
use wgrad::data::drawn_digits::draw_digits;
use wgrad::data::mnist::Images;
use wgrad::keras::layers::{Conv2D, Dense, Dropout, Flatten, Lstm, MaxPooling2D, Reshape};
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

/// A model for images `[N,28,28]`.
type Make = fn() -> Sequential;

const MODELS: [(&str, Make); 3] = [
    ("MLP", mlp),
    ("CNN", || {
        Sequential::new()
            .add(Reshape::new([28, 28, 1]))
            .add(Conv2D::new(8, [3, 3]).activation(Activation::Relu))
            .add(MaxPooling2D::new([2, 2]))
            .add(Conv2D::new(16, [3, 3]).activation(Activation::Relu))
            .add(MaxPooling2D::new([2, 2]))
            .add(Flatten::new())
            .add(Dropout::new(0.2))
            .add(Dense::new(10))
    }),
    ("LSTM", || {
        Sequential::new().add(Reshape::new([28, 28])).add(Lstm::new(16)).add(Dense::new(10))
    }),
];

/// Times epochs of each of the calls in turn, after one of each that makes plans and pipelines.
fn alternate<const N: usize>(epochs: usize, mut calls: [Box<dyn FnMut() + '_>; N]) -> [f64; N] {
    let mut times = [const { Vec::new() }; N];
    for epoch in 0..=epochs {
        for (call, times) in calls.iter_mut().zip(&mut times) {
            let began = Instant::now();
            call();
            if epoch > 0 {
                times.push(began.elapsed());
            }
        }
    }
    times.map(median)
}

/// An epoch of `fit` of the model that `make` makes.
fn fitting(images: &Images, make: Make, eagerly: bool) -> Box<dyn FnMut() + '_> {
    let model = make();
    let options = CompileOptions::new().metrics(["accuracy"]).run_eagerly(eagerly);
    model.compile(Adam::new(1e-3), loss(), options).unwrap();
    Box::new(move || {
        model.fit(images, FitOptions::new().batch_size(BATCH).verbose(0)).unwrap();
    })
}

fn main() {
    // `cargo test` runs benches with this argument to check that they work.
    let epochs = if std::env::args().any(|arg| arg == "--test") { 1 } else { EPOCHS };
    let images = draw_digits(IMAGES, 1);
    let steps = (IMAGES / BATCH) as f64;
    let (model, adam, accuracy) =
        (mlp(), Adam::new(1e-3), SparseCategoricalAccuracy::new("accuracy"));
    let by_hand = || {
        by_hand(&images, &model, &adam, &accuracy).unwrap();
    };
    println!("{}, ms a step:", Device::current().unwrap().adapter());
    let [hand, fit] =
        alternate(epochs, [Box::new(by_hand), fitting(&images, mlp, false)]).map(|ms| ms / steps);
    println!("MLP by hand {hand:.3}, by fit {fit:.3}, ratio {:.3}", fit / hand);
    let compare = |name: &str, make: Make| {
        let calls = [true, false].map(|eagerly| fitting(&images, make, eagerly));
        let [eager, function] = alternate(epochs, calls).map(|ms| ms / steps);
        let ratio = function / eager;
        println!("{name}: eager steps {eager:.3}, functions {function:.3}, ratio {ratio:.3}");
    };
    MODELS.iter().for_each(|(name, make)| compare(name, *make));
    println!("The host alone, ms a step:");
    idle_device().scope(|| MODELS.iter().for_each(|(name, make)| compare(name, *make)));
}
