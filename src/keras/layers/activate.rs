//! [`Activate`]: an activation as a layer of its own.

use super::Layer;
use crate::error::Result;
use crate::keras::{Activation, Context};
use crate::tensor::Tensor;
use crate::trackable::{Parts, Trackable};

/// `activation(x)`; Keras calls this layer `Activation`.
pub struct Activate {
    activation: Activation,
}

impl Activate {
    /// A layer that applies `activation`.
    pub fn new(activation: Activation) -> Self {
        Activate { activation }
    }
}

impl Trackable for Activate {
    fn track(&self, _parts: &mut Parts<'_>) {}

    fn kind(&self) -> &'static str {
        "Activation"
    }
}

impl Layer for Activate {
    fn call(&self, x: &Tensor, _cx: Context<'_>) -> Result<Tensor> {
        self.activation.apply(x)
    }
}
