//! Compares attention without a matrix of scores with attention with one, and both with sums in `f64`.

#![allow(clippy::unwrap_used)]

use super::*;
use crate::compare::near;
use crate::runtime::Device;
use crate::tape::GradientTape;

fn numbers(shape: &[usize], step: usize) -> Tensor {
    let count: usize = shape.iter().product();
    let values: Vec<f32> = (0..count).map(|i| ((i * step) % 29) as f32 / 14.0 - 1.0).collect();
    Tensor::from_slice(&values, shape).unwrap()
}

/// The result and the gradients of the three inputs, by the chosen method.
fn both_ways(inputs: [&Tensor; 3], options: &AttentionOptions, flash: bool) -> Vec<Tensor> {
    let tape = GradientTape::new();
    for x in inputs {
        tape.watch(x).unwrap();
    }
    let y = attend(inputs, options, Some(flash)).unwrap();
    let dy = numbers(y.shape(), 5).cast(y.dtype()).unwrap();
    let grads = tape.gradient_from(&y, Some(&[&dy]), inputs).unwrap();
    std::iter::once(y).chain(grads.into_iter().map(Option::unwrap)).collect()
}

fn same_both_ways(inputs: [&Tensor; 3], options: AttentionOptions, by: f64) {
    let what = format!("{:?} {options:?}", inputs.map(Tensor::shape));
    let (want, got) = (both_ways(inputs, &options, false), both_ways(inputs, &options, true));
    for (name, (got, want)) in ["y", "dq", "dk", "dv"].iter().zip(got.iter().zip(&want)) {
        near(&format!("{name} of {what}"), got, want, by);
    }
}

/// Sizes around multiples of four and of workgroups.
#[test]
fn both_ways_compute_the_same() {
    for [heads, shared, rows, keys, depth, width] in
        [[1, 1, 1, 1, 3, 1], [2, 2, 70, 9, 4, 4], [4, 2, 7, 65, 2, 4], [6, 1, 3, 130, 5, 20]]
    {
        let q = numbers(&[2, heads, rows, depth], 7);
        let k = numbers(&[2, shared, keys, depth], 11);
        let v = numbers(&[2, shared, keys, width], 3);
        let sees = numbers(&[2, 1, rows, keys], 13).greater(-0.3).unwrap();
        let adds = numbers(&[heads, 1, keys], 17);
        for options in [
            AttentionOptions::new(),
            AttentionOptions::new().is_causal(true).scale(0.3),
            AttentionOptions::new().mask(sees.clone()),
            AttentionOptions::new().mask(adds).dropout_rate(0.3).seed([5, -6]),
            AttentionOptions::new().mask(sees).is_causal(true).dropout_rate(0.9),
        ] {
            same_both_ways([&q, &k, &v], options, 1e-4);
        }
    }
}

#[test]
fn large_scores_neither_overflow_nor_vanish() {
    let (q, v) = (numbers(&[2, 40, 8], 7), numbers(&[2, 40, 4], 3));
    same_both_ways([&q.multiply(100.0).unwrap(), &q, &v], AttentionOptions::new(), 1e-3);
    // Scores around -1e5, where an f32 has two digits after the point.
    let low = q.subtract(3.0).unwrap().multiply(1e4).unwrap();
    let options = AttentionOptions::new();
    let (want, got) =
        (both_ways([&low, &q, &v], &options, false), both_ways([&low, &q, &v], &options, true));
    near("y of low scores", &got[0], &want[0], 0.05);
    for grad in &got {
        assert!(grad.to_vec::<f32>().unwrap().iter().all(|g| g.is_finite()));
    }
}

#[test]
fn half_floats_are_weighed_in_f32() {
    if !Device::current().unwrap().caps().f16 {
        println!("this adapter has no f16");
        return;
    }
    let half = |shape: &[usize], step| numbers(shape, step).cast(DType::F16).unwrap();
    let (q, k, v) = (half(&[2, 33, 8], 7), half(&[2, 33, 8], 11), half(&[2, 33, 8], 3));
    same_both_ways([&q, &k, &v], AttentionOptions::new().is_causal(true), 4e-3);
}

/// The definition, with sums in `f64`: a query that attends to no key returns zeros.
#[test]
fn the_result_is_what_the_definition_says() {
    let (q, k, v) = (numbers(&[1, 3, 4], 7), numbers(&[1, 5, 4], 11), numbers(&[1, 5, 2], 3));
    let mask = numbers(&[3, 5], 13).greater(0.0).unwrap();
    let none = Tensor::from_slice(&[true, false, true], [3, 1]).unwrap();
    let mask = mask.logical_and(&none).unwrap();
    let read = |x: &Tensor| x.to_vec::<f32>().unwrap();
    let (a, b, c, m) = (read(&q), read(&k), read(&v), mask.to_vec::<bool>().unwrap());
    let mut want = Vec::new();
    for t in 0..3 {
        let score = |s: usize| -> f64 {
            (0..4).map(|d| f64::from(a[t * 4 + d]) * f64::from(b[s * 4 + d])).sum::<f64>() / 2.0
        };
        let weight = |s: usize| if m[t * 5 + s] { score(s).exp() } else { 0.0 };
        let total: f64 = (0..5).map(weight).sum();
        for e in 0..2 {
            let sum: f64 = (0..5).map(|s| weight(s) * f64::from(c[s * 2 + e])).sum();
            want.push(if total == 0.0 { 0.0 } else { (sum / total) as f32 });
        }
    }
    assert_eq!(want[2..4], [0.0, 0.0]);
    let want = Tensor::from_slice(&want, [1, 3, 2]).unwrap();
    for flash in [false, true] {
        let options = AttentionOptions::new().mask(mask.clone());
        near("y", &attend([&q, &k, &v], &options, Some(flash)).unwrap(), &want, 1e-5);
    }
}

#[test]
fn dropout_takes_its_share_and_another_seed_other_weights() {
    // With equal scores and values of one, a result is the fraction of remaining weights, divided by their expected
    // fraction.
    let (q, v) = (Tensor::zeros([8, 256, 4]).unwrap(), Tensor::ones([8, 256, 4]).unwrap());
    for flash in [false, true] {
        let run = |seed| {
            let options = AttentionOptions::new().dropout_rate(0.25).seed(seed);
            attend([&q, &q, &v], &options, Some(flash)).unwrap()
        };
        let mean = run([1, 2]).reduce_mean(()).unwrap().item::<f32>().unwrap();
        // 2048 rows of 256 weights: the deviation of the mean is 0.0008.
        assert!((mean - 1.0).abs() < 0.004, "{mean}");
        let (first, again, other) = (run([1, 2]), run([1, 2]), run([1, 3]));
        let first = first.to_vec::<f32>().unwrap();
        assert_eq!(first, again.to_vec::<f32>().unwrap());
        assert_ne!(first, other.to_vec::<f32>().unwrap());
    }
}

#[test]
fn without_queries_or_keys_there_are_no_rows_or_zeros() {
    let none = |rows| Tensor::zeros([2, rows, 4]).unwrap();
    let of = |q: &Tensor, k: &Tensor| {
        scaled_dot_product_attention(q, k, k, AttentionOptions::new()).unwrap()
    };
    assert_eq!(of(&none(0), &none(3)).shape(), [2, 0, 4]);
    let zeros = of(&none(3), &none(0));
    assert_eq!(zeros.to_vec::<f32>().unwrap(), [0.0; 24]);
}
