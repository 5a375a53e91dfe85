//! Models as TensorFlow.js has them: the JSON of Keras 2, with the weights in files of their own.

use std::collections::{HashMap, HashSet, VecDeque};

use serde_json::{Map, Value, json};

use super::CustomObjects;
use super::loaded_model::LoadedModel;
use super::paths::{VariablePath, places};
use crate::error::{Error, Result, message};
use crate::host_array::HostArray;
use crate::trackable::weights::layers::{Layers, split};
use crate::trackable::weights::{Arrays, LoadOptions, load};
use crate::trackable::{NamedArray, Role};

/// The deepest models in models.
const DEEPEST: usize = 32;

/// The model that `modelTopology` describes, with these weights.
///
/// # Errors
/// [`Error::Data`] if a layer is unknown, [`Error::Checkpoint`] if the weights do not fit the layers.
pub(crate) fn layers_model(
    topology: &Value,
    weights: Vec<(String, HostArray<'static>)>,
) -> Result<LoadedModel> {
    let written_there = topology.get("backend").and_then(Value::as_str) == Some("tensor_flow.js");
    let config = match topology.get("model_config") {
        Some(Value::String(text)) => super::parse(text)?,
        Some(config) => config.clone(),
        None => topology.clone(),
    };
    let model = LoadedModel::made(&modern(config, written_there, 0)?, &CustomObjects::new())?;
    let layers = Layers::collect(&model);
    let arrays = matched(&layers, &places(&layers).0, weights)?;
    load(&model, &Arrays::new(arrays), &LoadOptions::new())?;
    Ok(model)
}

fn is_false(value: &Value) -> bool {
    value == false
}

fn is_one(value: &Value) -> bool {
    value == 1
}

fn any(_: &Value) -> bool {
    true
}

/// An option: parts of the names of the classes that have it (none for all), and the values with which a layer does the same as
/// without it.
type Gone = (&'static [&'static str], &'static str, fn(&Value) -> bool);

/// Options of Keras 2 that Keras 3 does not have.
const GONE: &[Gone] = &[
    (&["Depthwise", "Separable", "Transpose"], "groups", is_one),
    (&["Depthwise", "Separable"], "kernel_initializer", any),
    (&["Depthwise", "Separable"], "kernel_regularizer", any),
    (&["Depthwise", "Separable"], "kernel_constraint", any),
    (&["BatchNormalization"], "renorm", is_false),
    (&["BatchNormalization"], "fused", any),
    (&["BatchNormalization"], "virtual_batch_size", any),
    (&["MultiHeadAttention"], "softmax_robust_masking", is_false),
    (&["MultiHeadAttention"], "query_shape", any),
    (&["MultiHeadAttention"], "key_shape", any),
    (&["MultiHeadAttention"], "value_shape", any),
    (&[], "time_major", is_false),
    (&[], "implementation", any),
    (&["Embedding"], "input_length", any),
];

/// A config of Keras 2 or TensorFlow.js with the keys of Keras 3.
pub(super) fn modern(mut value: Value, written_there: bool, depth: usize) -> Result<Value> {
    if depth > DEEPEST {
        return Err(Error::Data(message!(
            "the model has models in models, more than {DEEPEST} deep, which is not supported."
        )));
    }
    let class = value.get("class_name").and_then(Value::as_str).unwrap_or("").to_string();
    // A Sequential of Keras 1 is the list of its layers.
    if let Some(list @ Value::Array(_)) = value.get("config") {
        value["config"] = json!({"layers": list});
    }
    let Some(config) = value.get_mut("config").and_then(Value::as_object_mut) else {
        return Ok(value);
    };
    if written_there {
        // What was not specified is null there, where Keras has a default.
        without_nulls(config, 0);
    }
    for (classes, option, is_plain) in GONE {
        let has_it = classes.is_empty() || classes.iter().any(|part| class.contains(part));
        if has_it && config.get(*option).is_some_and(is_plain) {
            config.remove(*option);
        }
    }
    if class == "LeakyReLU" {
        if let Some(alpha) = config.remove("alpha") {
            config.insert("negative_slope".to_string(), alpha);
        }
    }
    // It had another slope in Keras 2, and still has it in TensorFlow.js.
    for key in ["activation", "recurrent_activation"] {
        if config.get(key).and_then(Value::as_str) == Some("hard_sigmoid") {
            config.insert(key.to_string(), "keras_2_hard_sigmoid".into());
        }
    }
    for key in ["layer", "backward_layer", "cell"] {
        if let Some(inner) = config.get_mut(key) {
            *inner = modern(inner.take(), written_there, depth + 1)?;
        }
    }
    for key in ["layers", "cells"] {
        if let Some(Value::Array(layers)) = config.get_mut(key) {
            for layer in layers.iter_mut() {
                *layer = modern(layer.take(), written_there, depth + 1)?;
            }
            if class == "Sequential" {
                add_input(layers);
            }
        }
    }
    modern_calls(config);
    Ok(value)
}

/// Calls between layers as lists, `["dense", 0, 0, {}]`, become those of Keras 3.
fn modern_calls(config: &mut Map<String, Value>) {
    let Some(layers) = config.get("layers").and_then(Value::as_array) else { return };
    let is_list = |node: &Value| node.is_array();
    let nodes = layers.iter().filter_map(|layer| layer.get("inbound_nodes")?.as_array());
    if !nodes.flatten().any(is_list) {
        return;
    }
    // A model in a model has a call of its own, before those by others. Some programs count it.
    let mut before: HashMap<String, u64> = HashMap::new();
    let mut functional = HashSet::new();
    for layer in layers {
        let name = layer.get("name").and_then(Value::as_str).unwrap_or("").to_string();
        let count = layer.get("inbound_nodes").and_then(Value::as_array).map_or(0, Vec::len) as u64;
        match layer.get("class_name").and_then(Value::as_str) {
            Some("Functional" | "Model") => {
                functional.insert(name.clone());
                before.insert(name, count)
            }
            Some("Sequential") => before.insert(name, count),
            _ => None,
        };
    }
    // If the number of the first call is taken, the own one does not count; if one after the last is, it does.
    let mut taken: HashMap<String, (bool, bool)> = HashMap::new();
    let mut look = |name: &str, call: u64| {
        if let Some(count) = before.get(name) {
            let seen = taken.entry(name.to_string()).or_default();
            seen.0 |= call == 0;
            seen.1 |= call == *count;
        }
    };
    for layer in layers {
        references(layer.get("inbound_nodes").unwrap_or(&Value::Null), 0, &mut look);
    }
    references(config.get("output_layers").unwrap_or(&Value::Null), 0, &mut look);
    let own: HashSet<String> = taken
        .into_iter()
        .filter(|(_, (first, past))| *past || !first)
        .map(|(name, _)| name)
        .collect();
    let number = |name: &str, call: u64| call.saturating_sub(u64::from(own.contains(name)));
    if let Some(Value::Array(layers)) = config.get_mut("layers") {
        for layer in layers {
            if let Some(Value::Array(nodes)) = layer.get_mut("inbound_nodes") {
                nodes
                    .iter_mut()
                    .filter(|node| is_list(node))
                    .for_each(|node| *node = modern_call(node, &number));
            }
        }
    }
    // Keras 3 counts the own call of a functional model here.
    let outputs = |name: &str, call: u64| number(name, call) + u64::from(functional.contains(name));
    if let Some(ends) = config.get_mut("output_layers") {
        renumber(ends, 0, &outputs);
    }
}

/// The name of a layer and the number of its call, if the value is a result of one: `["dense", 0, 0]`, or with arguments after it.
fn reference(value: &Value) -> Option<(&str, u64)> {
    match &value.as_array()?[..] {
        [Value::String(name), call, output, ..] if output.is_u64() => Some((name, call.as_u64()?)),
        _ => None,
    }
}

/// Visits the results of layers in a value.
fn references(value: &Value, depth: usize, visit: &mut dyn FnMut(&str, u64)) {
    if let Some((name, call)) = reference(value) {
        visit(name, call);
    }
    if depth < DEEPEST {
        match value {
            Value::Array(list) => list.iter().for_each(|value| references(value, depth + 1, visit)),
            Value::Object(map) => {
                map.values().for_each(|value| references(value, depth + 1, visit))
            }
            _ => {}
        }
    }
}

fn renumber(value: &mut Value, depth: usize, number: &dyn Fn(&str, u64) -> u64) {
    if let Some((name, call)) = reference(value) {
        value[1] = number(name, call).into();
    } else if let (Value::Array(list), true) = (value, depth < DEEPEST) {
        list.iter_mut().for_each(|value| renumber(value, depth + 1, number));
    }
}

/// A call in Keras 3's form: the results of layers are arguments, also those with a name.
fn modern_call(node: &Value, number: &dyn Fn(&str, u64) -> u64) -> Value {
    let tensor = |value: &Value| -> Option<Value> {
        let (name, call) = reference(value)?;
        let history = json!([name, number(name, call), value[2]]);
        Some(json!({"class_name": "__keras_tensor__", "config": {"keras_history": history}}))
    };
    let parts = node.as_array().map_or(&[][..], Vec::as_slice);
    // A call of one result may be without the list around it.
    let parts = if reference(node).is_some() { std::slice::from_ref(node) } else { parts };
    let inputs: Vec<Value> = parts.iter().filter_map(tensor).collect();
    let mut kwargs = Map::new();
    for (key, value) in parts.iter().filter_map(|part| part.get(3)?.as_object()).flatten() {
        let value = match value {
            Value::Array(list)
                if reference(value).is_none() && list.iter().any(|v| reference(v).is_some()) =>
            {
                list.iter().map(|value| tensor(value).unwrap_or(value.clone())).collect()
            }
            value => tensor(value).unwrap_or(value.clone()),
        };
        kwargs.insert(key.clone(), value);
    }
    let args = if inputs.len() == 1 { json!(inputs) } else { json!([inputs]) };
    json!({"args": args, "kwargs": kwargs})
}

fn without_nulls(object: &mut Map<String, Value>, depth: usize) {
    object.retain(|_, value| !value.is_null());
    for (key, value) in object {
        // Layers and models have their own turn.
        let own = matches!(&key[..], "layers" | "layer" | "cells" | "cell" | "backward_layer");
        if let (Value::Object(inner), false, true) = (value, own, depth < DEEPEST) {
            without_nulls(inner, depth + 1);
        }
    }
}

/// The first layer of a Sequential may have the shape of the input, for which there is a layer in Keras 3.
fn add_input(layers: &mut Vec<Value>) {
    let Some(first) = layers.first() else { return };
    if first.get("class_name").and_then(Value::as_str) == Some("InputLayer") {
        return;
    }
    let Some(shape) = first.pointer("/config/batch_input_shape") else { return };
    // An embedding takes integers; its own dtype is that of its results.
    let embedding = first.get("class_name").and_then(Value::as_str) == Some("Embedding");
    let dtype = match first.pointer("/config/dtype") {
        _ if embedding => json!("int32"),
        Some(dtype) => dtype.clone(),
        None => json!("float32"),
    };
    let input =
        json!({"class_name": "InputLayer", "config": {"batch_input_shape": shape, "dtype": dtype}});
    layers.insert(0, input);
}

/// The arrays of a model's variables. The names in the files begin with those of the layers, and have the variables of a layer in
/// Keras's order.
fn matched(
    layers: &Layers,
    places: &[VariablePath],
    weights: Vec<(String, HostArray<'static>)>,
) -> Result<Vec<NamedArray<'static>>> {
    let names: Vec<String> = weights.iter().map(|(name, _)| name.clone()).collect();
    let misfit = |what: String| {
        let listed = names.iter().take(8).cloned().collect::<Vec<_>>().join(", ");
        let more = if names.len() > 8 { ", .." } else { "" };
        Error::Checkpoint(message!(
            "the weights do not fit the layers: {what}. The file has {listed}{more}."
        ))
    };
    // By the beginning of the name, up to each slash.
    let mut by_layer: HashMap<&str, VecDeque<usize>> = HashMap::new();
    for (at, name) in names.iter().enumerate() {
        for (end, _) in name.match_indices('/') {
            by_layer.entry(&name[..end]).or_default().push_back(at);
        }
    }
    let mut arrays: Vec<Option<HostArray<'static>>> =
        weights.into_iter().map(|(_, array)| Some(array)).collect();
    let mut found = Vec::with_capacity(places.len());
    for place in places {
        let path = layer_of(layers, &place.name);
        // Converted models leave out the names of models around a layer.
        let queue = [path, split(path).1].into_iter().find(|name| {
            by_layer.get(*name).is_some_and(|queue| queue.iter().any(|at| arrays[*at].is_some()))
        });
        let queue = queue.and_then(|name| by_layer.get_mut(name));
        let next = queue.and_then(|queue| {
            while let Some(at) = queue.pop_front() {
                if let Some(array) = arrays[at].take() {
                    return Some((at, array));
                }
            }
            None
        });
        let (at, array) = next.ok_or_else(|| misfit(format!("'{}' is missing", place.name)))?;
        if let Some(wanted) = place.shape.as_ref().filter(|wanted| **wanted != array.shape()) {
            return Err(misfit(format!(
                "'{}' is {:?} in the file, and '{}' {wanted:?} in the model",
                names[at],
                array.shape(),
                place.name
            )));
        }
        found.push(NamedArray::new(place.name.clone(), array));
    }
    if let Some(at) = arrays.iter().position(Option::is_some) {
        return Err(misfit(format!("no layer has '{}'", names[at])));
    }
    Ok(found)
}

/// The path of the layer that has a variable, which may be in models in the model.
fn layer_of<'a>(layers: &Layers, name: &'a str) -> &'a str {
    for (end, _) in name.match_indices('/') {
        let path = &name[..end];
        let Some(class) = layers.class(path) else { continue };
        if !matches!(class.role, Role::Sequential | Role::Functional) {
            return path;
        }
    }
    split(name).0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A model that calls the model in it twice, and a layer of two inputs; `first` is the number of the first call of the inner one.
    fn calls(inner: &str, first: u64) -> Value {
        let mut config = json!({
            "layers": [
                {"name": "x", "class_name": "InputLayer", "inbound_nodes": []},
                {"name": "in", "class_name": inner, "inbound_nodes": [[["x", 0, 0, {}]], [["in", first, 0, {"training": false}]]]},
                {"name": "add", "class_name": "Add", "inbound_nodes": [[["x", 0, 0, {}], ["in", first + 1, 0, {}]]]},
                {"name": "mha", "class_name": "MultiHeadAttention",
                    "inbound_nodes": [[["add", 0, 0, {"value": ["in", first, 0], "use_causal_mask": true}]]]},
            ],
            "output_layers": [["mha", 0, 0], ["in", first + 1, 0]],
        });
        modern_calls(config.as_object_mut().unwrap());
        config
    }

    #[test]
    fn calls_of_keras_2_become_those_of_keras_3() {
        let tensor = |name: &str, call: u64| json!({"class_name": "__keras_tensor__", "config": {"keras_history": [name, call, 0]}});
        for (inner, first) in
            [("Functional", 1), ("Sequential", 1), ("Sequential", 0), ("Dense", 0)]
        {
            let config = calls(inner, first);
            let node =
                |layer: usize, at: usize| config["layers"][layer]["inbound_nodes"][at].clone();
            assert_eq!(node(1, 0), json!({"args": [tensor("x", 0)], "kwargs": {}}), "{inner}");
            assert_eq!(
                node(1, 1),
                json!({"args": [tensor("in", 0)], "kwargs": {"training": false}})
            );
            assert_eq!(
                node(2, 0),
                json!({"args": [[tensor("x", 0), tensor("in", 1)]], "kwargs": {}})
            );
            assert_eq!(node(3, 0)["kwargs"]["value"], tensor("in", 0));
            let own = if inner == "Functional" { 2 } else { 1 };
            assert_eq!(config["output_layers"], json!([["mha", 0, 0], ["in", own, 0]]), "{inner}");
        }
    }

    #[test]
    fn options_of_keras_2_become_those_of_keras_3() {
        let model = json!({"class_name": "Sequential", "config": [
            {"class_name": "LSTM", "config": {
                "recurrent_activation": "hard_sigmoid", "unit_forget_bias": null, "batch_input_shape": [null, 3, 2],
            }},
        ]});
        let model = modern(model, true, 0).unwrap();
        let layers = &model["config"]["layers"];
        assert_eq!(layers[0]["config"]["batch_input_shape"], json!([null, 3, 2]));
        assert_eq!(layers[0]["class_name"], "InputLayer");
        assert_eq!(layers[1]["config"]["recurrent_activation"], "keras_2_hard_sigmoid");
        assert!(layers[1]["config"].get("unit_forget_bias").is_none());
        let mut deep = json!({"class_name": "Dense", "config": {}});
        for _ in 0..100 {
            deep = json!({"class_name": "TimeDistributed", "config": {"layer": deep}});
        }
        assert!(modern(deep, true, 0).unwrap_err().to_string().contains("more than 32 deep"));
    }
}
