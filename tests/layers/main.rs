//! Keras: layers, models, losses, metrics, optimizers, callbacks.

#![allow(clippy::unwrap_used)]

#[path = "../support/mod.rs"]
mod support;

mod attention;
mod basics;
mod callbacks;
#[cfg(all(feature = "keras-files", feature = "preprocessing"))]
mod front;
mod json;
mod keras_ops;
mod layers;
mod losses;
mod metrics;
mod mixed_precision;
mod models;
mod optimizers;
mod options;
#[cfg(feature = "preprocessing")]
mod preprocessing;
mod recurrent;

use wgrad::{Tensor, Trackable};

fn values(x: &Tensor) -> Vec<f32> {
    x.to_vec().unwrap()
}

fn names(of: &dyn Trackable) -> Vec<String> {
    of.named_variables().into_iter().map(|(name, _)| name).collect()
}

/// `0.5 sin(0.7 i + phase)` for the elements in order, as in the NumPy script.
fn wave(shape: &[usize], phase: f32) -> Tensor {
    let values: Vec<f32> =
        (0..shape.iter().product()).map(|i: usize| 0.5 * (0.7 * i as f32 + phase).sin()).collect();
    Tensor::from_slice(&values, shape).unwrap()
}

/// Sets each weight to a wave: the first one with phase 1, the next with phase 2.
fn fill(layer: &dyn Trackable) {
    for (k, variable) in layer.variables().iter().enumerate() {
        variable.assign(wave(variable.shape(), 1.0 + k as f32)).unwrap();
    }
}

/// Keras's numbers are rounded to six digits.
#[track_caller]
fn near(name: &str, got: &Tensor, want: &[f32]) {
    support::compare::near(name, got, want, 3e-6);
}
