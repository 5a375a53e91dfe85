//! [`LeakyRelu`]: a rectifier with a small slope below 0.

use crate::error::{Error, Result, message};
use crate::keras::Context;
use crate::keras::layers::Layer;
use crate::keras::layers::macros::{configured, layer};
use crate::tensor::Tensor;

layer! {
    /// Leaky ReLU: `x` if `x > 0`, else `negative_slope x` (Maas et al. 2013).
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// use tf::keras::{INFERENCE, Layer, layers::LeakyRelu};
    /// let layer = LeakyRelu::new().negative_slope(0.5);
    /// assert_eq!(layer.call(&tf::constant([-1.0, 2.0])?, INFERENCE)?.to_vec::<f32>()?, [-0.5, 2.0]);
    /// # Ok(())
    /// # }
    /// ```
    pub struct LeakyRelu["LeakyReLU"] {
        /// Creates a layer with a negative slope of 0.3.
        new();
        options {
            /// Sets the slope for negative inputs.
            negative_slope: f32 = 0.3,
        }
        class {
            positions(Positions::Kept);
        }
    }
}

impl Layer for LeakyRelu {
    configured!();

    fn call(&self, x: &Tensor, _cx: Context<'_>) -> Result<Tensor> {
        if self.negative_slope < 0.0 || self.negative_slope.is_nan() {
            return Err(Error::Index(message!(
                "LeakyReLU: the negative_slope is {}; it must be at least 0.",
                self.negative_slope
            )));
        }
        self.policy.autocast(x)?.leaky_relu(self.negative_slope)
    }
}
