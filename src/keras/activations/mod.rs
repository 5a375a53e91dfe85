//! [`Activation`]: the functions that layers apply to their results, by Keras's names.
//!
//! The functions are methods of [`Tensor`]; this folder only chooses among them.

mod formulas;

pub use formulas::Formula;

use std::str::FromStr;

use crate::error::{Error, Result, message};
use crate::tensor::Tensor;

/// The function that a layer applies to its result, element by element or along the last axis.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// let relu: tf::keras::Activation = "relu".parse()?;
/// assert_eq!(relu.apply(&tf::constant([-1.0, 2.0])?)?.to_vec::<f32>()?, [0.0, 2.0]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub enum Activation {
    /// `x`.
    #[default]
    Linear,
    /// `max(x, 0)`.
    Relu,
    /// `min(max(x, 0), 6)`.
    Relu6,
    /// `x` above 0, this slope times `x` below. Keras's slope is 0.2.
    LeakyRelu(f32),
    /// `x` above 0, `e^x - 1` below.
    Elu,
    /// `1.0507 x` above 0, `1.7581 (e^x - 1)` below.
    Selu,
    /// `x Phi(x)`, `Phi` the normal distribution, in its exact form.
    Gelu,
    /// `1 / (1 + e^-x)`.
    Sigmoid,
    /// `x / 6 + 1/2`, clipped to 0 to 1.
    HardSigmoid,
    /// `tanh(x)`.
    Tanh,
    /// `e^x / sum(e^x)` along the last axis.
    Softmax,
    /// `log(softmax(x))` along the last axis.
    LogSoftmax,
    /// `log(1 + e^x)`.
    Softplus,
    /// `x / (1 + |x|)`.
    Softsign,
    /// `x sigmoid(x)`, also called swish.
    Silu,
    /// `x tanh(softplus(x))`.
    Mish,
    /// `e^x`.
    Exponential,
    /// Another Keras activation, such as [`Activation::celu`], or a custom function ([`Activation::new`]).
    Formula(Formula),
}

crate::trackable::plain!(Activation);

/// Keras's names. Of synonyms, messages list the first.
const NAMES: &[(&str, Activation)] = &[
    ("linear", Activation::Linear),
    ("relu", Activation::Relu),
    ("relu6", Activation::Relu6),
    ("leaky_relu", Activation::LeakyRelu(0.2)),
    ("elu", Activation::Elu),
    ("selu", Activation::Selu),
    ("gelu", Activation::Gelu),
    ("sigmoid", Activation::Sigmoid),
    ("hard_sigmoid", Activation::HardSigmoid),
    ("tanh", Activation::Tanh),
    ("softmax", Activation::Softmax),
    ("log_softmax", Activation::LogSoftmax),
    ("softplus", Activation::Softplus),
    ("softsign", Activation::Softsign),
    ("silu", Activation::Silu),
    ("mish", Activation::Mish),
    ("exponential", Activation::Exponential),
    ("swish", Activation::Silu),
];

impl Activation {
    /// Returns Keras's name, if it has one for this slope.
    pub fn name(&self) -> Option<&'static str> {
        if let Activation::Formula(formula) = self {
            return formula.name();
        }
        NAMES.iter().find(|(_, activation)| activation == self).map(|(name, _)| *name)
    }

    /// Applies the function to `x`. The result has the shape of `x`.
    ///
    /// # Errors
    /// [`Error::DType`] if the dtype is not float; [`Error::Index`] if a softmax is applied to a scalar.
    pub fn apply(&self, x: &Tensor) -> Result<Tensor> {
        match *self {
            Activation::Linear => Ok(x.clone()),
            Activation::Relu => x.relu(),
            Activation::Relu6 => x.relu6(),
            Activation::LeakyRelu(slope) => x.leaky_relu(slope),
            Activation::Elu => x.elu(),
            Activation::Selu => x.selu(),
            Activation::Gelu => x.gelu(),
            Activation::Sigmoid => x.sigmoid(),
            Activation::HardSigmoid => x.hard_sigmoid(),
            Activation::Tanh => x.tanh(),
            Activation::Softmax => x.softmax(-1),
            Activation::LogSoftmax => x.log_softmax(-1),
            Activation::Softplus => x.softplus(),
            Activation::Softsign => x.softsign(),
            Activation::Silu => x.silu(),
            Activation::Mish => x.mish(),
            Activation::Exponential => x.exp(),
            Activation::Formula(ref formula) => formula.apply(x),
        }
    }
}

impl FromStr for Activation {
    type Err = Error;

    /// Returns the activation that Keras calls `name`.
    fn from_str(name: &str) -> Result<Self> {
        let known = NAMES.iter().find(|(known, _)| *known == name);
        let known = known.map(|(_, activation)| *activation);
        known.or_else(|| formulas::named(name)).ok_or_else(|| {
            let names = NAMES.iter().map(|(known, _)| *known);
            let names: Vec<&str> = names.chain(formulas::names()).collect();
            Error::Data(message!(
                "Activation: there is none called '{name}'. The known ones are {}.",
                names.join(", ")
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_keras_names() {
        assert_eq!("relu".parse::<Activation>().unwrap(), Activation::Relu);
        assert_eq!("swish".parse::<Activation>().unwrap(), Activation::Silu);
        assert_eq!("leaky_relu".parse::<Activation>().unwrap(), Activation::LeakyRelu(0.2));
        assert_eq!(Activation::default(), "linear".parse().unwrap());
        assert_eq!("celu".parse::<Activation>().unwrap(), Activation::celu(1.0));
        assert_eq!("hard_swish".parse::<Activation>().unwrap().name(), Some("hard_silu"));
        assert_eq!(Activation::soft_shrink(0.25).name(), None);
        assert_eq!(Activation::new(Tensor::sin).name(), None);
        let error = "Relu".parse::<Activation>().unwrap_err().to_string();
        assert!(error.starts_with(
            "Activation: there is none called 'Relu'. The known ones are linear, relu,"
        ));
    }
}
