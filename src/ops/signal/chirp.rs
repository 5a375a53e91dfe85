//! Fourier transforms of lengths with large prime factors, as a convolution (Bluestein): `jk = (j^2 + k^2 - (k - j)^2) / 2`.

use super::passes::factors;
use super::{constant_on_device_of, fit, pairs, take};
use crate::dtype::DType;
use crate::error::Result;
use crate::graph::Spec;
use crate::tensor::Tensor;

/// A transform of the second axis, or its inverse.
type Direct = fn(&Tensor, bool) -> Result<Tensor>;

/// Transforms the second axis of `[B,N,I,2]`, with `direct`, which transforms lengths that have small factors.
pub(super) fn transform(x: &Tensor, inverse: bool, direct: Direct) -> Result<Tensor> {
    let n = x.shape()[1];
    // An inverse transform is a transform of numbers with exchanged parts.
    if inverse {
        let y = transform(&x.reverse(-1)?, false, direct)?.reverse(-1)?;
        return y.multiply(1.0 / n as f64);
    }
    let long = (2 * n - 1..).find(|&size| factors(size).is_some()).unwrap_or(2 * n);
    // The host computes this many numbers, so it first checks whether the device could hold them.
    x.device().check_size("FFT", &Spec::new([long, 2], DType::F32))?;
    // e^(-pi i k^2 / n); k^2 is periodic modulo 2 n.
    let angle = |k: usize| {
        let square = (k as u128 * k as u128 % (2 * n as u128)) as f64;
        std::f64::consts::PI * square / n as f64
    };
    let mut chirp = Vec::with_capacity(2 * n);
    let mut filter = vec![0f32; 2 * long];
    for k in 0..n {
        let (sin, cos) = angle(k).sin_cos();
        chirp.extend([cos as f32, -sin as f32]);
        for at in [k, (long - k) % long] {
            filter[2 * at..2 * at + 2].copy_from_slice(&[cos as f32, sin as f32]);
        }
    }
    let chirp = constant_on_device_of(x, &chirp, &[n, 1, 2])?;
    let filter = direct(&constant_on_device_of(x, &filter, &[1, long, 1, 2])?, false)?;
    let spread = direct(&fit(&pairs::multiply(x, &chirp)?, 1, long)?, false)?;
    let joined = direct(&pairs::multiply(&spread, &filter)?, true)?;
    pairs::multiply(&take(&joined, 1, 0, n)?, &chirp)
}
