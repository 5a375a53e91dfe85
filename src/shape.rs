//! Shapes: broadcasting, strides and axes. This file only computes with numbers and does not depend on devices.

use std::fmt;
use std::ops::Deref;

use smallvec::SmallVec;

use crate::error::{Error, Result, message};

/// The sizes of a tensor's axes, outermost first; a scalar has none.
///
/// Arrays, slices and vectors convert to it: functions that take `impl Into<Shape>` accept `[2, 3]`, `[]` or `vec![n,
/// 28, 28]`.
#[derive(PartialEq, Eq, Hash, Default)]
pub struct Shape(SmallVec<[usize; 6]>);

impl Clone for Shape {
    fn clone(&self) -> Self {
        // This copies all sizes at once; a derived clone appends them one by one, and every call clones shapes.
        Shape::new(&self.0)
    }
}

impl Shape {
    /// A shape of these sizes.
    pub fn new(sizes: &[usize]) -> Self {
        Shape(SmallVec::from_slice(sizes))
    }

    /// The number of elements of a tensor of this shape; 1 for a scalar, `usize::MAX` if the number overflows.
    pub fn elements(&self) -> usize {
        self.checked_elements().unwrap_or(usize::MAX)
    }

    /// As [`Shape::elements`], or `None` where the product is beyond `usize`.
    pub(crate) fn checked_elements(&self) -> Option<usize> {
        // A zero anywhere empties the tensor, however large the other axes are.
        if self.0.contains(&0) {
            return Some(0);
        }
        self.0.iter().try_fold(1usize, |n, &size| n.checked_mul(size))
    }

    pub(crate) fn push(&mut self, size: usize) {
        self.0.push(size);
    }

    /// Row-major strides, in elements.
    pub(crate) fn strides(&self) -> SmallVec<[i64; 6]> {
        let mut strides = SmallVec::from_elem(1, self.len());
        for axis in (1..self.len()).rev() {
            // An empty tensor may have other axes whose product overflows; nothing reads with its strides.
            strides[axis - 1] = i64::wrapping_mul(strides[axis], self.0[axis] as i64);
        }
        strides
    }

    /// The strides that read an array of this shape as if it had the shape `to`: zero along every axis that broadcasts.
    /// `self` must broadcast to `to`.
    pub(crate) fn broadcast_strides(&self, to: &Shape) -> SmallVec<[i64; 6]> {
        let own = self.strides();
        let lead = to.len() - self.len();
        let mut strides = SmallVec::from_elem(0, to.len());
        for axis in 0..self.len() {
            if self.0[axis] != 1 || to[lead + axis] == 1 {
                strides[lead + axis] = own[axis];
            }
        }
        strides
    }
}

impl Deref for Shape {
    type Target = [usize];

    fn deref(&self) -> &[usize] {
        &self.0
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0[..], f)
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

impl<const N: usize> From<[usize; N]> for Shape {
    fn from(sizes: [usize; N]) -> Self {
        Shape::new(&sizes)
    }
}

impl From<&[usize]> for Shape {
    fn from(sizes: &[usize]) -> Self {
        Shape::new(sizes)
    }
}

impl From<Vec<usize>> for Shape {
    fn from(sizes: Vec<usize>) -> Self {
        Shape(SmallVec::from_vec(sizes))
    }
}

impl From<&Vec<usize>> for Shape {
    fn from(sizes: &Vec<usize>) -> Self {
        Shape::new(sizes)
    }
}

impl From<&Shape> for Shape {
    fn from(shape: &Shape) -> Self {
        shape.clone()
    }
}

/// The shape that two shapes broadcast to, as NumPy and TensorFlow define it.
///
/// Shapes align at the last axis; two sizes must be equal or one of them 1.
pub(crate) fn broadcast(op: &str, a: &Shape, b: &Shape) -> Result<Shape> {
    let (long, short) = if a.len() >= b.len() { (a, b) } else { (b, a) };
    let lead = long.len() - short.len();
    let mut out = long.clone();
    for axis in 0..short.len() {
        let (l, s) = (long[lead + axis], short[axis]);
        if l != s && l != 1 && s != 1 {
            return Err(Error::Shape(message!(
                "{op}: a is {a} and b is {b}; they cannot be broadcast together, as axis {} has {} and {}. \
                 Sizes must be equal or 1, aligned at the last axis: reshape or expand_dims one of them.",
                lead + axis,
                if a.len() >= b.len() { l } else { s },
                if a.len() >= b.len() { s } else { l },
            )));
        }
        out.0[lead + axis] = if l == 1 { s } else { l };
    }
    Ok(out)
}

/// The index below `rank` of an axis, which counts from the end if negative.
pub(crate) fn axis_index(op: &str, axis: impl Into<Axis>, rank: usize) -> Result<usize> {
    axis_at(op, axis.into().0, rank)
}

fn axis_at(op: &str, axis: i64, rank: usize) -> Result<usize> {
    let index = if axis < 0 { axis + rank as i64 } else { axis };
    if index < 0 || index >= rank as i64 {
        let allowed = match rank {
            0 => "a scalar has no axes".to_string(),
            _ => format!("it must be in -{rank} to {}", rank - 1),
        };
        return Err(Error::Index(message!(
            "{op}: axis {axis} does not exist in a tensor of rank {rank}; {allowed}."
        )));
    }
    Ok(index as usize)
}

/// The sorted indices of axes, each once; `None` in `axes` stands for all.
pub(crate) fn axis_list(op: &str, axes: &Axes, rank: usize) -> Result<SmallVec<[usize; 6]>> {
    let Some(axes) = &axes.list else { return Ok((0..rank).collect()) };
    let mut list: SmallVec<[usize; 6]> = SmallVec::new();
    for &axis in axes {
        let index = axis_at(op, axis, rank)?;
        match list.binary_search(&index) {
            Ok(_) => {
                return Err(Error::Index(message!(
                    "{op}: axis {axis} is named twice in {axes:?}."
                )));
            }
            Err(at) => list.insert(at, index),
        }
    }
    Ok(list)
}

/// An axis; a negative one counts from the end. `i32`, `i64` and `usize` convert to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Axis(pub(crate) i64);

/// Axes of a tensor: one, several, or all; negative ones count from the end.
///
/// `1`, `-1`, `[0, 2]`, slices and vectors of `i32`, `i64` or `usize`, and `()` or [`Axes::ALL`] (every axis) convert
/// to it. For a reduction it also specifies whether the axes stay, with size 1:
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// let x = tf::constant([[1.0, 2.0], [3.0, 4.0]])?;
/// assert_eq!(x.reduce_sum(-1)?.shape(), [2]);
/// assert_eq!(x.reduce_sum(tf::Axes::from(-1).keepdims(true))?.shape(), [2, 1]);
/// assert_eq!(x.reduce_sum(tf::Axes::ALL.keepdims(true))?.shape(), [1, 1]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Axes {
    pub(crate) list: Option<SmallVec<[i64; 6]>>,
    pub(crate) keepdims: bool,
}

impl Axes {
    /// Every axis.
    pub const ALL: Axes = Axes { list: None, keepdims: false };

    /// Sets whether a reduction keeps the axes, with size 1. Other ops ignore it.
    #[must_use]
    pub fn keepdims(mut self, keepdims: bool) -> Self {
        self.keepdims = keepdims;
        self
    }

    fn collect(list: &mut dyn Iterator<Item = i64>) -> Self {
        Axes { list: Some(list.collect()), keepdims: false }
    }
}

impl From<()> for Axes {
    fn from((): ()) -> Self {
        Axes::ALL
    }
}

impl From<&Axes> for Axes {
    fn from(axes: &Axes) -> Self {
        axes.clone()
    }
}

impl From<Axis> for Axes {
    fn from(axis: Axis) -> Self {
        Axes::collect(&mut [axis.0].into_iter())
    }
}

/// The sizes of a new shape. One of them may be -1, and the call computes it.
///
/// Arrays, slices and vectors of `usize`, `i64` and `i32`, and `()` for a scalar, convert to it: `x.reshape([n, -1])`,
/// `x.reshape(y.shape())`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sizes(pub(crate) SmallVec<[i64; 6]>);

impl From<()> for Sizes {
    fn from((): ()) -> Self {
        Sizes(SmallVec::new())
    }
}

impl From<&Shape> for Sizes {
    fn from(shape: &Shape) -> Self {
        Sizes::from(&shape[..])
    }
}

macro_rules! numbers {
    ($($t:ty),*) => {$(
        impl From<$t> for Axis {
            fn from(axis: $t) -> Self {
                Axis(number(axis))
            }
        }

        impl From<$t> for Axes {
            fn from(axis: $t) -> Self {
                Axis::from(axis).into()
            }
        }

        numbers!(@list $t, [] &[$t]);
        numbers!(@list $t, [] Vec<$t>);
        numbers!(@list $t, [] &Vec<$t>);
        numbers!(@list $t, [const N: usize] [$t; N]);
        numbers!(@list $t, [const N: usize] &[$t; N]);
    )*};
    (@list $t:ty, [$($generic:tt)*] $list:ty) => {
        impl<$($generic)*> From<$list> for Axes {
            fn from(axes: $list) -> Self {
                Axes::collect(&mut axes.iter().map(|&axis| number(axis)))
            }
        }

        impl<$($generic)*> From<$list> for Sizes {
            fn from(sizes: $list) -> Self {
                Sizes(sizes.iter().map(|&size| number(size)).collect())
            }
        }
    };
}
// For example: `impl From<i32> for Axis`, `impl From<i32> for Axes`, `impl From<&[i32]> for Axes` and `for Sizes`.
numbers!(i32, i64, usize);

/// A number beyond `i64` becomes the largest one, which every call rejects: no tensor has so many axes or elements.
fn number(n: impl TryInto<i64>) -> i64 {
    n.try_into().unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(sizes: &[usize]) -> Shape {
        Shape::new(sizes)
    }

    #[test]
    fn broadcasting_follows_numpy() {
        let cases: [(&[usize], &[usize], &[usize]); 6] = [
            (&[2, 3], &[3], &[2, 3]),
            (&[], &[4], &[4]),
            (&[2, 1], &[1, 5], &[2, 5]),
            (&[0], &[1], &[0]),
            (&[4, 1, 3], &[2, 1], &[4, 2, 3]),
            (&[1, 1, 1, 1, 2], &[3, 1, 1], &[1, 1, 3, 1, 2]),
        ];
        for (a, b, want) in cases {
            assert_eq!(broadcast("AddV2", &shape(a), &shape(b)).unwrap(), shape(want));
            assert_eq!(broadcast("AddV2", &shape(b), &shape(a)).unwrap(), shape(want));
        }
    }

    #[test]
    fn shapes_that_do_not_fit_are_named() {
        let error = broadcast("AddV2", &shape(&[2, 3]), &shape(&[2, 4])).unwrap_err().to_string();
        assert!(error.starts_with("AddV2: a is [2, 3] and b is [2, 4]"), "{error}");
        assert!(error.contains("axis 1 has 3 and 4"), "{error}");
        assert!(broadcast("AddV2", &shape(&[0]), &shape(&[2])).is_err());
    }

    #[test]
    fn strides_of_broadcast_axes_are_zero() {
        assert_eq!(shape(&[2, 3, 4]).strides()[..], [12, 4, 1]);
        assert_eq!(shape(&[3, 1]).broadcast_strides(&shape(&[2, 3, 4]))[..], [0, 1, 0]);
        assert_eq!(shape(&[]).broadcast_strides(&shape(&[2]))[..], [0]);
    }

    #[test]
    fn axes_count_from_the_end() {
        assert_eq!(axis_index("Sum", -1, 3).unwrap(), 2);
        let error = axis_index("Sum", 2, 2).unwrap_err().to_string();
        assert_eq!(
            error,
            "Sum: axis 2 does not exist in a tensor of rank 2; it must be in -2 to 1."
        );
        assert_eq!(axis_list("Sum", &[2, 0].into(), 3).unwrap()[..], [0, 2]);
        assert!(axis_list("Sum", &[1, -1].into(), 2).is_err());
        assert_eq!(axis_list("Sum", &Axes::ALL, 2).unwrap()[..], [0, 1]);
    }

    #[test]
    fn element_counts_do_not_overflow() {
        assert_eq!(shape(&[usize::MAX, 2]).checked_elements(), None);
        assert_eq!(shape(&[usize::MAX, 2, 0]).checked_elements(), Some(0));
    }
}
