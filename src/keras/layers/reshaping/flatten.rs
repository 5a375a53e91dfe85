//! [`Flatten`]: combines several axes in one.

use crate::error::{Error, Result};
use crate::keras::Context;
use crate::keras::layers::Layer;
use crate::keras::layers::macros::{configured, layer, unmasked};
use crate::tensor::Tensor;

layer! {
    /// Reshapes the input `[N,..]` to rows `[N,D]`, where `D` is the product of the other axes, without a copy.
    pub struct Flatten {
        /// Creates the layer.
        new();
        fixed {
            data_format: "channels_last",
        }
        class {
            positions(Positions::Flattened);
        }
    }
}

impl Layer for Flatten {
    configured!();
    unmasked!();

    fn call(&self, x: &Tensor, _cx: Context<'_>) -> Result<Tensor> {
        match x.shape() {
            // An empty batch still has a row length, which -1 could not determine.
            [batch, rest @ ..] => x.reshape_to([*batch, rest.iter().product()].into()),
            [] => {
                Err(Error::Shape("Flatten: the input is a scalar; it needs a batch axis.".into()))
            }
        }
    }
}
