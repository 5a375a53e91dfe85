//! `y[c] = x[begin + step * c]`: a box of a tensor, with steps.

use std::ops::{Range as Bounds, RangeFrom, RangeFull, RangeInclusive, RangeTo};

use ndarray::{SliceInfoElem, s};
use smallvec::SmallVec;

use super::inventory::{Answer, Args, Entry, OpKind, Stop, Value, one};
use super::pad::pad_with;
use super::{Backward, Grads, Keep, Operation, only};
use crate::dtype::{DType, Scalar};
use crate::eager::dispatch;
use crate::error::{Error, Result, message};
use crate::graph::attributes::Attribute;
use crate::graph::lower::{Elementwise, Lowering, LoweringContext, RuntimeOffset, Term, View};
use crate::graph::{Op, Runtime, RuntimeScalars, Spec};
use crate::shape::{Axis, axis_index};
use crate::tensor::Tensor;

impl Tensor {
    /// Extracts the box that begins at `begin` and has the size `size`; a size of -1 extends to the end of its axis.
    ///
    /// # Errors
    /// [`Error::Index`] if the box extends beyond the tensor; [`Error::Shape`] if a list does not have one number for
    /// each axis.
    pub fn slice(&self, begin: &[usize], size: &[i64]) -> Result<Tensor> {
        let rank = self.rank();
        if begin.len() != rank || size.len() != rank {
            return Err(Error::Shape(message!(
                "Slice: begin {begin:?} and size {size:?} need one number for each of the {rank} axes of {:?}.",
                self.shape()
            )));
        }
        let mut ranges: SmallVec<[Range; 6]> = SmallVec::new();
        for axis in 0..rank {
            let (have, start) = (self.shape()[axis], begin[axis]);
            let wanted = match size[axis] {
                -1 => have.checked_sub(start),
                n => usize::try_from(n).ok(),
            };
            match wanted {
                Some(len) if start.checked_add(len).is_some_and(|end| end <= have) => {
                    ranges.push(Range { begin: start, len, step: 1 });
                }
                _ => {
                    return Err(Error::Index(message!(
                        "Slice: axis {axis} has the size {have}; begin {start} and size {} leave it.",
                        size[axis]
                    )));
                }
            }
        }
        self.take_ranges(ranges)
    }

    /// Indexes as in NumPy, with the notation of ndarray's [`s!`](ndarray::s). An index drops its axis; a range may
    /// have negative ends and steps and is clipped to the tensor; `NewAxis` adds an axis; axes that are not mentioned
    /// are kept whole.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// use wgrad::ndarray::s;
    /// let x = tf::constant([[1, 2, 3], [4, 5, 6]])?;
    /// assert_eq!(x.strided_slice(s![.., -1])?.to_vec::<i32>()?, [3, 6]);
    /// assert_eq!(x.strided_slice(s![0, ..;-1])?.to_vec::<i32>()?, [3, 2, 1]);
    /// assert_eq!(x.strided_slice(s![1..10])?.shape(), [1, 3]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Index`] if an index does not exist or there are more of them than axes.
    pub fn strided_slice(&self, indices: impl AsRef<[SliceInfoElem]>) -> Result<Tensor> {
        let indices = indices.as_ref();
        let named = indices.iter().filter(|i| !matches!(i, SliceInfoElem::NewAxis)).count();
        if named > self.rank() {
            return Err(Error::Index(message!(
                "StridedSlice: {named} indices for a tensor of rank {} ({:?}).",
                self.rank(),
                self.shape()
            )));
        }
        let mut ranges: SmallVec<[Range; 6]> = SmallVec::new();
        let mut backwards = Vec::new();
        let mut shape = Vec::new();
        for index in indices {
            let axis = ranges.len();
            match *index {
                SliceInfoElem::NewAxis => shape.push(1),
                SliceInfoElem::Index(i) => {
                    let at = self.index_at(axis, i)?;
                    ranges.push(Range { begin: at, len: 1, step: 1 });
                }
                SliceInfoElem::Slice { start, end, step } => {
                    let range = python_range(self.shape()[axis], start, end, step)?;
                    shape.push(range.len);
                    if step < 0 {
                        backwards.push(axis as i64);
                    }
                    ranges.push(range);
                }
            }
        }
        for &size in &self.shape()[ranges.len()..] {
            ranges.push(Range { begin: 0, len: size, step: 1 });
            shape.push(size);
        }
        let mut taken = self.take_ranges(ranges)?;
        if !backwards.is_empty() {
            taken = taken.reverse(&backwards)?;
        }
        taken.reshape_to(shape.into())
    }

    /// Indexes like [`strided_slice`](Tensor::strided_slice), with Rust's own notation: indices, ranges, and tuples and
    /// arrays of them.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// let x = tf::constant([[1, 2, 3], [4, 5, 6]])?;
    /// assert_eq!(x.i(1)?.to_vec::<i32>()?, [4, 5, 6]);
    /// assert_eq!(x.i((.., -1))?.to_vec::<i32>()?, [3, 6]);
    /// assert_eq!(x.i((0, 1..))?.to_vec::<i32>()?, [2, 3]);
    /// assert_eq!(x.i([1, 2])?.item::<i32>()?, 6);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::strided_slice`].
    pub fn i(&self, indices: impl Indices) -> Result<Tensor> {
        self.strided_slice(indices.list())
    }

    /// Splits the tensor into `num` tensors of equal size along `axis`.
    ///
    /// # Errors
    /// [`Error::Shape`] if `num` does not divide the size of the axis, or is above 1,048,576.
    pub fn split(&self, num: usize, axis: impl Into<Axis>) -> Result<Vec<Tensor>> {
        let axis = axis.into();
        let at = axis_index("Split", axis, self.rank())?;
        let size = self.shape()[at];
        if num == 0 || !size.is_multiple_of(num) {
            return Err(Error::Shape(message!(
                "Split: axis {} has the size {size}, which cannot be divided into {num} equal parts. Use \
                 split_sizes for unequal ones.",
                axis.0
            )));
        }
        check_parts("Split", num, self.shape())?;
        self.split_sizes(&vec![size / num; num], axis)
    }

    /// Like [`Tensor::split`], but returns an array.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// let [a, b] = tf::constant([1, 2, 3, 4])?.split_n::<2>(0)?;
    /// assert_eq!((a.to_vec::<i32>()?, b.to_vec::<i32>()?), (vec![1, 2], vec![3, 4]));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::split`].
    pub fn split_n<const N: usize>(&self, axis: impl Into<Axis>) -> Result<[Tensor; N]> {
        let mut parts = self.split(N, axis)?.into_iter();
        Ok(std::array::from_fn(|_| parts.next().expect("split gives N parts")))
    }

    /// Splits the tensor into tensors of the given sizes along `axis`.
    ///
    /// # Errors
    /// [`Error::Shape`] if the sizes do not add up to the size of the axis.
    pub fn split_sizes(&self, sizes: &[usize], axis: impl Into<Axis>) -> Result<Vec<Tensor>> {
        let axis = axis.into();
        let at = axis_index("SplitV", axis, self.rank())?;
        let have = self.shape()[at];
        let sum = sizes.iter().try_fold(0usize, |sum, &size| sum.checked_add(size));
        if sum != Some(have) {
            return Err(Error::Shape(message!(
                "SplitV: the sizes {sizes:?} add up to {} and axis {} has {have}; both must be equal.",
                sum.map_or("more than 2^64".to_string(), |n| n.to_string()),
                axis.0
            )));
        }
        let mut start = 0;
        let part = |&len: &usize| {
            let mut ranges = whole(self.shape());
            ranges[at] = Range { begin: start, len, step: 1 };
            start += len;
            self.take_ranges(ranges)
        };
        sizes.iter().map(part).collect()
    }

    /// Splits the tensor into its slices along `axis`, and drops the axis.
    ///
    /// # Errors
    /// [`Error::Index`] if the axis does not exist; [`Error::Shape`] if its size is above 1,048,576.
    pub fn unstack(&self, axis: impl Into<Axis>) -> Result<Vec<Tensor>> {
        let axis = axis.into();
        let at = axis_index("Unpack", axis, self.rank())?;
        check_parts("Unpack", self.shape()[at], self.shape())?;
        let parts = self.split_sizes(&vec![1; self.shape()[at]], axis)?;
        parts.iter().map(|part| part.squeeze(at)).collect()
    }

    /// Takes every `steps[axis]`-th element along each axis, beginning with the first.
    pub(super) fn take_steps(&self, steps: impl Iterator<Item = usize>) -> Result<Tensor> {
        let ranges = self.shape().iter().zip(steps).map(|(&size, step)| {
            let len = size.div_ceil(step);
            // One element needs no step.
            Range { begin: 0, len, step: if len > 1 { step } else { 1 } }
        });
        self.take_ranges(ranges.collect())
    }

    fn take_ranges(&self, ranges: SmallVec<[Range; 6]>) -> Result<Tensor> {
        if ranges == whole(self.shape()) {
            return Ok(self.clone());
        }
        dispatch(Slice::new(&ranges, self.spec()), &[self])
    }

    fn index_at(&self, axis: usize, index: isize) -> Result<usize> {
        let size = self.shape()[axis] as isize;
        let at = if index < 0 { index + size } else { index };
        if at < 0 || at >= size {
            return Err(Error::Index(message!(
                "StridedSlice: index {index} of axis {axis} is out of bounds; the tensor is {:?}.",
                self.shape()
            )));
        }
        Ok(at as usize)
    }
}

/// One call splits a tensor into at most this many tensors. An axis of a tensor without elements may have any length.
const MOST_PARTS: usize = 1 << 20;

fn check_parts(op: &str, num: usize, shape: &[usize]) -> Result<()> {
    if num <= MOST_PARTS {
        return Ok(());
    }
    Err(Error::Shape(message!(
        "{op}: {shape:?} would become {num} tensors, and one call makes {MOST_PARTS} at most. Take what is needed with \
         slice or gather."
    )))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Range {
    begin: usize,
    len: usize,
    step: usize,
}

fn whole(shape: &[usize]) -> SmallVec<[Range; 6]> {
    shape.iter().map(|&len| Range { begin: 0, len, step: 1 }).collect()
}

/// The indices that Python's `start:end:step` selects from an axis, in ascending order. The ends are clipped to the
/// axis. A negative step is as in ndarray: first the range is applied, then its reversal.
fn python_range(size: usize, start: isize, end: Option<isize>, step: isize) -> Result<Range> {
    if step == 0 {
        return Err(Error::Index(
            "StridedSlice: the step is 0; it must be positive or negative.".into(),
        ));
    }
    let n = size as isize;
    let from_end = |i: isize| (if i < 0 { i + n } else { i }).clamp(0, n);
    let (low, high) = (from_end(start), end.map_or(n, from_end));
    let stride = step.unsigned_abs();
    let len = (high - low).max(0).unsigned_abs().div_ceil(stride);
    let begin = match (step < 0, len) {
        // A reversed range begins with its last element.
        (true, 1..) => high.unsigned_abs() - 1 - (len - 1) * stride,
        _ => low.unsigned_abs(),
    };
    // One element needs no step; this avoids arithmetic with a step far beyond the axis.
    Ok(Range { begin, len, step: if len > 1 { stride } else { 1 } })
}

/// The argument of [`Tensor::i`]: an index, a range, or a tuple or an array of them.
pub trait Indices {
    #[doc(hidden)]
    fn list(self) -> Vec<SliceInfoElem>;
}

impl<T: Into<SliceInfoElem>, const N: usize> Indices for [T; N] {
    fn list(self) -> Vec<SliceInfoElem> {
        self.into_iter().map(Into::into).collect()
    }
}

macro_rules! one_index {
    ($($t:ty),*) => {$(
        impl Indices for $t {
            fn list(self) -> Vec<SliceInfoElem> {
                vec![self.into()]
            }
        }
    )*};
}
// The types that ndarray accepts for one axis.
one_index!(
    i32,
    usize,
    RangeFull,
    Bounds<i32>,
    Bounds<usize>,
    RangeFrom<i32>,
    RangeFrom<usize>,
    RangeTo<i32>,
    RangeTo<usize>,
    RangeInclusive<i32>,
    RangeInclusive<usize>
);

macro_rules! several_indices {
    ($($($name:ident)*;)*) => {$(
        impl<$($name: Into<SliceInfoElem>),*> Indices for ($($name,)*) {
            fn list(self) -> Vec<SliceInfoElem> {
                #[allow(non_snake_case)]
                let ($($name,)*) = self;
                vec![$($name.into()),*]
            }
        }
    )*};
}
// `impl Indices for (A,)`, `(A, B)`, ...
several_indices! { A; A B; A B C; A B C D; A B C D E; A B C D E F; }

/// The beginning of the box may change without a new plan.
#[derive(Debug, Attribute)]
#[op("Slice")]
pub(crate) struct Slice {
    /// The number of elements along each axis, and their distance.
    boxes: SmallVec<[(usize, usize); 6]>,
    begins: Runtime<SmallVec<[usize; 6]>>,
    /// The begins that are multiples of four, of axes where vectors depend on it.
    in_fours: Runtime<u32>,
}

impl Slice {
    fn new(ranges: &[Range], x: &Spec) -> Self {
        let strides = x.shape.strides();
        let in_fours = ranges.iter().zip(strides).enumerate().map(|(axis, (range, stride))| {
            let moves = x.shape[axis] > span((range.len, range.step));
            let counts = moves && stride % 4 != 0 && range.begin.is_multiple_of(4);
            if counts && axis < 32 { 1 << axis } else { 0 }
        });
        Slice {
            boxes: ranges.iter().map(|range| (range.len, range.step)).collect(),
            begins: Runtime(ranges.iter().map(|range| range.begin).collect()),
            in_fours: Runtime(in_fours.sum()),
        }
    }
}

/// The number of positions of an axis from the first to the last element of a box, inclusive.
fn span((len, step): (usize, usize)) -> usize {
    len.saturating_sub(1) * step + usize::from(len > 0)
}

impl Op for Slice {
    fn name(&self) -> &'static str {
        "StridedSlice"
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Spec> {
        let sizes: Vec<usize> = self.boxes.iter().map(|&(len, _)| len).collect();
        Ok(Spec::new(sizes, inputs[0].dtype))
    }

    fn runtime_scalars(&self) -> RuntimeScalars {
        self.begins.0.iter().map(|&begin| begin as u32).collect()
    }

    fn in_fours(&self) -> u32 {
        self.in_fours.0
    }

    fn lower(&self, cx: &LoweringContext) -> Lowering {
        let shape = &cx.inputs[0].shape;
        let mut offset = RuntimeOffset::default();
        let mut strides: SmallVec<[i64; 6]> = SmallVec::new();
        for (axis, (&own, stride)) in self.boxes.iter().zip(shape.strides()).enumerate() {
            let most = shape[axis].saturating_sub(span(own));
            if most > 0 {
                offset.add_term(Term::own(axis, stride, most as i64));
            }
            strides.push(own.1 as i64 * stride);
        }
        Elementwise::view(View::strided(offset, &strides)).into()
    }
}

impl Operation for Slice {
    fn keep(&self) -> Keep {
        Keep::Nothing
    }

    fn grad(&self, back: &Backward) -> Result<Grads> {
        // Elements outside the slice get 0; those that a step skipped are between the elements of dy.
        let boxes = self.boxes.iter().zip(&self.begins.0);
        let edges = boxes.zip(back.spec(0).shape.iter()).map(|((&own, &begin), &size)| {
            (begin as i64, size as i64 - begin as i64 - span(own) as i64, own.1 as i64)
        });
        let zero =
            if back.dy.dtype() == DType::Bool { Scalar::Bool(false) } else { Scalar::Int(0) };
        only(pad_with(back.dy, edges.collect(), zero)?)
    }
}

/// `split` with TensorFlow's argument, which is a number or a list of sizes.
fn split_by_name(c: &Args) -> Answer {
    let (x, axis) = (c.x()?, c.axis()?);
    let key = "num_or_size_splits";
    if c.attribute(key, |value| Some(matches!(value, Value::Int(_))))? == Some(true) {
        return Ok(x.split(c.size(key)?, axis)?);
    }
    let sizes = c.need(key, c.ints(key)?)?;
    let at = if axis < 0 { x.rank() as i64 + axis } else { axis } as usize;
    let known: i64 = sizes.iter().filter(|&&n| n >= 0).sum();
    let rest = x.shape()[at] as i64 - known;
    let sizes: Vec<usize> = sizes.iter().map(|&n| if n < 0 { rest } else { n } as usize).collect();
    Ok(x.split_sizes(&sizes, axis)?)
}

/// Translates Python's indices to ndarray's. Python's negative step goes backwards from its start; ndarray's reverses
/// an ascending range. `None` if `spec` has something unknown.
fn python_indices(spec: &str, rank: usize) -> Option<Vec<SliceInfoElem>> {
    let all = SliceInfoElem::Slice { start: 0, end: None, step: 1 };
    let parts: Vec<&str> = spec.split(',').map(str::trim).collect();
    let named = parts.iter().filter(|part| !["...", "tf.newaxis"].contains(part)).count();
    let mut out = Vec::new();
    for part in parts {
        match part {
            "..." => out.extend(vec![all; rank - named]),
            "tf.newaxis" => out.push(SliceInfoElem::NewAxis),
            _ if !part.contains(':') => out.push(SliceInfoElem::Index(part.parse().ok()?)),
            _ => {
                let mut numbers = part.split(':').map(|text| text.parse::<isize>().ok());
                let (start, stop) = (numbers.next()?, numbers.next()?);
                let step = numbers.next().flatten().unwrap_or(1);
                let (start, end) = match step < 0 {
                    true => (stop.map_or(0, |i| i + 1), start.map(|i| i + 1).filter(|&i| i != 0)),
                    false => (start.unwrap_or(0), stop),
                };
                out.push(SliceInfoElem::Slice { start, end, step });
            }
        }
    }
    Some(out)
}

/// The inventory of this file.
pub(super) const ENTRIES: &[Entry] = &[
    Entry::new(OpKind::Kernel, "slice", &["tf.slice"], |c| {
        let (begin, size) = (c.sizes("begin")?, c.ints("size")?);
        one(c.x()?.slice(&c.need("begin", begin)?, &c.need("size", size)?))
    })
    .takes(&DType::ALL)
    .cases(|cases| cases.of_shape("slice", &[4, 5], |x| x.slice(&[1, 2], &[2, -1]))),
    Entry::new(OpKind::Kernel, "strided_slice", &["tensor[...]"], |c| {
        let spec = c.need("spec", c.text("spec")?)?;
        let parts =
            python_indices(&spec, c.x()?.rank()).ok_or_else(|| Stop::Lacks("spec".into()))?;
        one(c.x()?.strided_slice(parts))
    })
    .forms(&["i"])
    .takes(&DType::ALL)
    .cases(|cases| {
        cases.of_shape("i", &[4, 5], |x| x.i((1..3, -1)));
        let stepping = |x: &Tensor| x.strided_slice(s![1..;3, ..;2]);
        cases.of_shape("strided_slice with steps", &[7, 5], stepping);
        let backwards = |x: &Tensor| x.strided_slice(s![..;-1, 1..5;-2]);
        cases.of_shape("strided_slice backwards", &[7, 5], backwards);
        cases.of_shape("strided_slice of a row", &[4, 5], |x| x.strided_slice(s![-2, ..]));
    }),
    Entry::new(OpKind::Kernel, "split", &["tf.split"], split_by_name)
        .forms(&["split_n", "split_sizes"])
        .takes(&DType::ALL)
        .cases(|cases| {
            cases.of_shape("split_n", &[4, 6], |x| {
                let [a, b] = x.split_n::<2>(1)?;
                a.multiply(&b)
            });
            cases.of_shape("split_sizes", &[4, 6], |x| {
                Ok(x.split_sizes(&[1, 4, 1], 1)?.swap_remove(1))
            });
            cases.of_shape("split", &[4, 6], |x| {
                let parts = x.split(3, 1)?;
                parts[0].multiply(&parts[2])
            });
        }),
    Entry::new(OpKind::Kernel, "unstack", &["tf.unstack"], |c| Ok(c.x()?.unstack(c.axis()?)?))
        .takes(&DType::ALL)
        .cases(|cases| {
            cases.of_shape("unstack", &[3, 4], |x| {
                let rows = x.unstack(0)?;
                rows[0].multiply(&rows[2])
            });
        }),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_follow_ndarray() {
        let reference = ndarray::Array1::from_iter(0..7usize);
        for start in -8isize..8 {
            for end in [None, Some(-8), Some(-3), Some(0), Some(2), Some(5), Some(7)] {
                for step in [-3isize, -2, -1, 1, 2, 3] {
                    let range = python_range(7, start, end, step).unwrap();
                    let mut got: Vec<usize> =
                        (0..range.len).map(|k| range.begin + k * range.step).collect();
                    if step < 0 {
                        got.reverse();
                    }
                    let clamp = |i: isize| (if i < 0 { i + 7 } else { i }).clamp(0, 7);
                    let (low, high) = (clamp(start), clamp(end.unwrap_or(7)).max(clamp(start)));
                    let slice = ndarray::Slice::new(low, Some(high), step);
                    let want = reference.slice_axis(ndarray::Axis(0), slice).to_vec();
                    assert_eq!(got, want, "{start}..{end:?};{step}");
                }
            }
        }
        assert!(python_range(7, 0, None, 0).is_err());
    }
}
