//! Numbers that tests share with a script that calls Keras: fractions that `f32` represents
//! exactly.

#![allow(dead_code)] // Not every test uses all of it.

use wgrad::Tensor;

fn of(shape: &[usize], value: impl Fn(usize) -> f32) -> Tensor {
    let values: Vec<f32> = (0..shape.iter().product()).map(value).collect();
    Tensor::from_slice(&values, shape).unwrap()
}

/// `((37 i + 11) mod 64) / 64`.
pub fn shares(shape: &[usize]) -> Tensor {
    of(shape, |i| ((37 * i + 11) % 64) as f32 / 64.0)
}

/// `8 (share - 1/2)`.
pub fn logits(shape: &[usize]) -> Tensor {
    of(shape, |i| (((37 * i + 11) % 64) as f32 / 64.0 - 0.5) * 8.0)
}

/// 1 where `5 i + 2` is a multiple of 3, else 0.
pub fn ones(shape: &[usize]) -> Tensor {
    of(shape, |i| f32::from(u8::from((5 * i + 2) % 3 == 0)))
}

/// `((3 i + 1) mod 5) / 4`.
pub fn weights(shape: &[usize]) -> Tensor {
    of(shape, |i| ((3 * i + 1) % 5) as f32 / 4.0)
}

/// `(7 i + 3) mod classes`.
pub fn labels(classes: usize, shape: &[usize]) -> Tensor {
    let values: Vec<i32> =
        (0..shape.iter().product::<usize>()).map(|i| ((7 * i + 3) % classes) as i32).collect();
    Tensor::from_slice(&values, shape).unwrap()
}

/// The labels, one-hot along a new last axis.
pub fn hot(classes: usize, shape: &[usize]) -> Tensor {
    wgrad::one_hot(&labels(classes, shape), classes).unwrap()
}
