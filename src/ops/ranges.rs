//! Ranges of numbers and ops that use them: `linspace`, `meshgrid`, masks of sequences and their reversal, biases.

use std::borrow::Borrow;

use super::gather::GatherOptions;
use super::inventory::{ANY, Entry, Gradient, Input, OpKind, Stop, Values, one};
use super::iota::iota;
use super::{FLOATS, NUMERIC, expect_dtype, same_dtype, select};
use crate::dtype::DType;
use crate::error::{Error, Result, message};
use crate::shape::{Axis, axis_index};
use crate::support::options::options;
use crate::tensor::{Operand, Tensor};

/// `num` numbers from `start` to `stop`, both included, evenly spaced: `start + i * (stop - start) / (num - 1)`.
/// Tensors produce such a range for each of their elements, along a new first axis. The result for numbers is `f32`.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// assert_eq!(tf::linspace(0.0, 1.0, 5)?.to_vec::<f32>()?, [0.0, 0.25, 0.5, 0.75, 1.0]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::Shape`] if the shapes of `start` and `stop` cannot be broadcast together; [`Error::DType`] if a tensor is not
/// float, or the dtypes differ.
pub fn linspace(start: impl Into<Operand>, stop: impl Into<Operand>, num: usize) -> Result<Tensor> {
    rows_between(start.into(), stop.into(), num, 0.into())
}

/// Like [`linspace`], along the new axis `axis` of the result.
///
/// # Errors
/// As [`linspace`], and [`Error::Index`] if the result has no such axis.
pub fn linspace_with(
    start: impl Into<Operand>,
    stop: impl Into<Operand>,
    num: usize,
    axis: impl Into<Axis>,
) -> Result<Tensor> {
    rows_between(start.into(), stop.into(), num, axis.into())
}

fn rows_between(start: Operand, stop: Operand, num: usize, axis: Axis) -> Result<Tensor> {
    const OP: &str = "LinSpace";
    let (start, stop) = match (start, stop) {
        (Operand::Tensor(start), stop) => {
            let stop = stop.into_tensor_like(OP, &start)?;
            (start, stop)
        }
        (start, Operand::Tensor(stop)) => (start.into_tensor_like(OP, &stop)?, stop),
        (start, stop) => {
            let like = Tensor::zeros([])?;
            (start.into_tensor_like(OP, &like)?, stop.into_tensor_like(OP, &like)?)
        }
    };
    same_dtype(OP, start.spec(), stop.spec())?;
    expect_dtype(OP, start.spec(), FLOATS)?;
    let shape = crate::shape::broadcast(OP, &start.spec().shape, &stop.spec().shape)?;
    let at = axis_index(OP, axis, shape.len() + 1)?;
    let [start, stop] = [&start, &stop].map(|x| x.broadcast_to(&shape)?.expand_dims(at));
    let (start, stop) = (start?, stop?);
    let mut column = vec![1; shape.len() + 1];
    column[at] = num;
    let places = iota(Some(start.device()), num, 0.into(), 1.into(), DType::I32)?;
    let places = places.reshape_to(column.into())?;
    let steps = num.saturating_sub(1).max(1);
    let delta = stop.subtract(&start)?.divide(steps)?;
    let between = start.add(delta.multiply(places.cast(start.dtype())?)?)?;
    // The last number is exact.
    let last = places.equal(steps)?;
    select(&last, &stop, &between)
}

/// Which of the first two axes of a grid the first tensor varies along.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Indexing {
    /// The second axis, as in plots.
    #[default]
    Xy,
    /// The first axis, as in matrices.
    Ij,
}

/// Repeats each of the tensors along the axes of all others, which results in the coordinates of a grid: for `x` with A
/// and `y` with B elements two tensors `[B, A]`; at `[i, j]` the first is `x[j]` and the second `y[i]`.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// let grid = tf::meshgrid([tf::constant([1, 2, 3])?, tf::constant([4, 5])?])?;
/// assert_eq!(grid[0].to_vec::<i32>()?, [1, 2, 3, 1, 2, 3]);
/// assert_eq!(grid[1].to_vec::<i32>()?, [4, 4, 4, 5, 5, 5]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::DType`] if the dtypes differ.
pub fn meshgrid<T: Borrow<Tensor>>(values: impl AsRef<[T]>) -> Result<Vec<Tensor>> {
    meshgrid_with(values, Indexing::Xy)
}

/// Like [`meshgrid`], with another order of the axes.
///
/// # Errors
/// As [`meshgrid`].
pub fn meshgrid_with<T: Borrow<Tensor>>(
    values: impl AsRef<[T]>,
    indexing: Indexing,
) -> Result<Vec<Tensor>> {
    let values: Vec<&Tensor> = values.as_ref().iter().map(Borrow::borrow).collect();
    let sizes: Vec<usize> = values.iter().map(|x| x.spec().shape.elements()).collect();
    let swap = |axis: usize| match (indexing, axis) {
        (Indexing::Xy, 0 | 1) if values.len() > 1 => 1 - axis,
        _ => axis,
    };
    let shape: Vec<usize> = (0..values.len()).map(|axis| sizes[swap(axis)]).collect();
    let grid = values.iter().enumerate().map(|(k, x)| {
        same_dtype("Meshgrid", values[0].spec(), x.spec())?;
        let mut column = vec![1; values.len()];
        column[swap(k)] = sizes[k];
        x.reshape_to(column.into())?.broadcast_to(&shape[..])
    });
    grid.collect()
}

options! {
    /// The axes of sequences.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub struct ReverseSequenceOptions {
        /// The axis of the steps; 1 by default.
        seq_axis: Axis as impl Into<Axis> = Axis(1),
        /// The axis of the sequences; 0 by default.
        batch_axis: Axis as impl Into<Axis> = Axis(0),
    }
}

/// Sequences of different lengths in one tensor.
impl Tensor {
    /// Masks for sequences whose lengths are the elements: `y[.., j] = j < x[..]`, along a new last axis of size
    /// `maxlen`. In TensorFlow the default for `maxlen` is the largest length; here it is required, because the shape
    /// of the result must not depend on values.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// let mask = tf::constant([1, 3])?.sequence_mask(3)?;
    /// assert_eq!(mask.to_vec::<bool>()?, [true, false, false, true, true, true]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::DType`] if the lengths are not integers.
    pub fn sequence_mask(&self, maxlen: usize) -> Result<Tensor> {
        const OP: &str = "SequenceMask";
        expect_dtype(OP, self.spec(), &[DType::I32, DType::U32])?;
        let places = iota(Some(self.device()), maxlen, 0.into(), 1.into(), self.dtype())?;
        places.less(self.expand_dims(-1)?)
    }

    /// Reverses the first `seq_lengths[b]` steps of sequence b, and keeps the others. A length beyond the axis reverses
    /// all of it, and one below 1 nothing.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// let x = tf::constant([[1, 2, 3], [4, 5, 6]])?;
    /// let y = x.reverse_sequence(&tf::constant([2, 3])?, tf::ReverseSequenceOptions::new())?;
    /// assert_eq!(y.to_vec::<i32>()?, [2, 1, 3, 6, 5, 4]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Shape`] if there is not one length for each sequence; [`Error::Index`] if an axis does not exist or
    /// both are the same; [`Error::DType`] if the lengths are not `i32`.
    pub fn reverse_sequence(
        &self,
        seq_lengths: &Tensor,
        options: ReverseSequenceOptions,
    ) -> Result<Tensor> {
        const OP: &str = "ReverseSequence";
        let seq = axis_index(OP, options.seq_axis, self.rank())?;
        let batch = axis_index(OP, options.batch_axis, self.rank())?;
        expect_dtype("ReverseSequence (the lengths)", seq_lengths.spec(), &[DType::I32])?;
        if seq == batch {
            return Err(Error::Index(message!(
                "{OP}: steps and sequences lie both along axis {seq} of {:?}; name two axes.",
                self.shape()
            )));
        }
        let (steps, count) = (self.shape()[seq], self.shape()[batch]);
        if seq_lengths.shape() != [count] {
            return Err(Error::Shape(message!(
                "{OP}: the lengths are {:?} and axis {batch} of {:?} has {count} sequences; give one length for each.",
                seq_lengths.shape(),
                self.shape()
            )));
        }
        let places = iota(Some(self.device()), steps, 0.into(), 1.into(), DType::I32)?;
        let lengths = seq_lengths.minimum(steps)?.expand_dims(-1)?;
        let mirrored = lengths.subtract(&places)?.subtract(1)?;
        let places = select(&places.less(&lengths)?, &mirrored, &places)?;
        // Sequences first, then steps.
        let mut order = vec![batch, seq];
        order.extend((0..self.rank()).filter(|axis| ![batch, seq].contains(axis)));
        let mut back = vec![0; order.len()];
        order.iter().enumerate().for_each(|(k, &axis)| back[axis] = k);
        let moved = |x: &Tensor, order: &[usize]| match order.is_sorted() {
            true => Ok(x.clone()),
            false => x.transpose(order),
        };
        let first = moved(self, &order)?;
        let reversed = first.gather_with(&places, 1, GatherOptions::new().batch_dims(1))?;
        moved(&reversed, &back)
    }

    /// Adds `bias` `[C]` to each row of C elements along the last axis.
    ///
    /// # Errors
    /// [`Error::Shape`] if the bias does not have one number for each position of the last axis; [`Error::DType`] if
    /// the dtypes differ.
    pub fn bias_add(&self, bias: impl Into<Operand>) -> Result<Tensor> {
        const OP: &str = "BiasAdd";
        let bias = bias.into().into_tensor_like(OP, self)?;
        if self.rank() < 2 || bias.shape() != &self.shape()[self.rank() - 1..] {
            return Err(Error::Shape(message!(
                "{OP}: the bias is {:?} and the tensor {:?}; the bias needs one number for each position of the last \
                 axis, and the tensor at least two axes.",
                bias.shape(),
                self.shape()
            )));
        }
        self.add(&bias)
    }
}

/// The inventory of this file.
pub(super) const ENTRIES: &[Entry] = &[
    Entry::new(OpKind::Composed, "linspace", &["tf.linspace"], |c| {
        let args = c.need("args", c.floats("args")?)?;
        let [start, stop, num] = args[..] else { return Err(Stop::Lacks("args".into())) };
        one(linspace(start, stop, num as usize))
    })
    .forms(&["linspace_with"])
    .cases(|cases| {
        cases.add("linspace", &[(&[2, 1], ANY), (&[3], ANY)], |x| linspace(&x[0], &x[1], 4));
        cases.add("linspace_with", &[(&[3], ANY), (&[], ANY)], |x| {
            linspace_with(&x[0], &x[1], 3, -1)
        });
        cases.add("linspace of one", &[(&[2], ANY), (&[2], ANY)], |x| linspace(&x[0], &x[1], 1));
    }),
    Entry::new(OpKind::Composed, "meshgrid", &["tf.meshgrid"], |c| {
        let indexing = match c.need("indexing", c.text("indexing")?)?.as_str() {
            "xy" => Indexing::Xy,
            "ij" => Indexing::Ij,
            _ => return Err(Stop::Lacks("indexing".into())),
        };
        let names = c.tensors().iter().map(|(name, _)| c.arg(name)).collect::<Result<Vec<_>, _>>();
        Ok(meshgrid_with(names?, indexing)?)
    })
    .forms(&["meshgrid_with"])
    .takes(&DType::ALL)
    .cases(|cases| {
        let three: [Input; 3] = [(&[2], ANY), (&[3], ANY), (&[], ANY)];
        cases.add("meshgrid", &three, |x| {
            let grid = meshgrid(x)?;
            grid[0].multiply(&grid[1])?.multiply(&grid[2])
        });
        cases.add("meshgrid_with ij", &three, |x| {
            let grid = meshgrid_with(x, Indexing::Ij)?;
            grid[0].multiply(&grid[1])?.multiply(&grid[2])
        });
    }),
    Entry::new(OpKind::Composed, "sequence_mask", &["tf.sequence_mask"], |c| {
        one(c.x()?.sequence_mask(c.size("maxlen")?))
    })
    .takes(&[DType::I32, DType::U32])
    .gradient(Gradient::None("a comparison of integers")),
    Entry::new(OpKind::Composed, "reverse_sequence", &["tf.reverse_sequence"], |c| {
        let options = ReverseSequenceOptions::new()
            .seq_axis(c.int("seq_axis")?.unwrap_or(1))
            .batch_axis(c.int("batch_axis")?.unwrap_or(0));
        one(c.x()?.reverse_sequence(c.arg("seq_lengths")?, options))
    })
    .takes(&[DType::F32, DType::F16, DType::I32, DType::U32, DType::Bool])
    .cases(|cases| {
        cases.of_shape("reverse_sequence", &[3, 4, 2], |x| {
            let lengths = crate::tensor::constant([2, 4, 0])?;
            x.reverse_sequence(&lengths, ReverseSequenceOptions::new())
        });
        cases.of_shape("reverse_sequence of columns", &[4, 2, 3], |x| {
            let lengths = crate::tensor::constant([3, 1, 2])?;
            let options = ReverseSequenceOptions::new().seq_axis(0).batch_axis(-1);
            x.reverse_sequence(&lengths, options)
        });
    }),
    Entry::new(OpKind::Composed, "bias_add", &["tf.nn.bias_add"], |c| {
        one(c.x()?.bias_add(c.arg("b")?))
    })
    .takes(NUMERIC)
    .cases(|cases| {
        cases.add("bias_add", &[(&[2, 3, 4], ANY), (&[4], Values::Away)], |x| x[0].bias_add(&x[1]));
    }),
];
