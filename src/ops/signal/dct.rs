//! Cosine transforms, by Fourier transforms of twice the length.

use std::f64::consts::PI;

use super::super::inventory::{ANY, Answer, Args, Entry, OpKind, Stop, one};
use super::super::{concat, expect_dtype};
use super::fft::{FftOptions, irfft_with, rfft, rfft_with};
use super::pairs::{imag, real};
use super::{at_least, constant_on_device_of, fit, take};
use crate::dtype::DType;
use crate::error::{Error, Result, message};
use crate::support::options::options;
use crate::tensor::Tensor;

options! {
    /// The kind of cosine transform.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub struct DctOptions {
        /// The type, 1 to 4; 2 by default.
        kind: u8 = 2,
        /// The length of the transform: longer inputs are cropped, shorter ones padded with zeros; the length of the
        /// axis by default.
        n: Option<usize> as impl Into<Option<usize>> = None,
        /// Whether the transform is scaled so that it is orthonormal (`norm="ortho"`), which is not supported for type
        /// 1; `false` by default.
        ortho: bool = false,
    }
}

/// The cosine transform of type 2 along the last axis: `y[k] = 2 sum over j of x[j] cos(pi k (2 j + 1) / 2 n)`.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// let y = tf::signal::dct(&tf::constant([1.0, 1.0])?)?.to_vec::<f32>()?;
/// assert!((y[0] - 4.0).abs() < 1e-6 && y[1].abs() < 1e-6);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::Shape`] if the tensor is a scalar or there are no numbers; [`Error::DType`] if it is not `f32`.
pub fn dct(input: &Tensor) -> Result<Tensor> {
    dct_with(input, DctOptions::new())
}

/// Like [`dct`], with another type, length or scale. TensorFlow's argument `type` is `kind`:
///
/// - 1: `y[k] = x[0] + (-1)^k x[n-1] + 2 sum over 0 < j < n - 1 of x[j] cos(pi k j / (n - 1))`
/// - 3: `y[k] = x[0] + 2 sum over j > 0 of x[j] cos(pi (2 k + 1) j / 2 n)`
/// - 4: `y[k] = 2 sum over j of x[j] cos(pi (2 k + 1) (2 j + 1) / 4 n)`
///
/// # Errors
/// As [`dct`]; [`Error::Index`] if there is no such type; [`Error::Shape`] if there are fewer than two numbers for type 1.
pub fn dct_with(input: &Tensor, options: DctOptions) -> Result<Tensor> {
    const OP: &str = "dct";
    let DctOptions { kind, n, ortho } = options;
    if !(1..=4).contains(&kind) || (kind == 1 && ortho) {
        return Err(Error::Index(message!(
            "{OP}: the type is {kind}{}; it must be 1 to 4, and type 1 has no orthonormal form.",
            if ortho { ", orthonormal" } else { "" }
        )));
    }
    expect_dtype(OP, input.spec(), &[DType::F32])?;
    at_least(OP, input, 1, "[..,n]")?;
    let last = input.rank() - 1;
    let x = fit(input, last, n.unwrap_or(input.shape()[last]))?;
    let n = x.shape()[last];
    if n < if kind == 1 { 2 } else { 1 } {
        return Err(Error::Shape(message!(
            "{OP}: the tensor is {:?}, transformed along {n} numbers; type {kind} needs at least {}.",
            input.shape(),
            if kind == 1 { 2 } else { 1 }
        )));
    }
    let scale = |ortho: f64| if options.ortho { ortho } else { 1.0 };
    match kind {
        1 => {
            let middle = take(&x, last, 1, n - 2)?.reverse(last)?;
            real(&rfft(&concat([&x, &middle], last)?)?)
        }
        2 => {
            let root = (n as f64).sqrt();
            second(&x, n, scale(0.5 / root), scale(std::f64::consts::FRAC_1_SQRT_2 / root))
        }
        3 => {
            let root = (n as f64).sqrt();
            let (first, rest) = if ortho {
                (1.0 / root, std::f64::consts::FRAC_1_SQRT_2 / root)
            } else {
                (1.0, 1.0)
            };
            third(&x, n, first, rest)
        }
        _ => {
            let scale = scale(std::f64::consts::FRAC_1_SQRT_2 / (n as f64).sqrt());
            let all = second(&x, 2 * n, scale, scale)?;
            let mut pairs = x.shape().to_vec();
            pairs.push(2);
            imag(&all.reshape_to(pairs.into())?)
        }
    }
}

/// The inverse of [`dct`], except for a factor of `2 n` if it is not orthonormal.
///
/// # Errors
/// As [`dct`].
pub fn idct(input: &Tensor) -> Result<Tensor> {
    idct_with(input, DctOptions::new())
}

/// The inverse of [`dct_with`] with the same options, except for a factor of `2 n`, or `2 (n - 1)` for type 1, if it is
/// not orthonormal: types 2 and 3 are inverses of each other, and types 1 and 4 of themselves.
///
/// # Errors
/// As [`dct_with`].
pub fn idct_with(input: &Tensor, options: DctOptions) -> Result<Tensor> {
    let kind = match options.kind {
        2 => 3,
        3 => 2,
        own => own,
    };
    dct_with(input, options.kind(kind))
}

/// Type 2 of `x` with zeros up to n numbers: `2 re(X[k] e^(-pi i k / 2 n))` of the spectrum X of twice the length, times
/// `first` for k = 0 and `rest` elsewhere.
fn second(x: &Tensor, n: usize, first: f64, rest: f64) -> Result<Tensor> {
    let spectrum = rfft_with(x, FftOptions::new().fft_length(2 * n))?;
    let spectrum = take(&spectrum, spectrum.rank() - 2, 0, n)?;
    // re(a + ib)(cos - i sin) = a cos + b sin
    spectrum.multiply(turns(x, n, 2.0 * first, 2.0 * rest, 1.0)?)?.reduce_sum(-1)
}

/// Type 3: the first n of the 2 n real numbers whose spectrum is `2 n x[j] e^(pi i j / 2 n)`, x weighted as in type 2.
fn third(x: &Tensor, n: usize, first: f64, rest: f64) -> Result<Tensor> {
    let scale = 2.0 * n as f64;
    let spectrum = x.expand_dims(-1)?.multiply(turns(x, n, scale * first, scale * rest, 1.0)?)?;
    let y = irfft_with(&spectrum, FftOptions::new().fft_length(2 * n))?;
    take(&y, y.rank() - 1, 0, n)
}

/// The pairs `(cos, sign sin)(pi k / 2 n)` times `first` for k = 0, times `rest` elsewhere.
fn turns(x: &Tensor, n: usize, first: f64, rest: f64, sign: f64) -> Result<Tensor> {
    let pair = |k: usize| {
        let (sin, cos) = (PI * k as f64 / (2 * n) as f64).sin_cos();
        let scale = if k == 0 { first } else { rest };
        [(scale * cos) as f32, (scale * sign * sin) as f32]
    };
    let pairs: Vec<f32> = (0..n).flat_map(pair).collect();
    constant_on_device_of(x, &pairs, &[n, 2])
}

const SINGLE: &[DType] = &[DType::F32];

/// The options that a call names.
fn asked(c: &Args) -> Answer<DctOptions> {
    let ortho = match c.text("norm")?.as_deref() {
        None => false,
        Some("ortho") => true,
        Some(_) => return Err(Stop::Lacks("norm".into())),
    };
    let kind = u8::try_from(c.int("type")?.unwrap_or(2)).unwrap_or(0);
    Ok(DctOptions::new().kind(kind).n(c.int("n")?.map(|n| n as usize)).ortho(ortho))
}

/// The inventory of this file.
pub(in crate::ops) const ENTRIES: &[Entry] = &[
    Entry::new(OpKind::Composed, "signal::dct", &["tf.signal.dct"], |c| {
        one(dct_with(c.arg("input")?, asked(c)?))
    })
    .forms(&["signal::dct_with"])
    .takes(SINGLE)
    .cases(|cases| {
        cases.of_shape("signal::dct", &[2, 5], dct);
        for (kind, ortho) in [(1, false), (3, false), (3, true), (4, false), (4, true), (2, true)] {
            let options = DctOptions::new().kind(kind).ortho(ortho);
            cases.add(format!("signal::dct_with {kind} {ortho}"), &[(&[6], ANY)], move |x| {
                dct_with(&x[0], options)
            });
        }
    }),
    Entry::new(OpKind::Composed, "signal::idct", &["tf.signal.idct"], |c| {
        one(idct_with(c.arg("input")?, asked(c)?))
    })
    .forms(&["signal::idct_with"])
    .takes(SINGLE)
    .cases(|cases| {
        cases.of_shape("signal::idct", &[2, 5], idct);
        cases.of_shape("signal::idct_with", &[2, 5], |x| idct_with(x, DctOptions::new().n(7)));
    }),
];
