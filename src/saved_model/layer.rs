//! [`SavedModelLayer`]: a loaded model as a layer of another one.

use super::loaded::SavedModel;
use super::onnx::OnnxModel;
use super::saved_function::SavedFunction;
use crate::error::Result;
use crate::keras::{Context, Layer};
use crate::tensor::Tensor;
use crate::trackable::{Parts, Trackable};

/// A signature of a SavedModel as a layer, with the model's variables. Keras's `TFSMLayer`. [`SavedModel::layer`] makes it.
#[derive(Debug, Clone)]
pub struct SavedModelLayer {
    model: SavedModel,
    function: SavedFunction,
}

impl SavedModel {
    /// A signature with one input and one result as a layer, so that other layers can stand before or after it, and `fit` can
    /// train all of them. It computes the same in training as in inference.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// use tf::keras::{Sequential, layers::Dense};
    /// # let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/saved_model/cnn");
    /// let pictures = tf::saved_model::load(folder)?.layer("serving_default")?;
    /// let model = Sequential::new().add(pictures).add(Dense::new(3));
    /// model.build([None, Some(16), Some(16), Some(3)])?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`signature`](SavedModel::signature).
    pub fn layer(&self, signature: &str) -> Result<SavedModelLayer> {
        Ok(SavedModelLayer { model: self.clone(), function: self.signature(signature)? })
    }
}

impl Trackable for SavedModelLayer {
    fn track(&self, parts: &mut Parts<'_>) {
        self.model.track(parts);
    }
}

impl Layer for SavedModelLayer {
    fn call(&self, x: &Tensor, _: Context<'_>) -> Result<Tensor> {
        self.function.predict(x)
    }
}

/// An ONNX model with one input and one result is a layer. It computes the same in training as in inference.
impl Layer for OnnxModel {
    fn call(&self, x: &Tensor, _: Context<'_>) -> Result<Tensor> {
        self.predict(x)
    }
}
