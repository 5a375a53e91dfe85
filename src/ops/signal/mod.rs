//! Signals and their spectra: TensorFlow's `tf.signal`.
//!
//! WGSL has no complex numbers. Here, and everywhere in wgrad, a complex number is a pair of `f32`, its real and its
//! imaginary part, along a last axis of size 2: `n` complex numbers are a tensor `[.., n, 2]`. [`complex`] creates
//! pairs; [`real`], [`imag`], [`abs`] and [`angle`] read them. Gradients treat the parts as separate real numbers.

mod chirp;
mod dct;
pub(super) mod fft;
pub(super) mod frames;
mod mel;
mod pairs;
mod passes;
mod windows;

pub use dct::{DctOptions, dct, dct_with, idct, idct_with};
pub use fft::{
    Fft2dOptions, FftOptions, fft, fft2d, ifft, ifft2d, irfft, irfft_with, irfft2d, irfft2d_with,
    rfft, rfft_with, rfft2d, rfft2d_with,
};
pub use frames::{
    FrameOptions, StftOptions, Window, frame, frame_with, inverse_stft, inverse_stft_window,
    inverse_stft_with, overlap_and_add, stft, stft_with,
};
pub use mel::{MelOptions, linear_to_mel_weight_matrix, mfccs_from_log_mel_spectrograms};
pub use pairs::{abs, angle, complex, conj, imag, multiply, real};
pub use windows::{
    WindowOptions, hamming_window, hamming_window_with, hann_window, hann_window_with,
    kaiser_window, vorbis_window,
};

pub(super) use dct::ENTRIES as DCT;
pub(super) use fft::ENTRIES;
pub(super) use frames::ENTRIES as FRAMES;
pub(super) use mel::ENTRIES as MEL;
pub(super) use pairs::ENTRIES as PAIRS;
pub(super) use windows::ENTRIES as WINDOWS;

use crate::error::{Error, Result, message};
use crate::tensor::Tensor;

/// Returns an error for a tensor with fewer axes than `rank`; `axes` describes the expected axes.
fn at_least(op: &str, x: &Tensor, rank: usize, axes: &str) -> Result<()> {
    if x.rank() >= rank {
        return Ok(());
    }
    Err(Error::Shape(message!("{op}: the tensor is {:?}; it must be {axes}.", x.shape())))
}

/// Crops an axis to `size`, or pads its end with zeros.
fn fit(x: &Tensor, axis: usize, size: usize) -> Result<Tensor> {
    let own = x.shape()[axis];
    if own < size {
        let mut paddings = vec![(0, 0); x.rank()];
        paddings[axis].1 = size - own;
        return x.pad(&paddings);
    }
    take(x, axis, 0, size)
}

/// `len` elements of an axis from `begin` on, which must exist.
fn take(x: &Tensor, axis: usize, begin: usize, len: usize) -> Result<Tensor> {
    if len == x.shape()[axis] {
        return Ok(x.clone());
    }
    let (mut first, mut sizes) = (vec![0; x.rank()], vec![-1; x.rank()]);
    first[axis] = begin;
    sizes[axis] = len as i64;
    x.slice(&first, &sizes)
}

/// Numbers from the host, on the device of `x`.
fn constant_on_device_of(x: &Tensor, numbers: &[f32], shape: &[usize]) -> Result<Tensor> {
    x.device().scope(|| Tensor::from_slice(numbers, shape))
}
