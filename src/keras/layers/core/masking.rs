//! [`Masking`]: masks steps in which all elements have a certain value.

use crate::error::{Error, Result, message};
use crate::keras::Context;
use crate::keras::layers::Layer;
use crate::keras::layers::macros::{configured, layer};
use crate::ops::where_;
use crate::shape::Axes;
use crate::tensor::Tensor;

layer! {
    /// Masks the time steps of `[N,T,D]` whose elements all equal `mask_value`: they become 0, and false in the mask
    /// `[N,T]`, so that the following layers skip them.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// use tf::keras::{INFERENCE, Layer, layers::Masking};
    /// let x = tf::constant([[[1.0, 0.0], [9.0, 9.0]]])?;
    /// let (y, mask) = Masking::new().mask_value(9.0).call_with_mask(&x, INFERENCE)?;
    /// assert_eq!(y.to_vec::<f32>()?, [1.0, 0.0, 0.0, 0.0]);
    /// assert_eq!(mask.expect("it makes one").to_vec::<bool>()?, [true, false]);
    /// # Ok(())
    /// # }
    /// ```
    pub struct Masking {
        /// Creates a layer that masks steps of zeros.
        new();
        options {
            /// Sets the value that marks a step as masked.
            mask_value: f32 = 0.0,
        }
    }
}

impl Masking {
    fn kept(&self, x: &Tensor, keepdims: bool) -> Result<Tensor> {
        if x.rank() < 2 {
            return Err(Error::Shape(message!(
                "Masking: the input is {:?}; it must be [N, .., D], whose last axis decides.",
                x.shape()
            )));
        }
        x.not_equal(self.mask_value)?.reduce_any(Axes::from(-1).keepdims(keepdims))
    }
}

impl Layer for Masking {
    configured!();

    fn call(&self, x: &Tensor, _cx: Context<'_>) -> Result<Tensor> {
        let x = &self.policy.autocast(x)?;
        where_(&self.kept(x, true)?, x, &x.zeros_like()?)
    }

    fn compute_mask(&self, x: &Tensor, _mask: Option<&Tensor>) -> Result<Option<Tensor>> {
        self.kept(&self.policy.autocast(x)?, false).map(Some)
    }
}
