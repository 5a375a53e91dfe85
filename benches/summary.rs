//! Measures the cost of summaries during training: epochs of the MNIST MLP with and without 1,000 scalars a second, alternating
//! in one process, and the ratio of the medians; then the cost of a histogram on the host and on the device. `cargo bench
//! --bench summary --features summary`.
#![allow(missing_docs, clippy::unwrap_used)]

use std::time::Instant;

use wgrad as tf;
use wgrad::data::drawn_digits::draw_digits;
use wgrad::data::mnist::Images;
use wgrad::keras::layers::{Dense, Flatten};
use wgrad::keras::optimizers::{Adam, Optimizer};
use wgrad::keras::{Activation, Layer, Sequential, TRAINING};
use wgrad::summary::{self, FileWriter};
use wgrad::{Device, Tensor};

const BATCH: usize = 50;
const IMAGES: usize = 6_000;
const TURNS: usize = 21;
/// Scalars per second.
const RATE: f64 = 1000.0;

/// An epoch. With a writer, each step writes `scalars` scalars of its loss without reading them.
fn epoch(
    images: &Images,
    model: &Sequential,
    adam: &Adam,
    writer: Option<(&FileWriter, usize)>,
) -> tf::Result<()> {
    let default = writer.map(|(writer, _)| writer.as_default());
    let names: Vec<String> =
        (0..writer.map_or(0, |(_, scalars)| scalars)).map(|at| format!("loss_{at}")).collect();
    let order = tf::random::global().permutation(images.len())?;
    for places in order.chunks(BATCH) {
        let (x, y) = images.tensors(places)?;
        let tape = tf::GradientTape::new();
        let logits = model.call(&x, TRAINING)?;
        let loss = tf::sparse_softmax_cross_entropy_with_logits(&y, &logits)?.reduce_mean(())?;
        adam.minimize(&loss, tape, model)?;
        for name in &names {
            summary::scalar(name, &loss, adam.iterations())?;
        }
    }
    drop(default);
    Device::current()?.synchronize()
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn main() {
    // `cargo test` runs benches with this argument to check that they work.
    let turns = if std::env::args().any(|arg| arg == "--test") { 1 } else { TURNS };
    let images = draw_digits(IMAGES, 1);
    let model = Sequential::new()
        .add(Flatten::new())
        .add(Dense::new(100).activation(Activation::Relu))
        .add(Dense::new(10));
    let adam = Adam::new(1e-3);
    let folder = std::env::temp_dir().join(format!("wgrad-bench-{}", std::process::id()));
    let writer = summary::create_file_writer(&folder).unwrap();
    epoch(&images, &model, &adam, None).unwrap();
    epoch(&images, &model, &adam, Some((&writer, 1))).unwrap();
    let began = Instant::now();
    epoch(&images, &model, &adam, None).unwrap();
    let steps = IMAGES.div_ceil(BATCH) as f64;
    let rate = steps / began.elapsed().as_secs_f64();
    // At least so many per step that there are 1,000 a second.
    let scalars = (RATE / rate).ceil() as usize;
    let (mut without, mut with) = (Vec::new(), Vec::new());
    for turn in 0..turns {
        let time = |writer, to: &mut Vec<f64>| {
            let began = Instant::now();
            epoch(&images, &model, &adam, writer).unwrap();
            to.push(began.elapsed().as_secs_f64() * 1e3);
        };
        // The order alternates, too.
        if turn % 2 == 0 {
            time(None, &mut without);
            time(Some((&writer, scalars)), &mut with);
        } else {
            time(Some((&writer, scalars)), &mut with);
            time(None, &mut without);
        }
    }
    let (without, with) = (median(&mut without), median(&mut with));
    println!("{}", Device::current().unwrap().adapter());
    println!(
        "an epoch of {steps} steps: {without:.1} ms; with {scalars} scalars a step: {with:.1} ms"
    );
    println!(
        "{:.0} scalars a second, the step rate {:.4} of that without",
        scalars as f64 * steps / with * 1e3,
        without / with
    );
    writer.close().unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    histograms(turns).unwrap();
}

/// Buckets counted by the writer, and by ops on the device: minimum, maximum, indices, counts.
fn histograms(turns: usize) -> tf::Result<()> {
    let values = tf::random::normal([784, 100])?;
    Device::current()?.synchronize()?;
    let writer = summary::MemoryWriter::new();
    let default = writer.as_default();
    let (mut host, mut device) = (Vec::new(), Vec::new());
    for _ in 0..turns {
        let began = Instant::now();
        summary::histogram("weights", &values, 0)?;
        pollster::block_on(writer.take_async())?;
        host.push(began.elapsed().as_secs_f64() * 1e3);
        let began = Instant::now();
        let (least, greatest) = (values.reduce_min(())?, values.reduce_max(())?);
        let places = ((&values - &least) / (&greatest - &least) * 29.999).cast(tf::DType::I32)?;
        let counts: Tensor = tf::one_hot(&places.reshape([-1])?, 30)?.reduce_sum(0)?;
        pollster::block_on(Tensor::to_vecs_async::<f32>(&[&least, &greatest, &counts]))?;
        device.push(began.elapsed().as_secs_f64() * 1e3);
    }
    drop(default);
    let (host, device) = (median(&mut host), median(&mut device));
    println!(
        "a histogram of 78,400 values: {host:.2} ms in the writer's thread, {device:.2} ms by ops of the device"
    );
    Ok(())
}
