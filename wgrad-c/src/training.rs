//! Training, evaluating and predicting with compiled models.

use std::ffi::c_char;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use wgrad::data::{Batch, IntoModelData, ModelData};
use wgrad::keras::{
    EvaluateOptions, FitOptions, History, Logs, Model as _, PredictOptions, StepLogs,
};
use wgrad::{Tensor, random};

use crate::arguments::{Out, Outs, json_object, objects, out, text};
use crate::border::call;
use crate::dataset::{Dataset, wgrad_dataset};
use crate::handles::get;
use crate::model::{Model, either, wgrad_model};
use crate::status::{Failure, Result, wgrad_status};
use crate::tensor::wgrad_tensor;

/// Sets how the model is trained: JSON with an `optimizer`, a `loss` and, optionally, a list of `metrics`, each Keras's name or class
/// with options: `{"optimizer": "adam", "loss": "mse", "metrics": ["mae"]}`.
///
/// # Safety
/// `settings` is a text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wgrad_model_compile(
    model: *const wgrad_model,
    settings: *const c_char,
) -> wgrad_status {
    call(|| {
        let model = get::<Arc<Model>>(model, "model")?;
        let settings = unsafe { text(settings, "settings") }?;
        Ok(model.device.scope(|| model.loaded.compile_from_json(settings))?)
    })
}

unsafe fn batch(
    x: *const *mut wgrad_tensor,
    x_count: usize,
    y: *const *mut wgrad_tensor,
    y_count: usize,
) -> Result<Batch> {
    Ok(Batch {
        x: unsafe { objects::<Tensor>(x, x_count, "x") }?,
        y: unsafe { objects::<Tensor>(y, y_count, "y") }?,
        sample_weight: Vec::new(),
    })
}

/// The place for logs, which may be null.
unsafe fn place(logs: *mut *mut c_char) -> Result<Option<Out<*mut c_char>>> {
    if logs.is_null() { Ok(None) } else { unsafe { out(logs, "logs") }.map(Some) }
}

fn number(value: f64) -> Value {
    // JSON has no other numbers; a text says which it is.
    if value.is_finite() { json!(value) } else { json!(value.to_string()) }
}

fn written<'a>(logs: impl Iterator<Item = (&'a str, f64)>) -> String {
    let logs: Map<String, Value> =
        logs.map(|(name, value)| (name.to_string(), number(value))).collect();
    Value::Object(logs).to_string()
}

fn of_step(logs: &StepLogs) -> Result<String> {
    let mut numbers = Vec::new();
    for (name, value) in logs.iter() {
        numbers.push((name, f64::from(value.item::<f32>()?)));
    }
    Ok(written(numbers.into_iter()))
}

fn of_history(history: &History) -> String {
    let lists: Map<String, Value> = history
        .iter()
        .map(|(name, list)| (name.to_string(), list.iter().map(|value| number(*value)).collect()))
        .collect();
    Value::Object(lists).to_string()
}

/// Trains the compiled model with one batch of `x_count` inputs and `y_count` targets. Stores the loss and the metrics of the batch
/// as JSON in `logs`; free it with `wgrad_string_free`. If `logs` is null, the call does not wait for the device.
///
/// # Safety
/// `x` and `y` have so many handles; `logs` is null or a place for a text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wgrad_model_train_on_batch(
    model: *const wgrad_model,
    x: *const *mut wgrad_tensor,
    x_count: usize,
    y: *const *mut wgrad_tensor,
    y_count: usize,
    logs: *mut *mut c_char,
) -> wgrad_status {
    call(|| {
        let place = unsafe { place(logs) }?;
        let model = get::<Arc<Model>>(model, "model")?;
        let batch = unsafe { batch(x, x_count, y, y_count) }?;
        let train = || either!(&model.loaded, model => Ok(model.train_on_batch(&batch)));
        let logs = model.device.scope(train)??;
        if let Some(place) = place {
            place.text(&of_step(&logs)?);
        }
        Ok(())
    })
}

/// The options of `fit`, from JSON.
fn fit_options(options: Map<String, Value>) -> Result<FitOptions<'static>> {
    let mut fit = FitOptions::new().verbose(0).ctrl_c(false);
    for (key, value) in options {
        let wrong = || Failure::argument(format!("fit: '{key}' cannot be {value}."));
        let count = || value.as_u64().and_then(|n| usize::try_from(n).ok()).ok_or_else(wrong);
        fit = match key.as_str() {
            "epochs" => fit.epochs(count()?),
            "initial_epoch" => fit.initial_epoch(count()?),
            "batch_size" => fit.batch_size(count()?),
            "steps_per_epoch" => fit.steps_per_epoch(count()?),
            "validation_batch_size" => fit.validation_batch_size(count()?),
            "validation_steps" => fit.validation_steps(count()?),
            "validation_freq" => fit.validation_freq(count()?),
            "shuffle" => fit.shuffle(value.as_bool().ok_or_else(wrong)?),
            "validation_split" => fit.validation_split(value.as_f64().ok_or_else(wrong)?),
            "verbose" => fit.verbose(u8::try_from(count()?).map_err(|_| wrong())?),
            _ => return Err(Failure::argument(format!("fit has no option '{key}'."))),
        };
    }
    Ok(fit)
}

/// Arrays of all examples.
fn arrays(batch: Batch) -> Result<ModelData<'static>> {
    Ok(match batch.y.is_empty() {
        true => (batch.x,).into_model_data()?,
        false => (batch.x, batch.y).into_model_data()?,
    })
}

fn fit(
    model: &Model,
    data: ModelData<'_>,
    options: FitOptions<'_>,
    place: Option<Out<*mut c_char>>,
) -> Result<()> {
    let fit = || either!(&model.loaded, model => Ok(model.fit(data, options)));
    let history = model.device.scope(fit)??;
    if let Some(place) = place {
        place.text(&of_history(&history));
    }
    Ok(())
}

/// Trains the compiled model on all examples. `options` is JSON with Keras's names (`epochs`, `batch_size`, `shuffle`,
/// `validation_split`, ..), or null. Stores the loss and the metrics of every epoch as JSON in `history`, unless it is null; free it
/// with `wgrad_string_free`.
///
/// # Safety
/// `x` and `y` have so many handles; `options` is null or a text; `history` is null or a place for a text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wgrad_model_fit(
    model: *const wgrad_model,
    x: *const *mut wgrad_tensor,
    x_count: usize,
    y: *const *mut wgrad_tensor,
    y_count: usize,
    options: *const c_char,
    history: *mut *mut c_char,
) -> wgrad_status {
    call(|| {
        let place = unsafe { place(history) }?;
        let model = get::<Arc<Model>>(model, "model")?;
        let options = fit_options(unsafe { json_object(options, "options") }?)?;
        let data = arrays(unsafe { batch(x, x_count, y, y_count) }?)?;
        fit(&model, data, options, place)
    })
}

/// As `wgrad_model_fit`, with the batches of a dataset. The dataset's callbacks run in this thread.
///
/// # Safety
/// `options` is null or a text; `history` is null or a place for a text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wgrad_model_fit_dataset(
    model: *const wgrad_model,
    dataset: *const wgrad_dataset,
    options: *const c_char,
    history: *mut *mut c_char,
) -> wgrad_status {
    call(|| {
        let place = unsafe { place(history) }?;
        let model = get::<Arc<Model>>(model, "model")?;
        let options = fit_options(unsafe { json_object(options, "options") }?)?;
        let dataset = get::<Arc<Dataset>>(dataset, "dataset")?;
        fit(&model, dataset.passes()?, options, place)
    })
}

fn evaluate(model: &Model, data: ModelData<'_>, batch_size: usize) -> Result<Logs> {
    let mut options = EvaluateOptions::new().verbose(0);
    if batch_size > 0 {
        options = options.batch_size(batch_size);
    }
    let evaluate = || either!(&model.loaded, model => Ok(model.evaluate(data, options)));
    Ok(model.device.scope(evaluate)??)
}

/// Stores the loss and the metrics of the compiled model on all examples as JSON in `logs`; free it with `wgrad_string_free`. A
/// `batch_size` of 0 is 32.
///
/// # Safety
/// `x` and `y` have so many handles; `logs` is a place for a text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wgrad_model_evaluate(
    model: *const wgrad_model,
    x: *const *mut wgrad_tensor,
    x_count: usize,
    y: *const *mut wgrad_tensor,
    y_count: usize,
    batch_size: usize,
    logs: *mut *mut c_char,
) -> wgrad_status {
    call(|| {
        let place = unsafe { out(logs, "logs") }?;
        let model = get::<Arc<Model>>(model, "model")?;
        let data = arrays(unsafe { batch(x, x_count, y, y_count) }?)?;
        place.text(&written(evaluate(&model, data, batch_size)?.iter()));
        Ok(())
    })
}

/// As `wgrad_model_evaluate`, with the batches of a dataset.
///
/// # Safety
/// `logs` is a place for a text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wgrad_model_evaluate_dataset(
    model: *const wgrad_model,
    dataset: *const wgrad_dataset,
    logs: *mut *mut c_char,
) -> wgrad_status {
    call(|| {
        let place = unsafe { out(logs, "logs") }?;
        let model = get::<Arc<Model>>(model, "model")?;
        let dataset = get::<Arc<Dataset>>(dataset, "dataset")?;
        place.text(&written(evaluate(&model, dataset.passes()?, 0)?.iter()));
        Ok(())
    })
}

/// Computes the model's results for all examples, in batches of `batch_size` (0 is 32), and stores one tensor for each output. The
/// model need not be compiled.
///
/// # Safety
/// `x` has `x_count` handles, `outputs` has `capacity` places, `count` is null or a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wgrad_model_predict(
    model: *const wgrad_model,
    x: *const *mut wgrad_tensor,
    x_count: usize,
    batch_size: usize,
    outputs: *mut *mut wgrad_tensor,
    capacity: usize,
    count: *mut usize,
) -> wgrad_status {
    call(|| {
        let outs = unsafe { Outs::new(outputs, capacity, count) }?;
        let model = get::<Arc<Model>>(model, "model")?;
        let x = unsafe { objects::<Tensor>(x, x_count, "x") }?;
        let mut options = PredictOptions::new().verbose(0);
        if batch_size > 0 {
            options = options.batch_size(batch_size);
        }
        let predict = || either!(&model.loaded, model => Ok(model.predict_all((x,), options)));
        outs.put(model.device.scope(predict)??.into_iter().map(Some))
    })
}

/// Sets the state of the generator that initial weights, shuffles and dropouts draw from, so that a program repeats itself.
#[unsafe(no_mangle)]
pub extern "C" fn wgrad_set_seed(seed: u64) -> wgrad_status {
    call(|| {
        random::set_seed(seed);
        Ok(())
    })
}
