//! [`Discretization`] on the host: it learns its boundaries, and maps arrays.

use std::sync::PoisonError;

use super::{Discretization, OutputMode, Summary};
use crate::error::{Error, Result, message};
use crate::host_array::{HostArray, HostDType};
use crate::keras::layers::preprocessing::host_encoding::Encoding;
use crate::keras::layers::preprocessing::host_layer::{HostLayer, floats};

impl Discretization {
    /// Creates a layer that learns the boundaries of this number of bins from data, so that each bin holds about as many numbers
    /// ([`adapt`](HostLayer::adapt)).
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad::keras::layers::{Discretization, HostLayer};
    /// let layer = Discretization::with_num_bins(4);
    /// layer.adapt(&[[-1.5, 1.0, 3.4, 0.5], [0.0, 3.0, 1.3, 0.0f32]])?;
    /// assert_eq!(layer.get_bin_boundaries(), [0.0, 0.5, 1.3]);
    /// assert_eq!(layer.apply(&[0.7f32])?.to_array::<i32>()?, ndarray::array![2].into_dyn());
    /// # Ok(())
    /// # }
    /// ```
    pub fn with_num_bins(num_bins: usize) -> Self {
        Discretization::new([]).num_bins(num_bins)
    }

    /// Returns the boundaries that were set or learnt.
    pub fn get_bin_boundaries(&self) -> Vec<f32> {
        self.bin_boundaries.get()
    }

    fn summary(&self) -> std::sync::MutexGuard<'_, Summary> {
        self.bin_boundaries.summary.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HostLayer for Discretization {
    fn call_host(&self, x: &HostArray<'_>) -> Result<HostArray<'static>> {
        if self.num_bins.is_some() && self.bin_boundaries.get().is_empty() {
            return Err(Error::Data(message!(
                "Discretization: num_bins is set, and the bin_boundaries have not been learnt. Call adapt first."
            )));
        }
        let bounds = self.bounds()?;
        let numbers = floats("Discretization", x)?;
        let bins =
            numbers.iter().map(|x| bounds.partition_point(|bound| bound <= x) as i64).collect();
        if self.output_mode == OutputMode::TfIdf {
            return Err(Error::Data(message!(
                "Discretization: output_mode is tf_idf, and bins have no weights. Take count."
            )));
        }
        let dtype =
            if self.output_mode == OutputMode::Int { HostDType::I32 } else { HostDType::F32 };
        let encoding = Encoding {
            layer: "Discretization",
            mode: self.output_mode,
            depth: bounds.len() + 1,
            dtype,
            idf: &[],
        };
        encoding.encode(x.shape(), bins)
    }

    fn is_adaptable(&self) -> bool {
        self.num_bins.is_some()
    }

    fn reset_state(&self) {
        *self.summary() = Summary::default();
    }

    fn update_state(&self, batch: &HostArray<'_>) -> Result<()> {
        if self.num_bins.is_none() {
            return Err(Error::Data(message!(
                "Discretization: the program has set the bin_boundaries, so adapt would change nothing. Make the layer with \
                 with_num_bins."
            )));
        }
        // The decimal digits that the program wrote: 0.01 is another number in 32 bits.
        let epsilon = self.epsilon.to_string().parse::<f64>().unwrap_or(0.01);
        // Fewer than 2 values per summary would divide nothing, and more than 10^7 would not fit.
        if !(1e-7..=0.5).contains(&epsilon) {
            return Err(Error::Data(message!(
                "Discretization: epsilon is {epsilon}; it must be from 1e-7 to 0.5."
            )));
        }
        let numbers = floats("Discretization", batch)?;
        if let Some(place) = numbers.iter().position(|x| x.is_nan()) {
            return Err(Error::Data(message!(
                "Discretization: value {place} of a batch for adapt is NaN, which belongs to no bin. Remove missing values first."
            )));
        }
        if !numbers.is_empty() {
            self.summary().add(numbers, epsilon);
        }
        Ok(())
    }

    fn finalize_state(&self) -> Result<()> {
        let summary = std::mem::take(&mut *self.summary());
        let bins = self.num_bins.unwrap_or(0);
        if summary.is_empty() || !(2..=1 << 20).contains(&bins) {
            return Err(Error::Data(message!(
                "Discretization: adapt was given {} numbers for {bins} bins; it needs a number, and 2 to 2^20 bins.",
                if summary.is_empty() { "no" } else { "some" }
            )));
        }
        let bounds = summary.boundaries(bins);
        *self.bin_boundaries.now.write().unwrap_or_else(PoisonError::into_inner) = bounds;
        Ok(())
    }

    fn cardinality(&self) -> Result<Option<usize>> {
        let bins = self.num_bins.unwrap_or_else(|| self.bin_boundaries.get().len() + 1);
        Ok(Some(bins).filter(|_| self.output_mode == OutputMode::Int))
    }

    #[cfg(feature = "json")]
    fn describe(&self) -> Result<crate::keras::Config> {
        crate::keras::layers::Configured::config(self)
    }
}
