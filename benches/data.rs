//! Measures datasets: MNIST batches compared with the steps that use them, shuffling a million small elements, and training
//! from a dataset compared with training from arrays in memory.
//!
//! `cargo bench --bench data`. Each ratio is measured in one process that alternates between both sides.
#![allow(clippy::unwrap_used, missing_docs)]

use std::time::{Duration, Instant};

use ndarray::{Array4, ArrayD};
use wgrad::data::{AUTOTUNE, Dataset};
use wgrad::keras::layers::{Conv2D, Dense, Flatten, MaxPooling2D, Rescaling};
use wgrad::keras::losses::SparseCategoricalCrossentropy;
use wgrad::keras::optimizers::Adam;
use wgrad::keras::{Activation, CompileOptions, FitOptions, Model, Sequential};
use wgrad::{Device, Padding};

const BATCH: usize = 50;

type Batches = Dataset<(ArrayD<u8>, ArrayD<i32>)>;

/// Noise in the shape of MNIST: the durations of steps and batches do not depend on the pixels' values.
fn digits(count: usize) -> (Array4<u8>, Vec<i32>) {
    let mut rng = fastrand::Rng::with_seed(1);
    let pixels = Array4::from_shape_simple_fn((count, 28, 28, 1), || rng.u8(..));
    (pixels, (0..count).map(|i| (i % 10) as i32).collect())
}

fn compiled(model: Sequential) -> Sequential {
    let loss = SparseCategoricalCrossentropy::new().from_logits(true);
    model.compile(Adam::new(1e-3), loss, CompileOptions::new()).unwrap();
    model
}

fn mlp() -> Sequential {
    let model = Sequential::new().add(Rescaling::new(1.0 / 255.0)).add(Flatten::new());
    compiled(model.add(Dense::new(100).activation(Activation::Relu)).add(Dense::new(10)))
}

fn cnn() -> Sequential {
    let conv = |filters| {
        let conv = Conv2D::new(filters, [5, 5]).padding(Padding::Same);
        conv.activation(Activation::Relu)
    };
    let model = Sequential::new()
        .add(Rescaling::new(1.0 / 255.0))
        .add(conv(32))
        .add(MaxPooling2D::new([2, 2]))
        .add(conv(64))
        .add(MaxPooling2D::new([2, 2]))
        .add(Flatten::new())
        .add(Dense::new(1024).activation(Activation::Relu))
        .add(Dense::new(10));
    compiled(model)
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64()
}

/// The median time of some calls, after one warm-up call.
fn timed(count: usize, mut call: impl FnMut()) -> f64 {
    call();
    let times = (0..count).map(|_| {
        let began = Instant::now();
        call();
        began.elapsed()
    });
    median(times.collect())
}

/// Batches of MNIST's size compared with the steps of the convolutional network.
fn delivery(images: usize, steps: usize) {
    let (pixels, labels) = digits(images);
    let batches: Batches = Dataset::from_tensor_slices((pixels, labels))
        .unwrap()
        .shuffle(images.min(10_000))
        .batch(BATCH);
    let pass = timed(3, || assert_eq!(batches.iter().count(), images.div_ceil(BATCH)));
    let batch = pass / images.div_ceil(BATCH) as f64;
    let (model, endless) = (cnn(), batches.repeat(None));
    let run = || {
        let options = FitOptions::new().steps_per_epoch(steps).verbose(0);
        model.fit(&endless, options).unwrap();
    };
    let step = timed(3, run) / steps as f64;
    println!(
        "{images} images in batches of {BATCH}: {:.0} batches/s; the CNN takes {:.1} a second; delivered / taken: {:.0}",
        1.0 / batch,
        1.0 / step,
        step / batch
    );
}

/// Pairs of a float and a label, shuffled as a whole.
fn small_elements(count: usize) {
    let pairs = ((0..count).map(|i| i as f32).collect(), (0..count).map(|i| i as i32).collect());
    let pairs: (Vec<f32>, Vec<i32>) = pairs;
    let batches = Dataset::from_tensor_slices(pairs).unwrap().shuffle(count).batch(256);
    let alone = timed(3, || assert_eq!(batches.iter().count(), count.div_ceil(256)));
    let ahead = batches.prefetch(AUTOTUNE);
    let ahead = timed(3, || assert_eq!(ahead.iter().count(), count.div_ceil(256)));
    println!(
        "{count} pairs of numbers, shuffled, in batches of 256: {:.1} ms, in a thread ahead {:.1} ms",
        1e3 * alone,
        1e3 * ahead
    );
}

/// Epochs of a small network, alternately from arrays and from a dataset.
fn training(images: usize, epochs: usize) {
    let (pixels, labels) = digits(images);
    let batches: Batches = Dataset::from_tensor_slices((pixels.clone(), labels.clone()))
        .unwrap()
        .shuffle(images)
        .batch(BATCH);
    let (a, b) = (mlp(), mlp());
    let options = || FitOptions::new().verbose(0);
    let from_arrays = || a.fit((&pixels, &labels), options().batch_size(BATCH)).map(drop).unwrap();
    let from_dataset = || b.fit(&batches, options()).map(drop).unwrap();
    let (mut arrays, mut datasets) = (Vec::new(), Vec::new());
    // Creates plans and pipelines.
    from_arrays();
    from_dataset();
    for _ in 0..epochs {
        let began = Instant::now();
        from_arrays();
        arrays.push(began.elapsed());
        let began = Instant::now();
        from_dataset();
        datasets.push(began.elapsed());
    }
    let (arrays, datasets) = (median(arrays), median(datasets));
    println!(
        "an epoch of {} steps of the MLP: from arrays {:.1} ms, from a dataset {:.1} ms; dataset / arrays: {:.3}",
        images.div_ceil(BATCH),
        1e3 * arrays,
        1e3 * datasets,
        datasets / arrays
    );
}

fn main() {
    println!("{}", Device::current().unwrap().adapter());
    // `cargo test` runs benches with this argument to check that they work.
    let test = std::env::args().any(|arg| arg == "--test");
    let (images, steps, pairs, epochs) =
        if test { (200, 2, 1_000, 1) } else { (60_000, 20, 1 << 20, 9) };
    delivery(images, steps);
    small_elements(pairs);
    training(images.min(10_000), epochs);
}
