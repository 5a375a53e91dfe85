//! [`Config`]: the options of a layer as JSON, in Keras's format.
//!
//! This file defines how Keras writes each type of option. The layers define which options they have (`layers/macros.rs`).

use serde_json::{Map, Value, json};

use super::constraints::Constraint;
use super::function::{Argument, Function, OWN};
use super::initializers::{Distribution, FanMode};
use super::{Activation, DTypePolicy, Initializer, Regularizer, python_json};
use crate::error::{Error, Result, message};
use crate::ops::Padding;
use crate::shape::Axes;

/// The class of a layer and its options, as Keras's `get_config` returns them.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::keras::{Config, Layer, layers::Dense};
/// let config = Dense::new(10).use_bias(false).get_config()?;
/// assert_eq!(config.class(), "Dense");
/// assert_eq!(config.get::<usize>("units")?, Some(10));
/// assert_eq!(config.get::<bool>("use_bias")?, Some(false));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    class: String,
    options: Map<String, Value>,
}

impl Config {
    /// Creates a config without options.
    pub fn new(class: impl Into<String>) -> Self {
        Config { class: class.into(), options: Map::new() }
    }

    /// Creates a config with these options.
    pub fn with_options(class: impl Into<String>, options: Map<String, Value>) -> Self {
        Config { class: class.into(), options }
    }

    /// Returns the layer's class.
    pub fn class(&self) -> &str {
        &self.class
    }

    /// Returns all options. An infinite or NaN number is stored as a string; [`Config::get`] reads it.
    pub fn options(&self) -> &Map<String, Value> {
        &self.options
    }

    /// Sets an option.
    ///
    /// # Errors
    /// [`Error::Data`] if the value is a custom function, which JSON cannot hold.
    pub fn set(&mut self, key: &str, value: &impl ConfigValue) -> Result<()> {
        let value = value.to_json().map_err(|what| {
            Error::Data(message!("get_config: '{key}' of {} {what}.", self.class))
        })?;
        self.options.insert(key.to_string(), value);
        Ok(())
    }

    /// Sets an option to a JSON value.
    pub fn set_json(&mut self, key: &str, value: Value) {
        self.options.insert(key.to_string(), value);
    }

    /// Returns an option's value; `None` if it is missing.
    ///
    /// # Errors
    /// [`Error::Data`] if it is not a `T`.
    pub fn get<T: ConfigValue>(&self, key: &str) -> Result<Option<T>> {
        self.options.get(key).map(|value| self.read(key, value)).transpose()
    }

    /// Returns the value of a required option.
    ///
    /// # Errors
    /// [`Error::Data`] if it is missing or not a `T`.
    pub fn need<T: ConfigValue>(&self, key: &str) -> Result<T> {
        let missing = || {
            Error::Data(message!(
                "from_config: {} needs '{key}', and the config lacks it.",
                self.class
            ))
        };
        self.read(key, self.options.get(key).ok_or_else(missing)?)
    }

    /// The config as Keras writes it inside another one.
    pub(crate) fn nested(&self) -> Value {
        super::layers::written(self, None, None)
    }

    /// The JSON of an option that is present and not null.
    pub(crate) fn get_json(&self, key: &str) -> Option<&Value> {
        self.options.get(key).filter(|value| !value.is_null())
    }

    /// The config of a layer inside this one.
    pub(crate) fn inner(&self, key: &str) -> Result<Config> {
        let value = self.get_json(key);
        let class = value.and_then(|value| value.get("class_name")).and_then(Value::as_str);
        let options = value.and_then(|value| value.get("config")).and_then(Value::as_object);
        match (class, options) {
            (Some(class), Some(options)) => Ok(Config::with_options(class, options.clone())),
            _ => Err(Error::Data(message!(
                "from_config: '{key}' of {} must be a layer, an object with a 'class_name' and a 'config'.",
                self.class
            ))),
        }
    }

    /// The configs in a list inside this one.
    pub(crate) fn inner_list(&self, key: &str) -> Result<Vec<Config>> {
        let Some(Value::Array(list)) = self.get_json(key) else {
            return Err(Error::Data(message!(
                "from_config: '{key}' of {} must be a list of layers.",
                self.class
            )));
        };
        let one = |value: &Value| {
            Config::with_options(
                self.class.clone(),
                Map::from_iter([(key.to_string(), value.clone())]),
            )
            .inner(key)
        };
        list.iter().map(one).collect()
    }

    /// Checks that the config has no options other than `known`, and that the options in `fixed` have their only supported
    /// value. `null` counts as missing. Keras's own metadata is ignored, and so are unsupported options whose value changes
    /// nothing.
    pub(crate) fn only(&self, known: &[&str], fixed: &[(&str, Value)]) -> Result<()> {
        const NOTES: [&str; 7] = [
            "name",
            "trainable",
            "dtype",
            "autocast",
            "batch_shape",
            "batch_input_shape",
            "build_config",
        ];
        for (key, value) in self.options.iter().filter(|(_, value)| !value.is_null()) {
            let key = key.as_str();
            if let Some((_, only)) = fixed.iter().find(|(name, _)| *name == key) {
                if value != only {
                    return Err(Error::Data(message!(
                        "from_config: '{key}' of {} is {}; here it can only be {only}. Change the layer in Keras, \
                         and save the model again.",
                        self.class,
                        shown(value)
                    )));
                }
            } else if !known.contains(&key)
                && !NOTES.contains(&key)
                && !changes_nothing(&self.class, key, value)
            {
                return Err(Error::Data(message!(
                    "from_config: '{key}' of {} is {}, and {0} has no option '{key}'; it has {}. Leave it at its default in Keras, \
                     and save the model again.",
                    self.class,
                    shown(value),
                    known.join(", ")
                )));
            }
        }
        Ok(())
    }

    fn read<T: ConfigValue>(&self, key: &str, value: &Value) -> Result<T> {
        T::from_json(value).map_err(|wanted| {
            Error::Data(message!(
                "from_config: '{key}' of {} is {}; it must be {wanted}.",
                self.class,
                shown(value)
            ))
        })
    }
}

/// The text of a value, short enough for a message.
pub(crate) fn shown(value: &Value) -> String {
    let mut text = python_json::text(value);
    if let Some((end, _)) = text.char_indices().nth(80) {
        text.truncate(end);
        text.push_str("...");
    }
    text
}

/// Whether an unsupported Keras option has a value that does not change results: its default, or any value if the option only
/// selects an implementation.
fn changes_nothing(class: &str, key: &str, value: &Value) -> bool {
    match key {
        "use_cudnn" | "implementation" | "flash_attention" | "fused" => true,
        "data_format" => value == "channels_last",
        "sparse" | "ragged" | "time_major" | "renorm" => *value == Value::Bool(false),
        // Without `renorm` they are not used.
        "renorm_clipping" | "renorm_momentum" => class == "BatchNormalization",
        // Without `lora_rank`, which is refused, it is not used.
        "lora_alpha" => true,
        // The sequence length, which Keras 2 stored.
        "input_length" => class == "Embedding",
        _ => false,
    }
}

/// A type of option: how Keras writes it as JSON.
pub trait ConfigValue: Sized {
    /// Converts the value to JSON, or returns the reason why JSON cannot hold it.
    ///
    /// # Errors
    /// A text that continues "the option".
    fn to_json(&self) -> std::result::Result<Value, String>;

    /// Converts JSON to the value, or returns what the JSON must be.
    ///
    /// # Errors
    /// A text that continues "it must be".
    fn from_json(value: &Value) -> std::result::Result<Self, String>;
}

impl ConfigValue for bool {
    fn to_json(&self) -> std::result::Result<Value, String> {
        Ok(json!(self))
    }

    fn from_json(value: &Value) -> std::result::Result<Self, String> {
        value.as_bool().ok_or_else(|| "true or false".into())
    }
}

impl ConfigValue for String {
    fn to_json(&self) -> std::result::Result<Value, String> {
        Ok(json!(self))
    }

    fn from_json(value: &Value) -> std::result::Result<Self, String> {
        value.as_str().map(String::from).ok_or_else(|| "a text".into())
    }
}

macro_rules! integers {
    ($($type:ty),*) => {$(
        impl ConfigValue for $type {
            fn to_json(&self) -> std::result::Result<Value, String> {
                Ok(json!(self))
            }

            fn from_json(value: &Value) -> std::result::Result<Self, String> {
                // Keras writes some counts as 2.0, and the window sizes of 1D layers as lists of one number.
                let value = match value.as_array().map(Vec::as_slice) {
                    Some([one]) => one,
                    _ => value,
                };
                let whole = value.as_f64().filter(|x| x.fract() == 0.0 && x.abs() < 9e15);
                let whole = value.as_i64().or(whole.map(|x| x as i64));
                whole.and_then(|x| x.try_into().ok()).ok_or_else(|| "a whole number".into())
            }
        }
    )*};
}
integers!(usize, u64, i64);

impl ConfigValue for f32 {
    fn to_json(&self) -> std::result::Result<Value, String> {
        Ok(number(Argument::from(*self)))
    }

    fn from_json(value: &Value) -> std::result::Result<Self, String> {
        python_json::float(value).map(|x| x as f32).ok_or_else(|| "a number".into())
    }
}

impl ConfigValue for f64 {
    fn to_json(&self) -> std::result::Result<Value, String> {
        Ok(python_json::number(*self))
    }

    fn from_json(value: &Value) -> std::result::Result<Self, String> {
        python_json::float(value).ok_or_else(|| "a number".into())
    }
}

impl<T: ConfigValue> ConfigValue for Option<T> {
    fn to_json(&self) -> std::result::Result<Value, String> {
        self.as_ref().map_or(Ok(Value::Null), T::to_json)
    }

    fn from_json(value: &Value) -> std::result::Result<Self, String> {
        if value.is_null() { Ok(None) } else { T::from_json(value).map(Some) }
    }
}

impl<T: ConfigValue> ConfigValue for Vec<T> {
    fn to_json(&self) -> std::result::Result<Value, String> {
        self.iter().map(T::to_json).collect::<std::result::Result<Vec<_>, _>>().map(Value::Array)
    }

    fn from_json(value: &Value) -> std::result::Result<Self, String> {
        let list = value.as_array().ok_or("a list")?;
        list.iter().map(T::from_json).collect()
    }
}

/// A list of `N`, or one value for all.
impl<T: ConfigValue + Clone, const N: usize> ConfigValue for [T; N] {
    fn to_json(&self) -> std::result::Result<Value, String> {
        self.iter().map(T::to_json).collect::<std::result::Result<Vec<_>, _>>().map(Value::Array)
    }

    fn from_json(value: &Value) -> std::result::Result<Self, String> {
        if !value.is_array() {
            return T::from_json(value).map(|one| std::array::from_fn(|_| one.clone()));
        }
        let list: Vec<T> = Vec::from_json(value)?;
        list.try_into().map_err(|_| format!("a list of {N}"))
    }
}

impl<A: ConfigValue, B: ConfigValue> ConfigValue for (A, B) {
    fn to_json(&self) -> std::result::Result<Value, String> {
        Ok(json!([self.0.to_json()?, self.1.to_json()?]))
    }

    fn from_json(value: &Value) -> std::result::Result<Self, String> {
        match value.as_array().map(Vec::as_slice) {
            Some([a, b]) => Ok((A::from_json(a)?, B::from_json(b)?)),
            _ => Err("a list of two".into()),
        }
    }
}

impl ConfigValue for Axes {
    fn to_json(&self) -> std::result::Result<Value, String> {
        Ok(match self.list.as_deref() {
            None => Value::Null,
            Some([one]) => json!(one),
            Some(list) => json!(list),
        })
    }

    fn from_json(value: &Value) -> std::result::Result<Self, String> {
        if value.is_array() {
            return Vec::<i64>::from_json(value).map(|list| Axes::from(&list[..]));
        }
        i64::from_json(value).map(Axes::from)
    }
}

impl ConfigValue for Padding {
    fn to_json(&self) -> std::result::Result<Value, String> {
        match self {
            Padding::Valid => Ok(json!("valid")),
            Padding::Same => Ok(json!("same")),
            Padding::Explicit(_) => Err("is explicit padding, which Keras does not have".into()),
        }
    }

    fn from_json(value: &Value) -> std::result::Result<Self, String> {
        match value.as_str() {
            Some("valid") => Ok(Padding::Valid),
            Some("same") => Ok(Padding::Same),
            _ => Err("\"valid\" or \"same\"".into()),
        }
    }
}

impl ConfigValue for Activation {
    fn to_json(&self) -> std::result::Result<Value, String> {
        Ok(json!(self.name().ok_or("has a form for which Keras has no name")?))
    }

    fn from_json(value: &Value) -> std::result::Result<Self, String> {
        let name = value.as_str().ok_or("the name of an activation")?;
        name.parse().map_err(|error: Error| format!("another one. {error}"))
    }
}

impl ConfigValue for DTypePolicy {
    fn to_json(&self) -> std::result::Result<Value, String> {
        Ok(json!({
            "module": "keras", "class_name": "DTypePolicy", "config": {"name": self.name()},
            "registered_name": null,
        }))
    }

    fn from_json(value: &Value) -> std::result::Result<Self, String> {
        let name = value.as_str().or_else(|| value.pointer("/config/name")?.as_str());
        match name {
            Some("float32") => Ok(DTypePolicy::FLOAT32),
            Some("float16") => Ok(DTypePolicy::FLOAT16),
            Some("mixed_float16") => Ok(DTypePolicy::MIXED_FLOAT16),
            Some("mixed_bfloat16") => {
                static REPORTED: std::sync::Once = std::sync::Once::new();
                REPORTED.call_once(|| {
                    log::warn!(
                        "A model's policy is mixed_bfloat16, and devices have no bfloat16: its layers compute in float32, which has \
                         the same range and more digits."
                    );
                });
                Ok(DTypePolicy::FLOAT32)
            }
            Some("bfloat16") => Err(
                "another one, as devices have no bfloat16: in Keras, make the layer with float32 or mixed_bfloat16, which keep \
                 weights in float32, and set its weights"
                    .into(),
            ),
            _ => Err("one of float32, float16, mixed_float16, mixed_bfloat16".into()),
        }
    }
}

// ---- functions: initializers, regularizers, constraints -----------------------------------------------------------

fn number(argument: Argument) -> Value {
    match argument {
        Argument::Float(value) => python_json::number(value),
        Argument::Int(value) => json!(value),
        Argument::Text(value) => json!(value),
    }
}

fn function<F: ?Sized>(module: &str, function: &Function<F>) -> std::result::Result<Value, String> {
    if function.class == OWN {
        return Err("is a function of the program, which JSON cannot hold".into());
    }
    let arguments = function.arguments.iter();
    let config: Map<String, Value> =
        arguments.map(|(name, value)| (name.to_string(), number(*value))).collect();
    Ok(described(module, function.class, config))
}

fn described(module: &str, class: &str, config: Map<String, Value>) -> Value {
    json!({"module": module, "class_name": class, "config": config, "registered_name": null})
}

/// The class and arguments of a function that Keras describes by a name alone or by an object.
struct Described<'a> {
    class: &'a str,
    config: Option<&'a Map<String, Value>>,
}

impl<'a> Described<'a> {
    fn new(value: &'a Value) -> Option<Self> {
        if let Some(class) = value.as_str() {
            return Some(Described { class, config: None });
        }
        let class = value.get("class_name")?.as_str()?;
        Some(Described { class, config: value.get("config").and_then(Value::as_object) })
    }

    /// The class in a normalized form: `GlorotUniform` and `glorot_uniform` become `glorotuniform`.
    fn plain(&self) -> String {
        self.class.replace('_', "").to_lowercase()
    }

    fn number(&self, key: &str, default: f32) -> std::result::Result<f32, String> {
        let value = self.config.and_then(|config| config.get(key));
        value.map_or(Ok(default), |value| {
            f32::from_json(value).map_err(|_| format!("one whose '{key}' is a number"))
        })
    }

    fn axis(&self) -> std::result::Result<i64, String> {
        let value = self.config.and_then(|config| config.get("axis"));
        value.map_or(Ok(0), |value| {
            i64::from_json(value).map_err(|_| "one whose 'axis' is one axis".to_string())
        })
    }

    fn text(&self, key: &str) -> Option<&'a str> {
        self.config?.get(key)?.as_str()
    }
}

impl ConfigValue for Initializer {
    fn to_json(&self) -> std::result::Result<Value, String> {
        let (inner, seed) = match self {
            Initializer::Seeded(seed, inner) => (&**inner, json!(seed)),
            other => (other, Value::Null),
        };
        let float = |x: f32| number(x.into());
        let (class, config) = match inner {
            Initializer::Zeros => ("Zeros", json!({})),
            Initializer::Ones => ("Ones", json!({})),
            Initializer::Constant(value) => ("Constant", json!({"value": float(*value)})),
            Initializer::RandomUniform { low, high } => (
                "RandomUniform",
                json!({"minval": float(*low), "maxval": float(*high), "seed": seed}),
            ),
            Initializer::RandomNormal { mean, stddev } => (
                "RandomNormal",
                json!({"mean": float(*mean), "stddev": float(*stddev), "seed": seed}),
            ),
            Initializer::TruncatedNormal { mean, stddev } => (
                "TruncatedNormal",
                json!({"mean": float(*mean), "stddev": float(*stddev), "seed": seed}),
            ),
            Initializer::GlorotUniform => ("GlorotUniform", json!({"seed": seed})),
            Initializer::GlorotNormal => ("GlorotNormal", json!({"seed": seed})),
            Initializer::HeUniform => ("HeUniform", json!({"seed": seed})),
            Initializer::HeNormal => ("HeNormal", json!({"seed": seed})),
            Initializer::LecunUniform => ("LecunUniform", json!({"seed": seed})),
            Initializer::LecunNormal => ("LecunNormal", json!({"seed": seed})),
            Initializer::VarianceScaling { scale, mode, distribution } => {
                let mode = match mode {
                    FanMode::FanIn => "fan_in",
                    FanMode::FanOut => "fan_out",
                    FanMode::FanAvg => "fan_avg",
                };
                let distribution = match distribution {
                    Distribution::TruncatedNormal => "truncated_normal",
                    Distribution::UntruncatedNormal => "untruncated_normal",
                    Distribution::Uniform => "uniform",
                };
                (
                    "VarianceScaling",
                    json!({
                        "scale": float(*scale), "mode": mode, "distribution": distribution, "seed": seed
                    }),
                )
            }
            Initializer::Seeded(..) => return Err("has two seeds".into()),
            Initializer::Custom(custom) => {
                let mut value = function("keras.initializers", &custom.0)?;
                if custom.0.class == "Orthogonal" {
                    value["config"]["seed"] = seed;
                }
                return Ok(value);
            }
        };
        let config = config.as_object().cloned().unwrap_or_default();
        Ok(described("keras.initializers", class, config))
    }

    fn from_json(value: &Value) -> std::result::Result<Self, String> {
        let of = Described::new(value).ok_or("the name of an initializer, or an object")?;
        let initializer = match &*of.plain() {
            "zeros" => Initializer::Zeros,
            "ones" => Initializer::Ones,
            "constant" => Initializer::Constant(of.number("value", 0.0)?),
            "randomuniform" => Initializer::RandomUniform {
                low: of.number("minval", -0.05)?,
                high: of.number("maxval", 0.05)?,
            },
            "randomnormal" => Initializer::RandomNormal {
                mean: of.number("mean", 0.0)?,
                stddev: of.number("stddev", 0.05)?,
            },
            "truncatednormal" => Initializer::TruncatedNormal {
                mean: of.number("mean", 0.0)?,
                stddev: of.number("stddev", 0.05)?,
            },
            "glorotuniform" => Initializer::GlorotUniform,
            "glorotnormal" => Initializer::GlorotNormal,
            "heuniform" => Initializer::HeUniform,
            "henormal" => Initializer::HeNormal,
            "lecununiform" => Initializer::LecunUniform,
            "lecunnormal" => Initializer::LecunNormal,
            "orthogonal" | "orthogonalinitializer" => {
                Initializer::orthogonal(of.number("gain", 1.0)?)
            }
            "identity" | "identityinitializer" => Initializer::identity(of.number("gain", 1.0)?),
            "variancescaling" => Initializer::VarianceScaling {
                scale: of.number("scale", 1.0)?,
                mode: match of.text("mode") {
                    None | Some("fan_in") => FanMode::FanIn,
                    Some("fan_out") => FanMode::FanOut,
                    Some("fan_avg") => FanMode::FanAvg,
                    Some(_) => return Err("one whose mode is fan_in, fan_out or fan_avg".into()),
                },
                distribution: match of.text("distribution") {
                    None | Some("truncated_normal" | "normal") => Distribution::TruncatedNormal,
                    Some("untruncated_normal") => Distribution::UntruncatedNormal,
                    Some("uniform") => Distribution::Uniform,
                    Some(_) => return Err("one of another distribution".into()),
                },
            },
            _ => return Err("one of Keras's initializers".into()),
        };
        match of.config.and_then(|config| config.get("seed")).and_then(Value::as_u64) {
            Some(seed) => Ok(initializer.seed(seed)),
            None => Ok(initializer),
        }
    }
}

impl ConfigValue for Regularizer {
    fn to_json(&self) -> std::result::Result<Value, String> {
        function("keras.regularizers", &self.0)
    }

    fn from_json(value: &Value) -> std::result::Result<Self, String> {
        let of = Described::new(value).ok_or("the name of a regularizer, or an object")?;
        Ok(match &*of.plain() {
            "l1" => Regularizer::l1(of.number("l1", 0.01)?),
            "l2" => Regularizer::l2(of.number("l2", 0.01)?),
            "l1l2" => Regularizer::l1_l2(of.number("l1", 0.0)?, of.number("l2", 0.0)?),
            "orthogonalregularizer" => Regularizer::orthogonal(
                of.number("factor", 0.01)?,
                of.text("mode") == Some("columns"),
            ),
            _ => return Err("one of L1, L2, L1L2, OrthogonalRegularizer".into()),
        })
    }
}

impl ConfigValue for Constraint {
    fn to_json(&self) -> std::result::Result<Value, String> {
        function("keras.constraints", &self.0)
    }

    fn from_json(value: &Value) -> std::result::Result<Self, String> {
        let of = Described::new(value).ok_or("the name of a constraint, or an object")?;
        Ok(match &*of.plain() {
            "maxnorm" => Constraint::max_norm(of.number("max_value", 2.0)?, of.axis()?),
            "nonneg" => Constraint::non_neg(),
            "unitnorm" => Constraint::unit_norm(of.axis()?),
            "minmaxnorm" => Constraint::min_max_norm(
                of.number("min_value", 0.0)?,
                of.number("max_value", 1.0)?,
                of.number("rate", 1.0)?,
                of.axis()?,
            ),
            _ => return Err("one of MaxNorm, NonNeg, UnitNorm, MinMaxNorm".into()),
        })
    }
}
