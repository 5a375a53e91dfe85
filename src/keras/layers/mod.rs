//! [`Layer`] and the layers: functions with weights, which size themselves at their first input.
//!
//! A layer owns variables and a name and calls tensor ops; it has no gradient rule and no shader. Layers whose
//! results depend on each other's insides (recurrent cells, attention) are not here yet.

mod activate;
mod conv2d;
mod dense;
mod dropout;
mod flatten;
mod pooling;

pub use activate::Activate;
pub use conv2d::Conv2D;
pub use dense::Dense;
pub use dropout::Dropout;
pub use flatten::Flatten;
pub use pooling::{AveragePooling2D, MaxPooling2D};

use std::sync::OnceLock;

use super::Initializer;
use crate::error::{Error, Result, message};
use crate::random::{self, Generator};
use crate::tensor::Tensor;
use crate::variable::Variable;

/// A function of a tensor, with weights that training changes.
///
/// A layer of one's own implements `name`, `set_name` and `call`, and `variables` if it has some:
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// use tf::keras::Layer;
///
/// /// `scale x`.
/// struct Scale(String, tf::Variable);
///
/// impl Layer for Scale {
///     fn name(&self) -> &str {
///         &self.0
///     }
///     fn set_name(&mut self, name: String) {
///         self.0 = name;
///     }
///     fn call(&self, x: &tf::Tensor, _training: bool) -> tf::Result<tf::Tensor> {
///         x.multiply(&self.1)
///     }
///     fn variables(&self) -> Vec<tf::Variable> {
///         vec![self.1.clone()]
///     }
/// }
///
/// let layer = Scale("scale".into(), tf::Variable::new(&tf::constant(3.0)?));
/// assert_eq!(layer.call(&tf::constant([2.0])?, false)?.to_vec::<f32>()?, [6.0]);
/// # Ok(())
/// # }
/// ```
pub trait Layer: Send + Sync {
    /// What messages, summaries and variables call the layer.
    fn name(&self) -> &str;

    /// Gives the layer another name. Variables that exist already keep theirs.
    fn set_name(&mut self, name: String);

    /// The layer's result for `x`; `training` matters to layers such as [`Dropout`].
    ///
    /// # Errors
    /// [`Error::Shape`] if `x` does not fit the layer, [`Error::DType`] if its dtype does not.
    fn call(&self, x: &Tensor, training: bool) -> Result<Tensor>;

    /// All variables, in Keras's order (kernel, then bias). There are none before the first input.
    fn variables(&self) -> Vec<Variable> {
        Vec::new()
    }

    /// The variables that an optimizer is to change.
    fn trainable_variables(&self) -> Vec<Variable> {
        self.variables().into_iter().filter(Variable::trainable).collect()
    }

    /// The generators that the layer draws from at its calls, which go on from their states when training is resumed.
    fn generators(&self) -> Vec<&Generator> {
        Vec::new()
    }

    /// The type that a summary shows beside the name.
    fn kind(&self) -> &'static str {
        let path = std::any::type_name::<Self>();
        path.rsplit("::").next().unwrap_or(path)
    }
}

/// A kernel `[.., in, out]` and perhaps a bias `[out]`.
struct Weights {
    kernel: Variable,
    bias: Option<Variable>,
}

impl Weights {
    fn list(cell: &OnceLock<Weights>) -> Vec<Variable> {
        let Some(weights) = cell.get() else { return Vec::new() };
        [Some(&weights.kernel), weights.bias.as_ref()].into_iter().flatten().cloned().collect()
    }

    /// `y + bias`.
    fn add_bias(&self, y: Tensor) -> Result<Tensor> {
        match &self.bias {
            Some(bias) => y.add(bias),
            None => Ok(y),
        }
    }
}

/// How a layer's weights are to be made.
#[derive(Debug, Clone, Copy)]
struct Start {
    use_bias: bool,
    kernel: Initializer,
    bias: Initializer,
}

impl Default for Start {
    fn default() -> Self {
        Start { use_bias: true, kernel: Initializer::GlorotUniform, bias: Initializer::Zeros }
    }
}

impl Start {
    /// The weights of the layer `name` on the device of `x`; makes them at the first call.
    fn weights<'a>(
        &self,
        cell: &'a OnceLock<Weights>,
        name: &str,
        x: &Tensor,
        kernel: &[usize],
    ) -> Result<&'a Weights> {
        if let Some(weights) = cell.get() {
            check_size(name, x, &weights.kernel)?;
            return Ok(weights);
        }
        // A stream of its own, so that a layer's size does not change what the next layer draws.
        let generator = random::global().split();
        let outputs = kernel.last().copied().unwrap_or(1);
        let weights = x.device().scope(|| -> Result<Weights> {
            let start = self.kernel.init(kernel, &generator)?;
            let kernel = Variable::named(format!("{name}/kernel"), &start);
            let bias = match self.use_bias {
                true => Some(self.bias.init([outputs], &generator)?),
                false => None,
            };
            let bias = bias.map(|start| Variable::named(format!("{name}/bias"), &start));
            Ok(Weights { kernel, bias })
        })?;
        // Computed now, the start values do not depend on whether the step that waits with them succeeds.
        x.device().flush()?;
        // Where two threads came here at once, the first to finish has given the weights.
        Ok(cell.get_or_init(|| weights))
    }
}

/// The last axis of `x` must be the one that `kernel` was made for.
fn check_size(name: &str, x: &Tensor, kernel: &Variable) -> Result<()> {
    let wanted = kernel.shape().iter().rev().nth(1).copied();
    if x.shape().last().copied() == wanted {
        return Ok(());
    }
    Err(Error::Shape(message!(
        "layer '{name}': the input is {:?}, and the layer's first input had {} in its last axis, for which its kernel \
         {:?} was made. Give it such inputs, or make a new layer.",
        x.shape(),
        wanted.unwrap_or(0),
        kernel.shape()
    )))
}

/// The same result, an error's sentence beginning with the layer's name.
pub(super) fn in_layer(name: &str, result: Result<Tensor>) -> Result<Tensor> {
    result.map_err(|error| {
        error.reworded(|text| match text.starts_with("layer '") {
            // The innermost layer says most.
            true => text.clone(),
            false => message!("layer '{name}': {text}"),
        })
    })
}

/// `name` and `set_name` of a layer with a field `name`.
macro_rules! named {
    () => {
        fn name(&self) -> &str {
            &self.name
        }

        fn set_name(&mut self, name: String) {
            self.name = name;
        }
    };
}
pub(crate) use named;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_keep_their_kind_and_name_the_innermost_layer() {
        let inner = in_layer("dense", Err(Error::Shape("MatMul: no.".into())));
        let error = in_layer("model", inner).unwrap_err();
        assert!(
            matches!(&error, Error::Shape(text) if text == "layer 'dense': MatMul: no."),
            "{error}"
        );
    }
}
