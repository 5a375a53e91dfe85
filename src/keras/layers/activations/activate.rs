//! [`Activate`]: an activation as a layer of its own.

use crate::error::Result;
use crate::keras::layers::Layer;
use crate::keras::layers::macros::{configured, layer};
use crate::keras::{Activation, Context};
use crate::tensor::Tensor;

layer! {
    /// `activation(x)`; Keras calls this layer `Activation`.
    pub struct Activate["Activation"] {
        /// A layer that applies `activation`.
        new(activation: Activation);
    }
}

impl Layer for Activate {
    configured!();

    fn call(&self, x: &Tensor, _cx: Context<'_>) -> Result<Tensor> {
        self.activation.apply(&self.policy.autocast(x)?)
    }
}
