//! [`LoadedModel`]: a model of either kind, as a file specifies.

use serde_json::Value;

#[cfg(not(target_family = "wasm"))]
use super::SaveModelOptions;
use super::{CustomObjects, read};
use crate::error::{Error, Result, message};
use crate::keras::{Functional, Model, Sequential, Trainer};
use crate::tensor::Tensor;
use crate::trackable::{Class, Parts, Trackable};

/// A model loaded from a file, of the kind that the file specifies.
#[derive(Debug)]
#[non_exhaustive]
pub enum LoadedModel {
    /// A stack of layers.
    Sequential(Sequential),
    /// A graph of layers.
    Functional(Functional),
}

impl LoadedModel {
    /// Returns the stack of layers.
    ///
    /// # Errors
    /// [`Error::Data`] if the file contained a functional model.
    pub fn sequential(self) -> Result<Sequential> {
        match self {
            LoadedModel::Sequential(model) => Ok(model),
            LoadedModel::Functional(_) => Err(Error::Data(message!(
                "load_model: the file holds a functional model, and a Sequential was requested. Call functional()."
            ))),
        }
    }

    /// Returns the graph of layers.
    ///
    /// # Errors
    /// [`Error::Data`] if the file contained a stack of layers.
    pub fn functional(self) -> Result<Functional> {
        match self {
            LoadedModel::Functional(model) => Ok(model),
            LoadedModel::Sequential(_) => Err(Error::Data(message!(
                "load_model: the file holds a Sequential, and a functional model was requested. Call sequential()."
            ))),
        }
    }

    /// Creates the model that the JSON of Keras describes, of the kind that it specifies, with new weights.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad::keras::{Sequential, layers::Dense, saving::LoadedModel};
    /// let text = Sequential::new().add(Dense::new(3)).to_json()?;
    /// let model = LoadedModel::from_json(&text)?;
    /// assert_eq!(model.to_json()?, text);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Sequential::from_json`].
    pub fn from_json(text: &str) -> Result<Self> {
        LoadedModel::made(&super::parse(text)?, &CustomObjects::new())
    }

    /// Returns the model as JSON in Keras's format, without its weights.
    ///
    /// # Errors
    /// As [`Sequential::to_json`].
    pub fn to_json(&self) -> Result<String> {
        match self {
            LoadedModel::Sequential(model) => model.to_json(),
            LoadedModel::Functional(model) => model.to_json(),
        }
    }

    /// Writes the model as a `.keras` file. Blocks.
    ///
    /// # Errors
    /// As [`Sequential::save`].
    #[cfg(not(target_family = "wasm"))]
    pub fn save(&self, path: impl AsRef<std::path::Path>) -> Result<()> {
        self.save_with(path, &SaveModelOptions::new())
    }

    /// Same as [`LoadedModel::save`], with options.
    ///
    /// # Errors
    /// As [`Sequential::save_with`].
    #[cfg(not(target_family = "wasm"))]
    pub fn save_with(
        &self,
        path: impl AsRef<std::path::Path>,
        options: &SaveModelOptions,
    ) -> Result<()> {
        match self {
            LoadedModel::Sequential(model) => model.save_with(path, options),
            LoadedModel::Functional(model) => model.save_with(path, options),
        }
    }

    /// The model of this config, of the kind that it names.
    pub(super) fn made(config: &Value, custom: &CustomObjects) -> Result<Self> {
        Ok(match config.get("class_name").and_then(Value::as_str) {
            Some("Sequential") => LoadedModel::Sequential(read::sequential(config, custom)?),
            _ => LoadedModel::Functional(read::functional(config, custom)?),
        })
    }

    pub(super) fn trainer(&self) -> &Trainer {
        match self {
            LoadedModel::Sequential(model) => Model::<Tensor>::trainer(model),
            LoadedModel::Functional(model) => Model::<[Tensor], Vec<Tensor>>::trainer(model),
        }
    }
}

impl Trackable for LoadedModel {
    fn track(&self, parts: &mut Parts<'_>) {
        match self {
            LoadedModel::Sequential(model) => model.track(parts),
            LoadedModel::Functional(model) => model.track(parts),
        }
    }

    fn kind(&self) -> &'static str {
        match self {
            LoadedModel::Sequential(model) => model.kind(),
            LoadedModel::Functional(model) => model.kind(),
        }
    }

    fn title(&self) -> String {
        match self {
            LoadedModel::Sequential(model) => model.title(),
            LoadedModel::Functional(model) => model.title(),
        }
    }

    fn class(&self) -> Option<&'static Class> {
        match self {
            LoadedModel::Sequential(model) => model.class(),
            LoadedModel::Functional(model) => model.class(),
        }
    }
}
