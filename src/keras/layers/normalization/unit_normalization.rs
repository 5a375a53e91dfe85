//! [`UnitNormalization`]: scales each example to the length 1.

use crate::dtype::DType;
use crate::error::Result;
use crate::keras::Context;
use crate::keras::layers::Layer;
use crate::keras::layers::macros::{configured, layer};
use crate::ops::L2NormalizeOptions;
use crate::shape::Axes;
use crate::tensor::Tensor;

layer! {
    /// `x / sqrt(sum of squares)` over `axis` of each example.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// use tf::keras::{INFERENCE, Layer, layers::UnitNormalization};
    /// let y = UnitNormalization::new().call(&tf::constant([[3.0, 4.0]])?, INFERENCE)?;
    /// assert!((y.to_vec::<f32>()?[0] - 0.6).abs() < 1e-6);
    /// # Ok(())
    /// # }
    /// ```
    pub struct UnitNormalization {
        /// Creates a layer over the last axis.
        new();
        options {
            /// Sets the axes to normalize over: the elements along them get an L2 norm of 1.
            axis: Axes as impl Into<Axes> = (-1).into(),
        }
        class {
            positions(Positions::Kept);
        }
    }
}

impl Layer for UnitNormalization {
    configured!();

    fn call(&self, x: &Tensor, _cx: Context<'_>) -> Result<Tensor> {
        let x = self.policy.autocast(x)?;
        // Keras's minimum length is 1e-12, which f16 cannot represent.
        let options = L2NormalizeOptions::new().epsilon(1e-24);
        x.cast(DType::F32)?.l2_normalize_with(self.axis.clone(), options)?.cast(x.dtype())
    }
}
