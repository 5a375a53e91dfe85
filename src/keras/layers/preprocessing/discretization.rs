//! [`Discretization`]: the index of the range that contains a number.

#[cfg(feature = "preprocessing")]
mod host;

use std::sync::{PoisonError, RwLock};

use super::category_encoding::{OutputMode, encode};
#[cfg(feature = "preprocessing")]
use super::quantiles::Summary;
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
        /// Creates a layer with these bin boundaries, in ascending order. With the feature `preprocessing`, `with_num_bins` creates
        /// one that learns them from data.
        new(bin_boundaries: Boundaries as impl Into<Boundaries>);
        options {
            /// Sets the output format. Default: integers.
            output_mode: OutputMode = OutputMode::Int,
            /// Sets the number of bins whose boundaries `adapt` computes. Without it, they are those that were set.
            num_bins: Option<usize> as impl Into<Option<usize>> = None,
            /// Sets the precision of that computation, as a part of the data. Default: 0.01.
            epsilon: f32 = 0.01,
        }
    }
}

/// The boundaries of bins, which `adapt` may replace.
#[derive(Debug, Default)]
pub struct Boundaries {
    now: RwLock<Vec<f32>>,
    #[cfg(feature = "preprocessing")]
    summary: std::sync::Mutex<Summary>,
}

impl Boundaries {
    fn get(&self) -> Vec<f32> {
        self.now.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl<T: Into<Vec<f32>>> From<T> for Boundaries {
    fn from(list: T) -> Self {
        Boundaries {
            now: RwLock::new(list.into()),
            #[cfg(feature = "preprocessing")]
            summary: Default::default(),
        }
    }
}

#[cfg(feature = "json")]
impl crate::keras::ConfigValue for Boundaries {
    fn to_json(&self) -> std::result::Result<serde_json::Value, String> {
        Some(self.get()).filter(|list| !list.is_empty()).to_json()
    }

    fn from_json(value: &serde_json::Value) -> std::result::Result<Self, String> {
        let list = Option::<Vec<f32>>::from_json(value)?;
        Ok(Boundaries::from(list.unwrap_or_default()))
    }
}

impl Discretization {
    /// The boundaries, which must be in order.
    fn bounds(&self) -> Result<Vec<f32>> {
        let bounds = self.bin_boundaries.get();
        if bounds.is_empty() || !bounds.windows(2).all(|pair| pair[0] <= pair[1]) {
            return Err(Error::Index(message!(
                "Discretization: the bin_boundaries are {bounds:?}; there must be at least one, and they must \
                 increase."
            )));
        }
        Ok(bounds)
    }
}

impl Layer for Discretization {
    configured!();
    unmasked!();

    fn call(&self, x: &Tensor, _cx: Context<'_>) -> Result<Tensor> {
        let bounds = self.bounds()?;
        let flat = x.cast(DType::F32)?.reshape([-1])?;
        let sorted = x.device().scope(|| Tensor::from_slice(&bounds, [bounds.len()]))?;
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
