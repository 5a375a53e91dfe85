//! The mel scale, on which equal steps sound equal.

use super::super::inventory::{Answer, Entry, Gradient, OpKind, one};
use super::dct::dct;
use crate::dtype::DType;
use crate::error::{Error, Result, message};
use crate::support::options::options;
use crate::tensor::Tensor;

options! {
    /// The bands of [`linear_to_mel_weight_matrix`], with TensorFlow's defaults.
    #[derive(Debug, Clone, Copy, PartialEq)]
    pub struct MelOptions {
        /// The number of bands; 20 by default.
        num_mel_bins: usize = 20,
        /// The number of bins of a spectrum, `fft_length / 2 + 1`; 129 by default.
        num_spectrogram_bins: usize = 129,
        /// The number of samples per second; 8000 by default.
        sample_rate: f64 = 8000.0,
        /// The lower edge of the lowest band, in hertz; 125 by default.
        lower_edge_hertz: f64 = 125.0,
        /// The upper edge of the highest band, in hertz, at most half the sample rate; 3800 by default.
        upper_edge_hertz: f64 = 3800.0,
    }
}

/// The matrix `[num_spectrogram_bins, num_mel_bins]` that converts spectra `[..,num_spectrogram_bins]` to mel spectra
/// by a matrix product: each column is a triangle over its band. The host computes it, in `f64`.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// use tf::signal::{MelOptions, linear_to_mel_weight_matrix};
/// let weights = linear_to_mel_weight_matrix(MelOptions::new().num_mel_bins(40))?;
/// assert_eq!(weights.shape(), [129, 40]);
/// let mels = tf::Tensor::ones([10, 129])?.matmul(&weights)?;
/// assert_eq!(mels.shape(), [10, 40]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::Index`] if there are no bins, or the edges are not `0 <= lower < upper <= sample_rate / 2`.
pub fn linear_to_mel_weight_matrix(options: MelOptions) -> Result<Tensor> {
    const OP: &str = "linear_to_mel_weight_matrix";
    let MelOptions { num_mel_bins: bands, num_spectrogram_bins: bins, .. } = options;
    let (rate, lower, upper) =
        (options.sample_rate, options.lower_edge_hertz, options.upper_edge_hertz);
    if !(lower >= 0.0 && lower < upper && upper <= rate / 2.0 && rate.is_finite()) {
        return Err(Error::Index(message!(
            "{OP}: the edges are {lower} and {upper} Hz at {rate} samples a second; they must rise from 0 or more to at \
             most half the sample rate."
        )));
    }
    let size = bands.checked_mul(bins).filter(|&size| size <= MOST);
    let Some(size) = size.filter(|_| bands > 0 && bins > 0) else {
        return Err(Error::Index(message!(
            "{OP}: {bands} bands of {bins} bins; there must be at least one of each, and at most {MOST} weights."
        )));
    };
    let mel = |hertz: f64| 1127.0 * (1.0 + hertz / 700.0).ln();
    let (first, last) = (mel(lower), mel(upper));
    let edge = |k: usize| first + (last - first) * k as f64 / (bands + 1) as f64;
    let mut weights = vec![0f32; size];
    // The first bin, which is the mean, belongs to no band.
    for bin in 1..bins {
        let own = mel(rate / 2.0 * bin as f64 / (bins - 1) as f64);
        for band in 0..bands {
            let (low, middle, high) = (edge(band), edge(band + 1), edge(band + 2));
            let weight = ((own - low) / (middle - low)).min((high - own) / (high - middle));
            weights[bin * bands + band] = weight.max(0.0) as f32;
        }
    }
    Tensor::from_slice(&weights, [bins, bands])
}

/// A matrix of 64 MiB.
const MOST: usize = 1 << 24;

/// Mel-frequency cepstral coefficients of the logarithms of mel spectra `[..,n]`: `dct(x) / sqrt(2 n)`.
///
/// # Errors
/// As [`dct`].
pub fn mfccs_from_log_mel_spectrograms(log_mel_spectrograms: &Tensor) -> Result<Tensor> {
    let bands = log_mel_spectrograms.shape().last().copied().unwrap_or(0);
    dct(log_mel_spectrograms)?.multiply(1.0 / (2.0 * bands as f64).sqrt())
}

/// The inventory of this file.
pub(in crate::ops) const ENTRIES: &[Entry] = &[
    Entry::new(
        OpKind::Composed,
        "signal::linear_to_mel_weight_matrix",
        &["tf.signal.linear_to_mel_weight_matrix"],
        |c| {
            let default = MelOptions::new();
            let size = |key: &str, default: usize| -> Answer<usize> {
                Ok(c.int(key)?.map_or(default, |n| usize::try_from(n).unwrap_or(0)))
            };
            let options = MelOptions::new()
                .num_mel_bins(size("num_mel_bins", default.num_mel_bins)?)
                .num_spectrogram_bins(size("num_spectrogram_bins", default.num_spectrogram_bins)?)
                .sample_rate(c.float("sample_rate")?.unwrap_or(default.sample_rate))
                .lower_edge_hertz(c.float("lower_edge_hertz")?.unwrap_or(default.lower_edge_hertz))
                .upper_edge_hertz(c.float("upper_edge_hertz")?.unwrap_or(default.upper_edge_hertz));
            one(linear_to_mel_weight_matrix(options))
        },
    )
    .takes(&[DType::F32])
    .gradient(Gradient::None("a matrix of weights: a constant")),
    Entry::new(
        OpKind::Composed,
        "signal::mfccs_from_log_mel_spectrograms",
        &["tf.signal.mfccs_from_log_mel_spectrograms"],
        |c| one(mfccs_from_log_mel_spectrograms(c.arg("log_mel_spectrograms")?)),
    )
    .takes(&[DType::F32])
    .cases(|cases| {
        let f = |x: &Tensor| mfccs_from_log_mel_spectrograms(x);
        cases.of_shape("signal::mfccs_from_log_mel_spectrograms", &[2, 6], f);
    }),
];
