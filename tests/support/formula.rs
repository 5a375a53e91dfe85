//! Large cases of `formula.json`, whose inputs a formula gives.

use ndarray::IxDyn;
use serde_json::Value;
use wgrad::{Conv2dOptions, GradientTape, Padding, Tensor};

use crate::oracle;

fn file() -> Value {
    oracle::read_json(&oracle::data_dir().join("oracle").join("formula.json"))
}

fn input(n: usize, salt: u32) -> Vec<f32> {
    (0..n as u32)
        .map(|i| {
            let mut v = i.wrapping_add(salt).wrapping_mul(2_654_435_761);
            v ^= v >> 15;
            v = v.wrapping_mul(2_246_822_519);
            v ^= v >> 13;
            (v >> 8) as f32 / 16_777_216.0 - 0.5
        })
        .collect()
}

fn case<'a>(file: &'a Value, op: &str) -> &'a Value {
    let mut cases = file["cases"].as_array().unwrap().iter();
    cases.find(|case| case["op"].as_str().unwrap().starts_with(op)).unwrap()
}

fn floats(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect()
}

fn close(what: &str, got: f64, want: f64, tolerance: f64) {
    assert!((got - want).abs() <= tolerance, "{what}: got {got}, want {want} within {tolerance}");
}

fn item(x: &Tensor) -> f64 {
    f64::from(x.item::<f32>().unwrap())
}

#[test]
fn every_case_has_a_test() {
    let known = [
        "reduce_sum over all",
        "reduce_mean of x*x",
        "reduce_max, argmax",
        "reduce_min, argmin",
        "tanh at",
        "sum of tanh",
        "gradient of reduce_mean(tanh(x))",
        "matmul",
        "conv2d SAME NHWC stride 1",
        "conv2d SAME NHWC stride 2",
    ];
    for case in file()["cases"].as_array().unwrap() {
        let op = case["op"].as_str().unwrap();
        assert!(known.iter().any(|name| op.starts_with(name)), "no test for {op}");
    }
}

#[test]
fn millions_of_elements() {
    let file = file();
    let salt = file["salt"].as_u64().unwrap() as u32;
    let sum = case(&file, "reduce_sum over all");
    let n = sum["n"].as_u64().unwrap() as usize;
    let values = input(n, salt);
    let first: Vec<f32> = floats(&file["first8"]).iter().map(|&v| v as f32).collect();
    assert_eq!(values[..8], first, "the formula");

    let x = Tensor::from_slice(&values, [n]).unwrap();
    // The text of the case says how far a sum in f32 may be off.
    close("sum", item(&x.reduce_sum((), false).unwrap()), sum["value"].as_f64().unwrap(), 1e-2);
    let mean = case(&file, "reduce_mean of x*x")["value"].as_f64().unwrap();
    close("mean of squares", item(&(&x * &x).reduce_mean((), false).unwrap()), mean, 1e-7);

    let largest = floats(&case(&file, "reduce_max, argmax")["value"]);
    assert_eq!(item(&x.reduce_max((), false).unwrap()), largest[0]);
    assert_eq!(x.argmax(0).unwrap().item::<i32>().unwrap(), largest[1] as i32);
    let smallest = floats(&case(&file, "reduce_min, argmin")["value"]);
    assert_eq!(item(&x.reduce_min((), false).unwrap()), smallest[0]);
    assert_eq!(x.argmin(0).unwrap().item::<i32>().unwrap(), smallest[1] as i32);

    let tape = GradientTape::new();
    tape.watch(&x).unwrap();
    let y = x.tanh().unwrap();
    let mean = y.reduce_mean((), false).unwrap();
    let grad = tape.gradient(&mean, &x).unwrap().unwrap();
    // The values reach 0.46, where a step of f32 is 3e-8, and the errors of a tanh need not cancel.
    let sum = case(&file, "sum of tanh")["value"].as_f64().unwrap();
    close("sum of tanh", item(&y.reduce_sum((), false).unwrap()), sum, 3e-8 * n as f64);
    at_indices("tanh", &y, case(&file, "tanh at"), 1e-6);
    at_indices("gradient", &grad, case(&file, "gradient of"), 1e-12);
}

fn at_indices(what: &str, got: &Tensor, case: &Value, tolerance: f64) {
    let got = got.to_vec::<f32>().unwrap();
    let indices = case["indices"].as_array().unwrap().iter();
    for (index, want) in indices.zip(floats(&case["value"])) {
        let index = index.as_u64().unwrap() as usize;
        close(&format!("{what} at {index}"), f64::from(got[index]), want, tolerance);
    }
}

/// The points that the case names, and the sum of all.
fn at_points(got: &Tensor, case: &Value) {
    let got = got.to_array::<f32>().unwrap();
    let tolerance = case["tol"].as_f64().unwrap();
    let points = case["points"].as_array().unwrap().iter();
    for (point, want) in points.zip(floats(&case["value"])) {
        let point: Vec<usize> = floats(point).iter().map(|&i| i as usize).collect();
        close(&format!("{point:?}"), f64::from(got[IxDyn(&point)]), want, tolerance);
    }
    let sum: f64 = got.iter().map(|&v| f64::from(v)).sum();
    // Each of n elements may be off by 1e-6 in a random direction.
    let slack = 1e-6 * (got.len() as f64).sqrt() * 10.0;
    close("sum", sum, case["sum_f64"].as_f64().unwrap(), slack);
}

#[test]
fn large_matmul() {
    let file = file();
    let salt = file["salt"].as_u64().unwrap() as u32;
    let case = case(&file, "matmul");
    let [m, k, p] = ["M", "K", "P"].map(|key| case[key].as_u64().unwrap() as usize);
    let a = Tensor::from_slice(&input(m * k, salt), [m, k]).unwrap();
    let b = Tensor::from_slice(&input(k * p, salt + 77), [k, p]).unwrap();
    at_points(&a.matmul(&b).unwrap(), case);
}

#[test]
fn large_conv2d() {
    let file = file();
    let salt = file["salt"].as_u64().unwrap() as u32;
    let x = Tensor::from_slice(&input(2 * 112 * 112 * 16, salt), [2, 112, 112, 16]).unwrap();
    let w = Tensor::from_slice(&input(9 * 16 * 32, salt + 77), [3, 3, 16, 32]).unwrap();
    for stride in [1, 2] {
        let padding = Padding::Same;
        let options = Conv2dOptions { strides: [stride; 2], padding, dilations: [1, 1] };
        let case = case(&file, &format!("conv2d SAME NHWC stride {stride}"));
        at_points(&x.conv2d(&w, options).unwrap(), case);
    }
}
