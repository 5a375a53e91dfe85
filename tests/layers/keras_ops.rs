//! Calls of `keras.ops` in Keras's models compute Keras's results: `tests/data/keras/ops.py` wrote the cases.

#![cfg(all(feature = "json", feature = "gzip"))]
#![allow(clippy::unwrap_used)]

use std::io::{BufRead, BufReader};

use serde_json::Value;
use wgrad::keras::{Functional, INFERENCE, Layer};
use wgrad::{DType, Result, Tensor};

/// A tensor in the cases' format.
struct Array {
    shape: Vec<usize>,
    dtype: DType,
    values: Vec<f64>,
}

impl Array {
    fn read(value: &Value) -> Self {
        let number = |value: &Value| {
            value.as_f64().unwrap_or_else(|| value.as_str().unwrap().parse().unwrap())
        };
        let name = value["dtype"].as_str().unwrap();
        let dtype = DType::ALL.into_iter().find(|dtype| dtype.tensorflow_name() == name);
        let list = |key: &str| value[key].as_array().unwrap().clone();
        Array {
            shape: list("shape").iter().map(|size| size.as_u64().unwrap() as usize).collect(),
            dtype: dtype.unwrap_or_else(|| panic!("{name}")),
            values: list("values").iter().map(number).collect(),
        }
    }

    fn tensor(&self) -> Result<Tensor> {
        let floats: Vec<f32> = self.values.iter().map(|&x| x as f32).collect();
        Tensor::from_slice(&floats, &self.shape[..])?.cast(self.dtype)
    }

    /// Describes how the shape or dtype of `y` differs.
    fn differs(&self, y: &Tensor) -> Option<String> {
        let (got, want) = ((y.dtype(), y.shape()), (self.dtype, &self.shape[..]));
        (got != want).then(|| format!("{got:?} is not {want:?}"))
    }

    /// Describes how the numbers of `y` differ.
    fn numbers_differ(&self, y: &Tensor) -> Option<String> {
        let got = y.cast(DType::F32).and_then(|y| y.to_vec::<f32>()).unwrap();
        // Functions of f32 may differ by a few units in the last place; integers must be equal.
        let tolerance = if self.dtype.is_float() { 2e-5 } else { 0.0 };
        let near = |(&got, &want): (&f32, &f64)| {
            let got = f64::from(got);
            got == want
                || (got.is_nan() && want.is_nan())
                || (got - want).abs() <= tolerance * want.abs().max(1.0)
        };
        let all = got.iter().zip(&self.values).all(near);
        (!all).then(|| format!("{got:?} is not {:?}", self.values))
    }
}

/// Calls that are refused although Keras accepts them, on NumPy alone: the op, a part of the model's JSON, and the error.
const REFUSED: [(&str, &str, &str); 7] = [
    ("pad ", r#""mode": "linear_ramp""#, "has the mode 'linear_ramp'"),
    ("pad ", r#""mode": "maximum""#, "has the mode 'maximum'"),
    ("pad ", r#""mode": "mean""#, "has the mode 'mean'"),
    ("pad ", r#""mode": "median""#, "has the mode 'median'"),
    ("pad ", r#""mode": "minimum""#, "has the mode 'minimum'"),
    ("pad ", r#""mode": "empty""#, "has the mode 'empty'"),
    ("pad uint8", r#""constant_values": Infinity"#, "fills integers with inf"),
];

/// Whether the numbers are those of Keras on NumPy alone: it truncates the fractions by which it scales integers to a norm of
/// order 2, and returns equal elements in no particular order.
fn is_numpys(title: &str) -> bool {
    let integers = ["normalize int32", "normalize uint8", "normalize bool"];
    let scaled = integers.iter().any(|begin| title.starts_with(begin));
    (scaled && title.contains(r#""order": 2,"#)) || title.starts_with("top_k bool")
}

/// A case and its result.
struct Case {
    title: String,
    /// The error if it is one of [`REFUSED`].
    refused: Option<&'static str>,
    results: Result<Vec<Tensor>>,
    wanted: Vec<Array>,
}

impl Case {
    /// Describes differences other than the numbers, which are not read for this.
    fn differs(&self) -> Option<String> {
        match &self.results {
            Err(error) if self.is_refused() => {
                let (error, wanted) = (error.to_string(), self.refused?);
                (!error.contains(wanted)).then_some(error)
            }
            Ok(_) if self.is_refused() => Some("it is not refused".into()),
            Err(error) => Some(error.to_string()),
            Ok(results) if results.len() != self.wanted.len() => {
                Some(format!("{} results, not {}", results.len(), self.wanted.len()))
            }
            Ok(results) => self.wanted.iter().zip(results).find_map(|(want, y)| want.differs(y)),
        }
    }

    fn is_refused(&self) -> bool {
        self.refused.is_some()
    }

    fn numbers_differ(&self) -> Option<String> {
        let results = self.results.as_ref().ok()?;
        if is_numpys(&self.title) {
            return None;
        }
        self.wanted.iter().zip(results).find_map(|(want, y)| want.numbers_differ(y))
    }
}

fn case(line: &str) -> Case {
    let case: Value = serde_json::from_str(line).unwrap();
    let arrays = |key: &str| -> Vec<Array> {
        case[key].as_array().unwrap().iter().map(Array::read).collect()
    };
    let json = case["model"].as_str().unwrap();
    let call = || -> Result<Vec<Tensor>> {
        let model = Functional::from_json(json)?;
        let again = Functional::from_json(&model.to_json()?)?;
        let inputs: Vec<Tensor> =
            arrays("inputs").iter().map(Array::tensor).collect::<Result<_>>()?;
        again.call(&inputs[..], INFERENCE)
    };
    let title = case["title"].as_str().unwrap().to_string();
    let refused = REFUSED.iter().find(|(op, part, _)| title.starts_with(op) && json.contains(part));
    let refused = refused.map(|(.., says)| *says);
    let results = call();
    Case { title, refused, results, wanted: arrays("outputs") }
}

/// Compares the shapes and dtypes of all cases, and the numbers of those that `chosen` selects.
fn compare(mut chosen: impl FnMut() -> bool) {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/keras/ops.json.gz");
    let file = flate2::read::GzDecoder::new(std::fs::File::open(path).unwrap());
    let (mut count, mut refused, mut wrong, mut to_read) = (0, 0, Vec::new(), Vec::new());
    for line in BufReader::new(file).lines() {
        let case = case(&line.unwrap());
        count += 1;
        refused += usize::from(case.is_refused());
        match case.differs() {
            Some(what) => wrong.push(format!("{}: {what}", case.title)),
            // Values dropped here are never computed.
            None if chosen() => to_read.push(case),
            None => {}
        }
    }
    assert_eq!((count, refused), (2072, REFUSED.len()));
    let differ = |case: &Case| Some(format!("{}: {}", case.title, case.numbers_differ()?));
    wrong.extend(to_read.iter().filter_map(differ));
    assert!(wrong.is_empty(), "{} cases differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn ops_of_files_compute_what_keras_computes() {
    // One in ten, as a software driver takes a second for the kernels of ten.
    let mut rng = fastrand::Rng::new();
    println!("the cases are drawn from the seed {}", rng.get_seed());
    compare(|| rng.u8(..10) == 0);
}

#[test]
#[ignore = "compiles two thousand kernels, which takes minutes: cargo test --test layers -- --ignored keras_ops"]
fn all_ops_of_files_compute_what_keras_computes() {
    compare(|| true);
}
