//! Changes the shape of the same elements in the same order, without a copy.

use super::inventory::{Entry, OpKind, one};
use super::{Backward, Grads, Keep, Operation, only};
use crate::dtype::DType;
use crate::eager::dispatch;
use crate::error::{Error, Result, message};
use crate::graph::attributes::Attribute;
use crate::graph::lower::{Lowering, LoweringContext};
use crate::graph::{Op, Spec};
use crate::shape::{Axes, Axis, Shape, Sizes, axis_index};
use crate::tensor::Tensor;

impl Tensor {
    /// The elements, in row-major order, as a tensor of `shape`. One size may be -1; it is then computed.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// # use wgrad::Tensor;
    /// let x = Tensor::zeros([50, 28, 28])?;
    /// assert_eq!(x.reshape([50, -1])?.shape(), [50, 784]);
    /// let [n, h, w] = x.shape()[..] else { unreachable!("x has three axes") };
    /// assert_eq!(x.reshape([n * h, w])?.shape(), [1400, 28]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Shape`] if the shape has another number of elements, or more than one -1.
    pub fn reshape(&self, shape: impl Into<Sizes>) -> Result<Tensor> {
        let shape = resolve(&self.spec().shape, &shape.into().0)?;
        self.reshape_to(shape)
    }

    pub(crate) fn reshape_to(&self, shape: Shape) -> Result<Tensor> {
        if shape == self.spec().shape {
            return Ok(self.clone());
        }
        dispatch(Reshape { shape }, &[self])
    }

    /// Adds an axis of size 1 before `axis`; with -1 it becomes the last axis.
    ///
    /// # Errors
    /// [`Error::Index`] if the result has no axis `axis`.
    pub fn expand_dims(&self, axis: impl Into<Axis>) -> Result<Tensor> {
        let at = axis_index("ExpandDims", axis, self.rank() + 1)?;
        let mut sizes = self.shape().to_vec();
        sizes.insert(at, 1);
        self.reshape_to(sizes.into())
    }

    /// Removes the given axes, which must have size 1; `()` removes all axes of size 1.
    ///
    /// # Errors
    /// [`Error::Shape`] if a given axis has another size; [`Error::Index`] if it does not exist.
    pub fn squeeze(&self, axes: impl Into<Axes>) -> Result<Tensor> {
        let axes = axes.into().list.unwrap_or_default();
        let mut drop = vec![false; self.rank()];
        for &axis in &axes {
            let at = axis_index("Squeeze", axis, self.rank())?;
            if self.shape()[at] != 1 {
                return Err(Error::Shape(message!(
                    "Squeeze: axis {axis} of {:?} has the size {}; only axes of size 1 can be dropped.",
                    self.shape(),
                    self.shape()[at]
                )));
            }
            drop[at] = true;
        }
        let gone = |at: usize, size: usize| if axes.is_empty() { size == 1 } else { drop[at] };
        let mut kept = Shape::default();
        for (at, &size) in self.shape().iter().enumerate() {
            if !gone(at, size) {
                kept.push(size);
            }
        }
        self.reshape_to(kept)
    }
}

impl Tensor {
    /// The same tensor, if it has this shape; a size of -1 matches any size.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// # use wgrad::Tensor;
    /// let x = Tensor::zeros([50, 784])?;
    /// assert!(x.ensure_shape([-1, 784]).is_ok());
    /// assert!(x.ensure_shape([-1, 785]).is_err());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Shape`] if it has another shape.
    pub fn ensure_shape(&self, shape: impl Into<Sizes>) -> Result<Tensor> {
        let wanted = shape.into().0;
        let fits = |(&size, &want): (&usize, &i64)| want == -1 || i64::try_from(size) == Ok(want);
        if wanted.len() == self.rank() && self.shape().iter().zip(&wanted).all(fits) {
            return Ok(self.clone());
        }
        Err(Error::Shape(message!(
            "EnsureShape: the tensor is {:?} and must be {wanted:?} (-1 stands for any size).",
            self.shape()
        )))
    }

    /// The same elements as a separate tensor, which a tape can distinguish from this one; they are not copied.
    ///
    /// # Errors
    /// [`Error::Device`] as for every call.
    pub fn identity(&self) -> Result<Tensor> {
        dispatch(Reshape { shape: self.spec().shape.clone() }, &[self])
    }
}

/// The shape that two shapes broadcast to: aligned at the last axis, two sizes must be equal or one of them 1.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// assert_eq!(tf::broadcast_static_shape([2, 1], [3])?[..], [2, 3]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::Shape`] if they cannot be broadcast together.
pub fn broadcast_static_shape(a: impl Into<Shape>, b: impl Into<Shape>) -> Result<Shape> {
    crate::shape::broadcast("BroadcastStaticShape", &a.into(), &b.into())
}

/// Replaces -1 by the computed size.
fn resolve(from: &Shape, to: &[i64]) -> Result<Shape> {
    let bad = |why: String| Err(Error::Shape(message!("Reshape: {from} to {to:?}: {why}")));
    let mut known = 1usize;
    let mut open = None;
    for (axis, &size) in to.iter().enumerate() {
        match usize::try_from(size) {
            Ok(size) => match known.checked_mul(size) {
                Some(n) => known = n,
                None => return bad("the shape has more than 2^64 elements.".into()),
            },
            Err(_) if size == -1 && open.is_none() => open = Some(axis),
            Err(_) if size == -1 => return bad("only one size may be -1.".into()),
            Err(_) => {
                return bad(format!(
                    "the size {size} is negative; only -1 stands for a computed size."
                ));
            }
        }
    }
    let elements = from.elements();
    let mut sizes: Vec<usize> = to.iter().map(|&size| usize::try_from(size).unwrap_or(1)).collect();
    match open {
        Some(axis) if known > 0 && elements.is_multiple_of(known) => sizes[axis] = elements / known,
        Some(_) => {
            return bad(format!("{elements} elements cannot be divided into rows of {known}."));
        }
        None if known != elements => {
            return bad(format!(
                "the tensor has {elements} elements and the shape {known}; they must be equal."
            ));
        }
        None => {}
    }
    Ok(sizes.into())
}

#[derive(Debug, Attribute)]
#[op("Reshape")]
pub(crate) struct Reshape {
    shape: Shape,
}

impl Op for Reshape {
    fn name(&self) -> &'static str {
        "Reshape"
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Spec> {
        Ok(Spec::new(self.shape.clone(), inputs[0].dtype))
    }

    fn lower(&self, _: &LoweringContext) -> Lowering {
        Lowering::Alias
    }
}

impl Operation for Reshape {
    fn keep(&self) -> Keep {
        Keep::Nothing
    }

    fn grad(&self, back: &Backward) -> Result<Grads> {
        only(back.dy.reshape_to(back.spec(0).shape.clone())?)
    }
}

/// The inventory of this file.
pub(super) const ENTRIES: &[Entry] = &[
    Entry::new(OpKind::Kernel, "reshape", &["tf.reshape"], |c| {
        one(c.x()?.reshape(c.need("shape", c.ints("shape")?)?))
    })
    .takes(&DType::ALL)
    .cases(|cases| cases.of_shape("reshape", &[2, 6], |x| x.reshape([3, -1]))),
    Entry::new(OpKind::Kernel, "expand_dims", &["tf.expand_dims"], |c| {
        one(c.x()?.expand_dims(c.axis()?))
    })
    .takes(&DType::ALL)
    .cases(|cases| cases.of_shape("expand_dims", &[3, 4], |x| x.expand_dims(1))),
    Entry::new(OpKind::Kernel, "squeeze", &["tf.squeeze"], |c| {
        one(c.x()?.squeeze(&c.ints("axis")?.unwrap_or_default()[..]))
    })
    .takes(&DType::ALL)
    .cases(|cases| cases.of_shape("squeeze", &[3, 1, 4], |x| x.squeeze(1))),
    Entry::new(OpKind::Composed, "ensure_shape", &["tf.ensure_shape"], |c| {
        one(c.x()?.ensure_shape(c.need("shape", c.ints("shape")?)?))
    })
    .takes(&DType::ALL)
    .cases(|cases| cases.of_shape("ensure_shape", &[3, 4], |x| x.ensure_shape([3, -1]))),
    Entry::new(OpKind::Kernel, "identity", &["tf.identity"], |c| one(c.x()?.identity()))
        .takes(&DType::ALL)
        .cases(|cases| cases.of_shape("identity", &[3, 4], Tensor::identity)),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_size_is_computed() {
        let from = Shape::from([2, 3, 4]);
        assert_eq!(resolve(&from, &[-1, 4]).unwrap(), Shape::from([6, 4]));
        assert_eq!(resolve(&from, &[24]).unwrap(), Shape::from([24]));
        assert_eq!(resolve(&Shape::from([]), &[1, -1]).unwrap(), Shape::from([1, 1]));
        assert_eq!(resolve(&Shape::from([0, 3]), &[0]).unwrap(), Shape::from([0]));
        for bad in [&[5][..], &[-1, -1], &[-1, 5], &[-2, 12], &[0, -1]] {
            assert!(resolve(&from, bad).is_err(), "{bad:?}");
        }
    }
}
