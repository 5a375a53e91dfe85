//! [`Rescaling`]: scales numbers to another range.

use crate::error::Result;
use crate::keras::Context;
use crate::keras::layers::Layer;
use crate::keras::layers::macros::{configured, layer};
use crate::tensor::Tensor;

layer! {
    /// `x scale + offset`, computed in the layer's dtype even if the input is an integer tensor.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// use tf::keras::{INFERENCE, Layer, layers::Rescaling};
    /// let layer = Rescaling::new(1.0 / 127.5).offset(-1.0);
    /// assert_eq!(layer.call(&tf::constant([0, 255])?, INFERENCE)?.to_vec::<f32>()?, [-1.0, 1.0]);
    /// # Ok(())
    /// # }
    /// ```
    pub struct Rescaling {
        /// Creates a layer that multiplies by `scale`.
        new(scale: f32);
        options {
            /// Sets the offset added after scaling.
            offset: f32 = 0.0,
        }
        class {
            positions(Positions::Kept);
        }
    }
}

impl Layer for Rescaling {
    configured!();

    fn call(&self, x: &Tensor, _cx: Context<'_>) -> Result<Tensor> {
        x.cast(self.policy.compute_dtype())?.multiply(self.scale)?.add(self.offset)
    }
}
