//! Compiles a model with the settings in a file or in JSON, and restores the optimizer's state.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::loaded_model::LoadedModel;
use crate::error::{Error, Result, message};
use crate::hdf5::File;
use crate::keras::config::shown;
use crate::keras::losses::{self, Loss};
use crate::keras::metrics::{self, Metric};
use crate::keras::optimizers::{self, Adam, AdamW, Optimizer, RmsProp, Sgd};
use crate::keras::{CompileOptions, Model, python_json};
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

/// The optimizer that JSON describes: Keras's name, or a class with its options, as Keras's `serialize` writes it. Options are
/// supported for Adam, AdamW, RMSprop and SGD.
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

/// The options of an object. Each option that is read is removed; the remaining ones must be those of every optimizer,
/// loss or metric.
struct Options {
    what: String,
    options: Map<String, Value>,
}

impl Options {
    fn parse(value: &Value, what: &str) -> Result<(String, Self)> {
        let class = value.get("class_name").and_then(Value::as_str);
        let class = class.ok_or_else(|| unknown(format!("the {what} of the file has no class")))?;
        let class = class.rsplit('>').next().unwrap_or(class).to_string();
        let options = value.get("config").and_then(Value::as_object).cloned().unwrap_or_default();
        Ok((class.clone(), Options { what: format!("{what} {class}"), options }))
    }

    /// A number; none if it is null or missing.
    fn number(&mut self, key: &str) -> Result<Option<f64>> {
        match self.options.remove(key) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => python_json::float(&value).map(Some).ok_or_else(|| {
                let value = shown(&value);
                unknown(format!("'{key}' of the {} is {value}; it must be a number", self.what))
            }),
        }
    }

    fn flag(&mut self, key: &str) -> Result<bool> {
        match self.options.remove(key) {
            None | Some(Value::Null) => Ok(false),
            Some(Value::Bool(flag)) => Ok(flag),
            Some(value) => Err(unknown(format!(
                "'{key}' of the {} is {}; it must be true or false",
                self.what,
                shown(&value)
            ))),
        }
    }

    /// Refuses options that were not read, except null and `harmless` ones.
    fn done(mut self, harmless: &[(&str, Value)]) -> Result<()> {
        for key in ["name", "dtype"] {
            self.options.remove(key);
        }
        for (key, value) in harmless {
            if self.options.get(*key) == Some(value) {
                self.options.remove(*key);
            }
        }
        match self.options.iter().find(|(_, value)| !value.is_null()) {
            Some((key, value)) => {
                let value = shown(value);
                Err(unknown(format!(
                    "'{key}' of the {} is {value}, which is not supported",
                    self.what
                )))
            }
            None => Ok(()),
        }
    }
}

/// Compiles `model` with the settings in `config`, Keras's `compile_config`.
pub(super) fn compile(
    model: &LoadedModel,
    config: &Value,
    weights: &[u8],
    path: &Path,
) -> Result<()> {
    match set(model, config)? {
        Some(slots) => restore(model, slots, weights, path),
        None => Ok(()),
    }
}

/// As [`compile`], without the optimizer's state, whose order it returns.
fn set(model: &LoadedModel, config: &Value) -> Result<Option<Slots>> {
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

fn made_loss(value: &Value) -> Result<Box<dyn Loss>> {
    if !value.is_object() {
        let value = shown(value);
        return Err(unknown(format!(
            "the loss of the file is {value}; only one loss is supported"
        )));
    }
    let (class, mut options) = Options::parse(value, "loss")?;
    let logits = options.flag("from_logits")?;
    let loss: Box<dyn Loss> = match (&*class, logits) {
        ("SparseCategoricalCrossentropy", true) => {
            Box::new(losses::SparseCategoricalCrossentropy::new().from_logits(true))
        }
        ("CategoricalCrossentropy", true) => {
            Box::new(losses::CategoricalCrossentropy::new().from_logits(true))
        }
        ("BinaryCrossentropy", true) => {
            Box::new(losses::BinaryCrossentropy::new().from_logits(true))
        }
        (class, false) => losses::get(class)?,
        (class, true) => {
            return Err(unknown(format!("'from_logits' of the loss {class} is not supported")));
        }
    };
    options.done(&[
        ("reduction", json!("sum_over_batch_size")),
        ("label_smoothing", json!(0.0)),
        ("label_smoothing", json!(0)),
        ("axis", json!(-1)),
    ])?;
    Ok(loss)
}

fn made_metric(value: &Value) -> Result<Box<dyn Metric>> {
    let (class, options) = Options::parse(value, "metric")?;
    let metric = metrics::get(&class)?;
    options.done(&[
        ("threshold", json!(0.5)),
        ("from_logits", json!(false)),
        ("label_smoothing", json!(0)),
        ("axis", json!(-1)),
        ("k", json!(5)),
    ])?;
    Ok(metric)
}

/// The order of an optimizer's slots in a file: whether the first two are stored in pairs, variable by variable.
struct Slots {
    names: Vec<&'static str>,
    paired: bool,
    has_rate: bool,
}

/// The optimizer that a config describes.
fn optimizer(value: &Value) -> Result<(Box<dyn Optimizer>, Slots)> {
    if let Some(name) = value.as_str() {
        let slots = Slots { names: Vec::new(), paired: false, has_rate: true };
        return Ok((optimizers::get(name)?, slots));
    }
    let (class, mut options) = Options::parse(value, "optimizer")?;
    let rate = options
        .number("learning_rate")?
        .ok_or_else(|| unknown(format!("the optimizer {class} of the file has no learning rate")))?
        as f32;
    macro_rules! set {
        ($optimizer:expr, $($option:ident),*) => {{
            let mut optimizer = $optimizer;
            $(if let Some(value) = options.number(stringify!($option))? {
                optimizer = optimizer.$option(value);
            })*
            optimizer
        }};
    }
    let slots =
        |names: &[&'static str], paired| Slots { names: names.to_vec(), paired, has_rate: true };
    let (made, slots): (Box<dyn Optimizer>, Slots) = match &*class {
        "Adam" | "AdamW" => {
            let amsgrad = options.flag("amsgrad")?;
            let names: &[&str] = match amsgrad {
                true => &["momentum", "velocity", "velocity_hat"],
                false => &["momentum", "velocity"],
            };
            let made: Box<dyn Optimizer> = match &*class {
                "Adam" => Box::new(set!(Adam::new(rate), beta_1, beta_2, epsilon).amsgrad(amsgrad)),
                _ => {
                    let made = set!(AdamW::new(rate), beta_1, beta_2, epsilon).amsgrad(amsgrad);
                    match options.number("weight_decay")? {
                        Some(decay) => Box::new(made.weight_decay(decay)),
                        None => Box::new(made),
                    }
                }
            };
            (made, slots(names, true))
        }
        "SGD" => {
            let momentum = options.options.get("momentum").and_then(Value::as_f64).unwrap_or(0.0);
            let nesterov = options.flag("nesterov")?;
            let made = set!(Sgd::new(rate), momentum).nesterov(nesterov);
            let names: &[&str] = if momentum == 0.0 { &[] } else { &["momentum"] };
            (Box::new(made), slots(names, false))
        }
        "RMSprop" => {
            let momentum = options.options.get("momentum").and_then(Value::as_f64).unwrap_or(0.0);
            let centered = options.flag("centered")?;
            let made = set!(RmsProp::new(rate), rho, momentum, epsilon).centered(centered);
            let mut names = vec!["velocity"];
            names.extend((momentum > 0.0).then_some("momentum"));
            names.extend(centered.then_some("average_gradient"));
            (Box::new(made), slots(&names, false))
        }
        class => {
            return Err(unknown(format!(
                "the optimizer is {class}; Adam, AdamW, RMSprop and SGD are supported with options"
            )));
        }
    };
    options.done(&[
        ("use_ema", json!(false)),
        ("ema_momentum", json!(0.99)),
        ("gradient_accumulation_steps", json!(1)),
    ])?;
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
