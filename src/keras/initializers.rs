//! [`Initializer`]: the initial values of weights, with Keras's formulas.
//!
//! Random initializers draw from a [`Generator`]. The caller chooses it, and with it the seed.

use std::sync::Arc;

use super::function::{Function, OWN};
use crate::error::{Error, Result, message};
use crate::ops::eye_of;
use crate::ops::linalg;
use crate::random::{Generator, UniformOptions};
use crate::shape::Shape;
use crate::tensor::Tensor;

/// The initial values of a weight.
///
/// The scaled initializers depend on the fans: a kernel `[in, out]` has `fan_in = in` and `fan_out = out`, a
/// convolution's `[KH,KW,C,O]` has `fan_in = KH KW C` and `fan_out = KH KW O`. The normal variants truncate at two
/// standard deviations, and draw with a deviation larger by the factor 1/0.8796, so that the deviation after truncation
/// is the one stated.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::{keras::Initializer, random::Generator};
/// let kernel = Initializer::GlorotUniform.init([784, 100], &Generator::from_seed(1))?;
/// let limit = (6.0f32 / 884.0).sqrt();
/// assert!(kernel.to_vec::<f32>()?.iter().all(|w| w.abs() <= limit));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Initializer {
    /// 0 everywhere.
    Zeros,
    /// 1 everywhere.
    Ones,
    /// This number everywhere.
    Constant(f32),
    /// Uniform in [`low`, `high`).
    RandomUniform {
        /// The smallest number.
        low: f32,
        /// The upper bound, which is excluded.
        high: f32,
    },
    /// Normal numbers.
    RandomNormal {
        /// The mean.
        mean: f32,
        /// The standard deviation.
        stddev: f32,
    },
    /// Normal numbers; those beyond two standard deviations are drawn again, so the resulting deviation is less than
    /// `stddev`.
    TruncatedNormal {
        /// The mean.
        mean: f32,
        /// The standard deviation before truncation.
        stddev: f32,
    },
    /// Uniform in `±sqrt(6 / (fan_in + fan_out))` (Glorot and Bengio 2010).
    GlorotUniform,
    /// Truncated normal of deviation `sqrt(2 / (fan_in + fan_out))`.
    GlorotNormal,
    /// Uniform in `±sqrt(6 / fan_in)` (He et al. 2015).
    HeUniform,
    /// Truncated normal of deviation `sqrt(2 / fan_in)`.
    HeNormal,
    /// Uniform in `±sqrt(3 / fan_in)` (LeCun et al. 1998).
    LecunUniform,
    /// Truncated normal of deviation `sqrt(1 / fan_in)`.
    LecunNormal,
    /// The family to which the previous six belong, with the variance `scale / fan`.
    VarianceScaling {
        /// The variance times the fan.
        scale: f32,
        /// Which fan.
        mode: FanMode,
        /// The distribution.
        distribution: Distribution,
    },
    /// Another initializer that draws from a generator with this seed: the same numbers every time
    /// ([`Initializer::seed`]).
    Seeded(u64, Box<Initializer>),
    /// [`Initializer::orthogonal`], [`Initializer::identity`], and custom initializers ([`Initializer::new`]).
    Custom(Custom),
}

/// The fan by which [`Initializer::VarianceScaling`] divides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum FanMode {
    /// The number of inputs that an output sums.
    #[default]
    FanIn,
    /// The number of outputs that an input reaches.
    FanOut,
    /// The mean of both.
    FanAvg,
}

/// How [`Initializer::VarianceScaling`] draws.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Distribution {
    /// Normal, truncated at two standard deviations, with the specified deviation after truncation.
    #[default]
    TruncatedNormal,
    /// Normal.
    UntruncatedNormal,
    /// Uniform around 0.
    Uniform,
}

/// An initializer that is a function of a shape and a generator.
#[derive(Debug, Clone)]
pub struct Custom(pub(super) Function<Draw>);

pub(super) type Draw = dyn Fn(&[usize], &Generator) -> Result<Tensor> + Send + Sync;

crate::trackable::plain!(Initializer);

/// The standard deviation of the standard normal distribution truncated at -2 and 2.
const TRUNCATED_STDDEV: f64 = 0.879_625_661_034_239_8;

impl Initializer {
    /// Creates a tensor of `shape` in `f32` on the current device.
    ///
    /// # Errors
    /// [`Error::Device`] if there is no device or no memory.
    pub fn init(&self, shape: impl Into<Shape>, generator: &Generator) -> Result<Tensor> {
        self.draw(shape.into(), generator)
    }

    /// An orthogonal matrix: its rows or columns are orthogonal to each other and have the length `gain` (Saxe et al.
    /// 2014). A kernel of more axes is treated as a matrix of its last axis by all others. Recurrent kernels start with
    /// it.
    pub fn orthogonal(gain: f32) -> Self {
        Initializer::Custom(Custom(Function {
            class: "Orthogonal",
            arguments: vec![("gain", gain.into())],
            call: Arc::new(move |shape, generator| orthogonal(shape, generator, gain)),
        }))
    }

    /// A matrix of `gain` on the diagonal and 0 elsewhere.
    pub fn identity(gain: f32) -> Self {
        let call = move |shape: &[usize], _: &Generator| match *shape {
            [rows, columns] => eye_of(rows, columns)?.multiply(gain),
            _ => Err(Error::Shape(message!(
                "the initializer Identity: the weight is {shape:?}; it must be a matrix."
            ))),
        };
        Initializer::Custom(Custom(Function {
            class: "Identity",
            arguments: vec![("gain", gain.into())],
            call: Arc::new(call),
        }))
    }

    /// Creates a custom initializer from a function that creates a tensor of a shape, with random numbers from a
    /// generator.
    pub fn new(
        draw: impl Fn(&[usize], &Generator) -> Result<Tensor> + Send + Sync + 'static,
    ) -> Self {
        let call = Arc::new(draw);
        Initializer::Custom(Custom(Function { class: OWN, arguments: Vec::new(), call }))
    }

    /// Returns the same initializer, drawing from a generator with this seed. All weights of the same shape then start
    /// with the same values.
    pub fn seed(self, seed: u64) -> Self {
        match self {
            Initializer::Seeded(_, inner) => Initializer::Seeded(seed, inner),
            other => Initializer::Seeded(seed, Box::new(other)),
        }
    }

    fn draw(&self, shape: Shape, generator: &Generator) -> Result<Tensor> {
        let variance = self.variance(&shape);
        match self {
            Initializer::Zeros => Tensor::zeros(shape),
            Initializer::Ones => Tensor::ones(shape),
            Initializer::Constant(value) => Tensor::full(shape, *value),
            &Initializer::RandomUniform { low, high } => {
                generator.uniform_with(shape, UniformOptions::new().minval(low).maxval(high))
            }
            &Initializer::RandomNormal { mean, stddev } => {
                generator.normal(shape)?.multiply(stddev)?.add(mean)
            }
            &Initializer::TruncatedNormal { mean, stddev } => {
                generator.truncated_normal(shape)?.multiply(stddev)?.add(mean)
            }
            Initializer::GlorotUniform
            | Initializer::HeUniform
            | Initializer::LecunUniform
            | Initializer::VarianceScaling { distribution: Distribution::Uniform, .. } => {
                // A uniform distribution in ±a has the variance a^2 / 3.
                let limit = (3.0 * variance).sqrt() as f32;
                generator.uniform_with(shape, UniformOptions::new().minval(-limit).maxval(limit))
            }
            Initializer::GlorotNormal
            | Initializer::HeNormal
            | Initializer::LecunNormal
            | Initializer::VarianceScaling {
                distribution: Distribution::TruncatedNormal, ..
            } => generator.truncated_normal(shape)?.multiply(variance.sqrt() / TRUNCATED_STDDEV),
            Initializer::VarianceScaling { .. } => {
                generator.normal(shape)?.multiply(variance.sqrt())
            }
            Initializer::Seeded(seed, inner) => inner.draw(shape, &Generator::from_seed(*seed)),
            Initializer::Custom(custom) => {
                let value = (custom.0.call)(&shape, generator)?;
                match value.shape() == &*shape {
                    true => Ok(value),
                    false => Err(Error::Shape(message!(
                        "an initializer gave {:?} for a weight of {shape:?}.",
                        value.shape()
                    ))),
                }
            }
        }
    }

    /// The value of all elements, for an initializer that has only one.
    pub(super) fn constant(&self) -> Option<f32> {
        match *self {
            Initializer::Zeros => Some(0.0),
            Initializer::Ones => Some(1.0),
            Initializer::Constant(value) => Some(value),
            _ => None,
        }
    }

    /// The variance that follows from the fans; 1 for initializers that do not use them.
    fn variance(&self, shape: &[usize]) -> f64 {
        let (fan_in, fan_out) = fans(shape);
        // A fan of 0 belongs to an empty tensor, whose variance does not matter.
        match self {
            Initializer::GlorotUniform | Initializer::GlorotNormal => {
                1.0 / ((fan_in + fan_out) / 2.0).max(1.0)
            }
            Initializer::HeUniform | Initializer::HeNormal => 2.0 / fan_in.max(1.0),
            Initializer::LecunUniform | Initializer::LecunNormal => 1.0 / fan_in.max(1.0),
            Initializer::VarianceScaling { scale, mode, .. } => {
                let fan = match mode {
                    FanMode::FanIn => fan_in,
                    FanMode::FanOut => fan_out,
                    FanMode::FanAvg => (fan_in + fan_out) / 2.0,
                };
                f64::from(*scale) / fan.max(1.0)
            }
            _ => 1.0,
        }
    }
}

/// The number of inputs that an output sums, and of outputs that an input reaches.
fn fans(shape: &[usize]) -> (f64, f64) {
    match *shape {
        [] => (1.0, 1.0),
        [n] => (n as f64, n as f64),
        [ref field @ .., inputs, outputs] => {
            let field: f64 = field.iter().map(|&size| size as f64).product();
            (field * inputs as f64, field * outputs as f64)
        }
    }
}

/// The orthogonal factor of a matrix of normal numbers, with signs that make all such matrices equally likely (Mezzadri
/// 2007).
fn orthogonal(shape: &[usize], generator: &Generator, gain: f32) -> Result<Tensor> {
    let [front @ .., columns] = shape else { return Err(too_flat(shape)) };
    let rows = Shape::new(front).checked_elements().filter(|_| !front.is_empty());
    let (rows, columns) = (rows.ok_or_else(|| too_flat(shape))?, *columns);
    let (q, r) = linalg::qr(&generator.normal([rows.max(columns), rows.min(columns)])?)?;
    let q = q.multiply(linalg::diag_part(&r)?.sign()?)?;
    let q = if rows < columns { q.transpose(())? } else { q };
    q.multiply(gain)?.reshape_to(shape.into())
}

fn too_flat(shape: &[usize]) -> Error {
    Error::Shape(message!(
        "the initializer Orthogonal: the weight is {shape:?}; it must have two axes or more."
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fans_count_the_receptive_field() {
        assert_eq!(fans(&[784, 100]), (784.0, 100.0));
        assert_eq!(fans(&[5, 5, 8, 16]), (200.0, 400.0));
        assert_eq!(fans(&[7]), (7.0, 7.0));
        assert_eq!(fans(&[]), (1.0, 1.0));
        // The product overflows `usize`. The device refuses such a tensor; this function does not fail.
        assert_eq!(fans(&[1 << 40, 1 << 40, 1, 2]), (2f64.powi(80), 2f64.powi(81)));
    }

    // Keras computes these values for a fan_in of 784 and a fan_out of 100.
    #[test]
    fn variances_are_those_of_keras() {
        let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-12, "{a} {b}");
        let variance = |i: Initializer| i.variance(&[784, 100]);
        near((3.0 * variance(Initializer::GlorotUniform)).sqrt(), 0.082_385_255_457_163_46);
        near((3.0 * variance(Initializer::HeUniform)).sqrt(), 0.087_481_776_527_970_65);
        near((3.0 * variance(Initializer::LecunUniform)).sqrt(), 0.061_858_957_413_174_19);
        near(
            variance(Initializer::GlorotNormal).sqrt() / TRUNCATED_STDDEV,
            0.054_074_308_563_853_87,
        );
        near(variance(Initializer::HeNormal).sqrt() / TRUNCATED_STDDEV, 0.057_419_456_326_711_804);
    }
}
