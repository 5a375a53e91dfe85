//! [`load_keras_model`]: the layers of a SavedModel that Keras 2 wrote.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
#[cfg(not(target_family = "wasm"))]
use std::path::Path;

use prost::Message;
use serde_json::{Value, json};

use super::graph_def::proto::SavedObjectGraph;
use super::load::{INDEX, LoadOptions, SHARDS, checkpoint, meta_graph};
use super::loaded::variable_keys;
use super::model_files::ModelFiles;
use crate::error::{Error, Result, message};
use crate::host_array::HostArray;
use crate::keras::python_json;
use crate::keras::saving::LoadedModel;
#[cfg(not(target_family = "wasm"))]
use crate::train::index_path;
use crate::train::{BundleReader, StoredObjects};

/// What Keras 2 writes of each of its objects.
#[derive(Clone, PartialEq, Message)]
struct SavedMetadata {
    #[prost(message, repeated, tag = "1")]
    nodes: Vec<SavedObject>,
}

#[derive(Clone, PartialEq, Message)]
struct SavedObject {
    #[prost(string, tag = "3")]
    node_path: String,
    /// The object as JSON.
    #[prost(string, tag = "5")]
    metadata: String,
}

const METADATA: &str = "keras_metadata.pb";

/// Loads the model of a SavedModel that Keras 2 wrote by `model.save(folder)`, with its layers and their weights. A model whose
/// layers the folder does not describe, which Keras 3 and `tf.saved_model.save` write, is loaded by [`load`](super::load), as
/// functions.
///
/// The model is not compiled.
///
/// ```no_run
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::{self as tf, Trackable};
/// let model = tf::saved_model::load_keras_model("digits")?.sequential()?;
/// println!("{}", model.summary());
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::Io`] if a file cannot be read; [`Error::Data`] if one is damaged, or if the folder does not describe layers, or one
/// that this crate lacks; [`Error::Checkpoint`] if the weights do not fit the layers.
#[cfg(not(target_family = "wasm"))]
pub fn load_keras_model(path: impl AsRef<Path>) -> Result<LoadedModel> {
    let path = path.as_ref();
    let loaded = || {
        let prefix = path.join("variables").join("variables");
        if !path.join(METADATA).exists() && path.join(super::load::MAIN).exists() {
            return Err(undescribed("the folder has no file keras_metadata.pb"));
        }
        let files = ModelFiles::Folder(path.into());
        let metadata = files.read(METADATA)?.to_vec();
        let weights = match index_path(&prefix).exists() {
            true => Some(BundleReader::open(&prefix)?),
            false => None,
        };
        model(&files, &metadata, weights.as_ref())
    };
    loaded().map_err(|error| error.reworded(|text| message!("{}: {text}", path.display())))
}

/// As [`load_keras_model`], from the contents of the files, as [`load_from_bytes`](super::load_from_bytes) takes them.
///
/// # Errors
/// As [`load_keras_model`].
pub fn load_keras_model_from_bytes<N: Into<String>, B: Into<Cow<'static, [u8]>>>(
    files: impl IntoIterator<Item = (N, B)>,
) -> Result<LoadedModel> {
    let mut files = ModelFiles::memory(files, super::load::MAIN);
    let metadata = files.take(|name| name == METADATA);
    let Some((_, metadata)) = metadata.first() else {
        return Err(undescribed("there is no file keras_metadata.pb"));
    };
    let index = files.take(|name| name == INDEX);
    let shards = files.take(|name| name.starts_with(SHARDS));
    let weights = match index.first() {
        Some((_, index)) => Some(checkpoint(index, shards)?),
        None => None,
    };
    model(&files, metadata, weights.as_ref())
}

fn undescribed(what: &str) -> Error {
    Error::Data(message!(
        "{what}, so its layers are not known. Load its functions with saved_model::load, or save the model as a .keras file."
    ))
}

fn model(
    files: &ModelFiles,
    metadata: &[u8],
    weights: Option<&BundleReader<'_>>,
) -> Result<LoadedModel> {
    let metadata = SavedMetadata::decode(metadata)
        .map_err(|error| Error::Data(message!("{METADATA} is damaged ({error}).")))?;
    let root = metadata.nodes.iter().find(|node| node.node_path == "root");
    let root = root.ok_or_else(|| undescribed("keras_metadata.pb describes no model"))?;
    let root: Value = python_json::parse(root.metadata.as_bytes()).map_err(|error| {
        Error::Data(message!("the model in {METADATA} is not valid JSON ({error})."))
    })?;
    let class = root.get("class_name").and_then(Value::as_str).unwrap_or("");
    if !has_layers(class) || layers_of(&root).is_none() {
        let name = root.get("name").and_then(Value::as_str).unwrap_or("");
        return Err(undescribed(&format!(
            "the model '{name}' is a '{class}', a class of its own, which keeps its layers in code"
        )));
    }
    let topology = json!({"class_name": class, "config": without_tuples(&root["config"])});
    let mut arrays = Vec::new();
    if let Some(bundle) = weights {
        let objects = meta_graph(files, &LoadOptions::new())?.object_graph_def.unwrap_or_default();
        let keys = variable_keys(&objects, StoredObjects::read(bundle)?.as_ref());
        let children = children(&objects);
        let seen = HashSet::new();
        Weights { bundle, keys, objects: &objects, children, seen, arrays: &mut arrays }
            .add(&topology, 0, "")?;
    }
    crate::keras::saving::layers_model(&topology, arrays)
}

/// Whether a model of this class has a list of layers.
fn has_layers(class: &str) -> bool {
    matches!(class, "Sequential" | "Functional" | "Model")
}

fn layers_of(model: &Value) -> Option<&Vec<Value>> {
    model.get("config")?.get("layers")?.as_array()
}

/// The value with lists in the place of what Keras 2 writes for tuples and shapes. The parser limits its depth.
fn without_tuples(value: &Value) -> Value {
    match value {
        Value::Object(object) => {
            let class = object.get("class_name").and_then(Value::as_str);
            match (class, object.get("items")) {
                (Some("__tuple__" | "TensorShape"), Some(items)) => without_tuples(items),
                _ => object
                    .iter()
                    .map(|(key, value)| (key.clone(), without_tuples(value)))
                    .collect::<serde_json::Map<_, _>>()
                    .into(),
            }
        }
        Value::Array(list) => list.iter().map(without_tuples).collect(),
        value => value.clone(),
    }
}

/// The parts of each object, by their names.
type Children<'a> = HashMap<(usize, &'a str), usize>;

fn children(objects: &SavedObjectGraph) -> Children<'_> {
    let parts = objects.nodes.iter().enumerate();
    let parts = parts.flat_map(|(at, node)| node.children.iter().map(move |part| (at, part)));
    parts
        .filter_map(|(at, part)| {
            Some(((at, &part.local_name[..]), usize::try_from(part.node_id).ok()?))
        })
        .collect()
}

/// The weights of all layers, by the layers' paths and their number in the layer.
struct Weights<'a> {
    bundle: &'a BundleReader<'a>,
    /// The name in the checkpoint of each object that is a variable.
    keys: HashMap<usize, String>,
    objects: &'a SavedObjectGraph,
    children: Children<'a>,
    /// The objects that belong to a layer: a file cannot have the work done, or a variable read, for each of many layers.
    seen: HashSet<usize>,
    arrays: &'a mut Vec<(String, HostArray<'static>)>,
}

impl Weights<'_> {
    /// Adds those of a model, which is the object `at`. The parser of JSON limits the depth.
    fn add(&mut self, model: &Value, at: usize, path: &str) -> Result<()> {
        let sequential = model.get("class_name").and_then(Value::as_str) == Some("Sequential");
        let mut place = 0;
        for layer in layers_of(model).into_iter().flatten() {
            let class = layer.get("class_name").and_then(Value::as_str).unwrap_or("");
            if sequential && class == "InputLayer" {
                continue;
            }
            let own = format!("layer-{place}");
            place += 1;
            let name = layer.get("name").or_else(|| layer.pointer("/config/name"));
            let name = name.and_then(Value::as_str).unwrap_or("");
            let path = if path.is_empty() { name.to_string() } else { format!("{path}/{name}") };
            let Some(&at) = self.children.get(&(at, &own[..])) else { continue };
            if has_layers(class) && layers_of(layer).is_some() {
                self.add(layer, at, &path)?;
                continue;
            }
            for (number, key) in self.keys_of(at).into_iter().enumerate() {
                self.arrays.push((format!("{path}/{number}"), self.bundle.array(&key)?));
            }
        }
        Ok(())
    }

    /// The names in the checkpoint of a layer's variables, in Keras's order.
    fn keys_of(&mut self, layer: usize) -> Vec<String> {
        // A model that was saved without its functions lacks the list, and has the variables in the layer's parts.
        let first = self.children.get(&(layer, "variables")).copied().unwrap_or(layer);
        let (mut open, mut keys) = (vec![first], Vec::new());
        while let Some(at) = open.pop() {
            if !self.seen.insert(at) {
                continue;
            }
            keys.extend(self.keys.get(&at).cloned());
            let parts = self.objects.nodes.get(at).into_iter().flat_map(|node| &node.children);
            open.extend(parts.rev().filter_map(|part| usize::try_from(part.node_id).ok()));
        }
        keys
    }
}
