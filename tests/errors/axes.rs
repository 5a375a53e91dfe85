//! Tensors with many axes.

use ndarray::{Array, ArrayD, Axis, IxDyn};
use wgrad as tf;
use wgrad::{Result, Tensor};

/// 0, 1, 2, ... in this shape, here and on the device.
fn counted(shape: &[usize]) -> (ArrayD<f32>, Tensor) {
    let host = Array::range(0.0, shape.iter().product::<usize>() as f32, 1.0);
    let host = host.into_shape_with_order(IxDyn(shape)).unwrap();
    let there = Tensor::from_array(&host).unwrap();
    (host, there)
}

#[track_caller]
fn equal(got: Result<Tensor>, want: &ArrayD<f32>) {
    let got = got.unwrap();
    assert_eq!(got.shape(), want.shape());
    assert_eq!(got.to_array::<f32>().unwrap(), want.as_standard_layout());
}

#[test]
fn five_to_eight_axes() {
    let shapes: [&[usize]; 5] = [
        &[2, 3, 2, 3, 4],
        &[2, 3, 2, 1, 3, 5],
        &[2, 1, 3, 2, 2, 3, 2],
        &[2, 3, 1, 2, 2, 3, 2, 2],
        &[1, 2, 2, 2, 2, 2, 2, 3],
    ];
    for shape in shapes {
        let rank = shape.len();
        let (host, x) = counted(shape);

        // Every second axis of the other operand is broadcast, and its first axis is missing.
        let thin: Vec<usize> =
            (1..rank).map(|axis| if axis % 2 == 0 { 1 } else { shape[axis] }).collect();
        let (thin_host, thin) = counted(&thin);
        equal(x.add(&thin), &(&host + &thin_host));
        equal(thin.subtract(&x), &(&thin_host - &host));

        let order: Vec<usize> = (0..rank).map(|k| (k * 3 + 1) % rank).collect();
        // 3 k + 1 visits every axis unless 3 divides the rank.
        let order: Vec<usize> = if rank % 3 == 0 { (0..rank).rev().collect() } else { order };
        let perm: Vec<i64> = order.iter().map(|&axis| axis as i64).collect();
        let turned = host.clone().permuted_axes(IxDyn(&order));
        equal(x.transpose(&perm), &turned);
        equal(x.transpose(&perm).unwrap().add(1.0), &(&turned + 1.0));

        let sum = host.sum_axis(Axis(rank - 2)).sum_axis(Axis(1));
        equal(x.reduce_sum([1, -2]), &sum);
        let alternate: Vec<i64> = (0..rank as i64).step_by(2).collect();
        let mut folded = host.clone();
        for &axis in alternate.iter().rev() {
            folded = folded.map_axis(Axis(axis as usize), |line| {
                line.iter().copied().fold(f32::NEG_INFINITY, f32::max)
            });
        }
        equal(x.reduce_max(&alternate[..]), &folded);

        let merged = [shape[0] * shape[1], shape[2..].iter().product()];
        let flat = host.clone().into_shape_with_order(IxDyn(&merged)).unwrap();
        equal(x.reshape([merged[0] as i64, -1]), &flat);

        for axis in [0, rank / 2, rank - 1] {
            let both = ndarray::concatenate(Axis(axis), &[host.view(), host.view()]).unwrap();
            equal(tf::concat([&x, &x], axis as i64), &both);
        }

        let begin: Vec<usize> = shape.iter().map(|&size| usize::from(size > 2)).collect();
        let rest = vec![-1; rank];
        let boxed =
            host.slice_each_axis(|ax| ndarray::Slice::from(usize::from(ax.len > 2) as isize..));
        equal(x.slice(&begin, &rest), &boxed.to_owned());
        let axes: Vec<i64> = vec![0, rank as i64 - 1];
        let mut back = host.view();
        back.invert_axis(Axis(0));
        back.invert_axis(Axis(rank - 1));
        equal(x.reverse(&axes), &back.to_owned());
    }
}
