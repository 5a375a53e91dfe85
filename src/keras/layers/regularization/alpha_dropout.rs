//! [`AlphaDropout`]: dropout for networks of SELUs.

use crate::error::Result;
use crate::keras::Context;
use crate::keras::layers::Layer;
use crate::keras::layers::macros::{configured, layer};
use crate::keras::layers::noise::{NoiseShape, check_rate};
use crate::tensor::Tensor;

layer! {
    /// In training, drops elements with probability `rate` such that inputs with mean 0 and variance 1 keep that mean
    /// and variance (Klambauer et al. 2017); see [`Tensor::alpha_dropout`]. In inference returns `x`.
    pub struct AlphaDropout {
        /// Creates a layer that drops elements with probability `rate`, in `0..1`.
        new(rate: f32);
        options {
            /// Sets the shape of the dropout mask. Default: the input's shape.
            noise_shape: NoiseShape as impl Into<NoiseShape> = NoiseShape::default(),
        }
        random(generator);
        class {
            positions(Positions::Kept);
        }
    }
}

impl Layer for AlphaDropout {
    configured!();

    fn call(&self, x: &Tensor, cx: Context<'_>) -> Result<Tensor> {
        check_rate("AlphaDropout", self.rate)?;
        let x = &self.policy.autocast(x)?;
        if !cx.training() || self.rate == 0.0 {
            return Ok(x.clone());
        }
        x.alpha_dropout(self.rate, self.generator.get(), self.noise_shape.options(x))
    }
}
