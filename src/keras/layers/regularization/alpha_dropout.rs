//! [`AlphaDropout`]: dropout for networks of SELUs.

use crate::error::Result;
use crate::keras::Context;
use crate::keras::layers::Layer;
use crate::keras::layers::macros::{configured, layer};
use crate::keras::layers::noise::{NoiseShape, check_rate};
use crate::tensor::Tensor;

layer! {
    /// In training, drops elements with probability `rate` so that mean and variance of inputs of mean 0 and variance 1 stay
    /// (Klambauer et al. 2017); see [`Tensor::alpha_dropout`]. In inference `x`.
    pub struct AlphaDropout {
        /// A layer that drops elements with probability `rate`, at least 0 and below 1.
        new(rate: f32);
        options {
            /// Sets the shape of the draws; the input's.
            noise_shape: NoiseShape as impl Into<NoiseShape> = NoiseShape::default(),
        }
        random(generator);
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
