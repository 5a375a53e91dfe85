//! Uniform and normal numbers that depend only on a seed of two numbers, as TensorFlow draws them.

use super::generator::{check_range, within};
use super::options::UniformOptions;
use super::philox::seeded;
use crate::error::Result;
use crate::ops::{Distribution, philox_random};
use crate::shape::Shape;
use crate::tensor::Tensor;

/// Draws uniform numbers in [0, 1) that depend only on `seed` (`tf.random.stateless_uniform`).
///
/// # Errors
/// As [`Generator::uniform`](super::Generator::uniform).
pub fn stateless_uniform(shape: impl Into<Shape>, seed: [i32; 2]) -> Result<Tensor> {
    stateless(Distribution::UNIFORM, shape.into(), seed)
}

/// As [`stateless_uniform`], with another range.
///
/// # Errors
/// As [`Generator::uniform`](super::Generator::uniform).
pub fn stateless_uniform_with(
    shape: impl Into<Shape>,
    seed: [i32; 2],
    options: UniformOptions,
) -> Result<Tensor> {
    options.apply(stateless_uniform(shape, seed)?)
}

/// Draws integers in [`low`, `high`) that depend only on `seed`.
///
/// # Errors
/// [`Error::Index`](crate::Error::Index) if `low` is not below `high`; otherwise as
/// [`Generator::uniform`](super::Generator::uniform).
pub fn stateless_uniform_int(
    shape: impl Into<Shape>,
    seed: [i32; 2],
    low: i32,
    high: i32,
) -> Result<Tensor> {
    check_range("StatelessRandomUniformIntV2", low, high)?;
    within(stateless_bits(shape, seed)?, low, high)
}

/// Draws 32 random bits for each element, as `u32`, that depend only on `seed`.
///
/// # Errors
/// As [`Generator::uniform`](super::Generator::uniform).
pub fn stateless_bits(shape: impl Into<Shape>, seed: [i32; 2]) -> Result<Tensor> {
    stateless(Distribution::BITS, shape.into(), seed)
}

/// Draws normal numbers that depend only on `seed`. They are made from the same random bits as TensorFlow's for the seed, but
/// with a logarithm, a root and a sine, so that the last bits may differ. [`stateless_bits`], [`stateless_uniform`] and
/// [`stateless_uniform_int`] equal TensorFlow's to the bit.
///
/// # Errors
/// As [`Generator::uniform`](super::Generator::uniform).
pub fn stateless_normal(shape: impl Into<Shape>, seed: [i32; 2]) -> Result<Tensor> {
    stateless(Distribution::NORMAL, shape.into(), seed)
}

/// Draws truncated normal numbers that depend only on `seed`.
///
/// # Errors
/// As [`Generator::uniform`](super::Generator::uniform).
pub fn stateless_truncated_normal(shape: impl Into<Shape>, seed: [i32; 2]) -> Result<Tensor> {
    stateless(Distribution::TRUNCATED_NORMAL, shape.into(), seed)
}

fn stateless(what: &'static Distribution, shape: Shape, seed: [i32; 2]) -> Result<Tensor> {
    philox_random(None, what, shape, seeded(seed), None)
}
