//! Compares scans with loops on the host.

use super::*;
use crate::tape::GradientTape;
use crate::tensor::constant;

/// The result of a loop.
fn looped<T: Copy>(
    x: &[T],
    [len, inner]: [usize; 2],
    CumsumOptions { exclusive, reverse }: CumsumOptions,
    (identity, combine): (T, fn(T, T) -> T),
) -> Vec<T> {
    let mut y = x.to_vec();
    for line in 0..x.len() / len {
        let mut sum = identity;
        for i in 0..len {
            let place = if reverse { len - 1 - i } else { i };
            let at = (line / inner * len + place) * inner + line % inner;
            let next = combine(sum, x[at]);
            y[at] = if exclusive { sum } else { next };
            sum = next;
        }
    }
    y
}

fn options((exclusive, reverse): (bool, bool)) -> CumsumOptions {
    CumsumOptions { exclusive, reverse }
}

/// Whole numbers, whose sums are the same in any order.
#[test]
fn chunks_come_to_what_one_walk_comes_to() {
    let sizes = [[1, 64, 1], [1, 65, 1], [1, 10_007, 1], [3, 1000, 2], [2, 2, 3], [300, 70, 1]];
    for [outer, len, inner] in sizes.into_iter().chain([[3, 5000, 1], [1, 4_200_000, 1]]) {
        let x: Vec<i32> = (0..outer * len * inner).map(|i| (i * 7 % 11) as i32 - 5).collect();
        let tensor = Tensor::from_slice(&x, [outer, len, inner]).unwrap();
        let signs: Vec<i32> = x.iter().map(|&x| if x % 2 == 0 { 1 } else { -1 }).collect();
        let signed = Tensor::from_slice(&signs, [outer, len, inner]).unwrap();
        for options in WAYS.map(options) {
            let what = format!("{outer} {len} {inner} {options:?}");
            let sums = looped(&x, [len, inner], options, (0, |a, b| a + b));
            let got = tensor.cumsum_with(1, options).unwrap();
            assert_eq!(got.to_vec::<i32>().unwrap(), sums, "sum {what}");
            let floats = tensor.cast(DType::F32).unwrap().cumsum_with(1, options).unwrap();
            let wanted: Vec<f32> = sums.iter().map(|&sum| sum as f32).collect();
            assert_eq!(floats.to_vec::<f32>().unwrap(), wanted, "sum {what}");
            let got = signed.cumprod_with(1, options).unwrap().to_vec::<i32>().unwrap();
            assert_eq!(got, looped(&signs, [len, inner], options, (1, |a, b| a * b)), "{what}");
            let got = tensor.cummax_with(1, options).unwrap().to_vec::<i32>().unwrap();
            assert_eq!(got, looped(&x, [len, inner], options, (i32::MIN, i32::max)), "{what}");
            let got = tensor.cummin_with(1, options).unwrap().to_vec::<i32>().unwrap();
            assert_eq!(got, looped(&x, [len, inner], options, (i32::MAX, i32::min)), "{what}");
        }
    }
}

#[test]
fn logarithms_of_sums_keep_their_digits() {
    let n = 10_000;
    let x: Vec<f32> = (0..n).map(|i| (i * 37 % 101) as f32 / 10.0 - 5.0).collect();
    let wide: Vec<f64> = x.iter().map(|&x| f64::from(x)).collect();
    let tensor = Tensor::from_slice(&x, [n]).unwrap();
    for options in WAYS.map(options) {
        let add = |a: f64, b: f64| (a.exp() + b.exp()).ln();
        let want = looped(&wide, [n, 1], options, (f64::NEG_INFINITY, add));
        let got = tensor.cumulative_logsumexp_with(0, options).unwrap();
        for (got, want) in got.to_vec::<f32>().unwrap().into_iter().zip(want) {
            let off = (f64::from(got) - want).abs();
            assert!(f64::from(got) == want || off < 3e-5, "{got}, not {want} {options:?}");
        }
    }
}

#[test]
fn infinities_and_nan_pass() {
    let (inf, nan) = (f32::INFINITY, f32::NAN);
    let same = |got: Tensor, want: &[f32]| {
        let got = got.to_vec::<f32>().unwrap();
        let equal =
            |(a, b): (&f32, &f32)| (a - b).abs() < 1e-6 || a == b || a.is_nan() && b.is_nan();
        assert!(got.iter().zip(want).all(equal), "{got:?}, not {want:?}");
    };
    let x = constant([1.0, 2.0, -inf, 3.0]).unwrap();
    // TensorFlow's numbers.
    same(x.cumulative_logsumexp(0).unwrap(), &[1.0, 2.313_261_7, 2.313_261_7, 3.407_606]);
    let x = constant([inf, 1.0, nan, 2.0]).unwrap();
    same(x.cumulative_logsumexp(0).unwrap(), &[inf, inf, nan, nan]);
    same(x.cummax(0).unwrap(), &[inf, inf, nan, nan]);
    same(x.cummin(0).unwrap(), &[inf, 1.0, nan, nan]);
    let x = constant([-inf, -inf, 1.0]).unwrap();
    same(x.cumulative_logsumexp(0).unwrap(), &[-inf, -inf, 1.0]);
}

/// d/dx[j] = the sum over i >= j of the product of the others up to i.
#[test]
fn products_have_their_gradients_at_zeros() {
    let x = constant([2.0, 0.0, 3.0, 0.0, 5.0]).unwrap();
    let tape = GradientTape::new();
    tape.watch(&x).unwrap();
    let y = x.cumprod(0).unwrap();
    let dx = tape.gradient(&y, &x).unwrap().unwrap();
    // 1 + 0, 2 (1 + 3 + 0), 0, 2 * 0 * 3 (..) = 0, 0
    assert_eq!(dx.to_vec::<f32>().unwrap(), [1.0, 8.0, 0.0, 0.0, 0.0]);
}

#[test]
fn equals_give_the_gradient_to_the_first() {
    let x = constant([1.0, 3.0, 3.0, 2.0, 4.0]).unwrap();
    let tape = GradientTape::new();
    tape.watch(&x).unwrap();
    let y = x.cummax(0).unwrap();
    let dx = tape.gradient(&y, &x).unwrap().unwrap();
    assert_eq!(dx.to_vec::<f32>().unwrap(), [1.0, 3.0, 0.0, 0.0, 1.0]);
    let tape = GradientTape::new();
    tape.watch(&x).unwrap();
    let y = x.cummin_with(0, CumsumOptions::new().reverse(true)).unwrap();
    let dx = tape.gradient(&y, &x).unwrap().unwrap();
    assert_eq!(dx.to_vec::<f32>().unwrap(), [1.0, 0.0, 0.0, 3.0, 1.0]);
}

#[test]
fn an_axis_that_is_not_there_is_refused() {
    let x = Tensor::from_slice(&[1.0f32, 2.0], [2]).unwrap();
    assert!(matches!(x.cumsum(1), Err(crate::Error::Index(_))));
    let none = Tensor::from_slice(&[0f32; 0], [0]).unwrap();
    assert_eq!(none.cumsum(0).unwrap().shape(), [0]);
    assert_eq!(none.cumulative_logsumexp(0).unwrap().shape(), [0]);
    let yes = Tensor::from_slice(&[true], [1]).unwrap();
    assert!(matches!(yes.cumsum(0), Err(crate::Error::DType(_))));
    let ints = Tensor::from_slice(&[1], [1]).unwrap();
    assert!(matches!(ints.cumulative_logsumexp(0), Err(crate::Error::DType(_))));
}
