//! [`Discretization`]: the index of the range that contains a number.

use super::category_encoding::{OutputMode, encode};
use crate::dtype::DType;
use crate::error::{Error, Result, message};
use crate::keras::Context;
use crate::keras::layers::Layer;
use crate::keras::layers::macros::{configured, layer, unmasked};
use crate::ops::Side;
use crate::tensor::Tensor;

layer! {
    /// Maps each number to its bin: the number of boundaries less than or equal to it.
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
        /// Creates a layer with these bin boundaries, in ascending order.
        new(bin_boundaries: Vec<f32> as impl Into<Vec<f32>>);
        options {
            /// Sets the output format. Default: integers.
            output_mode: OutputMode = OutputMode::Int,
            /// Stored in the config only: the number of bins Keras was asked for when it computed the boundaries from data.
            num_bins: Option<usize> as impl Into<Option<usize>> = None,
            /// Stored in the config only: the precision requested for that computation. Default: 0.01.
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
                "Discretization: the bin_boundaries are {bounds:?}; there must be at least one, and they must \
                 increase."
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
