//! [`Softmax`]: the softmax, with an optional mask.

use crate::dtype::DType;
use crate::error::{Error, Result, message};
use crate::keras::Context;
use crate::keras::layers::Layer;
use crate::keras::layers::macros::{configured, layer};
use crate::ops::where_;
use crate::shape::{Axes, axis_list};
use crate::tensor::Tensor;

layer! {
    /// `e^x / sum(e^x)` along `axis`. Where the mask passed to the call is false the result is 0, and the remaining
    /// elements sum to 1.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// use tf::keras::{INFERENCE, Layer, layers::Softmax};
    /// let mask = tf::constant([true, true, false])?;
    /// let x = tf::constant([[1.0, 1.0, 9.0]])?;
    /// let y = Softmax::new().call(&x, INFERENCE.with_mask(Some(&mask)))?;
    /// assert_eq!(y.to_vec::<f32>()?, [0.5, 0.5, 0.0]);
    /// # Ok(())
    /// # }
    /// ```
    pub struct Softmax {
        /// Creates a softmax layer along the last axis.
        new();
        options {
            /// Sets the axis, or the axes that are normalized together.
            axis: Axes as impl Into<Axes> = (-1).into(),
        }
        class {
            positions(Positions::Kept);
        }
    }
}

impl Softmax {
    /// The mask as booleans, with sizes of 1 or those of `x`.
    fn mask(&self, mask: &Tensor, x: &Tensor) -> Result<Tensor> {
        let sizes = mask.shape().iter().rev().zip(x.shape().iter().rev());
        if mask.rank() > x.rank() || sizes.into_iter().any(|(&of, &size)| of != 1 && of != size) {
            return Err(Error::Shape(message!(
                "Softmax: the input is {:?} and the mask {:?}; the mask must broadcast to the input.",
                x.shape(),
                mask.shape()
            )));
        }
        if mask.dtype() == DType::Bool { Ok(mask.clone()) } else { mask.greater(0.5) }
    }
}

impl Layer for Softmax {
    configured!();

    fn call(&self, x: &Tensor, cx: Context<'_>) -> Result<Tensor> {
        let mut x = self.policy.autocast(x)?;
        let mask = cx.mask().map(|mask| self.mask(mask, &x)).transpose()?;
        if let Some(mask) = &mask {
            // The lowest number of the dtype, so that e^x is 0.
            let low = if x.dtype() == DType::F16 { -3e4 } else { -1e9 };
            x = where_(mask, &x, &x.zeros_like()?.add(low)?)?;
        }
        let axes = axis_list("Softmax", &self.axis, x.rank())?;
        let y = match axes[..] {
            [axis] => x.softmax(axis)?,
            _ => x.subtract(x.reduce_logsumexp(Axes::from(&axes[..]).keepdims(true))?)?.exp()?,
        };
        // A fully masked row would be uniform.
        mask.map_or(Ok(y.clone()), |mask| where_(&mask, &y, &y.zeros_like()?))
    }
}
