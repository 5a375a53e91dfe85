//! Keras models: from a config, from files, their weights and their calls.

use std::ffi::c_char;
use std::sync::Arc;

use serde_json::{Value, json};
use wgrad::keras::saving::{self, LoadModelOptions, LoadedModel};
use wgrad::keras::{Context, INFERENCE, Model as _, TRAINING};
use wgrad::{Device, Tensor, Trackable, Variable, saved_model};

use crate::arguments::{Outs, objects, on, out, text};
use crate::border::call;
use crate::device::wgrad_device;
use crate::handles::{free, get};
use crate::status::{Failure, Result, wgrad_status};
use crate::tensor::wgrad_tensor;
use crate::variable::wgrad_variable;

/// A Keras model or layer, with its weights and, if it is compiled, its optimizer.
#[derive(Debug)]
pub struct wgrad_model {
    _private: (),
}

/// A model and the device of its weights.
pub(crate) struct Model {
    pub(crate) loaded: LoadedModel,
    pub(crate) device: Device,
}

/// Calls `$body` with the model as what it is.
macro_rules! either {
    ($loaded:expr, $model:ident => $body:expr) => {
        match $loaded {
            wgrad::keras::saving::LoadedModel::Sequential($model) => $body,
            wgrad::keras::saving::LoadedModel::Functional($model) => $body,
            _ => Err(crate::status::Failure::new(
                crate::status::wgrad_status::WGRAD_UNIMPLEMENTED,
                "this kind of models has no calls in C.",
            )),
        }
    };
}
pub(crate) use either;

impl Model {
    /// Makes a model on a device; null is the default device.
    fn make(
        device: *const wgrad_device,
        load: impl FnOnce() -> Result<LoadedModel>,
    ) -> Result<Arc<Model>> {
        on(device, || {
            let device = Device::current()?;
            Ok(Arc::new(Model { loaded: load()?, device }))
        })
    }

    fn call(&self, inputs: &[Tensor], context: Context<'_>) -> Result<Vec<Tensor>> {
        let call = || either!(&self.loaded, model => Ok(model.call_all(inputs, context)));
        Ok(self.device.scope(call)??.0)
    }
}

/// A layer alone is a model of one layer.
fn as_model(text: &str) -> Result<String> {
    let config: Value = serde_json::from_str(text)
        .map_err(|error| Failure::argument(format!("json is not valid JSON: {error}.")))?;
    let class = config.get("class_name").and_then(Value::as_str).unwrap_or_default();
    if ["Sequential", "Functional", "Model", ""].contains(&class) {
        return Ok(text.to_string());
    }
    Ok(json!({"class_name": "Sequential", "config": {"layers": [config]}}).to_string())
}

/// Makes the model that Keras's JSON (`model.to_json()`) describes, with new weights: a Sequential, a functional model, or a layer
/// alone, `{"class_name": "Dense", "config": {"units": 3}}`. A null `device` is the default device.
///
/// # Safety
/// `json` is a text, `model` a place for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wgrad_model_from_json(
    device: *const wgrad_device,
    json: *const c_char,
    model: *mut *mut wgrad_model,
) -> wgrad_status {
    call(|| {
        let place = unsafe { out(model, "model") }?;
        let text = as_model(unsafe { text(json, "json") }?)?;
        place.put(Model::make(device, || Ok(LoadedModel::from_json(&text)?))?)
    })
}

/// Loads a `.keras` file, or an old HDF5 file with a model. If `compile` is not 0 and the file has settings for training, the model
/// is compiled with them.
///
/// # Safety
/// `path` is a text, `model` a place for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wgrad_model_load(
    device: *const wgrad_device,
    path: *const c_char,
    compile: i32,
    model: *mut *mut wgrad_model,
) -> wgrad_status {
    call(|| {
        let place = unsafe { out(model, "model") }?;
        let path = unsafe { text(path, "path") }?;
        let options = LoadModelOptions::new().compile(compile != 0);
        place.put(Model::make(device, || Ok(saving::load_model_with(path, options)?))?)
    })
}

/// Loads the layers of a SavedModel that Keras has written. `wgrad_function_load` loads the functions of any SavedModel.
///
/// # Safety
/// `path` is a text, `model` a place for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wgrad_model_load_saved_model(
    device: *const wgrad_device,
    path: *const c_char,
    model: *mut *mut wgrad_model,
) -> wgrad_status {
    call(|| {
        let place = unsafe { out(model, "model") }?;
        let path = unsafe { text(path, "path") }?;
        place.put(Model::make(device, || Ok(saved_model::load_keras_model(path)?))?)
    })
}

/// Stores the model as Keras's JSON, without weights; free it with `wgrad_string_free`.
///
/// # Safety
/// `json` is a place for a text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wgrad_model_to_json(
    model: *const wgrad_model,
    json: *mut *mut c_char,
) -> wgrad_status {
    call(|| {
        let place = unsafe { out(json, "json") }?;
        place.text(&get::<Arc<Model>>(model, "model")?.loaded.to_json()?);
        Ok(())
    })
}

/// Stores the table of layers and parameters that Keras's `summary` prints; free it with `wgrad_string_free`.
///
/// # Safety
/// `summary` is a place for a text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wgrad_model_summary(
    model: *const wgrad_model,
    summary: *mut *mut c_char,
) -> wgrad_status {
    call(|| {
        let place = unsafe { out(summary, "summary") }?;
        place.text(&get::<Arc<Model>>(model, "model")?.loaded.summary());
        Ok(())
    })
}

/// Runs `f` with the model and a path.
unsafe fn with_path(
    model: *const wgrad_model,
    path: *const c_char,
    f: impl FnOnce(&LoadedModel, &str) -> wgrad::Result<()>,
) -> wgrad_status {
    call(|| {
        let model = get::<Arc<Model>>(model, "model")?;
        let path = unsafe { text(path, "path") }?;
        Ok(model.device.scope(|| f(&model.loaded, path))?)
    })
}

/// Writes the model as a `.keras` file, without its settings for training.
///
/// # Safety
/// `path` is a text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wgrad_model_save(
    model: *const wgrad_model,
    path: *const c_char,
) -> wgrad_status {
    unsafe { with_path(model, path, |model, path| model.save(path)) }
}

/// Writes the weights as a `.weights.h5` file.
///
/// # Safety
/// `path` is a text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wgrad_model_save_weights(
    model: *const wgrad_model,
    path: *const c_char,
) -> wgrad_status {
    unsafe { with_path(model, path, |model, path| saving::save_weights(model, path)) }
}

/// Reads weights from a `.weights.h5` file.
///
/// # Safety
/// `path` is a text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wgrad_model_load_weights(
    model: *const wgrad_model,
    path: *const c_char,
) -> wgrad_status {
    unsafe { with_path(model, path, |model, path| saving::load_weights(model, path)) }
}

/// Stores handles of the model's variables in Keras's order, and their number in `count`, which may be null. If `trainable_only` is
/// not 0, these are the trainable ones. With a `capacity` of 0, the status is `WGRAD_TOO_SMALL` and only the number is stored. A
/// model without an input shape has no variables before its first call.
///
/// # Safety
/// `variables` has `capacity` places, `count` is null or a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wgrad_model_variables(
    model: *const wgrad_model,
    trainable_only: i32,
    variables: *mut *mut wgrad_variable,
    capacity: usize,
    count: *mut usize,
) -> wgrad_status {
    call(|| {
        let outs = unsafe { Outs::new(variables, capacity, count) }?;
        let model = get::<Arc<Model>>(model, "model")?;
        let found: Vec<Variable> = match trainable_only {
            0 => model.loaded.variables(),
            _ => model.loaded.trainable_variables(),
        };
        outs.put(found.into_iter().map(Some))
    })
}

/// Calls the model with `inputs_count` inputs; an open tape of this thread records the call. If `training` is not 0, layers such as
/// Dropout work as in training. The results are stored in `outputs`, and their number in `count`, which may be null.
///
/// # Safety
/// `inputs` has `inputs_count` handles, `outputs` has `capacity` places, `count` is null or a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wgrad_model_call(
    model: *const wgrad_model,
    inputs: *const *mut wgrad_tensor,
    inputs_count: usize,
    training: i32,
    outputs: *mut *mut wgrad_tensor,
    capacity: usize,
    count: *mut usize,
) -> wgrad_status {
    call(|| {
        let outs = unsafe { Outs::new(outputs, capacity, count) }?;
        let model = get::<Arc<Model>>(model, "model")?;
        let inputs = unsafe { objects::<Tensor>(inputs, inputs_count, "inputs") }?;
        let context = if training == 0 { INFERENCE } else { TRAINING };
        outs.put(model.call(&inputs, context)?.into_iter().map(Some))
    })
}

/// Frees the handle. Null does nothing.
#[unsafe(no_mangle)]
pub extern "C" fn wgrad_model_free(model: *mut wgrad_model) -> wgrad_status {
    free::<Arc<Model>>(model)
}
