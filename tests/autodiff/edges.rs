//! Gradients at edge cases (zeros, ties, large values, infinities, NaN) compared with TensorFlow's, first and second order:
//! `tests/data/gradient_edges.json`, written by `gradient_edges.py` next to it.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;

use serde_json::Value;
use wgrad::{GradientTape, Result, Tensor, constant};

type Function = fn(&[Tensor]) -> Result<Tensor>;

macro_rules! ops {
    (unary $($one:ident)*; binary $($two:ident)*; fold $($fold:ident)*; $($name:literal => $f:expr),*) => {
        &[
            $((stringify!($one), |x| x[0].$one()),)*
            $((stringify!($two), |x| x[0].$two(&x[1])),)*
            $((stringify!($fold), |x| x[0].reshape([-1, 4])?.$fold(1)),)*
            $(($name, $f)),*
        ]
    };
}

const OPS: &[(&str, Function)] = ops! {
    unary abs negative exp expm1 log log1p sqrt rsqrt square reciprocal sin cos tan asin acos atan sinh cosh tanh asinh
        atanh sigmoid softplus relu relu6 elu selu softsign silu erf erfc sign floor log_sigmoid gelu;
    binary add subtract multiply divide divide_no_nan maximum minimum squared_difference atan2 pow xlogy;
    fold reduce_max reduce_min reduce_prod reduce_logsumexp reduce_euclidean_norm reduce_std reduce_variance;
    "softmax" => |x| x[0].reshape([-1, 4])?.softmax(-1)?.multiply(constant([1.0, 2.0, 3.0, 4.0])?),
    "log_softmax" => |x| x[0].reshape([-1, 4])?.log_softmax(-1)?.multiply(constant([1.0, 2.0, 3.0, 4.0])?),
    "clip_by_value" => |x| x[0].maximum(0.0)?.minimum(3.0)
};

/// Differences of wgrad's gradients: the op, the order, and the reason.
const DIFFERENT: &[(&str, usize, &str)] = &[
    // The second derivatives are products of the other elements. TensorFlow returns 0 where an element is 0.
    ("reduce_prod", 2, "right where an element is 0"),
    // d2 / da db = 1 / b. TensorFlow returns 0 where a is 0.
    ("xlogy", 2, "right where a is 0"),
];

/// The numbers; `None` if TensorFlow has no gradient, which counts as zeros.
fn numbers(list: &Value) -> Option<Vec<f64>> {
    let list = list.as_array()?;
    Some(list.iter().map(|v| v.as_str().unwrap().parse().unwrap()).collect())
}

fn close(got: f64, want: f64) -> bool {
    if want.is_nan() || want.is_infinite() {
        return got.is_nan() == want.is_nan() && (want.is_nan() || got == want);
    }
    // Both libraries' elementary functions are within a few ULP; a gradient that is a difference of two loses more.
    (got - want).abs() <= 2e-6 + 2e-5 * want.abs()
}

fn compare(name: &str, f: Function, case: &Value) -> Result<BTreeSet<(usize, String)>> {
    let inputs: Vec<Vec<f64>> =
        case["inputs"].as_array().unwrap().iter().map(|x| numbers(x).unwrap()).collect();
    let upload = |x: &Vec<f64>| {
        let values: Vec<f32> = x.iter().map(|&v| v as f32).collect();
        Tensor::from_slice(&values, [values.len()])
    };
    let x: Vec<Tensor> = inputs.iter().map(upload).collect::<Result<_>>()?;
    let outer = GradientTape::new();
    x.iter().try_for_each(|x| outer.watch(x))?;
    let inner = GradientTape::new();
    x.iter().try_for_each(|x| inner.watch(x))?;
    let first = inner.gradient(f(&x)?, &x)?;
    let targets: Vec<&Tensor> = first.iter().flatten().collect();
    let second = outer.gradient(&targets[..], &x)?;
    let mut failures = BTreeSet::new();
    for (order, (key, grads)) in [("first", &first), ("second", &second)].into_iter().enumerate() {
        let Some(want) = case[key].as_array() else { continue };
        for (i, (grad, want)) in grads.iter().zip(want).enumerate() {
            let size = inputs[i].len();
            let want = numbers(want).unwrap_or_else(|| vec![0.0; size]);
            let got = match grad {
                Some(grad) => grad.to_vec::<f32>()?,
                None => vec![0.0; size],
            };
            for (at, (&got, &want)) in got.iter().zip(&want).enumerate() {
                if !close(f64::from(got), want) {
                    let place: Vec<f64> = inputs.iter().map(|x| x[at]).collect();
                    failures.insert((
                        order + 1,
                        format!(
                            "{name}, order {} for input {i} at {place:?}: {got}, TensorFlow {want}",
                            order + 1
                        ),
                    ));
                }
            }
        }
    }
    Ok(failures)
}

#[test]
fn gradients_at_edges_are_tensorflows() {
    let cases: Value = serde_json::from_str(include_str!("../data/gradient_edges.json")).unwrap();
    let cases = cases.as_object().unwrap();
    let mut failures = Vec::new();
    for (name, case) in cases {
        let (_, f) =
            OPS.iter().find(|(known, _)| known == name).unwrap_or_else(|| panic!("{name}"));
        let found = compare(name, *f, case).unwrap_or_else(|error| panic!("{name}: {error}"));
        for order in [1, 2] {
            let misses: Vec<&String> =
                found.iter().filter(|(of, _)| *of == order).map(|(_, text)| text).collect();
            let known = DIFFERENT.iter().any(|(op, of, _)| op == name && *of == order);
            match (known, misses.is_empty()) {
                (true, true) => failures.push(format!("{name}: order {order} no longer differs")),
                (false, false) => failures.extend(misses.into_iter().cloned()),
                _ => {}
            }
        }
    }
    assert!(failures.is_empty(), "{} failures:\n  {}", failures.len(), failures.join("\n  "));
    assert_eq!(cases.len(), OPS.len());
}
