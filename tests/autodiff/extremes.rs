//! Gradients of element-wise ops at extreme numbers (1e-38 to 3e38, close to 1, infinities, NaN) compared with TensorFlow's in
//! `f64`, where nothing overflows or cancels: `tests/data/gradient_extremes.json`, written by `gradient_extremes.py` next to
//! it.

#![allow(clippy::unwrap_used)]

use serde_json::Value;
use wgrad::{GeluOptions, GradientTape, Result, Tensor, signal};

type Function = fn(&[Tensor]) -> Result<Tensor>;

macro_rules! ops {
    (unary $($one:ident)*; binary $($two:ident)*; $($name:literal => $f:expr),* $(,)?) => {
        &[
            $((stringify!($one), |x| x[0].$one()),)*
            $((stringify!($two), |x| x[0].$two(&x[1])),)*
            $(($name, $f)),*
        ]
    };
}

const OPS: &[(&str, Function)] = ops! {
    unary abs negative exp expm1 log log1p sqrt rsqrt square reciprocal sin cos tan asin acos atan sinh cosh tanh asinh
        acosh atanh sigmoid softplus relu elu selu softsign erf erfc erfinv ndtri bessel_i0e bessel_i1e reciprocal_no_nan
        relu6 silu log_sigmoid gelu mish hard_sigmoid hard_silu hard_tanh tanh_shrink sparse_plus sparse_sigmoid;
    binary multiply divide divide_no_nan multiply_no_nan xdivy xlogy xlog1py maximum minimum squared_difference atan2 pow
        logaddexp;
    "gelu_tanh" => |x| x[0].gelu_with(GeluOptions::new().approximate(true)),
    "leaky_relu" => |x| x[0].leaky_relu(0.25),
    "hard_shrink" => |x| x[0].hard_shrink(0.5),
    "soft_shrink" => |x| x[0].soft_shrink(0.5),
    "threshold" => |x| x[0].threshold(0.5, -1.0),
    "squareplus" => |x| x[0].squareplus(4.0),
    "celu" => |x| x[0].celu(0.75),
    "complex_abs" => |x| signal::abs(&signal::complex(&x[0], &x[1])?),
};

/// An op, where its gradient differs, and the reason.
type Different = (&'static str, fn(&[f64]) -> bool, &'static str);

/// Intended differences from the gradient in `f64`: the op, where, and the reason.
const DIFFERENT: &[Different] = &[
    ("elu", |x| x[0] == -50.0, "TensorFlow's y + 1 is 0 even in f64"),
    ("selu", |x| x[0] == -50.0, "the same"),
    ("selu", |x| x[0] < 0.0 && x[0] > -1e-19, "TensorFlow's y is 0, which it counts as above 0"),
    ("celu", |x| x[0] == 0.0, "TensorFlow counts 0 on both sides, which makes 2"),
    ("hard_silu", |x| x[0].is_infinite(), "not 0 times infinity"),
    ("sparse_plus", |x| x[0].is_infinite(), "not 0 times infinity"),
    ("gelu_tanh", |x| x[0].abs() > 1e12, "0 times an infinite cube: NaN, as TensorFlow's in f32"),
    ("squareplus", |x| x[0].is_infinite(), "not 0 times infinity"),
    ("complex_abs", |x| x.iter().any(|x| x.is_infinite()), "not infinity divided by infinity"),
    ("logaddexp", |x| x[0] == x[1], "equals share the gradient"),
    ("logaddexp", |x| x.iter().any(|x| x.is_nan()), "the larger takes it; no number is"),
    ("pow", |x| x[0] < 0.0 && x[1] == 1e10, "b - 1 is b in f32, and so even"),
    ("pow", |x| x[0] < -1e19 && x[1] == 3.0, "the result is infinite in f32, and that times 0 NaN"),
    ("pow", |x| x[0] > 1e38 && x[1] == -1.0, "the result is below 1.2e-38"),
];

/// Errors that are small compared with 1 but not with the gradient: from rules that use the result, like TensorFlow's.
const COARSE: &[(&str, f64)] = &[
    ("tanh", 1.2e-7),
    ("tanh_shrink", 1.2e-7),
    ("sigmoid", 6e-8),
    ("squareplus", 1.2e-7),
    ("bessel_i0e", 4e-10),
    ("bessel_i1e", 4e-10),
];

fn numbers(list: &Value) -> Vec<f64> {
    list.as_array().unwrap().iter().map(|v| v.as_str().unwrap().parse().unwrap()).collect()
}

fn close(got: f64, want: f64, coarse: f64) -> bool {
    if want.is_nan() || want.is_infinite() {
        return got == want || got.is_nan() && want.is_nan();
    }
    // Drivers flush numbers below 1.2e-38 to 0; near the end of the range rounding produces infinity.
    let end = got.is_infinite() && want.abs() > 3.4e38 && got.signum() == want.signum();
    end || (got - want).abs() <= 1.2e-38 + coarse + 2e-5 * want.abs()
}

fn compare(name: &str, f: Function, inputs: &[&Vec<f64>], want: &Value) -> Result<Vec<String>> {
    let upload = |x: &&Vec<f64>| {
        let values: Vec<f32> = x.iter().map(|&v| v as f32).collect();
        Tensor::from_slice(&values, [values.len()])
    };
    let x: Vec<Tensor> = inputs.iter().map(upload).collect::<Result<_>>()?;
    let tape = GradientTape::new();
    x.iter().try_for_each(|x| tape.watch(x))?;
    let grads = tape.gradient(f(&x)?, &x)?;
    let coarse = COARSE.iter().find(|(op, _)| *op == name).map_or(0.0, |(_, off)| *off);
    let mut failures = Vec::new();
    for (i, (grad, want)) in grads.iter().zip(want.as_array().unwrap()).enumerate() {
        let got = grad.as_ref().unwrap().to_vec::<f32>()?;
        for (at, (got, want)) in got.into_iter().zip(numbers(want)).enumerate() {
            let place: Vec<f64> = inputs.iter().map(|x| x[at]).collect();
            let known = DIFFERENT.iter().any(|(op, here, _)| *op == name && here(&place));
            if !known && !close(f64::from(got), want, coarse) {
                failures.push(format!("{name}, input {i} at {place:?}: {got:e}, not {want:e}"));
            }
        }
    }
    Ok(failures)
}

#[test]
fn gradients_at_extremes_are_those_of_f64() {
    let table: Value =
        serde_json::from_str(include_str!("../data/gradient_extremes.json")).unwrap();
    let [x, a, b] = ["x", "a", "b"].map(|name| numbers(&table[name]));
    let mut failures = Vec::new();
    for (name, f) in OPS {
        let want = table.get(name).unwrap_or_else(|| panic!("{name}"));
        let inputs = if want.as_array().unwrap().len() == 1 { vec![&x] } else { vec![&a, &b] };
        let found = compare(name, *f, &inputs, want);
        failures.extend(found.unwrap_or_else(|error| panic!("{name}: {error}")));
    }
    assert!(failures.is_empty(), "{} failures:\n  {}", failures.len(), failures.join("\n  "));
    assert_eq!(table.as_object().unwrap().len(), OPS.len() + 3);
}
