//! `export`: Keras models as SavedModels.

use std::path::Path;

use super::save;
use crate::error::{Error, Result};
use crate::function::TensorSpec;
use crate::keras::layers::Layer;
use crate::keras::{Functional, INFERENCE, Sequential};
use crate::saved_model::traced::Signature;
use crate::tensor::Tensor;

/// Keras's names of the function, and of the signature.
const FUNCTION: &str = "serve";
const SIGNATURE: &str = "serving_default";

impl Sequential {
    /// Writes the model as a SavedModel, which TensorFlow, Keras (`TFSMLayer`), TensorFlow Serving and TensorFlow.js's converter
    /// read: Keras's `model.export`. It has the function `serve`, also as the signature `serving_default`, of the tensor
    /// `inputs`, which computes what the model does in inference. Batches may have any size, and so may axes whose size has
    /// varied from call to call. [`saved_model::save`](crate::saved_model::save) writes other functions. Needs the feature
    /// `saved-model`.
    ///
    /// ```no_run
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad::keras::{Sequential, layers::Dense};
    /// let model = Sequential::new().add(Dense::new(64)).add(Dense::new(10));
    /// model.build([None, Some(784)])?;
    /// model.export("exported/1")?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Data`] if the model was neither built nor called; otherwise as [`saved_model::save`](crate::saved_model::save).
    pub fn export(&self, path: impl AsRef<Path>) -> Result<()> {
        let spec = self.input_spec().ok_or_else(|| {
            Error::Data(
                "export: the model was never called, so the shape of its input is not known. Call it or build it first, or write \
                 it with saved_model::save and a Signature."
                    .into(),
            )
        })?;
        let call = |inputs: &[Tensor]| self.call(&inputs[0], INFERENCE);
        let signature = Signature::new(SIGNATURE, [("inputs", spec)], call);
        save(self, path, &[signature.function_name(FUNCTION)])
    }
}

impl Functional {
    /// As [`Sequential::export`]; the signature's tensors have the names of the model's inputs.
    ///
    /// # Errors
    /// As [`saved_model::save`](crate::saved_model::save).
    pub fn export(&self, path: impl AsRef<Path>) -> Result<()> {
        let names = self.input_names().into_iter().map(String::from);
        let specs = self.inputs().iter().map(|input| TensorSpec::new(input.shape(), input.dtype()));
        let call =
            |inputs: &[Tensor]| Layer::<[Tensor], Vec<Tensor>>::call(self, inputs, INFERENCE);
        let signature = Signature::new(SIGNATURE, names.zip(specs), call);
        save(self, path, &[signature.function_name(FUNCTION)])
    }
}
