//! [`Identity`]: a layer that does nothing.

use crate::error::Result;
use crate::keras::Context;
use crate::keras::layers::Layer;
use crate::keras::layers::macros::{configured, layer};
use crate::tensor::Tensor;

layer! {
    /// Returns `x` unchanged.
    pub struct Identity {
        /// Creates the layer.
        new();
        class {
            positions(Positions::Kept);
        }
    }
}

impl Layer for Identity {
    configured!();

    fn call(&self, x: &Tensor, _cx: Context<'_>) -> Result<Tensor> {
        self.policy.autocast(x)
    }
}
