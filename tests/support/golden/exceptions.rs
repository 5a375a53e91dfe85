//! Intended differences from TensorFlow: single elements, selected by a rule on the inputs.
//!
//! A rule checks the element's inputs and the expected value, so that it excuses no other element. On an adapter where an
//! exception was observed it must excuse something, or the family's test fails because the exception is obsolete.

use ndarray::{Dimension, IxDyn};

use super::driver;
use super::oracle::{Case, Oracle};

/// An element that differs by more than the case's tolerance.
pub struct Element<'a> {
    pub golden: &'a Oracle,
    pub case: &'a Case,
    /// "out.0", "grad.x", "grad2.x".
    pub role: &'a str,
    pub index: &'a IxDyn,
    pub got: f64,
    pub want: f64,
}

impl Element<'_> {
    /// Whether one of the element's inputs satisfies the condition: those at its position, or any input if the shapes do not
    /// correspond.
    fn any_input(&self, is: impl Fn(f64) -> bool + Copy) -> bool {
        let at = |key: &str, names: &[String]| match self.input(key) {
            Some(value) => is(value),
            None => {
                let mut all = names.iter().map(|name| self.golden.tensor(self.case, name).as_f64());
                all.any(|array| array.iter().any(|value| is(*value)))
            }
        };
        self.case.inputs.iter().any(|(key, names)| at(key, names))
    }

    /// The argument's element at the same position, with broadcasting; `None` if the shapes do not correspond.
    fn input(&self, key: &str) -> Option<f64> {
        let (_, names) = self.case.inputs.iter().find(|(known, _)| known == key)?;
        let array = self.golden.tensor(self.case, names.first()?).as_f64();
        let skip = self.index.ndim().checked_sub(array.ndim())?;
        let places = self.index.slice()[skip..].iter().zip(array.shape());
        let own: Vec<usize> = places.map(|(&i, &n)| if n == 1 { 0 } else { i }).collect();
        array.get(IxDyn(&own)).copied()
    }
}

pub struct Exception {
    /// The ops that it applies to; empty for all.
    pub ops: &'static [&'static str],
    /// Latitudes of hostile drivers (`portability/hostile`), one of which the driver must have; empty for every driver.
    pub latitudes: &'static [&'static str],
    /// Prefixes of the roles.
    pub roles: &'static [&'static str],
    pub reason: &'static str,
    /// Parts of the names of adapters where it was observed to excuse something.
    pub seen_on: &'static [&'static str],
    rule: fn(&Element) -> bool,
}

pub const EXCEPTIONS: &[Exception] = &[
    Exception {
        ops: &["log(1+exp(x))"],
        latitudes: &[],
        roles: &["out.grad"],
        reason: "1 / (1 + e^x) is subnormal, which TensorFlow flushes to 0; it need not be flushed, and the gradient is \
                 then the right one",
        seen_on: &["llvmpipe"],
        rule: |e| {
            let inverse = |x: f64| 1.0 / (1.0 + x.exp());
            e.input("x").is_some_and(|x| {
                x.is_finite()
                    && inverse(x) < f64::from(f32::MIN_POSITIVE)
                    && (e.got - 1.0).abs() < 1e-6
            })
        },
    },
    Exception {
        ops: &[],
        latitudes: &["zeros-positive", "zeros-negative", "flush-to-positive"],
        roles: &["out", "grad"],
        reason: "the sign of a zero is lost, and with it that of the infinity",
        seen_on: &[],
        rule: |e| e.got == -e.want && e.got.is_infinite(),
    },
    Exception {
        ops: &[],
        latitudes: &[
            "compare-nan",
            "tests-of-bits",
            "identities",
            "extremes-first",
            "extremes-last",
        ],
        roles: &["out", "grad"],
        reason: "an input is NaN, which the driver takes for a number",
        seen_on: &[],
        rule: |e| e.case.special_values && e.any_input(f64::is_nan),
    },
    Exception {
        ops: &[],
        latitudes: ANY,
        roles: &["out", "grad"],
        reason: "TensorFlow gives NaN for numbers that are none, as 0 times infinity; on a driver whose zero is a tiny number it \
                 is another",
        seen_on: &[],
        rule: |e| e.want.is_nan(),
    },
];

/// Every hostile driver.
const ANY: &[&str] = &["any"];

fn fits(latitudes: &[&str]) -> bool {
    match latitudes {
        [] => true,
        ["any"] => driver::is_hostile(),
        _ => driver::has(latitudes),
    }
}

/// The index of the exception that excuses the element.
pub fn excuse(element: &Element) -> Option<usize> {
    EXCEPTIONS.iter().position(|exception| {
        (exception.ops.is_empty() || exception.ops.contains(&element.case.op.as_str()))
            && fits(exception.latitudes)
            && exception.roles.iter().any(|role| element.role.starts_with(role))
            && (exception.rule)(element)
    })
}
