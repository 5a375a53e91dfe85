//! [`PaddedShapes`]: the shapes to which the arrays of a batch are padded.

use std::cell::Cell;

use super::ItemSpec;
use crate::error::{Error, Result, message};
use crate::shape::Sizes;

/// A shape for each array of an element; -1 means the longest of the batch.
///
/// It converts from a list of shapes, `[[-1, 3]]`, or, if they differ in their number of axes, from a tuple:
/// `([-1], ())`.
#[derive(Debug, Clone, Default)]
pub struct PaddedShapes(Vec<Sizes>);

impl<S: Into<Sizes>, const N: usize> From<[S; N]> for PaddedShapes {
    fn from(shapes: [S; N]) -> Self {
        PaddedShapes(shapes.into_iter().map(Into::into).collect())
    }
}

impl<S: Into<Sizes>> From<Vec<S>> for PaddedShapes {
    fn from(shapes: Vec<S>) -> Self {
        PaddedShapes(shapes.into_iter().map(Into::into).collect())
    }
}

macro_rules! tuples {
    ($(($($shape:ident $at:tt),+))*) => {$(
        impl<$($shape: Into<Sizes>),+> From<($($shape,)+)> for PaddedShapes {
            fn from(shapes: ($($shape,)+)) -> Self {
                PaddedShapes(vec![$(shapes.$at.into()),+])
            }
        }
    )*};
}
// `(A, B)`: a shape for each of two arrays.
tuples!((A 0)(A 0, B 1)(A 0, B 1, C 2)(A 0, B 1, C 2, D 3)(A 0, B 1, C 2, D 3, E 4)(A 0, B 1, C 2, D 3, E 4, F 5));

impl PaddedShapes {
    /// Checks that there is one shape for each array of the element; without shapes, all arrays are padded to the
    /// longest.
    pub(crate) fn check(&self, stage: &str, arrays: usize) -> Result<()> {
        if let Some(shape) = self.0.iter().find(|shape| shape.0.iter().any(|size| *size < -1)) {
            return Err(Error::Shape(message!(
                "{stage}: padded_shapes has {:?}; each size must be -1, for the longest of the batch, or at least 0.",
                &shape.0[..]
            )));
        }
        match self.0.len() == arrays || self.0.is_empty() {
            true => Ok(()),
            false => Err(Error::Shape(message!(
                "{stage}: padded_shapes has {} shapes, and the elements have {arrays} arrays; give one shape for each.",
                self.0.len()
            ))),
        }
    }

    /// The specification of batches of `size` elements.
    pub(crate) fn spec(&self, element: ItemSpec, size: Option<usize>) -> ItemSpec {
        let at = Cell::new(0);
        let padded = element.map(&|shape| {
            let wanted = self.0.get(at.replace(at.get() + 1));
            let Some(wanted) = wanted else { return shape };
            let known = shape.unwrap_or_else(|| vec![None; wanted.0.len()]);
            let sizes = wanted.0.iter().zip(known);
            Some(sizes.map(|(size, known)| usize::try_from(*size).ok().or(known)).collect())
        });
        padded.batched(size)
    }

    /// The shapes for one batch; `fill` replaces -1, which otherwise means the longest.
    pub(crate) fn pad_to(&self, stage: &'static str, fill: Option<usize>) -> PadTo<'_> {
        PadTo { stage, shapes: &self.0, fill, at: 0 }
    }
}

/// The shapes for the arrays of one batch, in order.
#[doc(hidden)]
#[derive(Debug)]
pub struct PadTo<'a> {
    stage: &'static str,
    shapes: &'a [Sizes],
    fill: Option<usize>,
    at: usize,
}

impl PadTo<'_> {
    /// The shape for the next array of each element, which has these shapes.
    ///
    /// # Errors
    /// [`Error::Shape`] if one does not fit.
    pub fn shape(&mut self, found: &[&[usize]]) -> Result<Vec<usize>> {
        let (stage, array) = (self.stage, self.at);
        self.at += 1;
        let Some(first) = found.first() else { return Ok(Vec::new()) };
        let mut longest = first.to_vec();
        for (at, shape) in found.iter().enumerate() {
            if shape.len() != first.len() {
                return Err(Error::Shape(message!(
                    "{stage}: array {array} of element {at} of the batch is {shape:?}, and of the first {first:?}; padding \
                     changes sizes, not the number of axes."
                )));
            }
            longest
                .iter_mut()
                .zip(*shape)
                .for_each(|(longest, size)| *longest = *size.max(longest));
        }
        let wanted = self.shapes.get(array).map(|shape| &shape.0[..]);
        if let Some(wanted) = wanted.filter(|wanted| wanted.len() != longest.len()) {
            return Err(Error::Shape(message!(
                "{stage}: the padded shape of array {array} is {wanted:?}, and the array is {first:?}; they need the \
                 same number of axes."
            )));
        }
        let mut padded = longest.clone();
        for (axis, size) in padded.iter_mut().enumerate() {
            let wanted = wanted.map_or(-1, |wanted| wanted[axis]);
            *size = usize::try_from(wanted).ok().or(self.fill).unwrap_or(*size);
        }
        let large = |shape: &&&[usize]| shape.iter().zip(&padded).any(|(size, room)| size > room);
        match found.iter().find(large) {
            None => Ok(padded),
            Some(shape) => Err(Error::Shape(message!(
                "{stage}: array {array} of an element is {shape:?}, and is to be padded to {padded:?}, which is smaller. Cut it \
                 in a `map`, or give -1, which is the longest of the batch."
            ))),
        }
    }
}
