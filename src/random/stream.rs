//! The source of a distribution's numbers: the next ones of a generator, or those of a seed.

use super::generator::Generator;
use super::philox::seeded;
use super::seeds::pair;
use crate::error::Result;
use crate::ops::{self, Distribution};
use crate::runtime::Device;
use crate::shape::Shape;
use crate::tensor::{Operand, Tensor};

#[derive(Clone, Copy)]
pub(super) enum Stream<'a> {
    Generator(&'a Generator),
    Seed([i32; 2]),
}

impl Stream<'_> {
    /// Draws on `device`, or on the current one.
    pub(super) fn draw(
        self,
        device: Option<&Device>,
        what: &'static Distribution,
        shape: &Shape,
    ) -> Result<Tensor> {
        match self {
            Stream::Generator(generator) => generator.draw(device, what, shape.clone()),
            Stream::Seed(seed) => {
                ops::philox_random(device, what, shape.clone(), seeded(seed), None)
            }
        }
    }

    /// Draws from a distribution with parameters, which broadcast to `shape`.
    pub(super) fn draw_of(
        self,
        what: &'static Distribution,
        shape: &Shape,
        parameters: &[&Tensor],
    ) -> Result<Tensor> {
        match self {
            Stream::Generator(generator) => generator.draw_of(what, shape.clone(), parameters),
            Stream::Seed(seed) => {
                ops::philox_random_of(what, shape.clone(), seeded(seed), None, parameters)
            }
        }
    }

    /// Two independent streams, for a distribution that draws twice.
    pub(super) fn two(self) -> [Self; 2] {
        match self {
            // Each draw advances a generator.
            Stream::Generator(_) => [self; 2],
            Stream::Seed(seed) => pair(seed).map(Stream::Seed),
        }
    }
}

/// A parameter of a distribution as an `f32` tensor: on the device of the given tensor, or on the current one.
pub(super) fn parameter(op: &str, x: Operand, like: Option<&Tensor>) -> Result<Tensor> {
    let x = match (x, like) {
        (Operand::Tensor(x), _) => x,
        (number, Some(like)) => number.into_tensor_like(op, like)?,
        (number, None) => number.into_tensor_like(op, &Tensor::zeros([])?)?,
    };
    ops::expect_dtype(op, x.spec(), ops::FLOATS)?;
    x.cast(crate::dtype::DType::F32)
}
