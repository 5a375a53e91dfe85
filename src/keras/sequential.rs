//! [`Sequential`]: a stack of layers as one layer.
//!
//! A model whose layers branch or share is an ordinary function of the program.

use std::sync::{Mutex, PoisonError};

use super::layers::{Layer, in_layer};
use super::{Context, INFERENCE, Model, Trainer};
use crate::error::Result;
use crate::shape::Shape;
use crate::tensor::Tensor;
use crate::trackable::{Parts, Trackable, snake_case};

/// A stack of layers: `y = layer_n(.. layer_1(x))`.
///
/// Layers have Keras's names, `dense`, `dense_1`, `dense_2`, or those that [`Sequential::add_named`] gives.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::{self as tf, Trackable};
/// use tf::keras::{Activation, INFERENCE, Layer, Sequential, layers::{Dense, Flatten}};
/// let model = Sequential::new()
///     .add(Flatten::new())
///     .add(Dense::new(100).activation(Activation::Relu))
///     .add(Dense::new(10));
/// let logits = model.call(&tf::Tensor::zeros([50, 28, 28, 1])?, INFERENCE)?;
/// assert_eq!(logits.shape(), [50, 10]);
/// assert_eq!(model.count_params(), 79_510);
/// assert_eq!(model.named_variables()[2].0, "dense_1/kernel");
/// # Ok(())
/// # }
/// ```
#[derive(Default)]
pub struct Sequential {
    layers: Vec<(String, Box<dyn Layer>)>,
    /// The output shape of each layer at the last call, for the summary.
    outputs: Mutex<Vec<Shape>>,
    trainer: Trainer,
}

impl Sequential {
    /// A model without layers, which returns its input.
    pub fn new() -> Self {
        Sequential::default()
    }

    /// Appends a layer under a name made from its type.
    #[allow(clippy::should_implement_trait)] // Keras's name; `+` on models would mean nothing.
    pub fn add(self, layer: impl Layer + 'static) -> Self {
        let name = snake_case(layer.kind());
        self.append(name, Box::new(layer))
    }

    /// Appends a layer called `name`. If another layer has that name, it gets the first free one of `name_1`, `name_2`,
    /// ...
    pub fn add_named(self, name: &str, layer: impl Layer + 'static) -> Self {
        self.append(name.to_string(), Box::new(layer))
    }

    /// The layers with their names, first to last.
    pub fn layers(&self) -> impl ExactSizeIterator<Item = (&str, &dyn Layer)> {
        self.layers.iter().map(|(name, layer)| (&**name, &**layer))
    }

    /// Makes all layers' weights for inputs of `input_shape` (with the batch axis), without running anything on data.
    ///
    /// # Errors
    /// As [`Layer::call`].
    pub fn build(&self, input_shape: impl Into<Shape>) -> Result<()> {
        // Nobody holds the result, so the next flush does not compute it.
        self.call(&Tensor::zeros(input_shape)?, INFERENCE).map(drop)
    }

    fn append(mut self, wanted: String, layer: Box<dyn Layer>) -> Self {
        let taken = |name: &str| self.layers.iter().any(|(known, _)| known == name);
        let mut name = wanted.clone();
        let mut count = 0;
        while taken(&name) {
            count += 1;
            name = format!("{wanted}_{count}");
        }
        self.layers.push((name, layer));
        self
    }
}

impl Trackable for Sequential {
    fn track(&self, parts: &mut Parts<'_>) {
        let outputs = self.outputs.lock().unwrap_or_else(PoisonError::into_inner);
        for (at, (name, layer)) in self.layers.iter().enumerate() {
            parts.add_with_output(name, &**layer, outputs.get(at).map(|shape| &**shape));
        }
    }
}

impl Model for Sequential {
    fn trainer(&self) -> &Trainer {
        &self.trainer
    }
}

impl Layer for Sequential {
    fn call(&self, x: &Tensor, cx: Context<'_>) -> Result<Tensor> {
        self.call_with_mask(x, cx).map(|(y, _)| y)
    }

    fn compute_mask(&self, x: &Tensor, mask: Option<&Tensor>) -> Result<Option<Tensor>> {
        self.call_with_mask(x, INFERENCE.with_mask(mask)).map(|(_, mask)| mask)
    }

    fn call_with_mask(&self, x: &Tensor, cx: Context<'_>) -> Result<(Tensor, Option<Tensor>)> {
        let mut outputs = Vec::with_capacity(self.layers.len());
        let (mut y, mut mask) = (x.clone(), cx.mask().cloned());
        for (name, layer) in &self.layers {
            let result = layer.call_with_mask(&y, cx.with_mask(mask.as_ref()));
            (y, mask) = in_layer(name, result)?;
            outputs.push(Shape::new(y.shape()));
        }
        *self.outputs.lock().unwrap_or_else(PoisonError::into_inner) = outputs;
        Ok((y, mask))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keras::layers::{Dense, Flatten};

    fn names(model: &Sequential) -> Vec<&str> {
        model.layers().map(|(name, _)| name).collect()
    }

    #[test]
    fn names_are_those_of_keras() {
        let model = Sequential::new().add(Dense::new(1)).add(Flatten::new()).add(Dense::new(1));
        let model = model.add_named("head", Dense::new(1)).add(Dense::new(1));
        assert_eq!(names(&model), ["dense", "flatten", "dense_1", "head", "dense_2"]);
        let again = model.add_named("head", Dense::new(1));
        assert_eq!(names(&again)[5], "head_1");
        let inner = || Sequential::new().add(Dense::new(1));
        assert_eq!(
            names(&inner().add(inner()).add(inner())),
            ["dense", "sequential", "sequential_1"]
        );
    }

    #[test]
    fn a_summary_needs_no_input() {
        let text = Sequential::new().add(Flatten::new()).add(Dense::new(3)).summary();
        let want = "Model: sequential\n\
                    Layer (type)       Output shape  Params\n\
                    ---------------------------------------\n\
                    flatten (Flatten)  ?                  0\n\
                    dense (Dense)      ?                  0\n\
                    Total params: 0\nTrainable params: 0\nNon-trainable params: 0\n";
        assert_eq!(text, want);
    }
}
