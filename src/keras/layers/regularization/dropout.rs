//! [`Dropout`]: drops elements at random while training.

use crate::error::Result;
use crate::keras::Context;
use crate::keras::layers::Layer;
use crate::keras::layers::macros::{configured, layer};
use crate::keras::layers::noise::{NoiseShape, check_rate};
use crate::tensor::Tensor;

layer! {
    /// In training, an element `x` becomes 0 with probability `rate`, otherwise `x / (1 - rate)`; in inference it stays
    /// `x`.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// use tf::keras::{INFERENCE, Layer, TRAINING, layers::Dropout};
    /// let layer = Dropout::new(0.5).seed(1);
    /// let x = tf::Tensor::ones([1000])?;
    /// assert_eq!(layer.call(&x, INFERENCE)?.to_vec::<f32>()?, [1.0; 1000]);
    /// assert!(layer.call(&x, TRAINING)?.to_vec::<f32>()?.iter().all(|&y| y == 0.0 || y == 2.0));
    /// # Ok(())
    /// # }
    /// ```
    pub struct Dropout {
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

impl Layer for Dropout {
    configured!();

    fn call(&self, x: &Tensor, cx: Context<'_>) -> Result<Tensor> {
        check_rate("Dropout", self.rate)?;
        let x = &self.policy.autocast(x)?;
        if !cx.training() || self.rate == 0.0 {
            return Ok(x.clone());
        }
        x.dropout_with(self.rate, self.generator.get(), self.noise_shape.options(x))
    }
}
