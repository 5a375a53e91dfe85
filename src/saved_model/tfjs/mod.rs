//! Models in TensorFlow.js's formats: `model.json` and files of weights.
//!
//! `weights.rs` reads the weights. `graph_json.rs` reads the graph of a graph model, which then is a SavedModel; a layers model is a
//! Keras model (`keras::saving`).
//!
//! Source: `tfjs-core/src/io` and the converter of TensorFlow.js 4.

mod graph_json;
mod weights;

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
#[cfg(not(target_family = "wasm"))]
use std::path::Path;

use serde_json::Value;

use super::graph_def::proto::{
    Attr, AttrValue, MetaGraphDef, NodeDef, SignatureDef, TensorInfo, TensorProto,
};
use super::loaded::{INIT, SavedModel};
use super::model_files::ModelFiles;
use crate::error::{Error, Result, message};
use crate::files::protobuf::TensorShapeProto;
use crate::host_array::{HostArray, HostDType};
#[cfg(feature = "keras-files")]
use crate::keras::saving::LoadedModel;

/// Loads a graph model of TensorFlow.js: what its converter makes of a SavedModel, and `tf.loadGraphModel` loads. `path` is that of
/// `model.json`; the weights are next to it. The signature `serving_default` is its function.
///
/// The weights are variables, so that the model can be trained further.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// # let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/tfjs/graph_pictures");
/// # let path = format!("{folder}/model.json");
/// let model = tf::tfjs::load_graph_model(path)?;
/// let scores = model.signature("serving_default")?.predict(tf::Tensor::zeros([1, 12, 12, 3])?)?;
/// assert_eq!(scores.shape(), [1, 5]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::Io`] if a file cannot be read; [`Error::Data`] if one is damaged or of another format.
#[cfg(not(target_family = "wasm"))]
pub fn load_graph_model(path: impl AsRef<Path>) -> Result<SavedModel> {
    let (json, files) = opened(path.as_ref())?;
    graph_model(&json, &files).map_err(|error| in_file(path.as_ref(), error))
}

/// As [`load_graph_model`], from the contents of `model.json`, and the names and contents of the files with the weights.
///
/// # Errors
/// [`Error::Data`] if a file is missing, damaged or of another format.
pub fn load_graph_model_from_bytes<N: Into<String>, B: Into<Cow<'static, [u8]>>>(
    json: &[u8],
    files: impl IntoIterator<Item = (N, B)>,
) -> Result<SavedModel> {
    graph_model(json, &ModelFiles::memory(files, ""))
}

/// Loads a layers model of TensorFlow.js: what `model.save` writes there, and its converter makes of a Keras model. `path` is that of
/// `model.json`; the weights are next to it. The model is not compiled.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// # let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/tfjs/layers_sequential");
/// # let path = format!("{folder}/model.json");
/// use tf::Trackable;
/// let model = tf::tfjs::load_layers_model(path)?.sequential()?;
/// println!("{}", model.summary());
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::Io`] if a file cannot be read; [`Error::Data`] if one is damaged, or has a layer that this crate lacks;
/// [`Error::Checkpoint`] if the weights do not fit the layers.
#[cfg(all(feature = "keras-files", not(target_family = "wasm")))]
pub fn load_layers_model(path: impl AsRef<Path>) -> Result<LoadedModel> {
    let (json, files) = opened(path.as_ref())?;
    layers_model(&json, &files).map_err(|error| in_file(path.as_ref(), error))
}

/// As [`load_layers_model`], from the contents of `model.json`, and the names and contents of the files with the weights.
///
/// # Errors
/// As [`load_layers_model`]; [`Error::Data`] if a file is missing.
#[cfg(feature = "keras-files")]
pub fn load_layers_model_from_bytes<N: Into<String>, B: Into<Cow<'static, [u8]>>>(
    json: &[u8],
    files: impl IntoIterator<Item = (N, B)>,
) -> Result<LoadedModel> {
    layers_model(json, &ModelFiles::memory(files, ""))
}

#[cfg(not(target_family = "wasm"))]
fn opened(path: &Path) -> Result<(Vec<u8>, ModelFiles)> {
    let json = crate::files::read(path).map_err(|error| Error::io(path, error))?;
    Ok((json, ModelFiles::Folder(path.parent().unwrap_or(Path::new("")).into())))
}

#[cfg(not(target_family = "wasm"))]
fn in_file(path: &Path, error: Error) -> Error {
    error.reworded(|text| message!("{}: {text}", path.display()))
}

/// The object in `model.json`, and its format.
fn parsed(json: &[u8]) -> Result<(Value, String)> {
    let json: Value = serde_json::from_slice(json)
        .map_err(|error| Error::Data(message!("it is not valid JSON ({error}). {ADVICE}")))?;
    if json.get("modelTopology").is_none() {
        return Err(Error::Data(message!("it has no \"modelTopology\". {ADVICE}")));
    }
    // Old files do not name their format.
    let graph = json.pointer("/modelTopology/node").is_some();
    let format = json.get("format").and_then(Value::as_str);
    let format = format.unwrap_or(if graph { GRAPH } else { LAYERS }).to_string();
    Ok((json, format))
}

/// The object in a `model.json` of this format.
fn of_format(json: &[u8], format: &str) -> Result<Value> {
    match parsed(json)? {
        (json, found) if found == format => Ok(json),
        (_, found) => Err(Error::Data(message!(
            "it has the format \"{found}\", not \"{format}\": load_graph_model loads graph models, load_layers_model layers models."
        ))),
    }
}

const ADVICE: &str = "Take the model.json of a TensorFlow.js model.";
const GRAPH: &str = "graph-model";
const LAYERS: &str = "layers-model";

/// The format in a `model.json`: true for a graph model, false for a layers model, `None` if it is neither.
pub fn is_graph_model(json: &[u8]) -> Option<bool> {
    match &parsed(json).ok()?.1[..] {
        GRAPH => Some(true),
        LAYERS => Some(false),
        _ => None,
    }
}

/// The names of the files with the weights of a `model.json`, as its `weightsManifest` has them.
///
/// # Errors
/// [`Error::Data`] if the contents are no such file.
pub fn weight_files(json: &[u8]) -> Result<Vec<String>> {
    let json: Value = serde_json::from_slice(json)
        .map_err(|error| Error::Data(message!("it is not valid JSON ({error}).")))?;
    weights::files(&json)
}

#[cfg(feature = "keras-files")]
fn layers_model(json: &[u8], files: &ModelFiles) -> Result<LoadedModel> {
    let json = of_format(json, LAYERS)?;
    let weights = weights::read(&json, files)?;
    crate::keras::saving::layers_model(&json["modelTopology"], weights)
}

fn graph_model(json: &[u8], files: &ModelFiles) -> Result<SavedModel> {
    let json = of_format(json, GRAPH)?;
    let mut weights: HashMap<String, HostArray<'static>> =
        weights::read(&json, files)?.into_iter().collect();
    let mut def = graph_json::graph(&json["modelTopology"])?;
    let mut initial = match json.get("modelInitializer") {
        Some(graph) => graph_json::graph(graph)?.node,
        None => Vec::new(),
    };
    let mut variables = Vec::new();
    for node in &mut def.node {
        let Some(array) = take_weight(node, &mut weights)? else { continue };
        if array.dtype() == HostDType::F32 && !array.shape().is_empty() {
            node.op = "VariableV2".to_string();
            let dtype = AttrValue { value: Some(Attr::Type(HostDType::F32.number())) };
            node.attr = [("dtype".to_string(), dtype)].into();
            variables.push((node.name.clone(), array));
        } else {
            set_value(node, array)?;
        }
    }
    let inner = def.library.iter_mut().flat_map(|library| &mut library.function);
    for node in inner.flat_map(|function| &mut function.node_def).chain(&mut initial) {
        if let Some(array) = take_weight(node, &mut weights)? {
            set_value(node, array)?;
        }
    }
    initial.iter_mut().for_each(prefix_names);
    bind_tables(&json, &mut def.node);
    let signature = graph_json::signature(&json, &def)?;
    let tables = initial.iter().filter(|node| {
        node.op.starts_with("LookupTableImport") || node.op.starts_with("InitializeTable")
    });
    let tables: Vec<String> = tables.map(|node| format!("^{}", node.name)).collect();
    let mut signatures = BTreeMap::new();
    if !tables.is_empty() {
        let name = "wgrad/initialize".to_string();
        initial.push(NodeDef {
            name: name.clone(),
            op: "NoOp".to_string(),
            input: tables,
            attr: BTreeMap::new(),
        });
        let info = TensorInfo { name, ..Default::default() };
        let init =
            SignatureDef { outputs: [("init".to_string(), info)].into(), ..Default::default() };
        signatures.insert(INIT.to_string(), init);
    }
    def.node.extend(initial);
    signatures.insert("serving_default".to_string(), signature);
    let graph =
        MetaGraphDef { graph_def: Some(def), signature_def: signatures, ..MetaGraphDef::default() };
    SavedModel::with_variables(graph, variables)
}

/// Where the nodes of the graph are that fills the tables: it may have names of the other one.
const INITIALIZER: &str = "initializer/";

/// Moves a node there, with what it reads.
fn prefix_names(node: &mut NodeDef) {
    let moved = |name: &str| match name.strip_prefix('^') {
        Some(name) => format!("^{INITIALIZER}{name}"),
        None => format!("{INITIALIZER}{name}"),
    };
    node.name = moved(&node.name);
    node.input.iter_mut().for_each(|input| *input = moved(input));
}

/// Makes the placeholders of tables read the tables: both graphs give a table the same number.
fn bind_tables(json: &Value, nodes: &mut [NodeDef]) {
    let numbered = |place: &str| -> HashMap<u64, String> {
        let infos = json.pointer(place).and_then(Value::as_object);
        let infos = infos.into_iter().flat_map(serde_json::Map::values);
        let one = |info: &Value| {
            let name = info.get("name")?.as_str()?;
            Some((info.get("resourceId")?.as_u64()?, name.to_string()))
        };
        infos.filter_map(one).collect()
    };
    let tables = numbered("/initializerSignature/outputs");
    let inputs = numbered("/signature/inputs");
    let bound: HashMap<&str, &String> = inputs
        .iter()
        .filter_map(|(id, name)| Some((name.split(':').next()?, tables.get(id)?)))
        .collect();
    for node in nodes.iter_mut().filter(|node| node.op == "Placeholder") {
        if let Some(table) = bound.get(&node.name[..]) {
            node.op = "Identity".to_string();
            node.input = vec![format!("{INITIALIZER}{table}")];
        }
    }
}

/// The weight of a node that is a constant.
///
/// # Errors
/// [`Error::Data`] if there is none, and its value is not in the graph.
fn take_weight(
    node: &NodeDef,
    weights: &mut HashMap<String, HostArray<'static>>,
) -> Result<Option<HostArray<'static>>> {
    if node.op != "Const" {
        return Ok(None);
    }
    if let Some(array) = weights.remove(&node.name) {
        return Ok(Some(array));
    }
    match node.attr.get("value").and_then(|value| value.value.as_ref()) {
        Some(Attr::Tensor(proto)) if !graph_json::is_without_values(proto) => Ok(None),
        _ => Err(Error::Data(message!(
            "the weights lack the constant \"{}\". The model is damaged.",
            node.name
        ))),
    }
}

/// Sets the value of a constant. The converter writes integers of 64 bits as `int32`, and floats as `float32`.
fn set_value(node: &mut NodeDef, array: HostArray<'static>) -> Result<()> {
    let dtype = match node.attr.get("dtype").and_then(|dtype| dtype.value.as_ref()) {
        Some(Attr::Type(number)) => HostDType::from_number(*number),
        _ => array.dtype(),
    };
    let array = match dtype == array.dtype() {
        true => array,
        false => super::graph_def::cast(&array, dtype).ok_or_else(|| {
            Error::Data(message!(
                "the constant \"{}\" is {dtype} in the graph, and {} in the weights. The model is damaged.",
                node.name,
                array.dtype()
            ))
        })?,
    };
    let value = TensorProto {
        dtype: dtype.number(),
        tensor_shape: Some(TensorShapeProto::new(array.shape())),
        string_val: array.strings().map(<[Vec<u8>]>::to_vec).unwrap_or_default(),
        tensor_content: if array.strings().is_some() { Vec::new() } else { array.bytes().to_vec() },
        ..TensorProto::default()
    };
    node.attr.insert("value".to_string(), AttrValue { value: Some(Attr::Tensor(value)) });
    Ok(())
}
