//! [`Discretization`]: the range in which a number lies.

use super::category_encoding::{OutputMode, encode};
use crate::dtype::DType;
use crate::error::{Error, Result, message};
use crate::keras::Context;
use crate::keras::layers::Layer;
use crate::keras::layers::macros::{configured, layer, unmasked};
use crate::ops::Side;
use crate::tensor::Tensor;

layer! {
    /// The number of boundaries at or below each number: 0 below the first, and as many as there are from the last on.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// use tf::keras::{INFERENCE, Layer, layers::Discretization};
    /// let layer = Discretization::new([0.0, 1.0, 2.0]);
    /// let y = layer.call(&tf::constant([[-1.5, 1.0, 3.4, 0.5]])?, INFERENCE)?;
    /// assert_eq!(y.to_vec::<i32>()?, [0, 2, 3, 1]);
    /// # Ok(())
    /// # }
    /// ```
    pub struct Discretization {
        /// A layer of these boundaries, in growing order.
        new(bin_boundaries: Vec<f32> as impl Into<Vec<f32>>);
        options {
            /// Sets how the ranges are given; as whole numbers.
            output_mode: OutputMode = OutputMode::Int,
            /// Notes for the config how many ranges Keras was to find when it computed the boundaries from data.
            num_bins: Option<usize> as impl Into<Option<usize>> = None,
            /// Notes for the config how exact they were to be; 0.01.
            epsilon: f32 = 0.01,
        }
    }
}

impl Layer for Discretization {
    configured!();
    unmasked!();

    fn call(&self, x: &Tensor, _cx: Context<'_>) -> Result<Tensor> {
        let bounds = &self.bin_boundaries;
        if bounds.is_empty() || !bounds.windows(2).all(|pair| pair[0] <= pair[1]) {
            return Err(Error::Index(message!(
                "Discretization: the bin_boundaries are {bounds:?}; there must be one at least, and they must grow."
            )));
        }
        let flat = x.cast(DType::F32)?.reshape([-1])?;
        let sorted = x.device().scope(|| Tensor::from_slice(bounds, [bounds.len()]))?;
        let bins = sorted.searchsorted(&flat, Side::Right)?.reshape(x.shape())?;
        encode(
            "Discretization",
            &bins,
            bounds.len() + 1,
            self.output_mode,
            self.policy.compute_dtype(),
        )
    }
}
