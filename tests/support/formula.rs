//! Cases too large for a file: the inputs come from a formula, and `formula.json` has a few numbers of each result.

use ndarray::IxDyn;
use serde_json::Value;
use wgrad::{Conv2dOptions, Device, GradientTape, Padding, Result, Tensor};

use super::driver;
use super::golden::run::Way;
use super::golden::{Tally, print};
use super::oracle;

/// Computes a case; the check returns its failures.
type Compute = fn(&Input, &Value) -> Result<Vec<Tensor>>;
type Check = fn(&Value, &[Tensor]) -> Result<Vec<String>>;

/// By the beginning of a case's `op`.
const CASES: &[(&str, Compute, Check)] = &[
    (
        "reduce_sum over all",
        |input, case| one(input.all(case)?.reduce_sum(())),
        // The case's text specifies the permitted error of a sum in f32.
        |case, got| number(case, &got[0], after(case, "tolerance ").unwrap()),
    ),
    (
        "reduce_mean of x*x",
        |input, case| {
            let x = input.all(case)?;
            one((&x * &x).reduce_mean(()))
        },
        |case, got| number(case, &got[0], 1e-7),
    ),
    (
        "reduce_max, argmax",
        |input, case| {
            let x = input.all(case)?;
            Ok(vec![x.reduce_max(())?, x.argmax(0)?])
        },
        extreme,
    ),
    (
        "reduce_min, argmin",
        |input, case| {
            let x = input.all(case)?;
            Ok(vec![x.reduce_min(())?, x.argmin(0)?])
        },
        extreme,
    ),
    (
        "tanh at indices",
        |input, case| one(input.all(case)?.tanh()),
        |case, got| at_indices(case, &got[0], 1e-6),
    ),
    (
        "sum of tanh",
        |input, case| one(input.all(case)?.tanh()?.reduce_sum(())),
        // Values are at most 0.46, where an f32 step is 3e-8, and the errors of tanh need not cancel.
        |case, got| number(case, &got[0], 3e-8 * size(case, "n") as f64),
    ),
    (
        "gradient of reduce_mean(tanh(x))",
        |input, case| {
            let x = input.all(case)?;
            let tape = GradientTape::new();
            tape.watch(&x)?;
            let mean = x.tanh()?.reduce_mean(())?;
            one(tape.required_gradient(&mean, &x))
        },
        |case, got| at_indices(case, &got[0], 1e-12),
    ),
    (
        "matmul a[M,K] (salt) x b[K,P] (salt+77)",
        |input, case| {
            let [m, k, p] = ["M", "K", "P"].map(|key| size(case, key));
            one(input.of(&[m, k], 0)?.matmul(input.of(&[k, p], 77)?))
        },
        at_points,
    ),
    (
        "conv2d SAME NHWC stride ",
        |input, case| {
            let stride = after(case, "stride ").unwrap() as usize;
            let padding = Padding::Same;
            let options =
                Conv2dOptions::new().strides([stride; 2]).padding(padding).dilations([1, 1]);
            let x = input.of(&shape_after(case, " x ["), 0)?;
            one(x.conv2d(input.of(&shape_after(case, " w ["), 77)?, options))
        },
        at_points,
    ),
];

fn one(y: Result<Tensor>) -> Result<Vec<Tensor>> {
    Ok(vec![y?])
}

struct Input {
    salt: u32,
}

impl Input {
    fn values(&self, n: usize, more: u32) -> Vec<f32> {
        let salt = self.salt + more;
        let of = |i: u32| {
            let mut v = i.wrapping_add(salt).wrapping_mul(2_654_435_761);
            v ^= v >> 15;
            v = v.wrapping_mul(2_246_822_519);
            v ^= v >> 13;
            (v >> 8) as f32 / 16_777_216.0 - 0.5
        };
        (0..n as u32).map(of).collect()
    }

    fn of(&self, shape: &[usize], more: u32) -> Result<Tensor> {
        Tensor::from_slice(&self.values(shape.iter().product(), more), shape)
    }

    fn all(&self, case: &Value) -> Result<Tensor> {
        self.of(&[size(case, "n")], 0)
    }
}

fn op(case: &Value) -> &str {
    case["op"].as_str().unwrap()
}

fn size(case: &Value, key: &str) -> usize {
    case[key].as_u64().unwrap() as usize
}

fn floats(value: &Value) -> Vec<f64> {
    oracle::one_or_many(value).iter().map(|v| v.as_f64().unwrap()).collect()
}

/// The number after `words` in the text of the case.
fn after(case: &Value, words: &str) -> Option<f64> {
    let (_, rest) = op(case).split_once(words)?;
    let end = rest.find([',', ')', ' ']).unwrap_or(rest.len());
    rest[..end].parse().ok()
}

/// The shape after `words`.
fn shape_after(case: &Value, words: &str) -> Vec<usize> {
    let (_, rest) = op(case).split_once(words).unwrap();
    rest.split(']').next().unwrap().split(',').map(|size| size.trim().parse().unwrap()).collect()
}

fn near(what: &str, got: f64, want: f64, tolerance: f64) -> Option<String> {
    // NaN is a failure.
    // Some cases are sums of a million numbers.
    let looser = if driver::rounds_in_one_direction() { 512.0 } else { driver::looser() };
    let fits = (got - want).abs() <= tolerance * looser;
    (!fits).then(|| format!("{what}: got {got}, want {want} within {tolerance}"))
}

fn number(case: &Value, got: &Tensor, tolerance: f64) -> Result<Vec<String>> {
    let got = f64::from(got.item::<f32>()?);
    Ok(near("the value", got, floats(&case["value"])[0], tolerance).into_iter().collect())
}

/// The extreme value and its index, both exact.
fn extreme(case: &Value, got: &[Tensor]) -> Result<Vec<String>> {
    let want = floats(&case["value"]);
    let got = [f64::from(got[0].item::<f32>()?), f64::from(got[1].item::<i32>()?)];
    let both = ["the value", "its place"].iter().zip(got).zip(want);
    Ok(both.filter_map(|((what, got), want)| near(what, got, want, 0.0)).collect())
}

fn at_indices(case: &Value, got: &Tensor, tolerance: f64) -> Result<Vec<String>> {
    let got = got.to_vec::<f32>()?;
    let indices = floats(&case["indices"]).into_iter().map(|i| i as usize);
    let each = indices.zip(floats(&case["value"]));
    Ok(each
        .filter_map(|(i, want)| near(&format!("element {i}"), got[i].into(), want, tolerance))
        .collect())
}

/// The points that the case names, and the sum of all.
fn at_points(case: &Value, got: &[Tensor]) -> Result<Vec<String>> {
    let got = got[0].to_array::<f32>()?;
    let tolerance = case["tol"].as_f64().unwrap();
    let points = case["points"].as_array().unwrap().iter();
    let mut misses = Vec::new();
    for (point, want) in points.zip(floats(&case["value"])) {
        let point: Vec<usize> = floats(point).iter().map(|&i| i as usize).collect();
        let value = f64::from(got[IxDyn(&point)]);
        misses.extend(near(&format!("{point:?}"), value, want, tolerance));
    }
    let sum: f64 = got.iter().map(|&v| f64::from(v)).sum();
    // Each of n elements may have an error of 1e-6 in a random direction.
    let slack = 1e-6 * (got.len() as f64).sqrt() * 10.0;
    misses.extend(near("the sum", sum, case["sum_f64"].as_f64().unwrap(), slack));
    Ok(misses)
}

/// Runs the cases like those of a family: one by one, fused or not, or with nothing read before everything is called.
fn run(file: &Value, way: Way) -> Vec<String> {
    let device = Device::new().unwrap();
    device.set_fusion(way != Way::Unfused);
    let input = Input { salt: file["salt"].as_u64().unwrap() as u32 };
    let mut failures = Vec::new();
    let mut waiting: Vec<(&Value, Vec<Tensor>, Check)> = Vec::new();
    let settle = |all: &mut Vec<(&Value, Vec<Tensor>, Check)>, failures: &mut Vec<String>| {
        for (case, got, check) in all.drain(..) {
            let misses = check(case, &got).unwrap_or_else(|error| vec![error.to_string()]);
            failures.extend(misses.iter().map(|miss| format!("{} {way}, {miss}", op(case))));
        }
    };
    device.scope(|| {
        for case in file["cases"].as_array().unwrap() {
            let Some((_, compute, check)) = known(case) else { continue };
            match compute(&input, case) {
                Ok(got) => waiting.push((case, got, *check)),
                Err(error) => failures.push(format!("{} {way}, {error}", op(case))),
            }
            if way != Way::Late {
                settle(&mut waiting, &mut failures);
            }
        }
        settle(&mut waiting, &mut failures);
    });
    failures
}

fn known(case: &Value) -> Option<&'static (&'static str, Compute, Check)> {
    CASES.iter().find(|(words, ..)| op(case).starts_with(words))
}

#[test]
fn millions_of_elements() {
    let file = oracle::read_json(&oracle::default_dir().join("formula.json"));
    let first: Vec<f32> = floats(&file["first8"]).iter().map(|&v| v as f32).collect();
    let salt = file["salt"].as_u64().unwrap() as u32;
    assert_eq!(Input { salt }.values(8, 0), first, "the formula");

    let mut tally = Tally::default();
    for case in file["cases"].as_array().unwrap() {
        match known(case) {
            Some(_) => tally.run += 1,
            None => {
                tally.list(op(case), "unknown");
                tally
                    .failures
                    .push(format!("{}: has no call in tests/support/formula.rs", op(case)));
            }
        }
    }
    for way in Way::ALL {
        tally.failures.extend(run(&file, way));
    }
    print(&tally.report("formula"));
    assert!(tally.failures.is_empty(), "{:#?}", tally.failures);
}
