//! Compiles a model with the settings in a file or in JSON, and restores the optimizer's state.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::loaded_model::LoadedModel;
use crate::error::{Error, Result, message};
use crate::hdf5::File;
use crate::keras::config::shown;
use crate::keras::losses::{self, Loss};
use crate::keras::metrics::{self, Metric};
use crate::keras::optimizers::{self, Optimizer};
use crate::keras::{CompileOptions, Config, Model};
use crate::tensor::Tensor;
use crate::trackable::arrays::{Scope, set_with};
use crate::trackable::{NamedArray, Parts, Trackable, named_trainable};

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
    optimizer(&value).map(|(made, _)| made).map_err(|error| without_file(error, call))
}

fn settings(text: &str, call: &str) -> Result<Map<String, Value>> {
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
    let Some(slots) = set(model, config)? else { return Ok(()) };
    match slots {
        Some(slots) => restore(model, slots, weights, path),
        None => {
            let class = config["optimizer"]["class_name"].as_str().unwrap_or("unknown").to_string();
            Err(unknown(format!(
                "the file was compiled with the optimizer {class}, whose state cannot be restored; that of Adam, AdamW, RMSprop \
                 and SGD without averages can"
            )))
        }
    }
}

/// As [`compile`], without the optimizer's state, whose order it returns if it is known. `None` if there is no loss.
fn set(model: &LoadedModel, config: &Value) -> Result<Option<Option<Slots>>> {
    let given = |key: &str| config.get(key).filter(|value| !value.is_null());
    for key in ["loss_weights", "weighted_metrics"] {
        if given(key).is_some() {
            return Err(unknown(format!("{key} is set, which is not supported")));
        }
    }
    let Some(loss) = given("loss") else { return Ok(None) };
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
    let (optimizer, groups) = optimizer(config.get("optimizer").unwrap_or(&Value::Null))?;
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
    Ok(Some(groups))
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

/// The order of an optimizer's slots in a file: whether the first two are stored in pairs, variable by variable.
struct Slots {
    names: Vec<&'static str>,
    paired: bool,
    has_rate: bool,
}

/// The optimizer that a config describes; `None` for the order of slots that is not known.
fn optimizer(value: &Value) -> Result<(Box<dyn Optimizer>, Option<Slots>)> {
    if let Some(name) = value.as_str() {
        return Ok((optimizers::get(name)?, None));
    }
    let config = config_of(value, "optimizer")?;
    let made = optimizers::from_config(&config).map_err(not_made)?;
    let is_set = |key: &str| {
        config.get_json(key).is_some_and(|value| {
            value != &json!(false) && value != &json!(0.0) && value != &json!(0)
        })
    };
    let slots = |names: &[&'static str], paired| {
        Some(Slots { names: names.to_vec(), paired, has_rate: true })
    };
    let slots = match config.class() {
        _ if is_set("use_ema") => None,
        "Adam" | "AdamW" if is_set("amsgrad") => {
            slots(&["momentum", "velocity", "velocity_hat"], true)
        }
        "Adam" | "AdamW" => slots(&["momentum", "velocity"], true),
        "SGD" if is_set("momentum") => slots(&["momentum"], false),
        "SGD" => slots(&[], false),
        "RMSprop" => {
            let mut names = vec!["velocity"];
            names.extend(is_set("momentum").then_some("momentum"));
            names.extend(is_set("centered").then_some("average_gradient"));
            slots(&names, false)
        }
        _ => None,
    };
    Ok((made, slots))
}

/// The model and its optimizer, as a checkpoint names them.
struct Whole<'a> {
    model: &'a LoadedModel,
    optimizer: &'a dyn Optimizer,
}

impl Trackable for Whole<'_> {
    fn track(&self, parts: &mut Parts<'_>) {
        parts.add("model", self.model);
        parts.add("optimizer", self.optimizer);
    }
}

/// Restores the optimizer's step count, learning rate and slots, if the file has them.
fn restore(model: &LoadedModel, slots: Slots, weights: &[u8], path: &Path) -> Result<()> {
    let file = File::parse(weights, path)?;
    let count = (0..).take_while(|at| file.get(&format!("optimizer/vars/{at}")).is_some()).count();
    if count == 0 {
        return Ok(());
    }
    let variables: Vec<String> = named_trainable(model).into_iter().map(|(name, _)| name).collect();
    // The step count, the rate, and the slots: first the pairs, variable by variable, then the others.
    let mut names = vec!["optimizer/iterations".to_string()];
    names.extend(slots.has_rate.then(|| "optimizer/learning_rate".to_string()));
    let (paired, single) = slots.names.split_at(if slots.paired { 2 } else { 0 });
    let slot = |slot: &str, of: &str| format!("optimizer/{slot}/model/{of}");
    names.extend(variables.iter().flat_map(|of| paired.iter().map(move |name| slot(name, of))));
    names.extend(single.iter().flat_map(|name| variables.iter().map(move |of| slot(name, of))));
    // An optimizer that was never called has no slots.
    if count != names.len() && count != 2 {
        return Err(unknown(format!(
            "{} holds {count} variables of the optimizer, and that of this model has {}",
            path.display(),
            names.len()
        )));
    }
    let mut arrays = Vec::with_capacity(count);
    for (at, name) in names.into_iter().take(count).enumerate() {
        let Some(node) = file.get(&format!("optimizer/vars/{at}")) else { continue };
        let array = file.values(node)?;
        // The step count is unsigned here.
        arrays.push(NamedArray::new(name, if at == 0 { array.unsigned() } else { array }));
    }
    let optimizer = model.trainer().optimizer()?;
    let whole = Whole { model, optimizer: &*optimizer };
    set_with(&whole, Scope::Checkpoint, &arrays, &|_| true)
}
