//! Functions of SavedModels, and ONNX models.

use std::ffi::c_char;
use std::sync::Arc;

use serde_json::{Value, json};
use wgrad::saved_model::{self, SavedSpec};
use wgrad::{Device, Tensor, onnx};

use crate::arguments::{Outs, objects, on, out, slice, text, text_or_null};
use crate::border::call;
use crate::device::wgrad_device;
use crate::handles::{free, get};
use crate::status::{Result, wgrad_status};
use crate::tensor::wgrad_tensor;

/// A function of a SavedModel, or an ONNX model.
#[derive(Debug)]
pub struct wgrad_function {
    _private: (),
}

/// A function and the device of its weights.
pub(crate) struct SavedFunction {
    function: saved_model::SavedFunction,
    device: Device,
}

fn make(
    device: *const wgrad_device,
    load: impl FnOnce() -> wgrad::Result<saved_model::SavedFunction>,
) -> Result<Arc<SavedFunction>> {
    on(device, || {
        let device = Device::current()?;
        Ok(Arc::new(SavedFunction { function: load()?, device }))
    })
}

/// Loads a function of a SavedModel, by the name of its signature; null is `serving_default`.
///
/// # Safety
/// `path` is a text, `signature` null or a text, `function` a place for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wgrad_function_load_saved_model(
    device: *const wgrad_device,
    path: *const c_char,
    signature: *const c_char,
    function: *mut *mut wgrad_function,
) -> wgrad_status {
    call(|| {
        let place = unsafe { out(function, "function") }?;
        let path = unsafe { text(path, "path") }?;
        let signature = unsafe { text_or_null(signature, "signature") }?;
        let signature = signature.unwrap_or("serving_default");
        place.put(make(device, || saved_model::load(path)?.signature(signature))?)
    })
}

/// Loads an ONNX model.
///
/// # Safety
/// `path` is a text, `function` a place for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wgrad_function_load_onnx(
    device: *const wgrad_device,
    path: *const c_char,
    function: *mut *mut wgrad_function,
) -> wgrad_status {
    call(|| {
        let place = unsafe { out(function, "function") }?;
        let path = unsafe { text(path, "path") }?;
        place.put(make(device, || Ok(onnx::load(path)?.function().clone()))?)
    })
}

fn specs(specs: &[SavedSpec]) -> Value {
    let one = |spec: &SavedSpec| json!({"name": spec.name, "dtype": spec.dtype.tensorflow_name(), "shape": spec.shape});
    specs.iter().map(one).collect()
}

/// Stores JSON with the `inputs` and the `outputs` of the function: for each the `name`, the `dtype` and the `shape`, where null is a
/// size that may vary; free it with `wgrad_string_free`.
///
/// # Safety
/// `json` is a place for a text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wgrad_function_signature(
    function: *const wgrad_function,
    json: *mut *mut c_char,
) -> wgrad_status {
    call(|| {
        let place = unsafe { out(json, "json") }?;
        let function = get::<Arc<SavedFunction>>(function, "function")?;
        let (inputs, outputs) = (function.function.inputs(), function.function.outputs());
        place.text(&json!({"inputs": specs(inputs), "outputs": specs(outputs)}).to_string());
        Ok(())
    })
}

/// Calls the function with inputs by name; null `names` are the inputs in the order of the signature. The results are stored in the
/// order of the signature, and their number in `count`, which may be null.
///
/// # Safety
/// `names` is null or has `inputs_count` texts, `inputs` as many handles; `outputs` has `capacity` places, `count` is null or a place
/// for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wgrad_function_call(
    function: *const wgrad_function,
    names: *const *const c_char,
    inputs: *const *mut wgrad_tensor,
    inputs_count: usize,
    outputs: *mut *mut wgrad_tensor,
    capacity: usize,
    count: *mut usize,
) -> wgrad_status {
    call(|| {
        let outs = unsafe { Outs::new(outputs, capacity, count) }?;
        let function = get::<Arc<SavedFunction>>(function, "function")?;
        let called = &function.function;
        let tensors = unsafe { objects::<Tensor>(inputs, inputs_count, "inputs") }?;
        let names: Vec<String> = match names.is_null() {
            // A surplus input has a name that no function knows, so that the call reports it.
            true => (0..inputs_count)
                .map(|at| match called.inputs().get(at) {
                    Some(spec) => spec.name.clone(),
                    None => format!("#{at}"),
                })
                .collect(),
            false => unsafe { slice(names, inputs_count, "names") }?
                .iter()
                .map(|name| Ok(unsafe { text(*name, "name") }?.to_string()))
                .collect::<Result<_>>()?,
        };
        let results = function.device.scope(|| called.call(names.iter().zip(tensors)))?;
        let results = called.outputs().iter().map(|spec| results.tensor(&spec.name));
        outs.put(results.map(|result| result.map(Some)).collect::<wgrad::Result<Vec<_>>>()?)
    })
}

/// Frees the handle. Null does nothing.
#[unsafe(no_mangle)]
pub extern "C" fn wgrad_function_free(function: *mut wgrad_function) -> wgrad_status {
    free::<Arc<SavedFunction>>(function)
}
