//! [`Projection`]: a kernel and a bias between features and heads.

use crate::error::Result;
use crate::keras::Weight;
use crate::keras::layers::formats::{Class, layer_class};
use crate::tensor::Tensor;
use crate::trackable::{Parts, Trackable};

/// `x kernel + bias` from some last axes to others.
#[derive(Debug, Default)]
pub(super) struct Projection {
    pub kernel: Weight,
    pub bias: Weight,
    pub use_bias: bool,
}

impl Projection {
    pub fn new() -> Self {
        Projection { kernel: Weight::new(), bias: Weight::zeros(), use_bias: true }
    }

    /// `x` `[R,..from]` by a kernel `[..from,..to]`: `[R,..to]` with the last axes of `to` as one.
    pub fn apply(&self, x: &Tensor, from: &[usize], to: &[usize]) -> Result<Tensor> {
        let wide = |sizes: &[usize]| sizes.iter().fold(1usize, |all, &n| all.saturating_mul(n));
        let kernel = self.kernel.get(x, [from, to].concat())?;
        let y = x.matmul(kernel.reshape_to([wide(from), wide(to)].into())?)?;
        if !self.use_bias {
            return Ok(y);
        }
        y.add(self.bias.get(x, to)?.reshape_to([wide(to)].into())?)
    }
}

impl Trackable for Projection {
    fn track(&self, parts: &mut Parts<'_>) {
        parts.add("kernel", &self.kernel);
        if self.use_bias {
            parts.add("bias", &self.bias);
        }
    }

    /// Summaries count its variables as those of the layer.
    fn kind(&self) -> &'static str {
        ""
    }

    fn class(&self) -> Option<&'static Class> {
        static CLASS: Class = layer_class("EinsumDense");
        Some(&CLASS)
    }
}
