//! Complex numbers as pairs of a real and an imaginary part, along a last axis of size 2.

use super::super::binary::scale_of_squares;
use super::super::inventory::{ANY, Entry, OpKind, Values, one};
use super::super::{expect_dtype, select, stack};
use crate::dtype::DType;
use crate::error::{Error, Result, message};
use crate::shape::Axes;
use crate::tensor::Tensor;

/// Checks that the tensor holds pairs.
pub(super) fn check_pairs(op: &str, x: &Tensor) -> Result<()> {
    expect_dtype(op, x.spec(), &[DType::F32])?;
    if x.shape().last() == Some(&2) {
        return Ok(());
    }
    Err(Error::Shape(message!(
        "{op}: the tensor is {:?}; complex numbers are pairs along a last axis of size 2. Make them by signal::complex.",
        x.shape()
    )))
}

/// The real (0) or imaginary (1) parts.
fn part(op: &str, x: &Tensor, which: usize) -> Result<Tensor> {
    check_pairs(op, x)?;
    let last = x.rank() - 1;
    let part = super::take(x, last, which, 1)?;
    part.reshape_to(x.shape()[..last].into())
}

/// Makes pairs `[..,2]` of real and imaginary parts, which must have the same shape.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// let z = tf::signal::complex(&tf::constant([3.0, 1.0])?, &tf::constant([4.0, 0.0])?)?;
/// assert_eq!(z.shape(), [2, 2]);
/// assert_eq!(tf::signal::abs(&z)?.to_vec::<f32>()?, [5.0, 1.0]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::Shape`] if the shapes differ; [`Error::DType`] if the dtypes are not `f32`.
pub fn complex(real: &Tensor, imag: &Tensor) -> Result<Tensor> {
    expect_dtype("Complex", real.spec(), &[DType::F32])?;
    stack([real, imag], -1)
}

/// The real parts, `[..,2]` to `[..]`.
///
/// # Errors
/// [`Error::Shape`] if the size of the last axis is not 2; [`Error::DType`] if the dtype is not `f32`.
pub fn real(input: &Tensor) -> Result<Tensor> {
    part("Real", input, 0)
}

/// The imaginary parts, `[..,2]` to `[..]`.
///
/// # Errors
/// As [`real`].
pub fn imag(input: &Tensor) -> Result<Tensor> {
    part("Imag", input, 1)
}

/// The complex conjugates: the imaginary parts change their sign.
///
/// # Errors
/// As [`real`].
pub fn conj(x: &Tensor) -> Result<Tensor> {
    complex(&real(x)?, &imag(x)?.negative()?)
}

/// `sqrt(re^2 + im^2)`, `[..,2]` to `[..]`, correct even if the squares would be infinite or too small; the gradient at
/// 0 is 0.
///
/// # Errors
/// As [`real`].
pub fn abs(x: &Tensor) -> Result<Tensor> {
    check_pairs("ComplexAbs", x)?;
    let fixed = x.stop_gradient().abs()?;
    let scale = scale_of_squares(&fixed.reduce_max(Axes::from(-1).keepdims(true))?)?;
    let sum = x.multiply(&scale)?.square()?.reduce_sum(-1)?;
    let zero = sum.equal(0.0)?;
    let size = select(&zero, &sum.ones_like()?, &sum)?.sqrt()?;
    let size = size.divide(scale.reshape_to(sum.spec().shape.clone())?)?;
    let known = select(&zero, &sum.zeros_like()?, &size)?;
    // If one part is infinite, the result is infinite, whatever the other part is.
    let far = fixed.equal(f32::INFINITY)?.reduce_any(-1)?;
    let end = super::super::fill(
        x.device(),
        "ComplexAbs",
        Default::default(),
        f32::INFINITY.into(),
        DType::F32,
    )?;
    select(&far, &end, &known)
}

/// The angle in radians, -pi to pi, `[..,2]` to `[..]`.
///
/// # Errors
/// As [`real`].
pub fn angle(input: &Tensor) -> Result<Tensor> {
    imag(input)?.atan2(real(input)?)
}

/// The products of complex numbers, with broadcasting.
///
/// # Errors
/// As [`real`], and [`Error::Shape`] if the shapes cannot be broadcast together.
pub fn multiply(x: &Tensor, y: &Tensor) -> Result<Tensor> {
    let ([a, b], [c, d]) = ([real(x)?, imag(x)?], [real(y)?, imag(y)?]);
    let real = a.multiply(&c)?.subtract(b.multiply(&d)?)?;
    complex(&real, &a.multiply(d)?.add(b.multiply(c)?)?)
}

const PAIR: &[DType] = &[DType::F32];

/// The inventory of this file.
pub(in crate::ops) const ENTRIES: &[Entry] = &[
    Entry::new(OpKind::Composed, "signal::complex", &["tf.complex"], |c| {
        one(complex(c.arg("real")?, c.arg("imag")?))
    })
    .takes(PAIR)
    .cases(|cases| {
        let inputs = &[(&[2, 3][..], ANY), (&[2, 3][..], ANY)];
        cases.add("signal::complex", inputs, |x| complex(&x[0], &x[1]));
    }),
    Entry::new(OpKind::Composed, "signal::real", &["tf.math.real"], |c| one(real(c.arg("input")?)))
        .takes(PAIR)
        .cases(|cases| cases.of_shape("signal::real", &[3, 2], real)),
    Entry::new(OpKind::Composed, "signal::imag", &["tf.math.imag"], |c| one(imag(c.arg("input")?)))
        .takes(PAIR)
        .cases(|cases| cases.of_shape("signal::imag", &[3, 2], imag)),
    Entry::new(OpKind::Composed, "signal::conj", &["tf.math.conj"], |c| one(conj(c.x()?)))
        .takes(PAIR)
        .cases(|cases| cases.of_shape("signal::conj", &[3, 2], conj)),
    Entry::new(OpKind::Composed, "signal::abs", &[], |c| one(abs(c.x()?))).takes(PAIR).cases(
        |cases| {
            cases.add("signal::abs", &[(&[5, 2], Values::Away)], |x| abs(&x[0]));
        },
    ),
    Entry::new(OpKind::Composed, "signal::angle", &["tf.math.angle"], |c| {
        one(angle(c.arg("input")?))
    })
    .takes(PAIR)
    .cases(|cases| {
        cases.add("signal::angle", &[(&[5, 2], Values::Away)], |x| angle(&x[0]));
    }),
    Entry::new(OpKind::Composed, "signal::multiply", &[], |c| one(multiply(c.x()?, c.arg("y")?)))
        .takes(PAIR)
        .cases(|cases| {
            let inputs = &[(&[3, 2, 2][..], ANY), (&[2, 2][..], ANY)];
            cases.add("signal::multiply", inputs, |x| multiply(&x[0], &x[1]));
        }),
];
