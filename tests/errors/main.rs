//! Wrong calls, and valid edge cases: the texts of messages (changing one is a decision), NaN and infinity, tensors without
//! elements, many axes, sizes beyond every limit.

#![allow(clippy::unwrap_used)]

#[path = "../support/mod.rs"]
mod support;

mod axes;
#[cfg(feature = "checkpoint")]
mod checkpoints;
mod convolutions;
#[cfg(feature = "tfrecord")]
mod data_files;
mod data_stages;
mod devices;
mod empty;
mod fit;
mod image;
#[cfg(feature = "image-files")]
mod image_files;
mod layers;
mod linalg;
mod losses;
mod math;
mod models;
mod movement;
mod networks;
mod numbers;
mod optimizers;
mod random;
mod rnn;
mod signal;
mod sizes;
mod sorting;
#[cfg(feature = "summary")]
mod summary;
mod tensorflow;
mod texts;
#[cfg(feature = "safetensors")]
mod weights;

use std::fmt::Debug;

use wgrad as tf;
use wgrad::{Conv2dOptions, Result, Tensor};

/// The text of a call's error.
#[track_caller]
fn text<T: Debug>(result: Result<T>) -> String {
    match result {
        Ok(value) => panic!("the call must be refused; it gave {value:?}"),
        Err(error) => error.to_string(),
    }
}

fn zeros<const N: usize>(shape: [usize; N]) -> Tensor {
    Tensor::zeros(shape).unwrap()
}

fn ints<const N: usize>(values: [i32; N]) -> Tensor {
    tf::constant(values).unwrap()
}

fn floats<const N: usize>(values: [f32; N]) -> Tensor {
    tf::constant(values).unwrap()
}

fn values(x: Result<Tensor>) -> Vec<f32> {
    x.unwrap().to_vec().unwrap()
}

/// Equal element by element, NaN being equal to NaN.
#[track_caller]
fn same(got: &[f32], want: &[f32]) {
    let equal = |(a, b): (&f32, &f32)| a == b || (a.is_nan() && b.is_nan());
    assert!(got.len() == want.len() && got.iter().zip(want).all(equal), "{got:?} is not {want:?}");
}

fn plain() -> Conv2dOptions {
    Conv2dOptions::default()
}
