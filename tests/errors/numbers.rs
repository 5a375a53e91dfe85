//! NaN, infinity and the limits of integers.

use super::{floats, ints, same, values};

use wgrad::{DType, Result, Tensor};

#[test]
fn nan_and_infinity_pass_through() {
    const NAN: f32 = f32::NAN;
    const INF: f32 = f32::INFINITY;
    let x = floats([NAN, INF, -INF, 1.0]);
    same(&values(x.add(1.0)), &[NAN, INF, -INF, 2.0]);
    same(&values(x.add(floats([1.0, -INF, -INF, NAN]))), &[NAN, NAN, -INF, NAN]);
    same(&values(x.multiply(0.0)), &[NAN, NAN, NAN, 0.0]);
    same(&values(x.multiply(-2.0)), &[NAN, -INF, INF, -2.0]);
    same(&values(x.divide(0.0)), &[NAN, INF, -INF, INF]);
    same(&values(x.relu()), &[NAN, INF, 0.0, 1.0]);
    same(&values(x.maximum(0.0)), &[NAN, INF, 0.0, 1.0]);
    same(&values(x.minimum(0.0)), &[NAN, 0.0, -INF, 0.0]);
    same(&values(floats([0.0, 0.0, 0.0, 0.0]).maximum(&x)), &[NAN, INF, 0.0, 1.0]);
    same(&values(x.reduce_sum(())), &[NAN]);
    same(&values(x.reduce_max(())), &[NAN]);
    same(&values(x.reduce_min(())), &[NAN]);
    same(&values(floats([INF, 1.0]).reduce_sum(())), &[INF]);
    same(&values(floats([-INF, -1.0]).reduce_max(())), &[-1.0]);
    // NaN in the middle of a long reduction.
    let mut long = vec![1.0f32; 10_000];
    long[7001] = NAN;
    let long = Tensor::from_slice(&long, [10_000]).unwrap();
    same(&values(long.reduce_max(())), &[NAN]);
    same(&values(long.reduce_sum(())), &[NAN]);

    let rows = Tensor::from_slice(&[NAN, 1.0, 0.0, 0.0], [2, 2]).unwrap();
    same(&values(rows.softmax(-1)), &[NAN, NAN, 0.5, 0.5]);
    same(&values(floats([-INF, 0.0]).softmax(-1)), &[0.0, 1.0]);
    same(&values(rows.matmul(Tensor::eye(2).unwrap())), &[NAN, NAN, 0.0, 0.0]);
    let large = Tensor::from_slice(&[INF, 0.0, 1.0, 2.0], [2, 2]).unwrap();
    same(&values(large.matmul(Tensor::ones([2, 1]).unwrap())), &[INF, 3.0]);
    same(&values(floats([-1.0, 0.0]).log()), &[NAN, -INF]);
    same(&values(floats([-1.0, INF]).sqrt()), &[NAN, INF]);
}

/// The documented limits of integer arithmetic, where TensorFlow's CPU raises or C is undefined.
#[test]
fn integers_have_defined_ends() {
    let list = |x: Result<Tensor>| x.unwrap().to_vec::<i32>().unwrap();
    assert_eq!(list(ints([7, -7, 0]).floordiv(0)), [7, -7, 0]);
    assert_eq!(list(ints([7, -7, 0]).floormod(0)), [0, 0, 0]);
    assert_eq!(list(ints([i32::MIN]).floordiv(-1)), [i32::MIN]);
    assert_eq!(list(ints([i32::MIN]).floormod(-1)), [0]);
    assert_eq!(list(ints([i32::MAX]).add(1)), [i32::MIN]);
    assert_eq!(list(ints([2, -2]).pow(-1)), [0, 0]);
    same(&values(ints([5, 0, -5]).divide(0)), &[f32::INFINITY, f32::NAN, f32::NEG_INFINITY]);
}

#[test]
fn casts_stop_at_the_ends() {
    let x = floats([300.0, -1.0, 255.9, 0.9]);
    assert_eq!(x.cast(DType::U8).unwrap().to_vec::<u8>().unwrap(), [255, 0, 255, 0]);
    assert_eq!(x.cast(DType::U32).unwrap().to_vec::<u32>().unwrap(), [300, 0, 255, 0]);
    assert_eq!(x.cast(DType::I32).unwrap().to_vec::<i32>().unwrap(), [300, -1, 255, 0]);
    assert_eq!(x.cast(DType::Bool).unwrap().to_vec::<bool>().unwrap(), [true; 4]);
    // Integers keep their low bits, as in TensorFlow.
    let low = ints([300, -1, 256]).cast(DType::U8).unwrap();
    assert_eq!(low.to_vec::<u8>().unwrap(), [44, 255, 0]);
}
