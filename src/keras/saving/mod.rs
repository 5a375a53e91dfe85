//! Models as JSON in the format of Keras 3: Keras reads what `model.to_json()` writes here, and vice versa.
//!
//! The JSON contains the layers, their options and their connections, but no weights. Keras's files contain both (feature
//! `keras-files`): `archive` reads and writes `.keras`, `weights` reads and writes `.weights.h5`, `paths` locates variables in
//! them, `legacy` reads the old HDF5 files, `layers_model` what TensorFlow.js has, `compiled` compiles a model with the settings in a
//! file, `optimizer_state` reads and writes the state of its optimizer, and `bindings` has what other languages need.

#[cfg(feature = "keras-files")]
mod archive;
#[cfg(all(feature = "keras-files", feature = "preprocessing"))]
pub(crate) mod assets;
#[cfg(all(feature = "keras-files", not(target_family = "wasm")))]
#[doc(hidden)]
pub mod bindings;
#[cfg(feature = "keras-files")]
mod compiled;
mod custom;
#[cfg(all(feature = "keras-files", feature = "saved-model"))]
mod layers_model;
#[cfg(feature = "keras-files")]
mod legacy;
#[cfg(feature = "keras-files")]
mod loaded_model;
#[cfg(feature = "keras-files")]
mod members;
#[cfg(feature = "keras-files")]
mod optimizer_state;
mod order;
#[cfg(feature = "keras-files")]
mod paths;
mod read;
#[cfg(feature = "keras-files")]
mod weights;

#[cfg(feature = "keras-files")]
pub use archive::{LoadModelOptions, SaveModelOptions, load_model_from_bytes};
#[cfg(all(feature = "keras-files", feature = "preprocessing"))]
pub(crate) use archive::{keras_file, read_keras_file};
#[cfg(all(feature = "keras-files", not(target_family = "wasm")))]
pub use archive::{load_model, load_model_with, restore_optimizer, restore_scaling};
#[cfg(feature = "keras-files")]
pub use compiled::optimizer_from_json;
pub use custom::CustomObjects;
#[cfg(all(feature = "keras-files", feature = "saved-model"))]
pub(crate) use layers_model::layers_model;
#[cfg(feature = "keras-files")]
pub use loaded_model::LoadedModel;
#[cfg(all(feature = "keras-files", not(target_family = "wasm")))]
pub use weights::{load_weights, save_weights};
#[cfg(feature = "keras-files")]
pub use weights::{weights_from_h5, weights_to_h5_async};

use serde_json::Value;

use super::layers::{Layer, written};
use super::{Functional, Sequential, python_json};
use crate::error::{Error, Result, message};
use crate::tensor::Tensor;

pub(crate) fn parse(text: &str) -> Result<Value> {
    python_json::parse(text.as_bytes())
        .map_err(|error| Error::Data(message!("from_json: the text is not valid JSON: {error}.")))
}

impl Sequential {
    /// Returns the model as JSON in Keras's format, without its weights.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad::{Trackable, keras::{Activation, Sequential, layers::Dense}};
    /// let model = Sequential::new().add(Dense::new(8).activation(Activation::Relu)).add(Dense::new(2));
    /// model.build([1, 4])?;
    /// let copy = Sequential::from_json(&model.to_json()?)?;
    /// copy.set_weights(&model.get_weights()?)?;
    /// assert_eq!(copy.summary(), model.summary());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Data`] if a layer is a custom function, or a custom layer without a `get_config`.
    pub fn to_json(&self) -> Result<String> {
        Ok(python_json::text(&written(&self.get_config()?, None, None)))
    }

    /// Creates the model that the JSON of Keras or of [`Sequential::to_json`] describes. If the JSON specifies the input, the
    /// weights are created, with new initial values.
    ///
    /// # Errors
    /// [`Error::Data`] if the text does not describe such a model, or a layer is unknown; else the errors of the layers.
    pub fn from_json(text: &str) -> Result<Self> {
        Sequential::from_json_with(text, &CustomObjects::new())
    }

    /// Same as [`Sequential::from_json`], with custom layers.
    ///
    /// # Errors
    /// Same as [`Sequential::from_json`].
    pub fn from_json_with(text: &str, custom: &CustomObjects) -> Result<Self> {
        read::sequential(&parse(text)?, custom)
    }
}

impl Functional {
    /// Returns the model as JSON in Keras's format, without its weights.
    ///
    /// # Errors
    /// [`Error::Data`] if a layer is a custom function, or a custom layer without a `get_config`.
    pub fn to_json(&self) -> Result<String> {
        Ok(python_json::text(&written(&Layer::<Tensor>::get_config(self)?, None, None)))
    }

    /// Creates the model that the JSON of Keras or of [`Functional::to_json`] describes. The weights get new initial values.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad::{Trackable, keras::{Functional, Input, LayerExt, layers::Dense}};
    /// let x = Input::new([4]);
    /// let y = Dense::new(4).on(&x)?.add(&x)?;
    /// let model = Functional::new(&x, &y)?;
    /// let copy = Functional::from_json(&model.to_json()?)?;
    /// copy.set_weights(&model.get_weights()?)?;
    /// assert_eq!(copy.summary(), model.summary());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Data`] if the text does not describe such a model, or a layer is unknown; else the errors of the layers.
    pub fn from_json(text: &str) -> Result<Self> {
        Functional::from_json_with(text, &CustomObjects::new())
    }

    /// Same as [`Functional::from_json`], with custom layers.
    ///
    /// # Errors
    /// Same as [`Functional::from_json`].
    pub fn from_json_with(text: &str, custom: &CustomObjects) -> Result<Self> {
        read::functional(&parse(text)?, custom)
    }
}
