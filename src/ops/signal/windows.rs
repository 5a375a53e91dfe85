//! Windows: weights that fade a frame of a signal in and out. The host computes them, in `f64`.

use std::f64::consts::PI;

use super::super::inventory::{Answer, Args, Entry, Gradient, OpKind, Value, one};
use crate::dtype::DType;
use crate::error::{Error, Result, message};
use crate::support::options::options;
use crate::tensor::Tensor;

options! {
    /// Options of raised-cosine windows.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub struct WindowOptions {
        /// Whether the window is periodic, as overlapping frames require, instead of symmetric; `true` by default.
        periodic: bool = true,
    }
}

/// `0.5 - 0.5 cos(2 pi k / n)` for k below `window_length`, which is n for a periodic window of even length, otherwise
/// n + 1. On the current device, in `f32`.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// assert_eq!(tf::signal::hann_window(4)?.to_vec::<f32>()?, [0.0, 0.5, 1.0, 0.5]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::Device`] if there is no device or it is out of memory.
pub fn hann_window(window_length: usize) -> Result<Tensor> {
    hann_window_with(window_length, WindowOptions::new())
}

/// Like [`hann_window`], with options.
///
/// # Errors
/// As [`hann_window`].
pub fn hann_window_with(window_length: usize, options: WindowOptions) -> Result<Tensor> {
    window(raised_cosine(window_length, options, [0.5, 0.5]))
}

/// Like [`hann_window`], with the formula `0.54 - 0.46 cos(2 pi k / n)`.
///
/// # Errors
/// As [`hann_window`].
pub fn hamming_window(window_length: usize) -> Result<Tensor> {
    hamming_window_with(window_length, WindowOptions::new())
}

/// Like [`hamming_window`], with options.
///
/// # Errors
/// As [`hann_window`].
pub fn hamming_window_with(window_length: usize, options: WindowOptions) -> Result<Tensor> {
    window(raised_cosine(window_length, options, [0.54, 0.46]))
}

/// `I0(beta sqrt(1 - (2 k / (n - 1) - 1)^2)) / I0(beta)` for k below `window_length` = n; I0 is the Bessel function.
/// TensorFlow's default for `beta` is 12.
///
/// # Errors
/// [`Error::Index`] if `beta` is negative or not finite; otherwise as [`hann_window`].
pub fn kaiser_window(window_length: usize, beta: f64) -> Result<Tensor> {
    if !beta.is_finite() || beta < 0.0 {
        return Err(Error::Index(message!(
            "kaiser_window: beta is {beta}; it must be finite and 0 or more."
        )));
    }
    let half = (window_length as f64 - 1.0) / 2.0;
    let weight = |k: usize| {
        let far = if half > 0.0 { (k as f64 - half) / half } else { 0.0 };
        let inner = beta * (1.0 - far * far).max(0.0).sqrt();
        (inner - beta).exp() * scaled_bessel(inner) / scaled_bessel(beta)
    };
    window((0..window_length).map(weight).collect())
}

/// `sin(pi/2 sin(pi (k + 0.5) / n)^2)` for k below `window_length` = n.
///
/// # Errors
/// As [`hann_window`].
pub fn vorbis_window(window_length: usize) -> Result<Tensor> {
    let weight = |k: usize| {
        let sine = (PI / window_length as f64 * (k as f64 + 0.5)).sin();
        (PI / 2.0 * sine * sine).sin()
    };
    window((0..window_length).map(weight).collect())
}

fn raised_cosine(length: usize, options: WindowOptions, [a, b]: [f64; 2]) -> Vec<f64> {
    if length == 1 {
        return vec![1.0];
    }
    let longer = usize::from(options.periodic && length.is_multiple_of(2));
    let turn = 2.0 * PI / (length + longer).saturating_sub(1).max(1) as f64;
    (0..length).map(|k| a - b * (turn * k as f64).cos()).collect()
}

/// `e^-x I0(x)` for x of 0 or more: by its series, or by the one for large x where that is shorter.
fn scaled_bessel(x: f64) -> f64 {
    if x > 50.0 {
        let ratio = |k: f64| (2.0 * k - 1.0) * (2.0 * k - 1.0) / (8.0 * k * x);
        let (mut term, mut sum) = (1.0, 1.0);
        for k in 1..20 {
            term *= ratio(f64::from(k));
            sum += term;
        }
        return sum / (2.0 * PI * x).sqrt();
    }
    let (mut term, mut sum) = (1.0, 1.0);
    for k in 1..120 {
        term *= x * x / 4.0 / f64::from(k * k);
        sum += term;
    }
    sum * (-x).exp()
}

fn window(weights: Vec<f64>) -> Result<Tensor> {
    let weights: Vec<f32> = weights.into_iter().map(|weight| weight as f32).collect();
    Tensor::from_slice(&weights, [weights.len()])
}

/// The options that a call names.
fn asked(c: &Args) -> Answer<WindowOptions> {
    let periodic = c.attribute("periodic", Value::bool)?;
    Ok(WindowOptions::new().periodic(periodic.unwrap_or(true)))
}

const CONSTANT: Gradient = Gradient::None("a window: a constant");
const SINGLE: &[DType] = &[DType::F32];

/// The inventory of this file.
pub(in crate::ops) const ENTRIES: &[Entry] = &[
    Entry::new(OpKind::Composed, "signal::hann_window", &["tf.signal.hann_window"], |c| {
        one(hann_window_with(c.size("window_length")?, asked(c)?))
    })
    .forms(&["signal::hann_window_with"])
    .takes(SINGLE)
    .gradient(CONSTANT),
    Entry::new(OpKind::Composed, "signal::hamming_window", &["tf.signal.hamming_window"], |c| {
        one(hamming_window_with(c.size("window_length")?, asked(c)?))
    })
    .forms(&["signal::hamming_window_with"])
    .takes(SINGLE)
    .gradient(CONSTANT),
    Entry::new(OpKind::Composed, "signal::kaiser_window", &["tf.signal.kaiser_window"], |c| {
        one(kaiser_window(c.size("window_length")?, c.float("beta")?.unwrap_or(12.0)))
    })
    .takes(SINGLE)
    .gradient(CONSTANT),
    Entry::new(OpKind::Composed, "signal::vorbis_window", &["tf.signal.vorbis_window"], |c| {
        one(vorbis_window(c.size("window_length")?))
    })
    .takes(SINGLE)
    .gradient(CONSTANT),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_series_of_the_bessel_function_meet() {
        // I0(1) = 1.2660658777520082; e^-50 I0(50) = 0.05656162664745418.
        assert!((scaled_bessel(1.0) * 1f64.exp() - 1.266_065_877_752_008_2).abs() < 1e-14);
        assert!((scaled_bessel(50.0) - 0.056_561_626_647).abs() < 1e-10);
        assert!((scaled_bessel(50.0) - scaled_bessel(50.000_001)).abs() < 1e-8);
    }
}
