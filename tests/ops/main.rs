//! Ops beyond the oracle's cases, edge cases, what fails on some GPUs, and the inventory of ops.

#![allow(clippy::unwrap_used)]

#[cfg(feature = "inventory")]
#[path = "../support/oracle.rs"]
mod oracle;
#[path = "../support/mod.rs"]
mod support;

mod attention;
mod convolutions;
mod dropout;
mod edges;
mod image;
#[cfg(feature = "inventory")]
mod inventory;
#[cfg(feature = "inventory")]
mod linalg;
mod long_loops;
mod random;
mod segments;
mod signal;
mod traps;

#[cfg(feature = "inventory")]
use support::{driver, root};
use wgrad::{Result, Tensor};

/// Numbers from -1 to 1.5, in quarters.
fn numbers(count: usize) -> Vec<f32> {
    (0..count).map(|i| (i * 7 % 11) as f32 / 4.0 - 1.0).collect()
}

/// [`numbers`] in this shape.
fn quarters(shape: &[usize]) -> Tensor {
    Tensor::from_slice(&numbers(shape.iter().product()), shape).unwrap()
}

#[track_caller]
fn near(got: Result<Tensor>, shape: &[usize], want: &[f32]) {
    within(2e-6, got, shape, want);
}

/// The tolerance is relative to the largest number.
#[track_caller]
fn within(tolerance: f32, got: Result<Tensor>, shape: &[usize], want: &[f32]) {
    let got = got.unwrap();
    assert_eq!(got.shape(), shape);
    let values = got.to_vec::<f32>().unwrap();
    let largest = want.iter().fold(1f32, |a, b| a.max(b.abs()));
    for (i, (got, want)) in values.iter().zip(want).enumerate() {
        assert!(
            (got - want).abs() <= tolerance * largest,
            "{i}: {got} is not {want} in {values:?}"
        );
    }
}
