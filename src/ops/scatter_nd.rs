//! Slices by their coordinates: gathered (`gather_nd`), summed in a new tensor (`scatter_nd`), or combined with those
//! of a tensor (`tensor_scatter_nd_update` and similar functions).
//!
//! Coordinates become one index over the axes that they refer to, -1 if one is out of range; the remaining axes become
//! rows.

use super::inventory::{ANY, Entry, OpKind, Values, one};
use super::scatter_rows::{scatter_extreme, scatter_update};
use super::{GatherOptions, NUMERIC, expect_dtype, same_dtype, select};
use crate::dtype::{DType, Scalar};
use crate::error::{Error, Result, message};
use crate::shape::Shape;
use crate::tensor::{Tensor, constant};

/// The dtypes of rows that are only moved.
const MOVED: &[DType] = &[DType::F32, DType::F16, DType::I32, DType::U32, DType::Bool];

impl Tensor {
    /// Gathers slices by coordinates: `y[i, ..] = x[indices[i, 0], indices[i, 1], .., ..]`. The last axis of `indices`
    /// (`i32`) contains coordinates along leading axes of the tensor; the result has the other axes of `indices`,
    /// followed by the remaining axes of the tensor. If a coordinate is out of range, the result is 0, as in TensorFlow
    /// on GPUs: an error would require reading the values on the host.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// let x = tf::constant([[1, 2], [3, 4], [5, 6]])?;
    /// assert_eq!(x.gather_nd(&tf::constant([[2, 0], [0, 1]])?)?.to_vec::<i32>()?, [5, 2]);
    /// assert_eq!(x.gather_nd(&tf::constant([[1]])?)?.to_vec::<i32>()?, [3, 4]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Shape`] if `indices` is a scalar or has more coordinates than the tensor has axes; [`Error::DType`] if
    /// it is not `i32`.
    pub fn gather_nd(&self, indices: &Tensor) -> Result<Tensor> {
        self.gather_nd_with(indices, GatherOptions::new())
    }

    /// Like [`Tensor::gather_nd`], with options.
    ///
    /// # Errors
    /// As [`Tensor::gather_nd`], and [`Error::Shape`] if the leading axes differ.
    pub fn gather_nd_with(&self, indices: &Tensor, options: GatherOptions) -> Result<Tensor> {
        let batch = options.batch_dims;
        expect_dtype("GatherNd", self.spec(), MOVED)?;
        let Some((&named, lead)) = indices.shape().split_last() else {
            return Err(no_axis("GatherNd"));
        };
        let agree =
            batch <= lead.len() && batch <= self.rank() && self.shape()[..batch] == lead[..batch];
        if !agree || named > self.rank() - batch {
            return Err(Error::Shape(message!(
                "GatherNd: params is {:?}, indices {:?} and batch_dims {batch}: the first {batch} axes must agree, and the last \
                 axis of indices names that many more of params, at most {}.",
                self.shape(),
                indices.shape(),
                self.rank().saturating_sub(batch)
            )));
        }
        let (sizes, tail) = self.shape()[batch..].split_at(named);
        let at = flat("GatherNd", indices, sizes)?;
        let product = |sizes: &[usize]| Shape::new(sizes).elements();
        let (batches, each) = (product(&lead[..batch]), product(&lead[batch..]));
        let rows = self.reshape_to([batches, product(sizes), product(tail)].into())?;
        let picked = rows.gather_with(
            &at.reshape_to([batches, each].into())?,
            1,
            GatherOptions::new().batch_dims(1),
        )?;
        picked.reshape_to([lead, tail].concat().into())
    }

    /// Replaces slices: `y = x`, but `y[indices[i]] = updates[i]`. If a slice has several updates, the last one counts;
    /// an update with a coordinate out of range is ignored, as in TensorFlow on GPUs.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// let x = tf::constant([1.0, 2.0, 3.0])?;
    /// let y = x.tensor_scatter_nd_update(&tf::constant([[2], [0]])?, &tf::constant([9.0, 8.0])?)?;
    /// assert_eq!(y.to_vec::<f32>()?, [8.0, 2.0, 9.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// As in TensorFlow, the gradient of an update is that of its slice, even if a later update has replaced it.
    ///
    /// # Errors
    /// [`Error::Shape`] if `indices` is a scalar or has more coordinates than there are axes, or if the shape of
    /// `updates` is not that of `indices` without its last axis, followed by the remaining axes; [`Error::DType`] if
    /// `indices` is not `i32` or the dtypes differ.
    pub fn tensor_scatter_nd_update(&self, indices: &Tensor, updates: &Tensor) -> Result<Tensor> {
        self.by_rows("TensorScatterUpdate", indices, updates, MOVED, scatter_update)
    }

    /// Adds slices: `y = x`, but `y[indices[i]] += updates[i]`. Updates of the same slice add up, in their order; an
    /// update with a coordinate out of range is ignored.
    ///
    /// # Errors
    /// As [`Tensor::tensor_scatter_nd_update`].
    pub fn tensor_scatter_nd_add(&self, indices: &Tensor, updates: &Tensor) -> Result<Tensor> {
        self.by_rows("TensorScatterAdd", indices, updates, NUMERIC, |x, ids, updates| {
            x.add(updates.unsorted_segment_sum(ids, x.shape()[0])?)
        })
    }

    /// Subtracts slices: `y = x`, but `y[indices[i]] -= updates[i]`; otherwise like [`Tensor::tensor_scatter_nd_add`].
    ///
    /// # Errors
    /// As [`Tensor::tensor_scatter_nd_update`].
    pub fn tensor_scatter_nd_sub(&self, indices: &Tensor, updates: &Tensor) -> Result<Tensor> {
        self.by_rows("TensorScatterSub", indices, updates, NUMERIC, |x, ids, updates| {
            x.subtract(updates.unsorted_segment_sum(ids, x.shape()[0])?)
        })
    }

    /// The maximum of each element and its updates: `y = x`, but `y[indices[i]] = max(y[indices[i]], updates[i])`. NaN
    /// takes precedence; an update with a coordinate out of range is ignored. All values equal to the result share its
    /// gradient equally.
    ///
    /// # Errors
    /// As [`Tensor::tensor_scatter_nd_update`].
    pub fn tensor_scatter_nd_max(&self, indices: &Tensor, updates: &Tensor) -> Result<Tensor> {
        self.by_rows("TensorScatterMax", indices, updates, NUMERIC, |x, ids, updates| {
            scatter_extreme(x, ids, updates, true)
        })
    }

    /// The minimum of each element and its updates; otherwise like [`Tensor::tensor_scatter_nd_max`].
    ///
    /// # Errors
    /// As [`Tensor::tensor_scatter_nd_update`].
    pub fn tensor_scatter_nd_min(&self, indices: &Tensor, updates: &Tensor) -> Result<Tensor> {
        self.by_rows("TensorScatterMin", indices, updates, NUMERIC, |x, ids, updates| {
            scatter_extreme(x, ids, updates, false)
        })
    }

    /// Calls `f` with the tensor as rows `[R, N]`, the row of each update `[S]` and the updates `[S, N]`.
    fn by_rows(
        &self,
        op: &str,
        indices: &Tensor,
        updates: &Tensor,
        takes: &[DType],
        f: impl FnOnce(&Tensor, &Tensor, &Tensor) -> Result<Tensor>,
    ) -> Result<Tensor> {
        expect_dtype(op, self.spec(), takes)?;
        same_dtype(op, self.spec(), updates.spec())?;
        let [rows, count, inner] = sizes(op, self.shape(), indices, updates)?;
        let at = flat(op, indices, named(self.shape(), indices))?;
        let x = self.reshape_to([rows, inner].into())?;
        let updates = updates.reshape_to([count, inner].into())?;
        f(&x, &at, &updates)?.reshape_to(self.spec().shape.clone())
    }
}

/// Sums slices in a tensor of zeros: `y[indices[i]] += updates[i]`, in their order. The last axis of `indices` (`i32`)
/// contains coordinates along leading axes of `shape`; an update with a coordinate out of range is ignored, as in
/// TensorFlow on GPUs.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// let y = tf::scatter_nd(&tf::constant([[3], [1], [3]])?, &tf::constant([1.0, 2.0, 4.0])?, [5])?;
/// assert_eq!(y.to_vec::<f32>()?, [0.0, 2.0, 0.0, 5.0, 0.0]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// As [`Tensor::tensor_scatter_nd_update`].
pub fn scatter_nd(indices: &Tensor, updates: &Tensor, shape: impl Into<Shape>) -> Result<Tensor> {
    let shape = shape.into();
    expect_dtype("ScatterNd", updates.spec(), NUMERIC)?;
    if shape.checked_elements().is_none() {
        return Err(Error::Shape(message!(
            "ScatterNd: a tensor of shape {shape} has more than 2^64 elements."
        )));
    }
    let [rows, count, inner] = sizes("ScatterNd", &shape, indices, updates)?;
    let at = flat("ScatterNd", indices, named(&shape, indices))?;
    let updates = updates.reshape_to([count, inner].into())?;
    updates.unsorted_segment_sum(&at, rows)?.reshape_to(shape)
}

fn no_axis(op: &str) -> Error {
    Error::Shape(message!("{op}: indices is a scalar; its last axis holds the coordinates."))
}

/// The sizes of the axes that `indices` refers to.
fn named<'a>(shape: &'a [usize], indices: &Tensor) -> &'a [usize] {
    &shape[..indices.shape().last().map_or(0, |&named| named)]
}

/// The number of slices of `shape`, the number of updates, and the elements of each.
fn sizes(op: &str, shape: &[usize], indices: &Tensor, updates: &Tensor) -> Result<[usize; 3]> {
    let Some((&named, lead)) = indices.shape().split_last() else { return Err(no_axis(op)) };
    let fits = named <= shape.len() && [lead, &shape[named..]].concat() == updates.shape();
    if !fits {
        return Err(Error::Shape(message!(
            "{op}: the shape is {shape:?}, indices {:?} and updates {:?}: the last axis of indices names leading axes, and \
             updates must be indices without its last axis, then the axes that are not named.",
            indices.shape(),
            updates.shape()
        )));
    }
    let product = |sizes: &[usize]| Shape::new(sizes).elements();
    Ok([product(&shape[..named]), product(lead), product(&shape[named..])])
}

/// `[n]`: the coordinates `[.., K]` as one index over axes of these sizes; out of range if one of them is.
fn flat(op: &str, indices: &Tensor, sizes: &[usize]) -> Result<Tensor> {
    expect_dtype(&format!("{op} (the indices)"), indices.spec(), &[DType::I32])?;
    let rows = Shape::new(sizes).elements();
    if i32::try_from(rows).is_err() {
        return Err(Error::Shape(message!(
            "{op}: the indices name axes of {sizes:?}, {rows} slices in all; an i32 counts to {}.",
            i32::MAX
        )));
    }
    let count = Shape::new(&indices.shape()[..indices.rank() - 1]).elements();
    let table = indices.reshape_to([count, sizes.len()].into())?;
    let mut found: Option<(Tensor, Tensor)> = None;
    for (k, &size) in sizes.iter().enumerate() {
        let column = table.slice(&[0, k], &[-1, 1])?.reshape_to([count].into())?;
        if sizes.len() == 1 {
            return Ok(column);
        }
        let inside = column.greater_equal(0)?.logical_and(column.less(size as i64)?)?;
        found = Some(match found {
            None => (column, inside),
            Some((at, all)) => (at.multiply(size as i64)?.add(&column)?, all.logical_and(inside)?),
        });
    }
    let fill = |value| {
        super::fill(indices.device(), "Fill", [count].into(), Scalar::Int(value), DType::I32)
    };
    match found {
        Some((at, inside)) => select(&inside, &at, &fill(-1)?),
        // Without coordinates there is one slice: the whole tensor.
        None => fill(0),
    }
}

/// The inventory of this file.
pub(super) const ENTRIES: &[Entry] = &[
    Entry::new(OpKind::Composed, "gather_nd", &["tf.gather_nd"], |c| {
        let batch_dims = c.int("batch_dims")?.unwrap_or(0) as usize;
        let options = GatherOptions::new().batch_dims(batch_dims);
        one(c.arg("params")?.gather_nd_with(c.arg("indices")?, options))
    })
    .forms(&["gather_nd_with"])
    .takes(MOVED)
    .cases(|cases| {
        cases.of_shape("gather_nd", &[3, 4, 2], |x| {
            x.gather_nd(&constant([[2, 0], [1, 1], [2, 0], [0, 9]])?)
        });
        cases.of_shape("gather_nd_with", &[2, 4, 2], |x| {
            x.gather_nd_with(&constant([[[3]], [[0]]])?, GatherOptions::new().batch_dims(1))
        });
    }),
    Entry::new(OpKind::Composed, "scatter_nd", &["tf.scatter_nd"], |c| {
        let shape = c.need("shape", c.sizes("shape")?)?;
        one(scatter_nd(c.arg("indices")?, c.arg("updates")?, shape))
    })
    .takes(NUMERIC)
    .cases(|cases| {
        cases.of_shape("scatter_nd", &[4, 2], |x| {
            scatter_nd(&constant([[2, 0], [1, 1], [2, 0], [7, 0]])?, x, [3, 2, 2])
        });
    }),
    Entry::new(OpKind::Kernel, "tensor_scatter_nd_update", &["tf.tensor_scatter_nd_update"], |c| {
        one(c.arg("tensor")?.tensor_scatter_nd_update(c.arg("indices")?, c.arg("updates")?))
    })
    .takes(MOVED)
    .cases(|cases| {
        cases.add("tensor_scatter_nd_update", &[(&[4, 3], ANY), (&[3, 3], ANY)], |x| {
            x[0].tensor_scatter_nd_update(&constant([[2], [0], [9]])?, &x[1])
        });
    })
    .kernels(&[|make, dtype| {
        let indices = make(&[5, 1], DType::I32);
        Ok(vec![make(&[7, 3], dtype).tensor_scatter_nd_update(&indices, &make(&[5, 3], dtype))?])
    }]),
    Entry::new(OpKind::Composed, "tensor_scatter_nd_add", &["tf.tensor_scatter_nd_add"], |c| {
        one(c.arg("tensor")?.tensor_scatter_nd_add(c.arg("indices")?, c.arg("updates")?))
    })
    .takes(NUMERIC)
    .cases(|cases| {
        cases.add("tensor_scatter_nd_add", &[(&[4, 3], ANY), (&[3, 3], ANY)], |x| {
            x[0].tensor_scatter_nd_add(&constant([[2], [0], [2]])?, &x[1])
        });
    }),
    Entry::new(OpKind::Composed, "tensor_scatter_nd_sub", &["tf.tensor_scatter_nd_sub"], |c| {
        one(c.arg("tensor")?.tensor_scatter_nd_sub(c.arg("indices")?, c.arg("updates")?))
    })
    .takes(NUMERIC)
    .cases(|cases| {
        cases.add("tensor_scatter_nd_sub", &[(&[4, 3], ANY), (&[3, 3], ANY)], |x| {
            x[0].tensor_scatter_nd_sub(&constant([[2], [0], [2]])?, &x[1])
        });
    }),
    Entry::new(OpKind::Kernel, "tensor_scatter_nd_max", &["tf.tensor_scatter_nd_max"], |c| {
        one(c.arg("tensor")?.tensor_scatter_nd_max(c.arg("indices")?, c.arg("updates")?))
    })
    .takes(NUMERIC)
    .cases(|cases| {
        let inputs = [(&[4, 3][..], Values::Distinct(0.1)), (&[3, 3], Values::Distinct(0.0))];
        cases.add("tensor_scatter_nd_max", &inputs, |x| {
            x[0].tensor_scatter_nd_max(&constant([[2], [0], [2]])?, &x[1])
        });
    })
    .kernels(&[|make, dtype| {
        let (x, updates) = (make(&[7, 3], dtype), make(&[5, 3], dtype));
        let indices = make(&[5, 1], DType::I32);
        Ok(vec![
            x.tensor_scatter_nd_max(&indices, &updates)?,
            x.tensor_scatter_nd_min(&indices, &updates)?,
        ])
    }]),
    Entry::new(OpKind::Kernel, "tensor_scatter_nd_min", &["tf.tensor_scatter_nd_min"], |c| {
        one(c.arg("tensor")?.tensor_scatter_nd_min(c.arg("indices")?, c.arg("updates")?))
    })
    .takes(NUMERIC)
    .cases(|cases| {
        let inputs = [(&[4, 3][..], Values::Distinct(0.1)), (&[3, 3], Values::Distinct(0.0))];
        cases.add("tensor_scatter_nd_min", &inputs, |x| {
            x[0].tensor_scatter_nd_min(&constant([[2], [0], [2]])?, &x[1])
        });
    }),
];
