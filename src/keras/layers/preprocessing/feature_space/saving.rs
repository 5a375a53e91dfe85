//! A [`FeatureSpace`] as a `.keras` file, which Keras's `load_model` reads, and vice versa.
//!
//! Source: `FeatureSpace.save`, `get_config` and `from_config`; the weights are those of the preprocessors, which a container names
//! by their classes in the order of the features.

use std::collections::HashMap;
use std::io::{Cursor, Read};
use std::path::Path;
use std::sync::PoisonError;

use serde_json::{Map, Value, json};

use super::feature::{Moments, Preprocessor};
use super::{Cross, Feature, FeatureMode, FeatureSpace, NAME};
use crate::error::{Error, Result, message};
use crate::files::zip::{self, ZipWriter};
use crate::hdf5::{self, File, Group};
use crate::keras::layers::host_layer_from_config;
use crate::keras::saving::assets::{self, Numbered};
use crate::keras::{Config, python_json};

const CONFIG: &str = "config.json";
const WEIGHTS: &str = "model.weights.h5";
const MODULE: &str = "keras.src.layers.preprocessing.feature_space";

fn wrong(text: String) -> Error {
    Error::Data(message!("{NAME}: {text}"))
}

impl FeatureSpace {
    /// Writes the space, and what it has learnt, as a `.keras` file. Keras's `load_model` reads it as a `FeatureSpace`.
    ///
    /// # Errors
    /// [`Error::Data`] if a layer is a custom function, or a word is not valid UTF-8; [`Error::Io`] if the file cannot be written.
    #[cfg(not(target_family = "wasm"))]
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        use std::io::Write;
        let (path, bytes) = (path.as_ref(), self.to_keras()?);
        let written = crate::files::replace(path, |file| file.write_all(&bytes));
        written.map_err(|error| Error::io(path, error))
    }

    /// Reads the space in a `.keras` file that [`save`](FeatureSpace::save) or Keras has written.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad::keras::layers::{Feature, FeatureSpace, Table};
    /// let table = Table::new().column("word", &["b", "a", "b"]);
    /// let space = FeatureSpace::new().feature("word", Feature::string_categorical());
    /// space.adapt(&table)?;
    /// let path = std::env::temp_dir().join(format!("wgrad-space-{}.keras", std::process::id()));
    /// space.save(&path)?;
    /// let copy = FeatureSpace::load(&path)?;
    /// assert_eq!(copy.apply(&table)?, space.apply(&table)?);
    /// # std::fs::remove_file(path).expect("it was written");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Io`] if the file cannot be read; else the same as [`from_keras`](FeatureSpace::from_keras).
    #[cfg(not(target_family = "wasm"))]
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let bytes = crate::files::read(path).map_err(|error| Error::io(path, error))?;
        crate::trackable::weights::in_file(path, FeatureSpace::from_keras(&bytes))
    }

    /// Returns the contents of a `.keras` file.
    ///
    /// # Errors
    /// [`Error::Data`] if a layer is a custom function, or a word is not valid UTF-8.
    pub fn to_keras(&self) -> Result<Vec<u8>> {
        self.check()?;
        // A JSON object has its keys in this order, in which Keras counts the layers.
        let mut features: Vec<&(String, Feature)> = self.features.iter().collect();
        features.sort_by(|(a, _), (b, _)| a.cmp(b));
        let (mut root, mut files) = (Group::default(), Vec::new());
        let (mut described, mut built) = (Map::new(), Map::new());
        let mut numbered = Numbered::default();
        for (name, feature) in features {
            let (class, mut options) = options(feature)?;
            let place = format!("preprocessors/{}", numbered.name(&class));
            if let Preprocessor::Normalization(moments) = &feature.preprocessor {
                let known = moments.known.read().unwrap_or_else(PoisonError::into_inner);
                let (mean, variance) =
                    known.as_ref().ok_or_else(|| super::feature::not_adapted(name))?;
                let column = |list: &[f32]| ndarray::Array1::from(list.to_vec()).into();
                root.add(&format!("{place}/vars/0"), column(mean));
                root.add(&format!("{place}/vars/1"), column(variance));
                root.add(&format!("{place}/vars/2"), ndarray::arr0(0i64).into());
            }
            if let (Preprocessor::Layer(layer), true) =
                (&feature.preprocessor, assets::has_vocabulary(&class))
            {
                // Special tokens have weights, too.
                if let Some(weights) = assets::column_weights(&json!({"config": options})) {
                    for place in assets::places(&class, &place) {
                        let weights = ndarray::Array1::from(weights.clone());
                        root.add(&assets::weights_at(&place), weights.into());
                    }
                }
                // With a vocabulary in its config, Keras would not let it learn again; but it does not read weights with zeros for
                // a vocabulary in a file.
                let padded = options.get("pad_to_max_tokens") == Some(&json!(true));
                if layer.is_adaptable() && !padded {
                    move_vocabulary(&class, &place, &mut options, &mut files)?;
                }
            }
            let build = match assets::has_vocabulary(&class) && class != "TextVectorization" {
                true => json!({}),
                false => json!({"input_shape": [null, 1]}),
            };
            options.insert("name".into(), json!(format!("{name}_preprocessor")));
            let module = if class == "TFDIdentity" { MODULE } else { "keras.layers" };
            let registered = if class == "TFDIdentity" { json!(class) } else { Value::Null };
            let preprocessor = json!({
                "module": module, "class_name": class, "config": options, "registered_name": registered, "build_config": build,
            });
            built.insert(name.clone(), build);
            described.insert(
                name.clone(),
                json!({
                    "module": MODULE, "class_name": "Feature", "registered_name": "Feature",
                    "config": {
                        "dtype": feature.dtype, "preprocessor": preprocessor, "output_mode": feature.mode.name(),
                    },
                }),
            );
        }
        let crosses = self.crosses.iter().map(|cross| {
            json!({
                "module": MODULE, "class_name": "Cross", "registered_name": "Cross",
                "config": {
                    "feature_names": cross.names, "crossing_dim": cross.crossing_dim, "output_mode": cross.mode.name(),
                },
            })
        });
        let config = json!({
            "module": "keras.utils", "class_name": NAME, "registered_name": null, "build_config": built,
            "config": {
                "features": described, "output_mode": if self.is_dict() { "dict" } else { "concat" }, "crosses": crosses.collect::<Vec<_>>(), "crossing_dim": 32,
                "hashing_dim": 32, "num_discretization_bins": 32,
            },
        });
        let mut archive = ZipWriter::default();
        let mut add = |name: &str, contents: &[u8]| {
            archive.add(name, contents, false).map_err(|error| {
                Error::Checkpoint(message!(
                    "{NAME}: save: '{name}' cannot be written into the archive: {error}."
                ))
            })
        };
        add("metadata.json", json!({"keras_version": "3.0.0"}).to_string().as_bytes())?;
        add(CONFIG, python_json::text(&config).as_bytes())?;
        add(WEIGHTS, &hdf5::write(&root)?)?;
        for (name, contents) in &files {
            add(name, contents)?;
        }
        archive.finish().map_err(|error| {
            Error::Checkpoint(message!("{NAME}: save: the archive cannot be written: {error}."))
        })
    }

    /// Reads the space in the contents of a `.keras` file.
    ///
    /// # Errors
    /// [`Error::Data`] if the contents are damaged or no `FeatureSpace`, or a feature has an unknown layer.
    pub fn from_keras(bytes: &[u8]) -> Result<Self> {
        let mut from = Cursor::new(bytes);
        let damaged = |what: String| {
            wrong(format!("load: {what}. It is damaged or not a .keras file; take another copy."))
        };
        let members = zip::members(&mut from).map_err(|error| damaged(error.to_string()))?;
        // Keras does not compress the archive.
        let longest = (bytes.len() as u64).saturating_mul(16).saturating_add(1 << 16);
        let mut file = |name: &str| -> Result<Option<Vec<u8>>> {
            let Some(member) = members.iter().find(|member| member.name == name) else {
                return Ok(None);
            };
            let wrong = |error: std::io::Error| damaged(format!("'{name}': {error}"));
            let mut contents = zip::open(&mut from, member).map_err(wrong)?;
            let mut bytes = Vec::new();
            let read = (&mut contents).take(longest).read_to_end(&mut bytes);
            read.and_then(|_| contents.check()).map_err(wrong)?;
            Ok(Some(bytes))
        };
        let missing = |name: &str| damaged(format!("the archive has no '{name}'"));
        let text = file(CONFIG)?.ok_or_else(|| missing(CONFIG))?;
        let mut config: Value = python_json::parse(&text)
            .map_err(|error| damaged(format!("'{CONFIG}' is not valid JSON: {error}")))?;
        if config.get("class_name") != Some(&json!(NAME)) {
            let found = config.get("class_name").and_then(Value::as_str).unwrap_or("nothing");
            return Err(wrong(format!(
                "load: the file holds a {found}. Call keras::saving::load_model for models."
            )));
        }
        let weights = file(WEIGHTS)?.ok_or_else(|| missing(WEIGHTS))?;
        let weights = File::parse(&weights, Path::new("the contents"))?;
        let order = keys(&text, &["config", "features"]);
        let order: HashMap<&str, usize> =
            order.iter().enumerate().map(|(at, name)| (&**name, at)).collect();
        let features = config.pointer_mut("/config/features").map(Value::take);
        let Some(Value::Object(features)) = features else {
            return Err(wrong("load: the config has no 'features', an object.".into()));
        };
        let mut features: Vec<(String, Value)> = features.into_iter().collect();
        features.sort_by_key(|(name, _)| order.get(&**name).copied());
        let mut space = FeatureSpace::new();
        let mut numbered = Numbered::default();
        for (name, mut value) in features {
            let preprocessor =
                value.pointer_mut("/config/preprocessor").map(Value::take).unwrap_or_default();
            let class = preprocessor.get("class_name").and_then(Value::as_str).unwrap_or_default();
            let place = format!("preprocessors/{}", numbered.name(class));
            let vocabulary = match assets::has_vocabulary(class) {
                true => file(&assets::vocabulary_at(&place))?,
                false => None,
            };
            let made = made(preprocessor, &place, vocabulary, &weights);
            let preprocessor = super::in_column(&name, made)?;
            let text = |key: &str| value.pointer(&format!("/config/{key}")).and_then(Value::as_str);
            let mode = mode(text("output_mode").unwrap_or_default())?;
            let dtype = text("dtype").unwrap_or("float32").to_string();
            space = space.feature(name, Feature { dtype, preprocessor, mode });
        }
        let crosses = config.pointer("/config/crosses").and_then(Value::as_array);
        for value in crosses.map_or(&[][..], Vec::as_slice) {
            let options =
                value.get("config").and_then(Value::as_object).cloned().unwrap_or_default();
            let options = Config::with_options("Cross", options);
            let names = options.need::<Vec<String>>("feature_names")?;
            let mode = mode(&options.need::<String>("output_mode")?)?;
            space = space.cross(Cross::new(names, options.need("crossing_dim")?).output_mode(mode));
        }
        space.dict = config.pointer("/config/output_mode") == Some(&json!("dict"));
        space.check()?;
        Ok(space)
    }

    /// Whether Keras's result is an array for each feature.
    fn is_dict(&self) -> bool {
        self.dict
            || self.features.iter().any(|(_, feature)| feature.mode == FeatureMode::Int)
            || self.crosses.iter().any(|cross| cross.mode == FeatureMode::Int)
    }
}

fn mode(name: &str) -> Result<FeatureMode> {
    let known = [FeatureMode::Float, FeatureMode::Int, FeatureMode::OneHot];
    known.into_iter().find(|mode| mode.name() == name).ok_or_else(|| {
        wrong(format!("load: an output_mode is {name:?}; it must be float, int or one_hot."))
    })
}

/// The class and the options of a feature's layer in Keras.
fn options(feature: &Feature) -> Result<(String, Map<String, Value>)> {
    let object = |value: Value| value.as_object().cloned().unwrap_or_default();
    Ok(match &feature.preprocessor {
        Preprocessor::Identity => ("TFDIdentity".into(), object(json!({"dtype": "float32"}))),
        Preprocessor::Rescaling { scale, offset } => {
            let mut config = Config::new("Rescaling");
            config.set("scale", scale)?;
            config.set("offset", offset)?;
            ("Rescaling".into(), config.options().clone())
        }
        Preprocessor::Normalization(_) => {
            let options = json!({"axis": [-1], "invert": false, "mean": null, "variance": null});
            ("Normalization".into(), object(options))
        }
        Preprocessor::Layer(layer) => {
            let config = layer.describe()?;
            (config.class().to_string(), config.options().clone())
        }
    })
}

/// Moves a vocabulary from a layer's options to a file of the archive, if it can be there.
fn move_vocabulary(
    class: &str,
    place: &str,
    options: &mut Map<String, Value>,
    files: &mut Vec<(String, Vec<u8>)>,
) -> Result<()> {
    let text = |word: &Value| word.as_str().map_or_else(|| word.to_string(), String::from);
    let Some(words) = options.get("vocabulary").and_then(Value::as_array) else { return Ok(()) };
    let integers = class == "IntegerLookup";
    let token = |key: &str, default: &str| match options.get(key) {
        Some(Value::Null) | None => default.to_string(),
        Some(token) => text(token),
    };
    let mut all = Vec::new();
    let is_index = options.get("output_mode") == Some(&json!("int"));
    if options.get("idf_weights").is_some_and(|weights| !weights.is_null()) {
        // Special tokens are among the words then.
    } else if class == "TextVectorization" {
        all.extend([String::new()].into_iter().filter(|_| is_index));
        all.push("[UNK]".to_string());
    } else {
        if is_index && options.get("mask_token").is_some_and(|token| !token.is_null()) {
            all.push(token("mask_token", ""));
        }
        // A lookup without a word for these has others.
        let count = options.get("num_oov_indices").and_then(Value::as_u64).unwrap_or(1);
        if options.get("oov_token").is_none_or(Value::is_null) || count > (1 << 20) {
            return Ok(());
        }
        let oov = token("oov_token", if integers { "-1" } else { "[UNK]" });
        all.extend((0..count).map(|_| oov.clone()));
    }
    all.extend(words.iter().map(text));
    if let Some(file) = assets::file(&all) {
        let places = assets::places(class, place).into_iter();
        files.extend(places.map(|place| (assets::vocabulary_at(&place), file.clone())));
        options.insert("vocabulary".into(), Value::Null);
        options.insert("idf_weights".into(), Value::Null);
    }
    Ok(())
}

/// The layer of a feature.
fn made(
    mut value: Value,
    place: &str,
    vocabulary: Option<Vec<u8>>,
    weights: &File<'_>,
) -> Result<Preprocessor> {
    let numbers = |path: &str| -> Result<Option<Vec<f32>>> {
        let Some(node) = weights.get(path) else { return Ok(None) };
        let values = weights.values(node)?.to_f64();
        Ok(values.map(|values| values.iter().map(|x| *x as f32).collect()))
    };
    if let Some(file) = vocabulary {
        assets::put(&mut value, &file, numbers(&assets::weights_at(place))?)?;
    }
    let class = value.get("class_name").and_then(Value::as_str).unwrap_or_default();
    let class = class.rsplit('>').next().unwrap_or_default().to_string();
    let options = value.get("config").and_then(Value::as_object).cloned().unwrap_or_default();
    let config = Config::with_options(class.clone(), options);
    Ok(match &*class {
        "TFDIdentity" => Preprocessor::Identity,
        "Rescaling" => Preprocessor::Rescaling {
            scale: config.need("scale")?,
            offset: config.get::<Option<f32>>("offset")?.flatten().unwrap_or(0.0),
        },
        "Normalization" => {
            config.only(&["axis", "mean", "variance"], &[("invert", json!(false))])?;
            let axis = config.get::<Option<Vec<i64>>>("axis").or_else(|_| {
                config.get::<i64>("axis").map(|axis| axis.map(|axis| Some(vec![axis])))
            })?;
            if axis.flatten().is_some_and(|axis| axis != [-1] && axis != [1]) {
                return Err(wrong("load: the axis of a Normalization must be -1.".into()));
            }
            let given = |key: &str| match config.get_json(key) {
                Some(Value::Array(_)) => config.get::<Vec<f32>>(key),
                Some(_) => config.get::<f32>(key).map(|one| one.map(|one| vec![one])),
                None => Ok(None),
            };
            let known = match (given("mean")?, given("variance")?) {
                (Some(mean), Some(variance)) => Some((mean, variance)),
                _ => numbers(&format!("{place}/vars/0"))?.zip(numbers(&format!("{place}/vars/1"))?),
            };
            let moments = Moments::default();
            *moments.known.write().unwrap_or_else(PoisonError::into_inner) = known;
            Preprocessor::Normalization(moments)
        }
        _ => Preprocessor::Layer(host_layer_from_config(&config)?),
    })
}

/// The keys of the object at `path` in valid JSON, in their order.
fn keys(text: &[u8], path: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    // For each open bracket, whether it is an object, and the key of the value that is read.
    let mut open: Vec<(bool, String)> = Vec::new();
    let (mut at, mut last) = (0, String::new());
    while at < text.len() {
        match text[at] {
            b'"' => {
                let start = at;
                at += 1;
                while at < text.len() && text[at] != b'"' {
                    at += if text[at] == b'\\' { 2 } else { 1 };
                }
                let quoted = &text[start..(at + 1).min(text.len())];
                last = serde_json::from_slice(quoted).unwrap_or_default();
            }
            b':' => {
                let inside = open.len() == path.len() + 1
                    && open.iter().zip(path).all(|((_, key), wanted)| key == wanted);
                if let Some((true, key)) = open.last_mut() {
                    *key = std::mem::take(&mut last);
                    if inside {
                        found.push(key.clone());
                    }
                }
            }
            b'{' => open.push((true, String::new())),
            b'[' => open.push((false, String::new())),
            b'}' | b']' => drop(open.pop()),
            _ => {}
        }
        at += 1;
    }
    found
}

#[cfg(test)]
mod tests {
    #[test]
    fn keys_are_found_in_order() {
        let text =
            br#"{"a": {"b": {"x:": [1, {"b": 2}], "\"y": {"z": {}}, "c": "d"}}, "b": {"q": 1}}"#;
        assert_eq!(super::keys(text, &["a", "b"]), ["x:", "\"y", "c"]);
        assert!(super::keys(b"[\"", &["a"]).is_empty());
    }
}
