//! Compiles a model with the settings in a file or in JSON, and restores the optimizer's state.

use std::path::Path;

use serde_json::{Map, Value};

use super::loaded_model::LoadedModel;
use crate::error::{Error, Result, message};
use crate::keras::config::shown;
use crate::keras::losses::{self, Loss};
use crate::keras::metrics::{self, Metric};
use crate::keras::optimizers::{self, Optimizer};
use crate::keras::{CompileOptions, Config, Model};
use crate::tensor::Tensor;

/// What to do about settings of a file.
const ADVICE: &str = " Load the model with LoadModelOptions::new().compile(false), and compile it.";
const CALL: &str = "load_model: ";

fn unknown(what: String) -> Error {
    Error::Data(message!("{CALL}{what}.{ADVICE}"))
}

/// The error of settings that no file has.
fn without_file(error: Error, call: &str) -> Error {
    error.reworded(|text| {
        match text.strip_prefix(CALL).and_then(|text| text.strip_suffix(ADVICE)) {
            Some(what) => message!("{call}: {}", what.replace(" of the file", "")),
            None => message!("{call}: {text}"),
        }
    })
}

impl LoadedModel {
    /// Compiles the model with settings as JSON: `"optimizer"`, `"loss"` and, optionally, a list of `"metrics"`, each Keras's name
    /// or a class with its options, as Keras's `get_compile_config` writes them.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad::keras::saving::LoadedModel;
    /// let model = LoadedModel::from_json(
    ///     r#"{"class_name": "Sequential", "config": {"layers": [{"class_name": "Dense", "config": {"units": 1}}]}}"#,
    /// )?;
    /// model.compile_from_json(
    ///     r#"{"optimizer": {"class_name": "SGD", "config": {"learning_rate": 0.1}}, "loss": "mse", "metrics": ["mae"]}"#,
    /// )?;
    /// let error = model.compile_from_json(r#"{"loss": "mse"}"#).unwrap_err().to_string();
    /// assert_eq!(error, "compile: the settings have no optimizer.");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Data`] if the text is not JSON, has no optimizer or loss, or names something that is not supported;
    /// [`Error::Index`] for an unknown optimizer's name.
    pub fn compile_from_json(&self, text: &str) -> Result<()> {
        let call = "compile";
        let config = settings(text, call)?;
        for key in ["optimizer", "loss"] {
            if config.get(key).is_none_or(Value::is_null) {
                return Err(Error::Data(message!("{call}: the settings have no {key}.")));
            }
        }
        let known = ["optimizer", "loss", "metrics", "loss_weights", "weighted_metrics"];
        if let Some(key) = config.keys().find(|key| !known.contains(&key.as_str())) {
            return Err(Error::Data(message!(
                "{call}: the settings have no '{key}'; they are optimizer, loss and metrics."
            )));
        }
        set(self, &Value::Object(config)).map(drop).map_err(|error| without_file(error, call))
    }
}

/// The optimizer that JSON describes: Keras's name, or a class with its options, as Keras's `serialize` writes it.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::keras::saving::optimizer_from_json;
/// let sgd = optimizer_from_json(r#"{"class_name": "SGD", "config": {"learning_rate": 0.5, "momentum": 0.9}}"#)?;
/// assert_eq!(sgd.learning_rate(), 0.5);
/// assert_eq!(optimizer_from_json(r#""adam""#)?.learning_rate(), 1e-3);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::Data`] if the text is not JSON, or names a class or an option that is not supported; [`Error::Index`] for an unknown
/// name.
pub fn optimizer_from_json(text: &str) -> Result<Box<dyn Optimizer>> {
    let call = "optimizer";
    let value = super::parse(text).map_err(|error| without_file(error, call))?;
    optimizer(&value).map_err(|error| without_file(error, call))
}

pub(super) fn settings(text: &str, call: &str) -> Result<Map<String, Value>> {
    match super::parse(text) {
        Ok(Value::Object(settings)) => Ok(settings),
        Ok(_) => Err(Error::Data(message!("{call}: the settings are JSON, but not an object."))),
        Err(error) => Err(without_file(error, call)),
    }
}

/// Compiles `model` with the settings in `config`, Keras's `compile_config`.
pub(super) fn compile(
    model: &LoadedModel,
    config: &Value,
    weights: &[u8],
    path: &Path,
) -> Result<()> {
    if set(model, config)? {
        super::optimizer_state::restore(
            model,
            &*model.trainer().optimizer()?,
            None,
            weights,
            path,
        )?;
    }
    Ok(())
}

/// As [`compile`], without the optimizer's state. Whether there is a loss, without which nothing is set.
fn set(model: &LoadedModel, config: &Value) -> Result<bool> {
    let given = |key: &str| config.get(key).filter(|value| !value.is_null());
    for key in ["loss_weights", "weighted_metrics"] {
        if given(key).is_some() {
            return Err(unknown(format!("{key} is set, which is not supported")));
        }
    }
    let Some(loss) = given("loss") else { return Ok(false) };
    let mut options = CompileOptions::new();
    if let Some(metrics) = given("metrics") {
        let list = metrics.as_array().ok_or_else(|| {
            unknown(
                "the metrics of the file are not a list, so they belong to several outputs"
                    .to_string(),
            )
        })?;
        for metric in list {
            options = match metric.as_str() {
                Some(name) => options.metrics(name),
                None => options.metrics(made_metric(metric)?),
            };
        }
    }
    let optimizer = optimizer(config.get("optimizer").unwrap_or(&Value::Null))?;
    match (model, loss.as_str()) {
        (LoadedModel::Sequential(model), Some(loss)) => {
            Model::<Tensor>::compile(model, optimizer, loss, options)?;
        }
        (LoadedModel::Sequential(model), None) => {
            Model::<Tensor>::compile(model, optimizer, made_loss(loss)?, options)?;
        }
        (LoadedModel::Functional(model), Some(loss)) => {
            Model::<[Tensor], Vec<Tensor>>::compile(model, optimizer, loss, options)?;
        }
        (LoadedModel::Functional(model), None) => {
            Model::<[Tensor], Vec<Tensor>>::compile(model, optimizer, made_loss(loss)?, options)?;
        }
    }
    Ok(true)
}

/// The class and the options of an object.
fn config_of(value: &Value, what: &str) -> Result<Config> {
    let class = value.get("class_name").and_then(Value::as_str);
    let class = class.ok_or_else(|| unknown(format!("the {what} of the file has no class")))?;
    // Keras writes registered classes as package>class.
    let class = class.rsplit('>').next().unwrap_or(class);
    let options = value.get("config").and_then(Value::as_object).cloned().unwrap_or_default();
    Ok(Config::with_options(class, options))
}

/// The error for a class or an option that is not supported.
fn not_made(error: Error) -> Error {
    let text = error.to_string();
    let text = text.strip_prefix("from_config: ").unwrap_or(&text);
    unknown(text.strip_suffix('.').unwrap_or(text).to_string())
}

fn made_loss(value: &Value) -> Result<Box<dyn Loss>> {
    if !value.is_object() {
        let value = shown(value);
        return Err(unknown(format!(
            "the loss of the file is {value}; only one loss is supported"
        )));
    }
    losses::from_config(&config_of(value, "loss")?).map_err(not_made)
}

fn made_metric(value: &Value) -> Result<Box<dyn Metric>> {
    metrics::from_config(&config_of(value, "metric")?).map_err(not_made)
}

/// The optimizer that a config describes.
fn optimizer(value: &Value) -> Result<Box<dyn Optimizer>> {
    match value.as_str() {
        Some(name) => optimizers::get(name),
        None => optimizers::from_config(&config_of(value, "optimizer")?).map_err(not_made),
    }
}
