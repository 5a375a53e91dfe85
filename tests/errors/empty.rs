//! Tensors without elements.

use super::{floats, ints, plain, same, values, zeros};

use ndarray::s;
use wgrad as tf;
use wgrad::{DType, Error, GradientTape, PadMode, Pool2dOptions, Result, Tensor};

/// Checks that it has the shape `shape`, and can be read.
#[track_caller]
fn empty<const N: usize>(x: Result<Tensor>, shape: [usize; N]) {
    let x = x.unwrap();
    assert_eq!(x.shape(), shape);
    assert!(x.is_empty());
    assert!(values(x.cast(DType::F32)).is_empty());
}

#[test]
fn tensors_without_elements_go_everywhere() {
    let none = zeros([0, 3]);
    empty(none.add(&none), [0, 3]);
    empty(none.add(1.0), [0, 3]);
    empty(none.multiply(zeros([1, 3])), [0, 3]);
    empty(none.add(zeros([1])), [0, 3]);
    empty(none.exp(), [0, 3]);
    empty(none.cast(DType::I32), [0, 3]);
    empty(tf::where_(&none.greater(0.0).unwrap(), &none, &none), [0, 3]);
    empty(none.reshape([3, 0, 2]), [3, 0, 2]);
    empty(none.transpose(()), [3, 0]);
    empty(none.broadcast_to([2, 0, 3]), [2, 0, 3]);
    empty(zeros([2, 3]).slice(&[0, 3], &[2, 0]), [2, 0]);
    empty(zeros([2, 3]).strided_slice(s![.., 2..2]), [2, 0]);
    empty(zeros([2, 3]).strided_slice(s![..0;-1]), [0, 3]);
    empty(none.reverse([0, 1]), [0, 3]);
    empty(none.tile(&[4, 2]), [0, 6]);
    empty(zeros([2]).tile(&[0]), [0]);
    empty(none.gather(&ints([2, 0]), 1), [0, 2]);
    empty(zeros([5, 3]).gather(&zeros([0]).cast(DType::I32).unwrap(), 0), [0, 3]);
    empty(tf::concat([&none, &none], 1), [0, 6]);
    empty(tf::stack([&none, &none], 0), [2, 0, 3]);
    empty(tf::one_hot(&zeros([0]).cast(DType::I32).unwrap(), 3), [0, 3]);
    empty(none.softmax(-1), [0, 3]);
    empty(none.argmax(1), [0]);
    empty(none.reduce_sum(1), [0]);
    empty(none.reduce_max(wgrad::Axes::from(1).keepdims(true)), [0, 1]);
    empty(none.matmul(zeros([3, 4])), [0, 4]);
    empty(zeros([4, 3]).matmul(zeros([3, 0])), [4, 0]);
    empty(zeros([0, 2, 3]).matmul(zeros([3, 4])), [0, 2, 4]);
    empty(zeros([0, 2, 3]).matmul(zeros([0, 3, 4])), [0, 2, 4]);
    empty(zeros([0, 5, 5, 2]).conv2d(zeros([3, 3, 2, 4]), plain()), [0, 3, 3, 4]);
    empty(zeros([1, 2, 2, 1]).conv2d(zeros([3, 3, 1, 2]), plain()), [1, 0, 0, 2]);
    empty(zeros([0, 4, 4, 2]).max_pool2d([2, 2], Pool2dOptions::new()), [0, 2, 2, 2]);
    empty(tf::range(3, 3, 1), [0]);
    empty(Tensor::from_slice::<f32>(&[], [2, 0]), [2, 0]);
    empty(zeros([0, 3]).unsorted_segment_sum(&zeros([0]).cast(DType::I32).unwrap(), 0), [0, 3]);
    // A concatenation with a non-empty tensor, and padding around an empty one.
    assert_eq!(values(tf::concat([&zeros([0]), &floats([1.0, 2.0]), &zeros([0])], 0)), [1.0, 2.0]);
    let nine = PadMode::Constant(9.into());
    assert_eq!(values(zeros([0]).pad_with(&[(1, 2)], nine)), [9.0; 3]);
    assert!(matches!(zeros([0]).argmax(0), Err(Error::Shape(_))));
    assert!(matches!(zeros([3, 0]).argmin(1), Err(Error::Shape(_))));
}

#[test]
fn sums_over_nothing_are_their_start() {
    let none = zeros([2, 0]);
    assert_eq!(values(none.reduce_sum(1)), [0.0, 0.0]);
    assert_eq!(values(none.reduce_prod(1)), [1.0, 1.0]);
    assert_eq!(values(none.reduce_max(1)), [f32::NEG_INFINITY; 2]);
    assert_eq!(values(none.reduce_min(())), [f32::INFINITY]);
    same(&values(none.reduce_mean(1)), &[f32::NAN; 2]);
    let ints = none.cast(DType::I32).unwrap();
    assert_eq!(ints.reduce_max(()).unwrap().item::<i32>().unwrap(), i32::MIN);
    assert_eq!(ints.reduce_min(()).unwrap().item::<i32>().unwrap(), i32::MAX);
    let bools = none.cast(DType::Bool).unwrap();
    assert!(bools.reduce_all(()).unwrap().item::<bool>().unwrap());
    assert!(!bools.reduce_any(()).unwrap().item::<bool>().unwrap());
    assert_eq!(values(zeros([5, 0]).matmul(zeros([0, 4]))), [0.0; 20]);
    assert_eq!(values(zeros([2, 3, 0]).matmul(zeros([0, 2]))), [0.0; 12]);
    let ids = zeros([0]).cast(DType::I32).unwrap();
    assert_eq!(values(zeros([0, 2]).unsorted_segment_sum(&ids, 2)), [0.0; 4]);
}

#[test]
fn gradients_of_nothing_are_zero() {
    let (x, w) = (zeros([0, 5, 5, 2]), Tensor::ones([3, 3, 2, 1]).unwrap());
    let tape = GradientTape::new();
    tape.watch(&x).unwrap();
    tape.watch(&w).unwrap();
    let y = x.conv2d(&w, plain()).unwrap().reduce_sum(()).unwrap();
    let [dx, dw] = tape.gradient(&y, [&x, &w]).unwrap();
    empty(Ok(dx.unwrap()), [0, 5, 5, 2]);
    assert_eq!(dw.unwrap().to_vec::<f32>().unwrap(), [0.0; 18]);

    let (a, b) = (zeros([0, 3]), Tensor::ones([3, 2]).unwrap());
    let tape = GradientTape::new();
    tape.watch(&a).unwrap();
    tape.watch(&b).unwrap();
    let y = a.matmul(&b).unwrap();
    let [da, db] = tape.gradient(&y, [&a, &b]).unwrap();
    empty(Ok(da.unwrap()), [0, 3]);
    assert_eq!(db.unwrap().to_vec::<f32>().unwrap(), [0.0; 6]);
}
