//! [`Activate`]: an activation as a layer of its own.

use super::{Layer, in_layer, named};
use crate::error::Result;
use crate::keras::Activation;
use crate::tensor::Tensor;

/// `activation(x)`: what Keras calls the layer `Activation`.
pub struct Activate {
    name: String,
    activation: Activation,
}

impl Activate {
    /// A layer that applies `activation`.
    pub fn new(activation: Activation) -> Self {
        Activate { name: "activation".into(), activation }
    }

    /// The layer's name.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }
}

impl Layer for Activate {
    named!();

    fn call(&self, x: &Tensor, _training: bool) -> Result<Tensor> {
        in_layer(&self.name, self.activation.apply(x))
    }
}
