//! [`Concatenate`]: joins tensors along an axis.

use crate::error::{Error, Result};
use crate::keras::Context;
use crate::keras::layers::Layer;
use crate::keras::layers::macros::{configured, layer};
use crate::ops::concat;
use crate::shape::axis_index;
use crate::tensor::Tensor;

layer! {
    /// Concatenates several tensors along `axis`; their other sizes must be equal.
    ///
    /// Masks are passed on, unless the tensors are joined along one of the mask's axes: then the result has no mask.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// use tf::keras::{INFERENCE, Layer, layers::Concatenate};
    /// let inputs = [tf::Tensor::zeros([2, 3])?, tf::Tensor::zeros([2, 4])?];
    /// assert_eq!(Concatenate::new().call(&inputs[..], INFERENCE)?.shape(), [2, 7]);
    /// # Ok(())
    /// # }
    /// ```
    pub struct Concatenate {
        /// Creates a layer that concatenates along the last axis.
        new();
        options {
            /// Sets the axis.
            axis: i64 = -1,
        }
    }
}

impl Layer<[Tensor]> for Concatenate {
    configured!();

    fn call(&self, inputs: &[Tensor], _cx: Context<'_>) -> Result<Tensor> {
        if inputs.is_empty() {
            return Err(Error::Shape(
                "Concatenate: no inputs were given; it needs at least one.".into(),
            ));
        }
        let inputs: Vec<Tensor> =
            inputs.iter().map(|x| self.policy.autocast(x)).collect::<Result<_>>()?;
        concat(&inputs, self.axis)
    }

    fn compute_mask(&self, inputs: &[Tensor], mask: Option<&Tensor>) -> Result<Option<Tensor>> {
        let (Some(first), Some(mask)) = (inputs.first(), mask) else { return Ok(None) };
        let axis = axis_index("Concatenate", self.axis, first.rank())?;
        Ok((axis >= mask.rank()).then(|| mask.clone()))
    }
}
