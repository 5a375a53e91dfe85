//! Comparisons of numbers, and numbers that are the same in every run; also for the tests in `src/`.

#![allow(clippy::unwrap_used, dead_code)] // Not every program uses all of it.

use wgrad::{DType, Tensor};

/// Numbers to compare.
pub trait Numbers {
    fn to_numbers(&self) -> Vec<f64>;

    /// The shape, of a tensor.
    fn form(&self) -> Option<&[usize]> {
        None
    }
}

impl Numbers for Tensor {
    fn to_numbers(&self) -> Vec<f64> {
        self.cast(DType::F32).unwrap().to_vec::<f32>().unwrap().to_numbers()
    }

    fn form(&self) -> Option<&[usize]> {
        Some(self.shape())
    }
}

impl<T: Copy + Into<f64>> Numbers for [T] {
    fn to_numbers(&self) -> Vec<f64> {
        self.iter().map(|&number| number.into()).collect()
    }
}

impl<T: Copy + Into<f64>> Numbers for Vec<T> {
    fn to_numbers(&self) -> Vec<f64> {
        self[..].to_numbers()
    }
}

impl<T: Copy + Into<f64>, const N: usize> Numbers for [T; N] {
    fn to_numbers(&self) -> Vec<f64> {
        self[..].to_numbers()
    }
}

/// Compares numbers, each of which may be off by `by (1 + |want|)`.
#[track_caller]
pub fn near(what: &str, got: &(impl Numbers + ?Sized), want: &(impl Numbers + ?Sized), by: f64) {
    if let (Some(got), Some(want)) = (got.form(), want.form()) {
        assert_eq!(got, want, "{what}");
    }
    let (got, want) = (got.to_numbers(), want.to_numbers());
    assert_eq!(got.len(), want.len(), "{what}: {got:?}, not {want:?}");
    for (at, (&got, &want)) in got.iter().zip(&want).enumerate() {
        assert!((got - want).abs() <= by * (1.0 + want.abs()), "{what} [{at}]: {got}, not {want}");
    }
}

/// Compares numbers within the rounding of `f32` sums of a few terms, and of logarithms.
#[track_caller]
pub fn close(got: &(impl Numbers + ?Sized), want: &(impl Numbers + ?Sized)) {
    near("", got, want, 2e-5);
}

/// Random numbers.
pub struct Random(pub u64);

impl Random {
    /// The next 31 bits.
    pub fn bits(&mut self) -> u32 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as u32
    }

    /// A number from 0 to 1, exact in `f32`.
    pub fn next(&mut self) -> f32 {
        (self.bits() >> 7) as f32 / (1u32 << 24) as f32
    }
}

/// Numbers from -1 to 1, different for each seed.
pub fn noise(seed: u64, count: usize) -> Vec<f32> {
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    (0..count).map(|_| 2.0 * random.next() - 1.0).collect()
}
