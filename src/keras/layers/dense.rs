//! [`Dense`]: every output sums all inputs.

use std::sync::OnceLock;

use super::{Layer, Start, Weights, in_layer, named};
use crate::error::{Error, Result, message};
use crate::keras::{Activation, Initializer};
use crate::shape::Shape;
use crate::tensor::Tensor;
use crate::variable::Variable;

/// `y = activation(x kernel + bias)`: input `[..,D]` of rank 2 or more, kernel `[D,U]`, bias `[U]`, result `[..,U]`.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// use tf::keras::{Initializer, Layer, layers::Dense};
/// let layer = Dense::new(2).kernel_initializer(Initializer::Ones);
/// let y = layer.call(&tf::constant([[1.0, 2.0, 3.0]])?, false)?;
/// assert_eq!(y.to_vec::<f32>()?, [6.0, 6.0]);
/// assert_eq!(layer.variables()[0].name(), "dense/kernel");
/// assert_eq!(layer.variables()[0].shape(), [3, 2]);
/// # Ok(())
/// # }
/// ```
pub struct Dense {
    name: String,
    units: usize,
    activation: Activation,
    start: Start,
    weights: OnceLock<Weights>,
}

impl Dense {
    /// A layer of `units` outputs: no activation, a Glorot uniform kernel, a bias of zeros.
    pub fn new(units: usize) -> Self {
        Dense {
            name: "dense".into(),
            units,
            activation: Activation::Linear,
            start: Start::default(),
            weights: OnceLock::new(),
        }
    }

    /// What is done with the sums.
    pub fn activation(mut self, activation: Activation) -> Self {
        self.activation = activation;
        self
    }

    /// Whether there is a bias.
    pub fn use_bias(mut self, use_bias: bool) -> Self {
        self.start.use_bias = use_bias;
        self
    }

    /// How the kernel starts.
    pub fn kernel_initializer(mut self, initializer: Initializer) -> Self {
        self.start.kernel = initializer;
        self
    }

    /// How the bias starts.
    pub fn bias_initializer(mut self, initializer: Initializer) -> Self {
        self.start.bias = initializer;
        self
    }

    /// The layer's name, with which its variables' names begin.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let [rows @ .., inputs] = x.shape() else { return Err(self.rank_error(x)) };
        if rows.is_empty() {
            return Err(self.rank_error(x));
        }
        let weights = self.start.weights(&self.weights, &self.name, x, &[*inputs, self.units])?;
        let flat = x.reshape_to([rows.iter().product(), *inputs].into())?;
        let sums = weights.add_bias(flat.matmul(&weights.kernel)?)?;
        let mut shape = Shape::new(rows);
        shape.push(self.units);
        self.activation.apply(&sums.reshape_to(shape)?)
    }

    fn rank_error(&self, x: &Tensor) -> Error {
        Error::Shape(message!(
            "Dense: the input is {:?}; it must be [.., D] with at least two axes. For a single row use expand_dims(0).",
            x.shape()
        ))
    }
}

impl Layer for Dense {
    named!();

    fn call(&self, x: &Tensor, _training: bool) -> Result<Tensor> {
        in_layer(&self.name, self.forward(x))
    }

    fn variables(&self) -> Vec<Variable> {
        Weights::list(&self.weights)
    }
}
