//! Random numbers: from the global generator, from generators of a program, and from seeds alone.

use pyo3::prelude::*;
use wgrad::random::{self as crate_random, Generator, NormalOptions, UniformOptions};
use wgrad::{Parts, Trackable};

use crate::arrays::to_tensor;
use crate::error::{Raise, invalid};
use crate::tensor::Tensor;

type Parameters = (f64, f64);

/// Uniform numbers as they are, or in another range.
fn range((a, b): Parameters) -> UniformOptions {
    UniformOptions::new().minval(a as f32).maxval(b as f32)
}

fn normal((a, b): Parameters) -> NormalOptions {
    NormalOptions::new().mean(a as f32).stddev(b as f32)
}

fn bounds((a, b): Parameters) -> PyResult<(i32, i32)> {
    let whole = |x: f64| (x >= f64::from(i32::MIN) && x <= f64::from(i32::MAX)).then_some(x as i32);
    whole(a).zip(whole(b)).ok_or_else(|| {
        invalid(format!("random: minval and maxval are {a} and {b}; integers have 32 bits."))
    })
}

/// Draws from a generator.
fn draw(
    generator: &Generator,
    kind: &str,
    shape: Vec<usize>,
    given: Parameters,
    integers: bool,
) -> PyResult<Tensor> {
    crate::process::check()?;
    let made = match (kind, integers) {
        ("uniform", true) => {
            let (low, high) = bounds(given)?;
            generator.uniform_int(shape, low, high)
        }
        ("uniform", false) => generator.uniform_with(shape, range(given)),
        ("normal", _) => generator.normal_with(shape, normal(given)),
        ("bits", _) => generator.bits(shape),
        _ => generator.truncated_normal_with(shape, normal(given)),
    };
    made.map(Tensor).raised()
}

/// Numbers whose parameters are tensors that broadcast to the shape.
fn draw_by(
    generator: &Generator,
    kind: &str,
    shape: Vec<usize>,
    parameters: &[wgrad::Tensor],
) -> PyResult<Tensor> {
    crate::process::check()?;
    match (kind, parameters) {
        ("gamma", [alpha, beta]) => generator.gamma(shape, alpha, beta),
        ("poisson", [lam]) => generator.poisson(shape, lam),
        ("binomial", [counts, probs]) => generator.binomial(shape, counts, probs),
        _ => {
            return Err(invalid(format!(
                "random: there is no distribution '{kind}' of {} parameters.",
                parameters.len()
            )));
        }
    }
    .map(Tensor)
    .raised()
}

fn tensors(values: &[Bound<'_, PyAny>]) -> PyResult<Vec<wgrad::Tensor>> {
    values.iter().map(|x| to_tensor(x, None)).collect()
}

/// Random numbers from the global generator.
#[pyfunction]
#[pyo3(signature = (kind, shape, a, b, integers=false))]
pub fn random(kind: &str, shape: Vec<usize>, a: f64, b: f64, integers: bool) -> PyResult<Tensor> {
    draw(crate_random::global(), kind, shape, (a, b), integers)
}

/// Random numbers with tensors as parameters, from the global generator.
#[pyfunction]
pub fn random_by(
    kind: &str,
    shape: Vec<usize>,
    parameters: Vec<Bound<'_, PyAny>>,
) -> PyResult<Tensor> {
    draw_by(crate_random::global(), kind, shape, &tensors(&parameters)?)
}

/// Classes with the probabilities of each row of logits, from the global generator.
#[pyfunction]
pub fn random_categorical(logits: &Bound<'_, PyAny>, num_samples: usize) -> PyResult<Tensor> {
    crate_random::categorical(&to_tensor(logits, None)?, num_samples).map(Tensor).raised()
}

/// Numbers that depend on the seed alone.
#[pyfunction]
#[pyo3(signature = (kind, shape, seed, a, b, integers=false))]
pub fn stateless(
    kind: &str,
    shape: Vec<usize>,
    seed: [i32; 2],
    a: f64,
    b: f64,
    integers: bool,
) -> PyResult<Tensor> {
    crate::process::check()?;
    let scaled = |x: wgrad::Result<wgrad::Tensor>| x?.multiply(b as f32)?.add(a as f32);
    let made = match (kind, integers) {
        ("uniform", true) => {
            let (low, high) = bounds((a, b))?;
            crate_random::stateless_uniform_int(shape, seed, low, high)
        }
        ("uniform", false) => crate_random::stateless_uniform_with(shape, seed, range((a, b))),
        ("bits", _) => crate_random::stateless_bits(shape, seed),
        ("normal", _) => scaled(crate_random::stateless_normal(shape, seed)),
        _ => scaled(crate_random::stateless_truncated_normal(shape, seed)),
    };
    made.map(Tensor).raised()
}

/// Numbers with tensors as parameters, or classes of logits with `num_samples` in the shape, that depend on the seed alone.
#[pyfunction]
pub fn stateless_by(
    kind: &str,
    shape: Vec<usize>,
    seed: [i32; 2],
    parameters: Vec<Bound<'_, PyAny>>,
) -> PyResult<Tensor> {
    crate::process::check()?;
    match (kind, &tensors(&parameters)?[..]) {
        ("gamma", [alpha, beta]) => crate_random::stateless_gamma(shape, seed, alpha, beta),
        ("poisson", [lam]) => crate_random::stateless_poisson(shape, seed, lam),
        ("binomial", [counts, probs]) => {
            crate_random::stateless_binomial(shape, seed, counts, probs)
        }
        ("shuffle", [x]) => crate_random::stateless_shuffle(x, seed),
        ("categorical", [logits]) => {
            crate_random::stateless_categorical(logits, shape.first().copied().unwrap_or(0), seed)
        }
        _ => return Err(invalid(format!("random: there is no distribution '{kind}'."))),
    }
    .map(Tensor)
    .raised()
}

/// A generator of its own: `tf.random.Generator`.
#[pyclass(frozen, module = "wgrad")]
pub struct NativeGenerator(Generator);

impl Trackable for NativeGenerator {
    fn track(&self, parts: &mut Parts<'_>) {
        self.0.track(parts);
    }

    fn kind(&self) -> &'static str {
        self.0.kind()
    }
}

#[pymethods]
impl NativeGenerator {
    #[new]
    fn new(seed: u64) -> Self {
        NativeGenerator(Generator::from_seed(seed))
    }

    #[staticmethod]
    fn from_state(state: [u64; 3]) -> Self {
        NativeGenerator(Generator::from_state(state))
    }

    #[pyo3(signature = (kind, shape, a, b, integers=false))]
    fn draw(
        &self,
        kind: &str,
        shape: Vec<usize>,
        a: f64,
        b: f64,
        integers: bool,
    ) -> PyResult<Tensor> {
        draw(&self.0, kind, shape, (a, b), integers)
    }

    fn draw_by(
        &self,
        kind: &str,
        shape: Vec<usize>,
        parameters: Vec<Bound<'_, PyAny>>,
    ) -> PyResult<Tensor> {
        draw_by(&self.0, kind, shape, &tensors(&parameters)?)
    }

    fn categorical(&self, logits: &Bound<'_, PyAny>, num_samples: usize) -> PyResult<Tensor> {
        self.0.categorical(&to_tensor(logits, None)?, num_samples).map(Tensor).raised()
    }

    /// A random order of the numbers below `n`.
    fn permutation(&self, n: usize) -> PyResult<Vec<usize>> {
        self.0.permutation(n).raised()
    }

    #[getter]
    fn state(&self) -> [u64; 3] {
        self.0.state()
    }

    fn reset(&self, seed: u64) {
        self.0.reset_from_seed(seed);
    }

    fn set_state(&self, state: [u64; 3]) {
        self.0.reset(state);
    }
}

/// What an initializer draws, from the JSON of Keras's config.
#[pyfunction]
pub fn initial_values(config: &str, shape: Vec<usize>) -> PyResult<Tensor> {
    crate::process::check()?;
    let value = serde_json::from_str(config).map_err(|error| invalid(error.to_string()))?;
    let mut options = wgrad::keras::Config::new("Initializer");
    options.set_json("initializer", value);
    let initializer: wgrad::keras::Initializer = options.need("initializer").raised()?;
    initializer.init(shape, crate_random::global()).map(Tensor).raised()
}
