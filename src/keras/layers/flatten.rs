//! [`Flatten`]: one axis of what were several.

use super::Layer;
use crate::error::{Error, Result};
use crate::keras::Context;
use crate::tensor::Tensor;
use crate::trackable::Trackable;

/// The input `[N,..]` as rows `[N,D]`, `D` the product of the other axes. The elements stay where they are.
#[derive(Trackable, Default)]
#[non_exhaustive]
pub struct Flatten;

impl Flatten {
    /// The layer.
    pub fn new() -> Self {
        Flatten
    }
}

impl Layer for Flatten {
    fn call(&self, x: &Tensor, _cx: Context<'_>) -> Result<Tensor> {
        match x.shape() {
            // A batch of nothing still has rows, whose length -1 could not tell.
            [batch, rest @ ..] => x.reshape_to([*batch, rest.iter().product()].into()),
            [] => {
                Err(Error::Shape("Flatten: the input is a scalar; it needs a batch axis.".into()))
            }
        }
    }
}
