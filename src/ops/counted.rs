//! Ops whose result has a size that only the device knows: `where` with one argument, `boolean_mask`, `unique`,
//! `bincount` and the sums of sorted segments. They read only that number, so they are `async` on every target;
//! `counted_blocking.rs` has their blocking counterparts.

use super::rearrange::{inverse, rearrange};
use super::segment_extreme::counts;
use super::{NUMERIC, concat, expect_dtype, fill, select, stack};
use crate::dtype::{DType, Scalar};
use crate::error::{Error, Result, message};
use crate::shape::{Axis, Shape, axis_index};
use crate::support::options::options;
use crate::tensor::Tensor;

options! {
    /// Options of [`Tensor::bincount_async`].
    #[derive(Debug, Clone)]
    pub struct BincountOptions {
        /// The minimum length of the result; 0 by default.
        minlength: usize = 0,
        /// The maximum length of the result; larger numbers are ignored. No maximum by default.
        maxlength: Option<usize> as impl Into<Option<usize>> = None,
        /// The weight of each number, in the shape of the numbers; the result is the sum of the weights, in their dtype. 1 by
        /// default.
        weights: Option<Tensor> as impl Into<Option<Tensor>> = None,
    }
}

/// The true elements of a row of flags.
struct Chosen {
    /// The target index of each flag's element, `[1, n]`; -1 for those that are false.
    to: Tensor,
    /// The index of each true flag, `[1, count]`.
    places: Tensor,
}

impl Chosen {
    fn count(&self) -> usize {
        self.places.len()
    }
}

/// Numbers the true elements of `flags` `[n]` and reads their count.
async fn chosen(flags: &Tensor) -> Result<Chosen> {
    let n = flags.len();
    let ranks = flags.cast(DType::I32)?.cumsum(0)?;
    let count = match n {
        0 => 0,
        _ => size(ranks.slice(&[n - 1], &[1])?.item_async::<i32>().await?),
    };
    number(flags, &ranks, count)
}

/// As [`chosen`], from the running sums of the flags and the last of them.
fn number(flags: &Tensor, ranks: &Tensor, count: usize) -> Result<Chosen> {
    let outside = fill(flags.device(), "Fill", Shape::default(), Scalar::Int(-1), DType::I32)?;
    let to = select(flags, &ranks.subtract(1)?, &outside)?.reshape_to([1, flags.len()].into())?;
    let places = inverse(&to, count)?;
    Ok(Chosen { to, places })
}

/// A number of elements, which is not negative.
fn size(n: i32) -> usize {
    usize::try_from(n).unwrap_or(0)
}

impl Tensor {
    /// The indices (`i32`) of the elements that are true, or not 0, in row-major order: `[count, rank]`. TensorFlow's
    /// `tf.where` with one argument. It waits for the device, because the size of the result depends on values.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// let x = tf::constant([[1.0, 0.0], [0.0, 3.0]])?;
    /// let places = pollster::block_on(x.where_indices_async())?;
    /// assert_eq!((places.shape(), places.to_vec::<i32>()?), (&[2, 2][..], vec![0, 0, 1, 1]));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::DType`] if the dtype is neither numeric nor `bool`; otherwise same as [`Tensor::to_vec_async`].
    pub async fn where_indices_async(&self) -> Result<Tensor> {
        let takes = [NUMERIC, &[DType::Bool]].concat();
        expect_dtype("Where", self.spec(), &takes)?;
        let flags = self.stop_gradient().cast(DType::Bool)?.reshape_to([self.len()].into())?;
        let found = chosen(&flags).await?;
        let count = found.count();
        if self.rank() == 0 {
            return fill(self.device(), "Where", [count, 0].into(), Scalar::Int(0), DType::I32);
        }
        let mut rest = found.places.reshape_to([count].into())?;
        let mut columns = Vec::new();
        for &size in self.shape().iter().skip(1).rev() {
            let size = (size as i64).max(1);
            columns.push(rest.floormod(size)?);
            rest = rest.floordiv(size)?;
        }
        columns.push(rest);
        columns.reverse();
        stack(&columns, 1)
    }

    /// The slices along `axis` where `mask` (`bool`) is true, in order. A mask with several axes covers as many axes of the
    /// tensor, starting at `axis`; these become one axis. It waits for the device, because the size of the result depends on
    /// values.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// let x = tf::constant([[1, 2], [3, 4], [5, 6]])?;
    /// let mask = tf::constant([true, false, true])?;
    /// let y = pollster::block_on(x.boolean_mask_async(&mask, 0))?;
    /// assert_eq!(y.to_vec::<i32>()?, [1, 2, 5, 6]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Shape`] if the mask is a scalar or its shape differs from the axes that it covers; [`Error::DType`] if it is
    /// not `bool`; [`Error::Index`] if the axis does not exist; otherwise same as [`Tensor::to_vec_async`].
    pub async fn boolean_mask_async(&self, mask: &Tensor, axis: impl Into<Axis>) -> Result<Tensor> {
        const NAME: &str = "BooleanMask";
        expect_dtype("BooleanMask (the mask)", mask.spec(), &[DType::Bool])?;
        let moved = [NUMERIC, &[DType::Bool]].concat();
        expect_dtype(NAME, self.spec(), &moved)?;
        let axis = axis_index(NAME, axis, self.rank())?;
        let end = axis + mask.rank();
        if mask.rank() == 0 || self.shape().get(axis..end) != Some(mask.shape()) {
            return Err(Error::Shape(message!(
                "{NAME}: the mask is {:?} and the tensor {:?}; from axis {axis} on the tensor's axes must be those of the \
                 mask, which has at least one.",
                mask.shape(),
                self.shape()
            )));
        }
        let found = chosen(&mask.reshape_to([mask.len()].into())?).await?;
        let product = |sizes: &[usize]| Shape::new(sizes).elements();
        let (lead, tail) = (&self.shape()[..axis], &self.shape()[end..]);
        let (outer, count) = (product(lead), found.count());
        let rows = self.reshape_to([outer, mask.len(), product(tail)].into())?;
        let places = found.places.broadcast_to([outer, count])?;
        let back = found.to.broadcast_to([outer, mask.len()])?;
        rearrange(&rows, &places, &back)?.reshape_to([lead, &[count], tail].concat().into())
    }

    /// The unique elements of a 1-D tensor in the order of their first occurrence, and for each element its index (`i32`) in
    /// the unique elements: `y[idx[i]] = x[i]`. NaN is not equal to anything. The gradient flows to the first of equal
    /// elements. It waits for the device, because the size of the result depends on values.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// let x = tf::constant([4, 1, 4, 2, 1])?;
    /// let (y, idx) = pollster::block_on(x.unique_async())?;
    /// assert_eq!(y.to_vec::<i32>()?, [4, 1, 2]);
    /// assert_eq!(idx.to_vec::<i32>()?, [0, 1, 0, 2, 1]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Shape`] if the rank is not 1; [`Error::DType`] if the dtype is not numeric; otherwise same as
    /// [`Tensor::to_vec_async`].
    pub async fn unique_async(&self) -> Result<(Tensor, Tensor)> {
        expect_dtype("Unique", self.spec(), NUMERIC)?;
        if self.rank() != 1 {
            return Err(Error::Shape(message!(
                "Unique: the tensor is {:?}; it needs exactly one axis. Reshape it first: x.reshape([-1]).",
                self.shape()
            )));
        }
        let (x, n) = (self.stop_gradient(), self.len());
        let row = |x: &Tensor| x.reshape_to([x.len()].into());
        if n == 0 {
            return Ok((self.clone(), x.cast(DType::I32)?));
        }
        // After sorting, equal elements are next to each other in their original order, because the sort is stable.
        let order = x.argsort(0)?;
        let back = inverse(&order.reshape_to([1, n].into())?, n)?;
        let sorted = x.gather(&order, 0)?;
        let ahead = sorted.slice(&[1], &[-1])?.not_equal(sorted.slice(&[0], &[n as i64 - 1])?)?;
        let one = fill(x.device(), "Fill", [1].into(), Scalar::Bool(true), DType::Bool)?;
        let starts = concat([&one, &ahead], 0)?;
        let groups = starts.cast(DType::I32)?.cumsum(0)?;
        // In the original order: whether an element is the first of its kind.
        let firsts = starts.cast(DType::I32)?.gather(&row(&back)?, 0)?.cast(DType::Bool)?;
        let ranks = firsts.cast(DType::I32)?.cumsum(0)?;
        let count = size(ranks.slice(&[n - 1], &[1])?.item_async::<i32>().await?);
        let kinds = row(&number(&firsts, &ranks, count)?.places)?;
        // Groups are numbered in the order of their values; the rank of the element that begins each group is the
        // number of kinds that first occurred before it.
        let begins = row(&number(&starts, &groups, count)?.places)?;
        let numbers = ranks.gather(&order.gather(&begins, 0)?, 0)?.subtract(1)?;
        let idx = numbers.gather(&groups.subtract(1)?, 0)?.gather(&row(&back)?, 0)?;
        Ok((self.gather(&kinds, 0)?, idx))
    }

    /// Like [`Tensor::unique_async`], and also returns the number of occurrences (`i32`) of each unique element.
    ///
    /// # Errors
    /// As [`Tensor::unique_async`].
    pub async fn unique_with_counts_async(&self) -> Result<(Tensor, Tensor, Tensor)> {
        let (y, idx) = self.unique_async().await?;
        let counts = counts(&idx, y.len())?;
        Ok((y, idx, counts))
    }

    /// The number of occurrences (`i32`) of each of the numbers 0, 1, 2, .. among the elements (`i32`), or the sum of their
    /// weights. The length of the result is the largest number plus 1, within the bounds of `options`, so it waits for the
    /// device; if both bounds are equal it does not wait.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// let x = tf::constant([1, 1, 5, 2])?;
    /// let y = pollster::block_on(x.bincount_async(tf::BincountOptions::new()))?;
    /// assert_eq!(y.to_vec::<i32>()?, [0, 2, 1, 0, 0, 1]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Index`] if a number is negative (if both bounds are equal it is ignored instead); [`Error::DType`] if the dtype
    /// is not `i32`; [`Error::Shape`] if the shape of the weights differs; otherwise same as [`Tensor::to_vec_async`].
    pub async fn bincount_async(&self, options: BincountOptions) -> Result<Tensor> {
        const NAME: &str = "Bincount";
        expect_dtype(NAME, self.spec(), &[DType::I32])?;
        let BincountOptions { minlength, maxlength, weights } = options;
        let most = maxlength.unwrap_or(usize::MAX);
        let bins = match () {
            () if most <= minlength => most,
            () if self.is_empty() => minlength,
            () => {
                let ends = stack([&self.reduce_min(())?, &self.reduce_max(())?], 0)?;
                let ends = ends.to_vec_async::<i32>().await?;
                if ends[0] < 0 {
                    return Err(Error::Index(message!(
                        "{NAME}: the smallest number is {}; none may be negative.",
                        ends[0]
                    )));
                }
                (size(ends[1]) + 1).max(minlength).min(most)
            }
        };
        let ids = self.reshape_to([self.len()].into())?;
        let Some(weights) = weights else { return counts(&ids, bins) };
        if weights.shape() != self.shape() {
            return Err(Error::Shape(message!(
                "{NAME}: the weights are {:?} and the numbers {:?}; the shapes must be equal.",
                weights.shape(),
                self.shape()
            )));
        }
        weights.reshape_to([self.len()].into())?.unsorted_segment_sum(&ids, bins)
    }
}

/// Reads the number of segments of the sorted `ids`; returns an error if they are not sorted.
async fn segments(op: &str, x: &Tensor, ids: &Tensor) -> Result<usize> {
    expect_dtype(&format!("{op} (the ids)"), ids.spec(), &[DType::I32])?;
    if ids.rank() != 1 || x.shape().first() != ids.shape().first() {
        return Err(Error::Shape(message!(
            "{op}: segment_ids is {:?} and data {:?}; the ids need one axis, as long as data's first.",
            ids.shape(),
            x.shape()
        )));
    }
    let n = ids.len();
    if n == 0 {
        return Ok(0);
    }
    let step = ids.slice(&[1], &[-1])?.less(ids.slice(&[0], &[n as i64 - 1])?)?;
    let falls = step.cast(DType::I32)?.reduce_sum(())?.reshape_to([1].into())?;
    let ends = [ids.slice(&[0], &[1])?, ids.slice(&[n - 1], &[1])?, falls];
    let ends = concat(&ends, 0)?.to_vec_async::<i32>().await?;
    if ends[0] < 0 || ends[2] > 0 {
        return Err(Error::Index(message!(
            "{op}: segment_ids begins with {} and decreases at {} positions; it must begin with 0 or more and never \
             decrease. unsorted_segment_* take ids in any order.",
            ends[0],
            ends[2]
        )));
    }
    Ok(size(ends[1]) + 1)
}

impl Tensor {
    /// The sums of the rows of each segment: `y[r] = sum of the rows whose id in `ids` is r`. The ids (`i32`, one for
    /// each row) must be sorted; the last one determines the number of segments, so it waits for the device. The sum of
    /// an empty segment is 0.
    ///
    /// # Errors
    /// [`Error::Index`] if the ids are not sorted or are negative; [`Error::Shape`] if there is not one for each row;
    /// [`Error::DType`] if they are not `i32` or the tensor is not numeric; otherwise same as [`Tensor::to_vec_async`].
    pub async fn segment_sum_async(&self, ids: &Tensor) -> Result<Tensor> {
        self.unsorted_segment_sum(ids, segments("SegmentSum", self, ids).await?)
    }

    /// The means of the rows of each segment; otherwise like [`Tensor::segment_sum_async`].
    ///
    /// # Errors
    /// As [`Tensor::segment_sum_async`]; [`Error::DType`] if the dtype is not float.
    pub async fn segment_mean_async(&self, ids: &Tensor) -> Result<Tensor> {
        self.unsorted_segment_mean(ids, segments("SegmentMean", self, ids).await?)
    }

    /// The products of the rows of each segment, 1 for an empty segment; otherwise like [`Tensor::segment_sum_async`].
    ///
    /// # Errors
    /// As [`Tensor::segment_sum_async`].
    pub async fn segment_prod_async(&self, ids: &Tensor) -> Result<Tensor> {
        self.unsorted_segment_prod(ids, segments("SegmentProd", self, ids).await?)
    }

    /// The element-wise maximum of the rows of each segment, 0 for an empty segment; otherwise like
    /// [`Tensor::unsorted_segment_max`] and [`Tensor::segment_sum_async`].
    ///
    /// # Errors
    /// As [`Tensor::segment_sum_async`].
    pub async fn segment_max_async(&self, ids: &Tensor) -> Result<Tensor> {
        let rows = segments("SegmentMax", self, ids).await?;
        or_zero(self.unsorted_segment_max(ids, rows)?, ids)
    }

    /// The element-wise minimum of the rows of each segment, 0 for an empty segment; otherwise like
    /// [`Tensor::segment_max_async`].
    ///
    /// # Errors
    /// As [`Tensor::segment_sum_async`].
    pub async fn segment_min_async(&self, ids: &Tensor) -> Result<Tensor> {
        let rows = segments("SegmentMin", self, ids).await?;
        or_zero(self.unsorted_segment_min(ids, rows)?, ids)
    }
}

/// 0 for the segments without rows.
fn or_zero(y: Tensor, ids: &Tensor) -> Result<Tensor> {
    let mut sizes = vec![1; y.rank()];
    sizes[0] = y.shape()[0];
    let filled = counts(ids, sizes[0])?.greater(0)?.reshape_to(sizes.into())?;
    select(&filled, &y, &y.zeros_like()?)
}
