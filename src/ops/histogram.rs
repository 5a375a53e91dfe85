//! Histograms with bins of equal width.

use super::inventory::{Entry, Gradient, OpKind, Stop, one};
use super::segment_extreme::counts;
use super::{FLOATS, expect_dtype};
use crate::dtype::DType;
use crate::error::{Error, Result, message};
use crate::tensor::Tensor;

impl Tensor {
    /// The number of values in each of `nbins` bins of equal width between the two numbers of `range`, as `i32` `[nbins]`.
    /// Values below the range count in the first bin, values above it in the last; NaN is not counted.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// let x = tf::constant([-1.0, 0.0, 1.5, 2.0, 5.0, 15.0])?;
    /// assert_eq!(x.histogram_fixed_width([0.0, 5.0], 5)?.to_vec::<i32>()?, [2, 1, 1, 0, 2]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Index`] if `nbins` is 0, or the range is not two finite numbers of which the second is larger; [`Error::DType`]
    /// if the dtype is not float.
    pub fn histogram_fixed_width(&self, range: [f32; 2], nbins: usize) -> Result<Tensor> {
        let bins = self.histogram_fixed_width_bins(range, nbins)?;
        counts(&bins.reshape_to([self.len()].into())?, nbins)
    }

    /// The index (`i32`) of each value's bin, as in [`Tensor::histogram_fixed_width`]; -1 for NaN.
    ///
    /// # Errors
    /// As [`Tensor::histogram_fixed_width`].
    pub fn histogram_fixed_width_bins(&self, range: [f32; 2], nbins: usize) -> Result<Tensor> {
        const NAME: &str = "HistogramFixedWidth";
        expect_dtype(NAME, self.spec(), FLOATS)?;
        let [low, high] = range;
        let bins = i32::try_from(nbins).unwrap_or(0);
        if !(low < high && low.is_finite() && high.is_finite() && (high - low).is_finite())
            || bins < 1
        {
            return Err(Error::Index(message!(
                "{NAME}: the range is {low} to {high} and nbins {nbins}; it needs finite numbers, the second larger, and 1 to \
                 {} bins.",
                i32::MAX
            )));
        }
        let x = self.stop_gradient().cast(DType::F32)?;
        let place = x.subtract(low)?.divide(high - low)?.multiply(bins as f32)?.floor()?;
        let bin =
            place.clip_by_value(0.0, (bins - 1) as f32)?.cast(DType::I32)?.minimum(bins - 1)?;
        super::select(&x.is_nan()?, &bin.zeros_like()?.subtract(1)?, &bin)
    }
}

/// The inventory of this file.
pub(super) const ENTRIES: &[Entry] = &[
    Entry::new(OpKind::Composed, "histogram_fixed_width", &["tf.histogram_fixed_width"], |c| {
        let bins = c.int("nbins")?.unwrap_or(100) as usize;
        let range = c.need("value_range", c.floats("value_range")?)?;
        let [low, high] = range[..] else { return Err(Stop::Lacks("value_range".into())) };
        one(c.arg("values")?.histogram_fixed_width([low as f32, high as f32], bins))
    })
    .gradient(Gradient::None("HistogramFixedWidth: numbers of elements")),
    Entry::new(
        OpKind::Composed,
        "histogram_fixed_width_bins",
        &["tf.histogram_fixed_width_bins"],
        |c| {
            let bins = c.int("nbins")?.unwrap_or(100) as usize;
            let range = c.need("value_range", c.floats("value_range")?)?;
            let [low, high] = range[..] else { return Err(Stop::Lacks("value_range".into())) };
            one(c.arg("values")?.histogram_fixed_width_bins([low as f32, high as f32], bins))
        },
    )
    .gradient(Gradient::None("HistogramFixedWidth: an index")),
];
