//! [`Activate`]: an activation as a separate layer.

use crate::error::Result;
use crate::keras::layers::Layer;
use crate::keras::layers::macros::{configured, layer};
use crate::keras::{Activation, Context};
use crate::tensor::Tensor;

layer! {
    /// `activation(x)`; the equivalent of Keras's `Activation` layer.
    pub struct Activate["Activation"] {
        /// Creates a layer that applies `activation`.
        new(activation: Activation);
        class {
            positions(Positions::Kept);
        }
    }
}

impl Layer for Activate {
    configured!();

    fn call(&self, x: &Tensor, _cx: Context<'_>) -> Result<Tensor> {
        self.activation.apply(&self.policy.autocast(x)?)
    }
}
