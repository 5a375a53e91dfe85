//! Forms of dropout: which elements are dropped together, for which seed, and the resulting mean and variance.

#![allow(clippy::unwrap_used)]

use wgrad as tf;
use wgrad::Tensor;
use wgrad::random::{DropoutOptions, Generator};

fn moments(x: &Tensor) -> (f32, f32) {
    let read = |x: tf::Result<Tensor>| x.unwrap().item::<f32>().unwrap();
    (read(x.reduce_mean(())), read(x.reduce_variance(())))
}

#[test]
fn alpha_dropout_keeps_mean_and_variance() {
    let x = Generator::from_seed(3).normal([400_000]).unwrap();
    for rate in [0.05, 0.3, 0.6] {
        let y = x.alpha_dropout(rate, &Generator::from_seed(4), DropoutOptions::new()).unwrap();
        let (mean, variance) = moments(&y);
        // Five deviations of the mean of 400,000 numbers, and of their squares.
        assert!(mean.abs() < 0.008 && (variance - 1.0).abs() < 0.02, "{rate}: {mean} {variance}");
    }
    let y = x.alpha_dropout(0.0, &Generator::from_seed(4), DropoutOptions::new()).unwrap();
    let (got, want) = (y.to_vec::<f32>().unwrap(), x.to_vec::<f32>().unwrap());
    assert!(got.iter().zip(&want).all(|(a, b)| (a - b).abs() <= 1e-6 * b.abs()));
}

/// A draw of `rate` or more keeps its element, as in TensorFlow; the stream is that of `stateless_uniform`.
#[test]
fn stateless_dropout_keeps_what_the_stream_of_its_seed_says() {
    let draws = tf::random::stateless_uniform([8, 3], [1, 2]).unwrap().to_vec::<f32>().unwrap();
    let y = Tensor::ones([8, 3]).unwrap().stateless_dropout(0.4, [1, 2], DropoutOptions::new());
    let want: Vec<f32> = draws.iter().map(|&u| if u >= 0.4 { 1.0 / 0.6 } else { 0.0 }).collect();
    let got = y.unwrap().to_vec::<f32>().unwrap();
    assert!(got.iter().zip(&want).all(|(a, b)| (a - b).abs() < 1e-6), "{got:?} {want:?}");
    assert!(got.contains(&0.0) && got.iter().any(|&y| y > 1.0));
}

#[test]
fn the_gradient_is_that_of_the_kept_elements() {
    let x = Generator::from_seed(3).normal([5, 7, 3]).unwrap();
    let options = DropoutOptions::new().noise_shape(vec![5, 1, 3]);
    let tape = tf::GradientTape::new();
    tape.watch(&x).unwrap();
    let y = x.stateless_dropout(0.5, [7, 8], options).unwrap();
    let grad = tape.required_gradient(&y, &x).unwrap().to_vec::<f32>().unwrap();
    let ratio: Vec<f32> = (y / x).to_vec::<f32>().unwrap();
    assert!(grad.iter().zip(&ratio).all(|(g, r)| (g - r).abs() < 1e-5));
    for (at, g) in grad.iter().enumerate() {
        let first = at / 21 * 21 + at % 3;
        assert_eq!(*g, grad[first], "the axis of 1 drops together");
    }
}
