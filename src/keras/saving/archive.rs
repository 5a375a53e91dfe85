//! `.keras` files: an archive of a model's config, weights and `compile` settings.
//!
//! Source: `keras.src.saving.saving_lib`: an uncompressed ZIP archive of `metadata.json`, `config.json` and `model.weights.h5`.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};

#[cfg(feature = "preprocessing")]
use super::assets;
use super::loaded_model::LoadedModel;
use super::members::{Archive, WEIGHTS, damaged};
use super::optimizer_state::Scaling;
use super::weights::{from_h5, to_h5_with};
use super::{CustomObjects, compiled, optimizer_state};
use crate::error::{Error, Result, message};
use crate::files::zip::ZipWriter;
use crate::keras::optimizers::Optimizer;
use crate::keras::{Functional, Model, Sequential, python_json};
use crate::support::options::options;
use crate::tensor::Tensor;
use crate::trackable::Trackable;
use crate::trackable::arrays::{Everything, Scope};
use crate::trackable::weights::layers::Layers;

const CONFIG: &str = "config.json";
const METADATA: &str = "metadata.json";

options! {
    /// How [`load_model`](super::load_model) reads a file.
    #[derive(Debug, Clone)]
    pub struct LoadModelOptions {
        /// Sets whether to compile the model and restore the optimizer's state, if the file contains the settings. Default:
        /// `true`.
        compile: bool = true,
        /// Sets the custom layers that the config may contain. Default: none.
        custom_objects: CustomObjects = CustomObjects::new(),
    }
}

options! {
    /// What [`Sequential::save_with`] and [`Functional::save_with`] write.
    #[derive(Clone)]
    pub struct SaveModelOptions {
        /// Sets the `compile` settings as JSON, in the form that [`LoadedModel::compile_from_json`] takes. The file gets them, and the
        /// state of the optimizer, so that training continues where it stopped, here or in Keras. Default: neither.
        compile_settings: Option<String> as impl Into<Option<String>> = None,
        /// Sets the optimizer whose state a file with settings gets. Default: the one with which the model was compiled.
        optimizer: Option<Arc<dyn Optimizer>> as impl Into<Option<Arc<dyn Optimizer>>> = None,
    }
}

impl fmt::Debug for SaveModelOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SaveModelOptions")
            .field("compile_settings", &self.compile_settings)
            .field("optimizer", &self.optimizer.as_ref().map(|optimizer| optimizer.name()))
            .finish()
    }
}

/// Loads the model in a `.keras` file: its layers, their weights, and, if it was compiled, its optimizer, loss and metrics.
/// Keras reads the files that [`Sequential::save`] writes, and vice versa.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::Trackable;
/// use wgrad::keras::{Sequential, layers::Dense, saving};
/// let model = Sequential::new().add(Dense::new(3));
/// model.build([1, 2])?;
/// let path = std::env::temp_dir().join(format!("wgrad-doc-{}.keras", std::process::id()));
/// model.save(&path)?;
/// let copy = saving::load_model(&path)?.sequential()?;
/// assert_eq!(copy.get_weights()?, model.get_weights()?);
/// # std::fs::remove_file(path).expect("it was written");
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::Io`] if the file cannot be read; else the errors of [`load_model_from_bytes`].
#[cfg(not(target_family = "wasm"))]
pub fn load_model(path: impl AsRef<Path>) -> Result<LoadedModel> {
    load_model_with(path, LoadModelOptions::new())
}

/// Same as [`load_model`], with options.
///
/// # Errors
/// Same as [`load_model`].
#[cfg(not(target_family = "wasm"))]
pub fn load_model_with(path: impl AsRef<Path>, options: LoadModelOptions) -> Result<LoadedModel> {
    let path = path.as_ref();
    if path.is_dir() {
        return Err(Error::Data(message!(
            "{}: load_model: it is a folder, not a file. If it is a SavedModel, saved_model::load_keras_model loads its layers, and \
             saved_model::load its functions (feature saved-model).",
            path.display()
        )));
    }
    let bytes = crate::files::read(path).map_err(|error| Error::io(path, error))?;
    crate::trackable::weights::in_file(path, loaded_with(&bytes, path, &options, |_| Ok(())))
}

/// Same as [`load_model_with`], from the contents of the file.
///
/// # Errors
/// [`Error::Data`] if the contents are damaged, a layer is unknown, or the `compile` settings cannot be read (in that case,
/// load the model with `compile(false)`); [`Error::Checkpoint`] if the weights do not fit the config.
pub fn load_model_from_bytes(bytes: &[u8], options: LoadModelOptions) -> Result<LoadedModel> {
    loaded_with(bytes, Path::new("the contents"), &options, |_| Ok(()))
}

/// As [`load_model_from_bytes`], with a config that `change` has changed after it has got the vocabularies.
#[cfg(feature = "preprocessing")]
pub(crate) fn read_keras_file(
    bytes: &[u8],
    options: &LoadModelOptions,
    change: impl FnOnce(&mut Value) -> Result<()>,
) -> Result<LoadedModel> {
    loaded_with(bytes, Path::new("the contents"), options, change)
}

fn loaded_with(
    bytes: &[u8],
    path: &Path,
    options: &LoadModelOptions,
    change: impl FnOnce(&mut Value) -> Result<()>,
) -> Result<LoadedModel> {
    if bytes.starts_with(crate::hdf5::MAGIC) {
        return old(bytes, path, options);
    }
    let (mut config, weights) = described(bytes, path)?;
    change(&mut config)?;
    let model = LoadedModel::made(&config, &options.custom_objects)?;
    from_h5(&model, &weights, path)?;
    finish(model, &config, &weights, path, options)
}

/// The config in an archive, with its vocabularies, and the weights.
fn described(bytes: &[u8], path: &Path) -> Result<(Value, Vec<u8>)> {
    let mut archive = Archive::open(bytes, path)?;
    #[allow(unused_mut)]
    let mut config: Value = python_json::parse(&archive.file(CONFIG)?)
        .map_err(|error| damaged(path, &format!("'{CONFIG}' is not valid JSON: {error}")))?;
    let weights = archive.file(WEIGHTS)?;
    #[cfg(feature = "preprocessing")]
    {
        let stored = crate::hdf5::File::parse(&weights, path)?;
        assets::lookups(&mut config, &mut |place, layer| {
            let name = assets::vocabulary_at(place);
            if !archive.contains(&name) {
                return Ok(());
            }
            let weights = match stored.get(&assets::weights_at(place)) {
                Some(node) => stored.values(node)?.to_f64(),
                None => None,
            };
            let weights = weights.map(|list| list.iter().map(|x| *x as f32).collect());
            assets::put(layer, &archive.file(&name)?, weights)
        })?;
    }
    Ok((config, weights))
}

fn finish(
    model: LoadedModel,
    config: &Value,
    weights: &[u8],
    path: &Path,
    options: &LoadModelOptions,
) -> Result<LoadedModel> {
    let compile = config.get("compile_config").filter(|compile| compile.get("optimizer").is_some());
    if let (Some(compile), true) = (compile, options.compile) {
        compiled::compile(&model, compile, weights, path)?;
    }
    Ok(model)
}

/// The config in a file of either kind. That of an old file gets its settings of `compile` where a new file has them.
#[cfg(not(target_family = "wasm"))]
pub(super) fn config_in(bytes: &[u8], path: &Path) -> Result<Value> {
    if !bytes.starts_with(crate::hdf5::MAGIC) {
        return Ok(described(bytes, path)?.0);
    }
    let file = crate::hdf5::File::parse(bytes, path)?;
    let mut config = old_config(&file, path)?;
    #[cfg(feature = "saved-model")]
    if attribute(&file, "keras_version")?.is_some_and(|version| version.starts_with("2.")) {
        config = super::layers_model::modern(config, false, 0)?;
    }
    if let Some(text) = attribute(&file, "training_config")? {
        let mut settings = super::parse(&text)?;
        if let Some(optimizer) = settings.get_mut("optimizer_config").map(Value::take) {
            settings["optimizer"] = optimizer;
        }
        config["compile_config"] = settings;
    }
    Ok(config)
}

/// A text that is an attribute of an old file.
fn attribute(file: &crate::hdf5::File<'_>, name: &str) -> Result<Option<String>> {
    let texts = match file.get("") {
        Some(root) => file.texts(root, name)?,
        None => None,
    };
    Ok(texts.and_then(|texts| texts.into_iter().next().map(|text| text.to_string())))
}

/// The model in one of Keras's old HDF5 files.
fn old_config(file: &crate::hdf5::File<'_>, path: &Path) -> Result<Value> {
    let Some(text) = attribute(file, "model_config")? else {
        return Err(Error::Data(message!(
            "{}: load_model: this HDF5 file has only weights and no model. Make the model, and load them with \
             saving::load_weights.",
            path.display()
        )));
    };
    python_json::parse(text.as_bytes()).map_err(|error| {
        Error::Data(message!(
            "{}: load_model: 'model_config' is not valid JSON: {error}. Take another copy.",
            path.display()
        ))
    })
}

/// Loads the model in one of Keras's old HDF5 files, without compiling it.
fn old(bytes: &[u8], path: &Path, options: &LoadModelOptions) -> Result<LoadedModel> {
    let config = old_config(&crate::hdf5::File::parse(bytes, path)?, path)?;
    let model = LoadedModel::made(&config, &options.custom_objects)?;
    from_h5(&model, bytes, path)?;
    Ok(model)
}

/// Sets the state of `optimizer` (its count of steps, its learning rate and its slots for the variables of `model`) to that in a
/// `.keras` file. A file without a state changes nothing, and neither does one with another number of variables, such as that of
/// a model whose layers were frozen after the steps: it is reported as a warning.
///
/// [`load_model`] does this by itself if the file has `compile` settings; this is for a model that was compiled in another way.
///
/// # Errors
/// [`Error::Io`] if the file cannot be read; [`Error::Data`] if it is damaged, or has a state that cannot be restored;
/// [`Error::Checkpoint`] if the shapes do not fit.
#[cfg(not(target_family = "wasm"))]
pub fn restore_optimizer(
    model: &impl Trackable,
    optimizer: &dyn Optimizer,
    path: impl AsRef<Path>,
) -> Result<()> {
    restore_scaling(model, optimizer, None, path.as_ref())
}

/// As [`restore_optimizer`], also of an old HDF5 file, with the scale of the loss that `scaling` has for the optimizer.
///
/// # Errors
/// Those of [`restore_optimizer`].
#[cfg(not(target_family = "wasm"))]
#[doc(hidden)]
pub fn restore_scaling(
    model: &impl Trackable,
    optimizer: &dyn Optimizer,
    scaling: Option<&Scaling>,
    path: &Path,
) -> Result<()> {
    let bytes = crate::files::read(path).map_err(|error| Error::io(path, error))?;
    if bytes.starts_with(crate::hdf5::MAGIC) {
        return optimizer_state::restore(model, optimizer, scaling, &bytes, path);
    }
    let weights = super::members::weights_in(&bytes, path)?;
    optimizer_state::restore(model, optimizer, scaling, &weights, path)
}

/// The contents of a `.keras` file without `compile` settings.
#[cfg(feature = "preprocessing")]
pub(crate) async fn keras_file(model: &dyn Trackable, config: Value) -> Result<Vec<u8>> {
    written(model, config, Value::Null, None, None).await
}

/// The contents of a `.keras` file.
pub(super) async fn written(
    model: &dyn Trackable,
    mut config: Value,
    compile: Value,
    optimizer: Option<&dyn Optimizer>,
    scaling: Option<&Scaling>,
) -> Result<Vec<u8>> {
    let arrays = Everything::collect(model, Scope::Variables).into_arrays(model.kind()).await?;
    #[allow(unused_mut)]
    let mut extra = Vec::new();
    #[cfg(feature = "preprocessing")]
    assets::lookups(&mut config, &mut |place, layer| {
        // Keras needs these here besides in the config.
        if let Some(weights) = assets::column_weights(layer) {
            let class = layer.get("class_name").and_then(Value::as_str).unwrap_or_default();
            for place in assets::places(class, place) {
                let weights = ndarray::Array1::from(weights.clone());
                extra.push((assets::weights_at(&place), weights.into()));
            }
        }
        Ok(())
    })?;
    if let Some(optimizer) = optimizer {
        extra.extend(optimizer_state::state(model, optimizer, scaling).await?);
    }
    let weights = to_h5_with(&Layers::collect(model), &arrays, &extra)?;
    config["compile_config"] = compile;
    let metadata = json!({"keras_version": "3.0.0", "written_by": "wgrad"});
    let mut archive = ZipWriter::default();
    let mut add = |name: &str, contents: &[u8]| {
        archive.add(name, contents, false).map_err(|error| {
            Error::Checkpoint(message!(
                "save: '{name}' cannot be written into the archive: {error}."
            ))
        })
    };
    add(METADATA, metadata.to_string().as_bytes())?;
    add(CONFIG, python_json::text(&config).as_bytes())?;
    add(WEIGHTS, &weights)?;
    archive.finish().map_err(|error| {
        Error::Checkpoint(message!("save: the archive cannot be written: {error}."))
    })
}

macro_rules! saves {
    ($($model:ident, $input:ty, $output:ty;)*) => {$(
        impl $model {
            /// Writes the layers and weights of the model as a `.keras` file, which
            /// [`load_model`](crate::keras::saving::load_model) and Keras read. The `compile` settings are not saved;
            /// `save_with` saves them. Blocks.
            ///
            /// # Errors
            /// [`Error::Data`] if a layer is a custom function; [`Error::Checkpoint`] if a layer has no weights yet;
            /// [`Error::Io`] if the file cannot be written.
            #[cfg(not(target_family = "wasm"))]
            pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
                self.save_with(path, &SaveModelOptions::new())
            }

            /// Same as `save`, with options.
            ///
            /// ```
            /// # fn main() -> wgrad::Result<()> {
            /// use wgrad::{Tensor, keras::saving::{SaveModelOptions, load_model}, prelude::*};
            /// let model = Sequential::new().add(wgrad::keras::layers::Dense::new(1));
            /// model.compile("adam", "mse", CompileOptions::new())?;
            /// let (x, y) = (Tensor::ones([8, 2])?, Tensor::ones([8, 1])?);
            /// model.fit((&x, &y), FitOptions::new().epochs(3).verbose(0))?;
            /// let path = std::env::temp_dir().join(format!("wgrad-doc-{}-compiled.keras", std::process::id()));
            /// let settings = r#"{"optimizer": {"class_name": "Adam", "config": {"learning_rate": 0.001}}, "loss": "mse"}"#;
            /// model.save_with(&path, &SaveModelOptions::new().compile_settings(settings.to_string()))?;
            /// let copy = load_model(&path)?.sequential()?;
            /// // The copy continues where the model stopped.
            /// assert_eq!(Model::<Tensor>::trainer(&copy).optimizer()?.iterations(), 3);
            /// # std::fs::remove_file(path).expect("it was written");
            /// # Ok(())
            /// # }
            /// ```
            ///
            /// # Errors
            /// Those of `save`; [`Error::Data`] if the settings are not a JSON object; [`Error::Check`] if
            /// there are settings and no optimizer.
            #[cfg(not(target_family = "wasm"))]
            pub fn save_with(
                &self,
                path: impl AsRef<Path>,
                options: &SaveModelOptions,
            ) -> Result<()> {
                use std::io::Write;
                let bytes = pollster::block_on(self.to_keras_with_async(options))?;
                let path = path.as_ref();
                let written = crate::files::replace(path, |file| file.write_all(&bytes));
                written.map_err(|error| Error::io(path, error))
            }

            /// Returns the contents of a `.keras` file with the model.
            ///
            /// # Errors
            /// [`Error::Data`] if a layer is a custom function; [`Error::Checkpoint`] if a layer has no weights yet.
            pub async fn to_keras_async(&self) -> Result<Vec<u8>> {
                self.to_keras_with_async(&SaveModelOptions::new()).await
            }

            /// Same as `to_keras_async`, with options.
            ///
            /// # Errors
            /// Those of `to_keras_async`; [`Error::Data`] if the settings are not a JSON object;
            /// [`Error::Check`] if there are settings and no optimizer.
            pub async fn to_keras_with_async(&self, options: &SaveModelOptions) -> Result<Vec<u8>> {
                let config = super::parse(&self.to_json()?)?;
                let Some(settings) = &options.compile_settings else {
                    return written(self, config, Value::Null, None, None).await;
                };
                let settings = compiled::settings(settings, "save")?;
                let optimizer = match &options.optimizer {
                    Some(optimizer) => optimizer.clone(),
                    None => Model::<$input, $output>::trainer(self).optimizer()?,
                };
                written(self, config, Value::Object(settings), Some(&*optimizer), None).await
            }
        }
    )*};
}
saves! {
    Sequential, Tensor, Tensor;
    Functional, [Tensor], Vec<Tensor>;
}
