//! Reductions of the rows of each segment: maximum, minimum, mean, and the sum divided by the square root of their
//! number.

use super::inventory::{ANY, Entry, OpKind, Values, one};
use super::segment_extreme::{counts, extreme};
use super::segment_sum::by_segment;
use super::{FLOATS, NUMERIC, expect_dtype};
use crate::error::Result;
use crate::tensor::{Tensor, constant};

impl Tensor {
    /// `y[r] = maximum of the rows whose id in `ids` is r`, element by element; the lowest finite number of the dtype
    /// if there are none. NaN takes precedence. Equal largest elements share the gradient equally. Otherwise like
    /// [`Tensor::unsorted_segment_sum`].
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// let y = tf::constant([1.0, 2.0, 4.0])?.unsorted_segment_max(&tf::constant([1, 0, 1])?, 3)?;
    /// assert_eq!(y.to_vec::<f32>()?, [2.0, 4.0, f32::MIN]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::unsorted_segment_sum`].
    pub fn unsorted_segment_max(&self, ids: &Tensor, segments: usize) -> Result<Tensor> {
        by_segment("UnsortedSegmentMax", self, ids, segments, |x, ids| {
            extreme(x, ids, segments, true)
        })
    }

    /// `y[r] = minimum of the rows whose id in `ids` is r`; the highest finite number of the dtype if there are none.
    /// Otherwise like [`Tensor::unsorted_segment_max`].
    ///
    /// # Errors
    /// As [`Tensor::unsorted_segment_sum`].
    pub fn unsorted_segment_min(&self, ids: &Tensor, segments: usize) -> Result<Tensor> {
        by_segment("UnsortedSegmentMin", self, ids, segments, |x, ids| {
            extreme(x, ids, segments, false)
        })
    }

    /// `y[r] = mean of the rows whose id in `ids` is r`; 0 if there are none. Otherwise like
    /// [`Tensor::unsorted_segment_sum`].
    ///
    /// # Errors
    /// As [`Tensor::unsorted_segment_sum`]; [`Error::DType`](crate::Error::DType) if the dtype is not float.
    pub fn unsorted_segment_mean(&self, ids: &Tensor, segments: usize) -> Result<Tensor> {
        over_counts("UnsortedSegmentMean", self, ids, segments, Ok)
    }

    /// `y[r] = sum of the rows whose id in `ids` is r, divided by the square root of their number`; 0 if there are
    /// none. Otherwise like [`Tensor::unsorted_segment_sum`].
    ///
    /// # Errors
    /// As [`Tensor::unsorted_segment_mean`].
    pub fn unsorted_segment_sqrt_n(&self, ids: &Tensor, segments: usize) -> Result<Tensor> {
        over_counts("UnsortedSegmentSqrtN", self, ids, segments, |n| n.sqrt())
    }
}

fn over_counts(
    op: &str,
    x: &Tensor,
    ids: &Tensor,
    segments: usize,
    of: fn(Tensor) -> Result<Tensor>,
) -> Result<Tensor> {
    expect_dtype(op, x.spec(), FLOATS)?;
    by_segment(op, x, ids, segments, |x, ids| {
        let rows = counts(ids, segments)?.maximum(1)?.cast(x.dtype())?.expand_dims(-1)?;
        x.unsorted_segment_sum(ids, segments)?.divide(of(rows)?)
    })
}

/// Ids of four rows: a segment of two, an empty one, and a row without a segment.
fn ids() -> Result<Tensor> {
    constant([2, 0, -1, 2])
}

/// The inventory of this file.
pub(super) const ENTRIES: &[Entry] = &[
    Entry::new(OpKind::Kernel, "unsorted_segment_max", &["tf.math.unsorted_segment_max"], |c| {
        one(c.x()?.unsorted_segment_max(c.arg("ids")?, c.size("num_segments")?))
    })
    .takes(NUMERIC)
    .cases(|cases| {
        cases.add("unsorted_segment_max", &[(&[4, 3], Values::Distinct(0.0))], |x| {
            x[0].unsorted_segment_max(&ids()?, 3)?.gather(&constant([0, 2])?, 0)
        });
    })
    .kernels(&[|make, dtype| {
        let ids = make(&[6], crate::dtype::DType::I32);
        let x = make(&[6, 3], dtype);
        Ok(vec![x.unsorted_segment_max(&ids, 4)?, x.unsorted_segment_min(&ids, 4)?])
    }]),
    Entry::new(OpKind::Kernel, "unsorted_segment_min", &["tf.math.unsorted_segment_min"], |c| {
        one(c.x()?.unsorted_segment_min(c.arg("ids")?, c.size("num_segments")?))
    })
    .takes(NUMERIC)
    .cases(|cases| {
        cases.add("unsorted_segment_min", &[(&[4, 3], Values::Distinct(0.0))], |x| {
            x[0].unsorted_segment_min(&ids()?, 3)?.gather(&constant([0, 2])?, 0)
        });
    }),
    Entry::new(
        OpKind::Composed,
        "unsorted_segment_mean",
        &["tf.math.unsorted_segment_mean"],
        |c| one(c.x()?.unsorted_segment_mean(c.arg("ids")?, c.size("num_segments")?)),
    )
    .cases(|cases| {
        cases.add("unsorted_segment_mean", &[(&[4, 3], ANY)], |x| {
            x[0].unsorted_segment_mean(&ids()?, 4)
        });
    }),
    Entry::new(
        OpKind::Composed,
        "unsorted_segment_sqrt_n",
        &["tf.math.unsorted_segment_sqrt_n"],
        |c| one(c.x()?.unsorted_segment_sqrt_n(c.arg("ids")?, c.size("num_segments")?)),
    )
    .cases(|cases| {
        cases.add("unsorted_segment_sqrt_n", &[(&[4, 3], ANY)], |x| {
            x[0].unsorted_segment_sqrt_n(&ids()?, 4)
        });
    }),
];
