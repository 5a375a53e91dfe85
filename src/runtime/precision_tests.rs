//! The precision of products, with whatever this adapter supports.

#![allow(clippy::unwrap_used)]

use super::*;
use crate::device::MatmulPrecision;
use crate::dtype::DType;
use crate::ops::{Conv2dOptions, Padding};
use crate::tape::GradientTape;
use crate::tensor::Tensor;

/// A device on which plans are made as for a GPU, and whether it has small matrices of `f16`.
fn gpu() -> (Device, bool) {
    let device = Device::new().unwrap();
    device.set_tuning(crate::plan::Tuning::Off);
    let mut state = device.state();
    state.caps.cpu = false;
    let can = state.caps.cooperative.iter().any(|kind| kind.inputs == DType::F16);
    drop(state);
    (device, can)
}

/// `[50,100]` by `[100,70]`, with a bias and an activation behind the product. Numbers of 13 bits: f16 has 11.
fn layer(device: &Device, dtype: DType) -> Vec<f32> {
    device.scope(|| {
        let numbers = |count: usize, step: usize| -> Vec<f32> {
            (0..count).map(|i| ((i * step) % 8191) as f32 / 4096.0 - 1.0).collect()
        };
        let a = Tensor::from_slice(&numbers(5000, 7), [50, 100]).unwrap().cast(dtype).unwrap();
        let b = Tensor::from_slice(&numbers(7000, 31), [100, 70]).unwrap().cast(dtype).unwrap();
        let bias = Tensor::from_slice(&numbers(70, 5), [70]).unwrap().cast(dtype).unwrap();
        device.flush().unwrap();
        let y = a.matmul(&b).unwrap().add(&bias).unwrap().relu().unwrap();
        y.cast(DType::F32).unwrap().to_vec::<f32>().unwrap()
    })
}

/// A convolution of 36 channels to 40 and its two gradients.
fn convolution(device: &Device) -> [Vec<f32>; 3] {
    let numbers = |count: usize, step: usize| -> Vec<f32> {
        (0..count).map(|i| ((i * step) % 8191) as f32 / 4096.0 - 1.0).collect()
    };
    device.scope(|| {
        let x = Tensor::from_slice(&numbers(2 * 9 * 9 * 36, 7), [2, 9, 9, 36]).unwrap();
        let w = Tensor::from_slice(&numbers(3 * 3 * 36 * 40, 31), [3, 3, 36, 40]).unwrap();
        let dy = Tensor::from_slice(&numbers(2 * 9 * 9 * 40, 13), [2, 9, 9, 40]).unwrap();
        let same = Conv2dOptions { padding: Padding::Same, ..Conv2dOptions::default() };
        let tape = GradientTape::new();
        tape.watch(&x).unwrap();
        tape.watch(&w).unwrap();
        let y = x.conv2d(&w, same).unwrap();
        let loss = (&y * &dy).reduce_sum(()).unwrap();
        let [dx, dw] = tape.required_gradient(&loss, [&x, &w]).unwrap();
        [y, dx, dw].map(|t| t.to_vec::<f32>().unwrap())
    })
}

fn uses_small_matrices(device: &Device) -> bool {
    device.last_plan().unwrap().wgsl().contains("coopMultiplyAdd")
}

fn farthest(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

#[test]
fn factors_are_rounded_on_request_only() {
    let (device, can) = gpu();
    println!("{}: {:?}", device.adapter(), device.caps().cooperative);
    assert_eq!(device.matmul_precision(), MatmulPrecision::Strict);
    let strict = layer(&device, DType::F32);
    assert!(!uses_small_matrices(&device));

    device.set_matmul_precision(MatmulPrecision::F16Inputs);
    let rounded = layer(&device, DType::F32);
    assert_eq!(uses_small_matrices(&device), can);
    if can {
        // A kind that is not proven would not have been used.
        assert!(device.state().caps.cooperative.iter().any(|kind| kind.proven));
        let error = farthest(&strict, &rounded);
        // Sums of a hundred products of about 1/3, each with an error of 2^-11 at most.
        assert!(error > 1e-5 && error < 0.01, "{error}");
    } else {
        assert_eq!(strict, rounded);
    }
    device.set_matmul_precision(MatmulPrecision::Strict);
    assert_eq!(strict, layer(&device, DType::F32), "the choice is not kept");
}

#[test]
fn convolutions_and_gradients_follow() {
    let (device, can) = gpu();
    let strict = convolution(&device);
    device.set_matmul_precision(MatmulPrecision::F16Inputs);
    let rounded = convolution(&device);
    assert_eq!(uses_small_matrices(&device), can);
    for (strict, rounded) in strict.iter().zip(&rounded) {
        let squares: f32 = strict.iter().map(|x| x * x).sum();
        let scale = (squares / strict.len() as f32).sqrt();
        let error = farthest(strict, rounded) / scale;
        assert!(error < 3e-3 && (error > 1e-5) == can, "{error}");
    }
}

#[test]
fn small_inputs_need_no_request() {
    let (device, can) = gpu();
    if !device.caps().f16 {
        let refused = device.scope(|| Tensor::ones([2]).unwrap().cast(DType::F16));
        assert!(refused.unwrap_err().to_string().contains("f16"));
        return;
    }
    let y = layer(&device, DType::F16);
    assert_eq!(uses_small_matrices(&device), can);
    device.state().caps.cooperative.clear();
    device.state().plans.clear();
    let plain = layer(&device, DType::F16);
    assert!(!uses_small_matrices(&device));
    // Sums in f32, rounded to f16 once: up to 32 in steps of 1/64.
    assert!(farthest(&y, &plain) <= 1.0 / 64.0, "{}", farthest(&y, &plain));
    assert!(plain.iter().any(|x| *x > 1.0));
}
