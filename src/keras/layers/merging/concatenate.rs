//! [`Concatenate`]: tensors side by side.

use crate::error::{Error, Result};
use crate::keras::Context;
use crate::keras::layers::Layer;
use crate::keras::layers::macros::{configured, layer};
use crate::ops::concat;
use crate::shape::axis_index;
use crate::tensor::Tensor;

layer! {
    /// Puts several tensors side by side along `axis`; their other sizes are the same.
    ///
    /// A mask passes, unless the tensors are joined along one of its axes: then the result has none.
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
        /// A layer along the last axis.
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
                "Concatenate: no inputs were given; it needs one at least.".into(),
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
