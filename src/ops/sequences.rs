//! Polynomials, and tests of ascending order, composed of other ops.

use std::borrow::Borrow;

use super::inventory::{ANY, Entry, Gradient, OpKind, one};
use super::{NUMERIC, expect_dtype};
use crate::dtype::DType;
use crate::error::Result;
use crate::tensor::Tensor;

/// `coeffs[0] x^(n-1) + ... + coeffs[n-1]`, by Horner's rule; 0 if there are no coefficients. Coefficients broadcast
/// with `x`.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// let coeffs = [tf::constant(2.0)?, tf::constant(0.0)?, tf::constant(1.0)?];
/// assert_eq!(tf::polyval(coeffs, &tf::constant([1.0, 3.0])?)?.to_vec::<f32>()?, [3.0, 19.0]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::Shape`](crate::Error::Shape) if the shapes cannot be broadcast together;
/// [`Error::DType`](crate::Error::DType) if the dtypes differ or are not numeric.
pub fn polyval<T: Borrow<Tensor>>(coeffs: impl AsRef<[T]>, x: &Tensor) -> Result<Tensor> {
    expect_dtype("Polyval", x.spec(), NUMERIC)?;
    let Some((first, rest)) = coeffs.as_ref().split_first() else { return x.zeros_like() };
    rest.iter().try_fold(first.borrow().clone(), |sum, next| sum.multiply(x)?.add(next.borrow()))
}

/// Tests of the order of all elements, in row-major order. The result is true for fewer than two elements.
impl Tensor {
    /// Whether no element is smaller than the previous one; NaN counts as smaller.
    ///
    /// # Errors
    /// [`Error::DType`](crate::Error::DType) if the dtype is not numeric.
    pub fn is_non_decreasing(&self) -> Result<Tensor> {
        ascends(self, "IsNonDecreasing", Tensor::less_equal)
    }

    /// Whether each element is larger than the previous one.
    ///
    /// # Errors
    /// [`Error::DType`](crate::Error::DType) if the dtype is not numeric.
    pub fn is_strictly_increasing(&self) -> Result<Tensor> {
        ascends(self, "IsStrictlyIncreasing", Tensor::less)
    }
}

fn ascends(x: &Tensor, op: &str, before: fn(&Tensor, Tensor) -> Result<Tensor>) -> Result<Tensor> {
    expect_dtype(op, x.spec(), NUMERIC)?;
    if x.len() < 2 {
        return Tensor::full_of([], true, DType::Bool);
    }
    let flat = x.reshape([-1])?;
    let size = [x.len() as i64 - 1];
    before(&flat.slice(&[0], &size)?, flat.slice(&[1], &size)?)?.reduce_all(())
}

/// The inventory of this file.
pub(super) const ENTRIES: &[Entry] = &[
    Entry::new(OpKind::Composed, "polyval", &["tf.math.polyval"], |c| {
        one(polyval(c.list("coeffs")?, c.x()?))
    })
    .takes(NUMERIC)
    .cases(|cases| {
        cases.add("polyval", &[(&[3, 5], ANY), (&[5], ANY), (&[], ANY), (&[3, 5], ANY)], |x| {
            polyval(&x[1..], &x[0])
        });
    }),
    Entry::new(OpKind::Composed, "is_non_decreasing", &["tf.math.is_non_decreasing"], |c| {
        one(c.x()?.is_non_decreasing())
    })
    .takes(NUMERIC)
    .gradient(Gradient::None("IsNonDecreasing: a test")),
    Entry::new(
        OpKind::Composed,
        "is_strictly_increasing",
        &["tf.math.is_strictly_increasing"],
        |c| one(c.x()?.is_strictly_increasing()),
    )
    .takes(NUMERIC)
    .gradient(Gradient::None("IsStrictlyIncreasing: a test")),
];
