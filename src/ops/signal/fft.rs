//! Fourier transforms: `y[k] = sum over j of x[j] e^(-2 pi i j k / n)`, and their inverses.

use super::super::inventory::{Entry, OpKind, one};
use super::super::iota::iota;
use super::super::{Backward, Grads, Keep, Operation, expect_dtype, fill, only, select};
use super::pairs::{check_pairs, complex, real};
use super::passes::{Passes, chain, factors, halves};
use super::{at_least, chirp, fit, take};
use crate::dtype::DType;
use crate::eager::dispatch;
use crate::error::{Error, Result, message};
use crate::graph::attributes::Attribute;
use crate::graph::lower::{Lowering, LoweringContext};
use crate::graph::{Op, Spec};
use crate::support::options::options;
use crate::tensor::Tensor;

options! {
    /// The length of a transform of real numbers.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub struct FftOptions {
        /// The number of real numbers to transform: longer inputs are cropped, shorter ones padded with zeros; the
        /// length of the axis by default.
        fft_length: Option<usize> as impl Into<Option<usize>> = None,
    }
}

options! {
    /// The lengths of a transform of real numbers along two axes.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub struct Fft2dOptions {
        /// The number of rows and columns of real numbers to transform, as in [`FftOptions::fft_length`].
        fft_length: Option<[usize; 2]> as impl Into<Option<[usize; 2]>> = None,
    }
}

/// The Fourier transform of complex numbers, `[..,n,2]` to `[..,n,2]` (pairs, [as everywhere here](crate::signal)). Lengths whose
/// prime factors are at most 13 are fastest.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// // A wave that turns once in 4 samples: cos + i sin.
/// let x = tf::constant([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])?;
/// let y = tf::signal::fft(&x)?;
/// assert_eq!(y.to_vec::<f32>()?, [0.0, 0.0, 4.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::Shape`] if the tensor is not `[..,n,2]` or `n` is 0; [`Error::DType`] if it is not `f32`.
pub fn fft(input: &Tensor) -> Result<Tensor> {
    axis("FFT", input, 1, false)
}

/// The inverse of [`fft`], `y[k] = 1/n sum over j of x[j] e^(2 pi i j k / n)`.
///
/// # Errors
/// As [`fft`].
pub fn ifft(input: &Tensor) -> Result<Tensor> {
    axis("IFFT", input, 1, true)
}

/// [`fft`] along rows and columns, `[..,h,w,2]`.
///
/// # Errors
/// As [`fft`], for both sizes.
pub fn fft2d(input: &Tensor) -> Result<Tensor> {
    axis("FFT2D", &axis("FFT2D", input, 1, false)?, 2, false)
}

/// The inverse of [`fft2d`].
///
/// # Errors
/// As [`fft2d`].
pub fn ifft2d(input: &Tensor) -> Result<Tensor> {
    axis("IFFT2D", &axis("IFFT2D", input, 1, true)?, 2, true)
}

/// Transforms the axis that is `back` axes before that of the parts.
fn axis(op: &str, x: &Tensor, back: usize, inverse: bool) -> Result<Tensor> {
    check_pairs(op, x)?;
    let shape = x.shape();
    let Some(at) = shape.len().checked_sub(1 + back) else {
        return Err(Error::Shape(message!(
            "{op}: the tensor is {shape:?}; it must be {}, with the parts of each number last.",
            if back == 1 { "[..,n,2]" } else { "[..,h,w,2]" }
        )));
    };
    let n = check_length(op, shape[at])?;
    let product = |sizes: &[usize]| sizes.iter().product::<usize>();
    let (batch, inner) = (product(&shape[..at]), product(&shape[at + 1..shape.len() - 1]));
    middle(&x.reshape_to([batch, n, inner, 2].into())?, inverse)?.reshape_to(shape.into())
}

/// Eight times a length must be below 2^32, as the twiddle factors count eighths of a circle.
const LONGEST: usize = 1 << 28;

fn check_length(op: &str, n: usize) -> Result<usize> {
    if (1..=LONGEST).contains(&n) {
        return Ok(n);
    }
    Err(Error::Shape(message!("{op}: a transform of {n} numbers; there must be 1 to {LONGEST}.")))
}

/// Transforms the second axis of `[B,N,I,2]`.
fn middle(x: &Tensor, inverse: bool) -> Result<Tensor> {
    let n = x.shape()[1];
    match factors(n) {
        _ if n == 1 || x.is_empty() => Ok(x.clone()),
        Some(_) => dispatch(Fft { inverse }, &[x]),
        None => chirp::transform(x, inverse, middle),
    }
}

/// The first half, `n / 2 + 1` numbers, of the spectrum of real numbers, `[..,n]` to `[..,n/2+1,2]`; the other half
/// consists of their complex conjugates.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// let y = tf::signal::rfft(&tf::constant([1.0, 0.0, -1.0, 0.0])?)?;
/// assert_eq!(y.to_vec::<f32>()?, [0.0, 0.0, 2.0, 0.0, 0.0, 0.0]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::Shape`] if the tensor is a scalar or there are no numbers; [`Error::DType`] if it is not `f32`.
pub fn rfft(input: &Tensor) -> Result<Tensor> {
    rfft_with(input, FftOptions::new())
}

/// Like [`rfft`], with a length.
///
/// # Errors
/// As [`rfft`].
pub fn rfft_with(input: &Tensor, options: FftOptions) -> Result<Tensor> {
    const OP: &str = "RFFT";
    expect_dtype(OP, input.spec(), &[DType::F32])?;
    at_least(OP, input, 1, "[..,n]")?;
    let last = input.rank() - 1;
    let n = check_length(OP, options.fft_length.unwrap_or(input.shape()[last]))?;
    let x = fit(input, last, n)?;
    let mut shape = x.shape().to_vec();
    shape[last] = n / 2 + 1;
    shape.push(2);
    let batch = x.shape()[..last].iter().product::<usize>();
    if x.is_empty() || !n.is_multiple_of(2) || factors(n).is_none() {
        let whole = fft(&complex(&x, &x.zeros_like()?)?)?;
        return take(&whole, last, 0, n / 2 + 1);
    }
    dispatch(Rfft, &[&x.reshape_to([batch, n].into())?])?.reshape_to(shape.into())
}

/// The inverse of [`rfft`], `[..,n/2+1,2]` to `[..,n]`. The imaginary parts of the first number, and of the last if n is
/// even, count as 0.
///
/// # Errors
/// [`Error::Shape`] if the tensor is not `[..,k,2]` or there are no numbers; [`Error::DType`] if it is not `f32`.
pub fn irfft(input: &Tensor) -> Result<Tensor> {
    irfft_with(input, FftOptions::new())
}

/// Like [`irfft`], with the length n of the result, which is `2 (k - 1)` for k numbers by default.
///
/// # Errors
/// As [`irfft`].
pub fn irfft_with(input: &Tensor, options: FftOptions) -> Result<Tensor> {
    const OP: &str = "IRFFT";
    check_pairs(OP, input)?;
    at_least(OP, input, 2, "[..,n/2+1,2]")?;
    let at = input.rank() - 2;
    let usual = 2 * input.shape()[at].saturating_sub(1);
    let n = check_length(OP, options.fft_length.unwrap_or(usual))?;
    let x = fit(input, at, n / 2 + 1)?;
    let mut shape = x.shape()[..at].to_vec();
    let batch = shape.iter().product::<usize>();
    shape.push(n);
    if x.is_empty() || !n.is_multiple_of(2) || factors(n).is_none() {
        return mirrored(&x, at, n);
    }
    let x = x.reshape_to([batch, n / 2 + 1, 2].into())?;
    dispatch(Irfft, &[&x])?.reshape_to(shape.into())
}

/// The inverse transform of a whole spectrum, whose second half mirrors the first: for lengths without a faster method.
fn mirrored(x: &Tensor, at: usize, n: usize) -> Result<Tensor> {
    let mut signs = vec![1f32; 2 * (n / 2 + 1)];
    signs[1] = 0.0;
    if n.is_multiple_of(2) {
        signs[n + 1] = 0.0;
    }
    let first = x.multiply(super::constant_on_device_of(x, &signs, &[n / 2 + 1, 2])?)?;
    let rest = super::pairs::conj(&take(&first, at, 1, n - n / 2 - 1)?.reverse(at)?)?;
    real(&ifft(&super::super::concat([&first, &rest], at)?)?)
}

/// [`rfft`] along columns, then [`fft`] along rows: `[..,h,w]` to `[..,h,w/2+1,2]`.
///
/// # Errors
/// As [`rfft`], for both sizes.
pub fn rfft2d(input: &Tensor) -> Result<Tensor> {
    rfft2d_with(input, Fft2dOptions::new())
}

/// Like [`rfft2d`], with lengths.
///
/// # Errors
/// As [`rfft2d`].
pub fn rfft2d_with(input: &Tensor, options: Fft2dOptions) -> Result<Tensor> {
    const OP: &str = "RFFT2D";
    at_least(OP, input, 2, "[..,h,w]")?;
    let rows = input.rank() - 2;
    let [h, w] = options.fft_length.unwrap_or([input.shape()[rows], input.shape()[rows + 1]]);
    let x = fit(input, rows, check_length(OP, h)?)?;
    axis(OP, &rfft_with(&x, FftOptions::new().fft_length(w))?, 2, false)
}

/// The inverse of [`rfft2d`].
///
/// # Errors
/// As [`irfft`], for both sizes.
pub fn irfft2d(input: &Tensor) -> Result<Tensor> {
    irfft2d_with(input, Fft2dOptions::new())
}

/// Like [`irfft2d`], with the lengths of the result.
///
/// # Errors
/// As [`irfft2d`].
pub fn irfft2d_with(input: &Tensor, options: Fft2dOptions) -> Result<Tensor> {
    const OP: &str = "IRFFT2D";
    check_pairs(OP, input)?;
    at_least(OP, input, 3, "[..,h,w/2+1,2]")?;
    let rows = input.rank() - 3;
    let [h, w] = match options.fft_length {
        Some(lengths) => lengths,
        None => [input.shape()[rows], 2 * input.shape()[rows + 1].saturating_sub(1)],
    };
    let x = fit(input, rows, check_length(OP, h)?)?;
    let x = fit(&x, rows + 1, check_length(OP, w)? / 2 + 1)?;
    irfft_with(&axis(OP, &x, 2, true)?, FftOptions::new().fft_length(w))
}

/// The transform of `[B,N,I,2]` along the second axis; N is above 1 and has small factors.
#[derive(Debug, Attribute)]
#[op("FFT")]
pub(crate) struct Fft {
    inverse: bool,
}

impl Op for Fft {
    fn name(&self) -> &'static str {
        if self.inverse { "IFFT" } else { "FFT" }
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Spec> {
        Ok(inputs[0].clone())
    }

    fn lower(&self, cx: &LoweringContext) -> Lowering {
        let shape = &cx.output.shape;
        let passes =
            Passes { batch: shape[0], n: shape[1], inner: shape[2], inverse: self.inverse };
        chain(passes.kernels(&factors(shape[1]).unwrap_or_default()), cx.output.elements() / 2)
    }
}

impl Operation for Fft {
    fn keep(&self) -> Keep {
        Keep::Nothing
    }

    // The matrix e^(-2 pi i j k / n) is symmetric, so that its transpose for the parts as real numbers is its conjugate:
    // n times the inverse transform.
    fn grad(&self, back: &Backward) -> Result<Grads> {
        let n = back.dy.shape()[1] as f64;
        let scale = if self.inverse { 1.0 / n } else { n };
        only(middle(back.dy, !self.inverse)?.multiply(scale)?)
    }
}

/// `inner` for each number of a half spectrum of n real ones, and 1 for the first and the last.
fn ends(like: &Tensor, n: usize, inner: f64) -> Result<Tensor> {
    let at = iota(Some(like.device()), n / 2 + 1, 0.into(), 1.into(), DType::I32)?;
    let end = at.equal(0)?.logical_or(at.equal(n / 2)?)?;
    let number = |v: f64| fill(like.device(), "RFFT", Default::default(), v.into(), DType::F32);
    select(&end, &number(1.0)?, &number(inner)?)?.expand_dims(-1)
}

/// The transform of `[B,N]`, N even with small factors: a transform of the N/2 pairs, from which a last kernel computes
/// the half spectrum.
#[derive(Debug, Attribute)]
#[op("RFFT")]
pub(crate) struct Rfft;

impl Op for Rfft {
    fn name(&self) -> &'static str {
        "RFFT"
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Spec> {
        let shape = &inputs[0].shape;
        Ok(Spec::new([shape[0], shape[1] / 2 + 1, 2], DType::F32))
    }

    fn lower(&self, cx: &LoweringContext) -> Lowering {
        let shape = &cx.inputs[0].shape;
        let (batch, n) = (shape[0], shape[1] / 2);
        let passes = Passes { batch, n, inner: 1, inverse: false };
        let mut kernels = passes.kernels(&factors(n).unwrap_or_default());
        kernels.push(halves(batch, n, false));
        chain(kernels, batch * n)
    }
}

impl Operation for Rfft {
    fn keep(&self) -> Keep {
        Keep::Nothing
    }

    // dx[j] = sum over the n / 2 + 1 numbers k of re(dy[k] e^(2 pi i j k / n)). The inverse transform sums over all n: all
    // but the first and the last count twice.
    fn grad(&self, back: &Backward) -> Result<Grads> {
        let n = back.spec(0).shape[1];
        let halved = back.dy.multiply(ends(back.dy, n, 0.5)?)?;
        only(irfft(&halved)?.multiply(n)?)
    }
}

/// The inverse, of `[B,N/2+1,2]`, N even with small factors.
#[derive(Debug, Attribute)]
#[op("IRFFT")]
pub(crate) struct Irfft;

impl Op for Irfft {
    fn name(&self) -> &'static str {
        "IRFFT"
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Spec> {
        let shape = &inputs[0].shape;
        Ok(Spec::new([shape[0], 2 * (shape[1] - 1)], DType::F32))
    }

    fn lower(&self, cx: &LoweringContext) -> Lowering {
        let (batch, n) = (cx.output.shape[0], cx.output.shape[1] / 2);
        let mut kernels = vec![halves(batch, n, true)];
        let passes = Passes { batch, n, inner: 1, inverse: true };
        kernels.extend(passes.kernels(&factors(n).unwrap_or_default()));
        chain(kernels, batch * n)
    }
}

impl Operation for Irfft {
    fn keep(&self) -> Keep {
        Keep::Nothing
    }

    // The transpose of the rule above: dx[k] = c / n times rfft(dy)[k], where c is 2 except at the ends.
    fn grad(&self, back: &Backward) -> Result<Grads> {
        let n = back.dy.shape()[1];
        let spectrum = rfft(back.dy)?.multiply(ends(back.dy, n, 2.0)?)?;
        only(spectrum.multiply(1.0 / n as f64)?)
    }
}

const SINGLE: &[DType] = &[DType::F32];

/// Lengths with every factor, with several, and with none.
const LENGTHS: [usize; 14] = [2, 3, 4, 5, 7, 8, 11, 13, 16, 60, 64, 128, 17, 38];

/// The inventory of this file.
pub(in crate::ops) const ENTRIES: &[Entry] = &[
    Entry::new(OpKind::Kernel, "signal::fft", &["tf.signal.fft"], |c| one(fft(c.arg("input")?)))
        .takes(SINGLE)
        .cases(|cases| {
            cases.of_shape("signal::fft", &[2, 6, 2], fft);
            cases.of_shape("signal::fft of a prime", &[17, 2], fft);
        })
        .kernels(&[|make, dtype| {
            let each = |&n: &usize| fft(&make(&[3, n, 2], dtype));
            LENGTHS.iter().map(each).collect()
        }]),
    Entry::new(OpKind::Kernel, "signal::ifft", &["tf.signal.ifft"], |c| one(ifft(c.arg("input")?)))
        .takes(SINGLE)
        .cases(|cases| cases.of_shape("signal::ifft", &[2, 5, 2], ifft)),
    Entry::new(OpKind::Composed, "signal::fft2d", &["tf.signal.fft2d"], |c| {
        one(fft2d(c.arg("input")?))
    })
    .takes(SINGLE)
    .cases(|cases| cases.of_shape("signal::fft2d", &[2, 3, 4, 2], fft2d)),
    Entry::new(OpKind::Composed, "signal::ifft2d", &["tf.signal.ifft2d"], |c| {
        one(ifft2d(c.arg("input")?))
    })
    .takes(SINGLE)
    .cases(|cases| cases.of_shape("signal::ifft2d", &[2, 3, 2], ifft2d)),
    Entry::new(OpKind::Kernel, "signal::rfft", &["tf.signal.rfft"], |c| {
        let length = FftOptions::new().fft_length(c.int("fft_length")?.map(|n| n as usize));
        one(rfft_with(c.arg("input")?, length))
    })
    .forms(&["signal::rfft_with"])
    .takes(SINGLE)
    .cases(|cases| {
        cases.of_shape("signal::rfft", &[2, 8], rfft);
        cases.of_shape("signal::rfft of an odd length", &[2, 5], rfft);
        cases.of_shape("signal::rfft_with", &[2, 5], |x| {
            rfft_with(x, FftOptions::new().fft_length(6))
        });
    })
    .kernels(&[|make, dtype| {
        let each = |&n: &usize| rfft(&make(&[3, n], dtype));
        LENGTHS.iter().map(each).collect()
    }]),
    Entry::new(OpKind::Kernel, "signal::irfft", &["tf.signal.irfft"], |c| {
        let length = FftOptions::new().fft_length(c.int("fft_length")?.map(|n| n as usize));
        one(irfft_with(c.arg("input")?, length))
    })
    .forms(&["signal::irfft_with"])
    .takes(SINGLE)
    .cases(|cases| {
        cases.of_shape("signal::irfft", &[2, 5, 2], irfft);
        for n in [5, 6, 2, 1] {
            let options = FftOptions::new().fft_length(n);
            let name = format!("signal::irfft_with {n}");
            cases.add(name, &[(&[2, 4, 2], super::super::inventory::ANY)], move |x| {
                irfft_with(&x[0], options)
            });
        }
    })
    .kernels(&[|make, dtype| {
        let each = |&n: &usize| irfft(&make(&[3, n + 1, 2], dtype));
        LENGTHS.iter().map(each).collect()
    }]),
    Entry::new(OpKind::Composed, "signal::rfft2d", &["tf.signal.rfft2d"], |c| {
        let length = Fft2dOptions::new().fft_length(c.two("fft_length")?);
        one(rfft2d_with(c.arg("input")?, length))
    })
    .forms(&["signal::rfft2d_with"])
    .takes(SINGLE)
    .cases(|cases| {
        cases.of_shape("signal::rfft2d", &[2, 3, 4], rfft2d);
        cases.of_shape("signal::rfft2d_with", &[3, 4], |x| {
            rfft2d_with(x, Fft2dOptions::new().fft_length([2, 5]))
        });
    }),
    Entry::new(OpKind::Composed, "signal::irfft2d", &["tf.signal.irfft2d"], |c| {
        let length = Fft2dOptions::new().fft_length(c.two("fft_length")?);
        one(irfft2d_with(c.arg("input")?, length))
    })
    .forms(&["signal::irfft2d_with"])
    .takes(SINGLE)
    .cases(|cases| {
        cases.of_shape("signal::irfft2d", &[2, 3, 3, 2], irfft2d);
        cases.of_shape("signal::irfft2d_with", &[3, 3, 2], |x| {
            irfft2d_with(x, Fft2dOptions::new().fft_length([4, 5]))
        });
    }),
];
