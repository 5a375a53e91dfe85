//! Compares depthwise convolutions and their gradients with sums in `f64`.

#![allow(clippy::unwrap_used)]

use super::super::conv2d::Padding;
use super::*;
use crate::compare::near;
use crate::dtype::DType;
use crate::tape::GradientTape;

fn numbers(count: usize, step: usize) -> Vec<f32> {
    (0..count).map(|i| ((i * step) % 13) as f32 / 8.0 - 0.75).collect()
}

/// Compares the result and both gradients with sums in `f64`, written as in the definitions.
fn check(image: [usize; 4], filter: [usize; 4], options: Conv2dOptions) {
    let what = format!("{image:?} {filter:?} {options:?}");
    let g = geometry(FORWARD, &image.into(), &filter.into(), options).unwrap();
    let ([n, h, w, c], [kh, kw, _, m], [_, oh, ow, cm]) = (g.image, g.filter, g.out);
    let (x, f) = (numbers(n * h * w * c, 7), numbers(kh * kw * cm, 5));
    let dy = numbers(n * oh * ow * cm, 3);
    let mut y = vec![0.0; dy.len()];
    let (mut dx, mut df) = (vec![0.0; x.len()], vec![0.0; f.len()]);
    let place = |i: usize, k: usize, axis: usize, lead: usize, size: usize| {
        let at = i * options.strides[axis] + k * options.dilations[axis];
        at.checked_sub(lead).filter(|at| *at < size)
    };
    for (e, y) in y.iter_mut().enumerate() {
        let (channel, j, i) = (e % cm, e / cm % ow, e / cm / ow % oh);
        for (u, v) in (0..kh * kw).map(|k| (k / kw, k % kw)) {
            let (line, column) = (place(i, u, 0, g.top, h), place(j, v, 1, g.left, w));
            let (Some(line), Some(column)) = (line, column) else { continue };
            let at = ((e / cm / ow / oh * h + line) * w + column) * c + channel / m;
            let filter_at = (u * kw + v) * cm + channel;
            *y += f64::from(x[at]) * f64::from(f[filter_at]);
            dx[at] += f64::from(dy[e]) * f64::from(f[filter_at]);
            df[filter_at] += f64::from(dy[e]) * f64::from(x[at]);
        }
    }
    let x = Tensor::from_slice(&x, image).unwrap();
    let f = Tensor::from_slice(&f, filter).unwrap();
    let dy = Tensor::from_slice(&dy, g.out).unwrap();
    let tape = GradientTape::new();
    tape.watch(&x).unwrap();
    tape.watch(&f).unwrap();
    let got = x.depthwise_conv2d(&f, options).unwrap();
    near(&format!("y {what}"), &got, &y, 1e-5);
    let grads = tape.gradient_from(&got, Some(&[&dy]), [&x, &f]).unwrap();
    for (name, got, want) in [("dx", &grads[0], &dx), ("dw", &grads[1], &df)] {
        near(&format!("{name} {what}"), got.as_ref().unwrap(), want, 1e-5);
    }
}

#[test]
fn results_and_gradients_are_the_sums_of_the_definition() {
    for padding in [Padding::Same, Padding::Valid] {
        for (strides, dilations) in
            [([1, 1], [1, 1]), ([2, 3], [1, 1]), ([1, 1], [3, 2]), ([2, 4], [3, 6])]
        {
            let options = Conv2dOptions { strides, padding, dilations };
            check([2, 9, 11, 8], [3, 2, 8, 1], options);
            check([2, 9, 11, 3], [2, 3, 3, 4], options);
            check([1, 9, 11, 3], [3, 2, 3, 3], options);
        }
    }
}

#[test]
fn long_sums_of_the_filters_gradient_are_cut() {
    for (c, m) in [(4, 1), (1, 4), (3, 1)] {
        check([3, 61, 70, c], [3, 3, c, m], Conv2dOptions::default());
    }
}

#[test]
fn nothing_in_gives_nothing_or_zeros() {
    let same = Conv2dOptions { padding: Padding::Same, ..Default::default() };
    check([0, 5, 5, 4], [3, 3, 4, 1], same);
    check([1, 2, 2, 3], [3, 3, 3, 2], Conv2dOptions::default());
    check([1, 3, 3, 2], [2, 2, 2, 0], same);
    check([1, 3, 3, 0], [2, 2, 0, 1], same);
}

#[test]
fn channels_must_agree() {
    let op = DepthwiseConv2d { options: Conv2dOptions::default() };
    let spec = |sizes: [usize; 4]| Spec::new(sizes, DType::F32);
    let error = op.infer(&[&spec([1, 5, 5, 3]), &spec([3, 3, 2, 1])]).unwrap_err().to_string();
    assert!(
        error.starts_with("DepthwiseConv2dNative: the images [1, 5, 5, 3] have 3 channels"),
        "{error}"
    );
}
