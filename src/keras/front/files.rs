//! `.keras` files of models with layers for strings, which Keras reads as models whose inputs are strings.

#[cfg(not(target_family = "wasm"))]
use std::path::Path;

use serde_json::Value;

use super::graph::Front;
use super::{FrontModel, Fronted, plan};
#[cfg(not(target_family = "wasm"))]
use crate::error::Error;
use crate::error::Result;
use crate::keras::saving::{LoadModelOptions, LoadedModel, keras_file, read_keras_file};
use crate::keras::{Functional, python_json};

impl<M: Fronted> FrontModel<M> {
    /// Returns the front with its vocabularies, and the model without its weights, as JSON in Keras's format.
    ///
    /// # Errors
    /// [`Error::Data`] if a layer is a custom function, or if an input and a layer have the same name.
    pub fn to_json(&self) -> Result<String> {
        self.config().map(|config| python_json::text(&config))
    }

    fn config(&self) -> Result<Value> {
        let mut config: Value = crate::keras::saving::parse(&self.model.json()?)?;
        plan::put(&mut config, &self.front.plan()?)?;
        Ok(config)
    }

    /// Writes the front with its vocabularies, and the model with its weights, as a `.keras` file, which Keras reads as a model whose
    /// inputs are strings. The `compile` settings are not saved. Blocks.
    ///
    /// # Errors
    /// Those of [`to_json`](FrontModel::to_json); [`Error::Checkpoint`] if a layer has no weights yet; [`Error::Io`] if the file cannot
    /// be written.
    #[cfg(not(target_family = "wasm"))]
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        use std::io::Write;
        let (path, bytes) = (path.as_ref(), pollster::block_on(self.to_keras_async())?);
        let written = crate::files::replace(path, |file| file.write_all(&bytes));
        written.map_err(|error| Error::io(path, error))
    }

    /// Returns the contents of a `.keras` file.
    ///
    /// # Errors
    /// Same as [`FrontModel::save`].
    pub async fn to_keras_async(&self) -> Result<Vec<u8>> {
        keras_file(&self.model, self.config()?).await
    }
}

impl FrontModel {
    /// Loads a `Sequential` of Keras whose first layers are for strings, and its weights, without compiling it.
    ///
    /// # Errors
    /// [`Error::Io`] if the file cannot be read; else the same as [`FrontModel::from_keras`].
    #[cfg(not(target_family = "wasm"))]
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        in_file(path.as_ref(), FrontModel::from_keras)
    }

    /// Same as [`FrontModel::load`], from the contents of the file.
    ///
    /// # Errors
    /// [`Error::Data`] if the contents are damaged or no such model, or a layer is unknown; [`Error::Checkpoint`] if the weights do
    /// not fit the config.
    pub fn from_keras(bytes: &[u8]) -> Result<Self> {
        let (front, model) = read(bytes)?;
        Ok(FrontModel { front: front.unwrap_or_else(Front::of_stack), model: model.sequential()? })
    }
}

impl FrontModel<Functional> {
    /// Loads a functional model of Keras with layers for strings, and its weights, without compiling it.
    ///
    /// # Errors
    /// [`Error::Io`] if the file cannot be read; else the same as [`FrontModel::functional_from_keras`].
    #[cfg(not(target_family = "wasm"))]
    pub fn load_functional(path: impl AsRef<Path>) -> Result<Self> {
        in_file(path.as_ref(), FrontModel::functional_from_keras)
    }

    /// Same as [`FrontModel::load_functional`], from the contents of the file.
    ///
    /// # Errors
    /// [`Error::Data`] if the contents are damaged or no such model, if a layer is unknown, or if a layer for strings takes results of
    /// layers on the device; [`Error::Checkpoint`] if the weights do not fit the config.
    pub fn functional_from_keras(bytes: &[u8]) -> Result<Self> {
        let (front, model) = read(bytes)?;
        let model = model.functional()?;
        match front {
            Some(front) => Ok(FrontModel { front, model }),
            None => FrontModel::functional(model, []),
        }
    }
}

#[cfg(not(target_family = "wasm"))]
fn in_file<T>(path: &Path, read: fn(&[u8]) -> Result<T>) -> Result<T> {
    let bytes = crate::files::read(path).map_err(|error| Error::io(path, error))?;
    crate::trackable::weights::in_file(path, read(&bytes))
}

fn read(bytes: &[u8]) -> Result<(Option<Front>, LoadedModel)> {
    let mut front = None;
    let model = read_keras_file(bytes, &LoadModelOptions::new().compile(false), |config| {
        front = plan::take(config)?.map(|plan| Front::from_plan(&plan)).transpose()?;
        Ok(())
    })?;
    Ok((front, model))
}
