//! Training runs from a fixed start with inputs from a formula, compared with TensorFlow's run.

use std::collections::HashMap;

use serde_json::Value;
use wgrad::Trackable;
use wgrad::keras::layers::{Conv2D, Dense, Flatten, MaxPooling2D};
use wgrad::keras::losses::{Loss, SparseCategoricalCrossentropy};
use wgrad::keras::optimizers::{Adam, Optimizer};
use wgrad::keras::{Activation, Layer, Sequential, TRAINING};
use wgrad::{Device, GradientTape, Padding, Tensor};

use super::golden::{Tally, print};
use super::oracle::{self, Array, Tolerance};

/// A batch has 50 images.
const BATCH: u64 = 50;

type Arrays = HashMap<String, Array>;

/// A batch of images with `pixels` pixels and their labels, as specified in `tests/data/README.md`.
fn batch(step: u64, pixels: u64) -> (Tensor, Tensor) {
    let (first, end) = (BATCH * step, BATCH * (step + 1));
    let values: Vec<f32> = (first * pixels..end * pixels)
        .map(|i| ((i.wrapping_mul(2_654_435_761) & 0xFFFF_FFFF) >> 8) as f32 / 16_777_216.0)
        .collect();
    let labels: Vec<i32> = (first..end).map(|n| ((n * 7 + n / 10) % 10) as i32).collect();
    let side = pixels.isqrt() as usize;
    (
        Tensor::from_slice(&values, [BATCH as usize, side, side, 1]).unwrap(),
        Tensor::from_slice(&labels, [BATCH as usize]).unwrap(),
    )
}

/// The last axis of an initial value: the number of units or filters of its layer.
fn units(start: &Arrays, key: &str) -> usize {
    *start[&format!("init.{key}")].shape().last().unwrap()
}

fn relu_dense(start: &Arrays, key: &str) -> Dense {
    Dense::new(units(start, key)).activation(Activation::Relu)
}

fn mlp(start: &Arrays) -> Sequential {
    let first = relu_dense(start, "w1");
    Sequential::new().add(Flatten::new()).add(first).add(Dense::new(units(start, "w2")))
}

fn cnn(start: &Arrays) -> Sequential {
    let conv = |key: &str| {
        let shape = start[&format!("init.{key}")].shape();
        let layer = Conv2D::new(shape[3], [shape[0], shape[1]]);
        layer.padding(Padding::Same).activation(Activation::Relu)
    };
    let pool = || MaxPooling2D::new([2, 2]).padding(Padding::Same);
    Sequential::new()
        .add(conv("k1"))
        .add(pool())
        .add(conv("k2"))
        .add(pool())
        .add(Flatten::new())
        .add(relu_dense(start, "w1"))
        .add(Dense::new(units(start, "w2")))
}

/// Trains from TensorFlow's initial values and compares each loss and the stored final values.
fn follow(name: &str, make: fn(&Arrays) -> Sequential, order: &[&str], fusion: bool) {
    let dir = oracle::beside("formula_trajectory");
    let json = oracle::read_json(&dir.join(format!("{name}.json")));
    let want: Vec<f64> =
        json["losses"].as_array().unwrap().iter().map(|v| Value::as_f64(v).unwrap()).collect();
    let start = oracle::read_safetensors(&dir.join(format!("{name}.safetensors")));
    let device = Device::new().unwrap();
    device.set_fusion(fusion);
    let (losses, end) = device.scope(|| train(&make(&start), &start, order, want.len()));

    let mut tally = Tally { run: 1, ..Tally::default() };
    let how = if fusion { "fused" } else { "unfused" };
    for (step, (got, want)) in losses.iter().zip(&want).enumerate() {
        // f32 sums in another order differ by about 1e-6; Adam amplifies this over the steps.
        if (got - want).abs() > 1e-4 * want {
            tally.failures.push(format!("{how}, step {step}: loss {got}, TensorFlow has {want}"));
        }
    }
    // Adam divides tiny gradients by their own magnitude, so single parameters agree less well.
    let tol = Tolerance { atol: 3e-3, rtol: 0.0 };
    for (got, key) in end.iter().zip(order) {
        let Some(want) = start.get(&format!("after{}.{key}", want.len())) else { continue };
        assert_eq!(got.shape(), want.shape());
        let worst = got.iter().zip(want.f32()).filter_map(|(&got, &want)| {
            tol.excess(f64::from(got), f64::from(want)).map(|excess| (excess, got, want))
        });
        if let Some((_, got, want)) = worst.max_by(|a, b| a.0.total_cmp(&b.0)) {
            tally.failures.push(format!("{how}, {key}: {got}, TensorFlow has {want}"));
        }
    }
    print(&tally.report(&format!("trajectory of the {name}, {how}")));
    assert!(tally.failures.is_empty(), "{:#?}", tally.failures);
}

fn train(
    model: &Sequential,
    start: &Arrays,
    order: &[&str],
    steps: usize,
) -> (Vec<f64>, Vec<ndarray::ArrayD<f32>>) {
    // The images of the formula are 28 by 28; the trajectory's initial values were made for them.
    let pixels = 784;
    model.build(batch(0, pixels).0.shape()).unwrap();
    let weights: Vec<_> =
        order.iter().map(|key| start[&format!("init.{key}")].f32().clone()).collect();
    model.set_weights(&weights).unwrap();

    let adam = Adam::new(1e-3);
    let mean = SparseCategoricalCrossentropy::new().from_logits(true);
    let mut losses = Vec::new();
    for step in 0..steps {
        let (x, y) = batch(step as u64, pixels);
        let tape = GradientTape::new();
        let loss = mean.call(&y, &model.call(&x, TRAINING).unwrap()).unwrap();
        adam.minimize(&loss, tape, &model.trainable_variables()).unwrap();
        losses.push(f64::from(loss.item::<f32>().unwrap()));
    }
    (losses, model.get_weights().unwrap())
}

#[test]
fn an_mlp_trains_as_in_tensorflow() {
    for fusion in [true, false] {
        follow("mlp", mlp, &["w1", "b1", "w2", "b2"], fusion);
    }
}

#[test]
fn a_cnn_trains_as_in_tensorflow() {
    for fusion in [true, false] {
        follow("cnn", cnn, &["k1", "c1", "k2", "c2", "w1", "b1", "w2", "b2"], fusion);
    }
}
