//! [`Flatten`]: one axis of what were several.

use super::{Layer, in_layer, named};
use crate::error::{Error, Result};
use crate::tensor::Tensor;

/// The input `[N,..]` as rows `[N,D]`, `D` the product of the other axes. The elements stay where they are.
pub struct Flatten {
    name: String,
}

impl Default for Flatten {
    fn default() -> Self {
        Flatten::new()
    }
}

impl Flatten {
    /// The layer.
    pub fn new() -> Self {
        Flatten { name: "flatten".into() }
    }

    /// The layer's name.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }
}

impl Layer for Flatten {
    named!();

    fn call(&self, x: &Tensor, _training: bool) -> Result<Tensor> {
        let flat = match x.shape() {
            // A batch of nothing still has rows, whose length -1 could not tell.
            [batch, rest @ ..] => x.reshape_to([*batch, rest.iter().product()].into()),
            [] => {
                Err(Error::Shape("Flatten: the input is a scalar; it needs a batch axis.".into()))
            }
        };
        in_layer(&self.name, flat)
    }
}
