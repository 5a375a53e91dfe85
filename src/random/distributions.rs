//! The distributions, as functions of a stream of numbers.

use super::stream::{Stream, parameter};
use crate::dtype::DType;
use crate::error::{Error, Result, message};
use crate::ops::{self, Distribution};
use crate::shape::{Shape, broadcast};
use crate::tensor::{Operand, Tensor};

/// 2^31: the shares of all classes add up to it, except for rounding, and so fit into 32 bits.
const WHOLE: f32 = 2_147_483_648.0;

impl Stream<'_> {
    pub(super) fn bernoulli(self, shape: Shape, probs: Operand) -> Result<Tensor> {
        let probs = parameter("Bernoulli", probs, None)?;
        fits("Bernoulli", "probs", &probs, &shape)?;
        self.draw(Some(probs.device()), Distribution::UNIFORM, &shape)?.less(probs)
    }

    pub(super) fn exponential(self, shape: Shape, rate: Operand) -> Result<Tensor> {
        let rate = parameter("Exponential", rate, None)?;
        fits("Exponential", "rate", &rate, &shape)?;
        // From 32 bits, so that the largest numbers are as rare as they should be; never 0.
        let words = self.draw(Some(rate.device()), Distribution::BITS, &shape)?;
        let unit = words.cast(DType::F32)?.multiply(2f32.powi(-32))?.add(2f32.powi(-33))?;
        unit.log()?.negative()?.divide(rate)
    }

    pub(super) fn gamma(self, shape: Shape, alpha: Operand, beta: Operand) -> Result<Tensor> {
        let alpha = parameter("Gamma", alpha, None)?;
        let beta = match beta {
            Operand::Scalar(one) if one == 1.0.into() || one == 1.into() => None,
            beta => Some(parameter("Gamma", beta, Some(&alpha))?),
        };
        if let Some(beta) = &beta {
            fits("Gamma", "beta", beta, &shape)?;
        }
        let unit = self.draw_of(Distribution::GAMMA, &shape, &[&alpha])?;
        beta.map_or(Ok(unit.clone()), |beta| unit.divide(beta))
    }

    pub(super) fn poisson(self, shape: Shape, lam: Operand) -> Result<Tensor> {
        let mean = parameter("Poisson", lam, None)?;
        self.draw_of(Distribution::POISSON, &shape, &[&mean])
    }

    pub(super) fn binomial(self, shape: Shape, counts: Operand, probs: Operand) -> Result<Tensor> {
        let counts = match counts {
            Operand::Tensor(counts) => Operand::Tensor(counts.cast(DType::F32)?),
            number => number,
        };
        let counts = parameter("Binomial", counts, None)?;
        let probs = parameter("Binomial", probs, Some(&counts))?;
        let drawn = self.draw_of(Distribution::BINOMIAL, &shape, &[&counts, &probs])?;
        drawn.cast(DType::I32)
    }

    pub(super) fn beta(self, shape: Shape, a: Operand, b: Operand) -> Result<Tensor> {
        let a = parameter("Beta", a, None)?;
        let b = parameter("Beta", b, Some(&a))?;
        // x / (x + y) of two gamma numbers, from their logarithms: both may be too small for a
        // float.
        let [first, second] = self.two();
        let x = first.draw_of(Distribution::LOG_GAMMA, &shape, &[&a])?;
        let y = second.draw_of(Distribution::LOG_GAMMA, &shape, &[&b])?;
        x.subtract(y)?.sigmoid()
    }

    pub(super) fn dirichlet(self, shape: Shape, alpha: Operand) -> Result<Tensor> {
        let alpha = parameter("Dirichlet", alpha, None)?;
        if shape.is_empty() {
            return Err(Error::Shape(message!(
                "Dirichlet: the shape is {shape}; its last axis must be the classes, whose numbers add up to 1."
            )));
        }
        self.draw_of(Distribution::LOG_GAMMA, &shape, &[&alpha])?.softmax(-1)
    }

    pub(super) fn student_t(self, shape: Shape, df: Operand) -> Result<Tensor> {
        let half = parameter("StudentT", df, None)?.multiply(0.5)?;
        // A normal number divided by the root of a chi-square number, whose logarithm is drawn.
        let [first, second] = self.two();
        let normal = first.draw(Some(half.device()), Distribution::NORMAL, &shape)?;
        let spread = second.draw_of(Distribution::LOG_GAMMA, &shape, &[&half])?;
        normal.multiply(half.log()?.subtract(spread)?.multiply(0.5)?.exp()?)
    }

    pub(super) fn categorical(self, logits: &Tensor, num_samples: usize) -> Result<Tensor> {
        let &[rows, classes] = logits.shape() else {
            return Err(Error::Shape(message!(
                "Categorical: logits are {:?}; they must be [B, N], N logits for each of B rows. Reshape them.",
                logits.shape()
            )));
        };
        ops::expect_dtype("Categorical", logits.spec(), ops::FLOATS)?;
        if classes == 0 {
            return Err(Error::Shape(message!(
                "Categorical: logits are {:?}; there must be a class to draw.",
                logits.shape()
            )));
        }
        let shape = Shape::from([rows, num_samples]);
        let words = self.draw(Some(logits.device()), Distribution::BITS, &shape)?;
        if shape.contains(&0) {
            return words.cast(DType::I32);
        }
        let logits = logits.detached().cast(DType::F32)?;
        let finite = logits.is_finite()?;
        let masked = ops::where_(&finite, &logits, &logits.zeros_like()?.add(f32::NEG_INFINITY)?)?;
        let shares = masked.softmax(-1)?.multiply(WHOLE)?;
        let shares = ops::where_(&finite, &shares, &shares.zeros_like()?)?.cast(DType::U32)?;
        ops::multinomial(&words, &shares.cumsum(1)?)
    }
}

impl Stream<'_> {
    /// The rows in the order of random words.
    pub(super) fn shuffle(self, x: &Tensor) -> Result<Tensor> {
        let Some(&rows) = x.shape().first().filter(|rows| **rows > 1) else {
            return Ok(x.clone());
        };
        let words = self.draw(Some(x.device()), Distribution::BITS, &Shape::from([rows]))?;
        x.gather(&words.argsort(0)?, 0)
    }
}

/// Rejects a parameter that does not broadcast to the shape of the numbers.
fn fits(op: &str, name: &str, x: &Tensor, shape: &Shape) -> Result<()> {
    if broadcast(op, &x.spec().shape, shape).is_ok_and(|all| all == *shape) {
        return Ok(());
    }
    Err(Error::Shape(message!(
        "{op}: {name} is {} and cannot be broadcast to {shape}, the shape of the numbers. Give the whole shape, whose last \
         axes are those of {name}.",
        x.spec().shape
    )))
}
