//! Moves layers for strings between a model's config in Keras's JSON and a plan of its front.
//!
//! A plan has the inputs of the whole, the layers, their calls in an order in which they can be computed, and the value that each
//! input of the model gets. Values are numbered: the inputs first, then the result of each call. The config without the front has an
//! input in each place where a layer on the device takes the result of one on the host.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::graph::{Call, Front};
use super::symbol::{FrontInput, FrontLayer};
use crate::error::{Error, Result, message};
use crate::keras::layers::{HashedCrossing, host_layer_from_config};
use crate::keras::{Config, python_json};
use crate::trackable::snake_case;

/// The layers that always compute on the host.
const ON_HOST: [&str; 4] = ["HashedCrossing", "Hashing", "StringLookup", "TextVectorization"];

fn wrong(what: String) -> Error {
    Error::Data(message!("FrontModel: {what}"))
}

/// Separates a model with layers for strings, as JSON, into the model without them and the plan of its front, as JSON; `None` if it
/// has no such layer. For other languages, which compute the layers themselves.
///
/// # Errors
/// [`Error::Data`] if the text is not valid JSON, or if a layer for strings takes results of layers on the device.
#[doc(hidden)]
pub fn front_of_json(model: &str) -> Result<Option<(String, String)>> {
    let mut config = crate::keras::saving::parse(model)?;
    let plan = take(&mut config)?;
    Ok(plan.map(|plan| (python_json::text(&config), python_json::text(&plan))))
}

/// The opposite of [`front_of_json`].
///
/// # Errors
/// [`Error::Data`] if the texts are not valid JSON, or do not fit together.
#[doc(hidden)]
pub fn front_into_json(model: &str, plan: &str) -> Result<String> {
    let mut config = crate::keras::saving::parse(model)?;
    put(&mut config, &crate::keras::saving::parse(plan)?)?;
    Ok(python_json::text(&config))
}

/// The layers that a plan describes, for writers of other formats.
///
/// # Errors
/// [`Error::Data`] if the text is not valid JSON or no plan, or if a layer is unknown.
#[cfg(feature = "saved-model")]
pub(crate) fn host_graph_of_plan(plan: &str) -> Result<super::HostGraph> {
    Front::from_plan(&crate::keras::saving::parse(plan)?)?.host_graph()
}

/// The class of a layer; those of a program are registered as `package>Class`.
fn class_of(layer: &Value) -> &str {
    let class = layer.get("class_name").and_then(Value::as_str).unwrap_or_default();
    class.rsplit('>').next().unwrap_or_default()
}

fn name_of(layer: &Value) -> &str {
    let name = layer.get("name").or_else(|| layer.pointer("/config/name"));
    name.and_then(Value::as_str).unwrap_or_default()
}

fn dtype_of(input: &Value) -> &str {
    input.pointer("/config/dtype").and_then(Value::as_str).unwrap_or("float32")
}

fn input_layer(name: &str, shape: &Value, dtype: &str) -> Value {
    json!({
        "module": "keras.layers", "class_name": "InputLayer", "registered_name": null, "name": name, "inbound_nodes": [],
        "config": {"batch_shape": shape, "dtype": dtype, "sparse": false, "ragged": false, "name": name},
    })
}

fn described(name: &str, layer: &Value) -> Value {
    let mut options = layer.get("config").and_then(Value::as_object).cloned().unwrap_or_default();
    options.insert("name".into(), json!(name));
    json!({
        "module": "keras.layers", "class_name": layer.get("class_name"), "config": options, "registered_name": null,
    })
}

fn options_of(config: &mut Value) -> Result<&mut Map<String, Value>> {
    let options = config.get_mut("config").and_then(Value::as_object_mut);
    options.ok_or_else(|| wrong("the model has no 'config'.".into()))
}

fn layers_in(options: &mut Map<String, Value>) -> Result<&mut Vec<Value>> {
    let layers = options.get_mut("layers").and_then(Value::as_array_mut);
    layers.ok_or_else(|| wrong("the model has no 'layers'.".into()))
}

/// Takes the layers for strings out of a model's config.
pub(super) fn take(config: &mut Value) -> Result<Option<Value>> {
    match class_of(config) {
        "Sequential" => take_stack(options_of(config)?),
        _ => take_graph(options_of(config)?),
    }
}

fn take_stack(options: &mut Map<String, Value>) -> Result<Option<Value>> {
    let layers = layers_in(options)?;
    let is_input = |layer: &Value| class_of(layer) == "InputLayer";
    let count = layers
        .iter()
        .filter(|layer| !is_input(layer))
        .take_while(|layer| ON_HOST.contains(&class_of(layer)))
        .count();
    if count == 0 {
        return Ok(None);
    }
    let input = layers.iter().find(|layer| is_input(layer));
    let shape = input.and_then(|input| input.pointer("/config/batch_shape")).cloned();
    let dtype = input.map_or("string", dtype_of).to_string();
    layers.retain(|layer| !is_input(layer));
    let front: Vec<Value> = layers.drain(..count).collect();
    let next = layers.first().and_then(|layer| layer.pointer("/build_config/input_shape")).cloned();
    options.remove("build_input_shape");
    if let Some(shape) = next {
        options.insert("build_input_shape".into(), shape);
    }
    let layers: Vec<Value> = front.iter().map(|layer| described(name_of(layer), layer)).collect();
    let calls: Vec<Value> =
        (0..layers.len()).map(|at| json!({"layer": at, "from": [at]})).collect();
    Ok(Some(json!({
        "inputs": [{"name": "input_layer", "batch_shape": shape.unwrap_or(json!([null, 1])), "dtype": dtype}],
        "feeds": [calls.len()],
        "calls": calls,
        "layers": layers,
    })))
}

/// `["dense", 0, 0]`: a layer and the number of its call.
fn history(value: &Value) -> Option<(String, usize)> {
    let [name, call, _] = value.as_array().map(Vec::as_slice)? else { return None };
    Some((name.as_str()?.to_string(), usize::try_from(call.as_u64()?).ok()?))
}

/// Calls `f` with each tensor among the arguments of a call.
fn tensors(value: &mut Value, f: &mut dyn FnMut(&mut Value) -> Result<()>) -> Result<()> {
    match value {
        Value::Array(list) => list.iter_mut().try_for_each(|value| tensors(value, f)),
        Value::Object(_) if value.get("class_name") == Some(&json!("__keras_tensor__")) => f(value),
        Value::Object(map) => map.values_mut().try_for_each(|value| tensors(value, f)),
        _ => Ok(()),
    }
}

/// Calls `f` with each result in a list of any form: one result, a list, or a map.
fn ends(value: &Value, f: &mut dyn FnMut(&Value)) {
    match value {
        _ if history(value).is_some() => f(value),
        Value::Array(list) => list.iter().for_each(|value| ends(value, f)),
        Value::Object(map) => map.values().for_each(|value| ends(value, f)),
        _ => {}
    }
}

fn names_in(options: &Map<String, Value>, key: &str) -> Vec<String> {
    let mut names = Vec::new();
    if let Some(value) = options.get(key) {
        ends(value, &mut |end| names.extend(history(end).map(|(name, _)| name)));
    }
    names
}

/// A layer on the host, and what its calls take.
struct Host {
    calls: Vec<Vec<(String, usize)>>,
}

fn take_graph(options: &mut Map<String, Value>) -> Result<Option<Value>> {
    let inputs = names_in(options, "input_layers");
    let outputs = names_in(options, "output_layers");
    let layers = layers_in(options)?;
    let mut hosts: HashMap<String, Host> = HashMap::new();
    // The order of the file, which is that of Keras's names of vocabularies.
    let mut order = Vec::new();
    let mut given: HashMap<String, (Value, String)> = HashMap::new();
    for layer in layers.iter_mut() {
        let (class, name) = (class_of(layer).to_string(), name_of(layer).to_string());
        if class == "InputLayer" {
            let shape = layer.pointer("/config/batch_shape").cloned().unwrap_or(Value::Null);
            given.insert(name, (shape, dtype_of(layer).to_string()));
        } else if ON_HOST.contains(&&*class) {
            let mut calls = Vec::new();
            let nodes = layer.get_mut("inbound_nodes").and_then(Value::as_array_mut);
            for node in nodes.into_iter().flatten() {
                let mut from = Vec::new();
                tensors(node, &mut |tensor| {
                    from.extend(tensor.pointer("/config/keras_history").and_then(history));
                    Ok(())
                })?;
                calls.push(from);
            }
            order.push((name.clone(), layer.clone()));
            hosts.insert(name, Host { calls });
        }
    }
    if let Some(name) = inputs.iter().find(|name| !given.contains_key(*name)) {
        return match hosts.is_empty() {
            // The reader of models without a front says what is wrong.
            true => Ok(None),
            false => Err(wrong(format!("the input '{name}' is no InputLayer."))),
        };
    }
    let is_text = |name: &str| given.get(name).is_some_and(|(_, dtype)| dtype == "string");
    if hosts.is_empty() && !inputs.iter().any(|name| is_text(name)) {
        return Ok(None);
    }
    let (calls, places) = ordered(&inputs, &hosts, &order)?;

    // Each place where the device takes a result of the host becomes an input.
    let names: HashSet<String> = layers.iter().map(|layer| name_of(layer).to_string()).collect();
    let mut taken: HashMap<(String, usize), String> = HashMap::new();
    let (mut new_inputs, mut fed, mut on_device) = (Vec::new(), Vec::new(), HashSet::new());
    let modes: HashMap<&str, &Value> = order.iter().map(|(name, layer)| (&**name, layer)).collect();
    for layer in layers.iter_mut() {
        let (class, consumer) = (class_of(layer).to_string(), name_of(layer).to_string());
        if ON_HOST.contains(&&*class) {
            continue;
        }
        let Some(nodes) = layer.get_mut("inbound_nodes") else { continue };
        tensors(nodes, &mut |tensor| {
            let Some(from) = tensor.pointer("/config/keras_history").and_then(history) else {
                return Ok(());
            };
            if given.contains_key(&from.0) {
                if is_text(&from.0) {
                    return Err(wrong(format!(
                        "the layer '{consumer}' ({class}) takes the strings of '{}', which no device computes with. Put a StringLookup \
                         or a TextVectorization between them.",
                        from.0
                    )));
                }
                on_device.insert(from.0);
                return Ok(());
            }
            let Some(layer) = modes.get(&*from.0) else { return Ok(()) };
            if !taken.contains_key(&from) {
                let option = |key: &str| layer.pointer(&format!("/config/{key}"));
                if option("invert") == Some(&Value::Bool(true)) {
                    return Err(wrong(format!(
                        "the layer '{consumer}' ({class}) takes the strings of '{}', which no device computes with.",
                        from.0
                    )));
                }
                let mut name = from.0.clone();
                let mut number = from.1;
                while from.1 > 0 && (name == from.0 || names.contains(&name)) {
                    name = format!("{}_{number}", from.0);
                    number += 1;
                }
                let indices =
                    option("output_mode").and_then(Value::as_str).unwrap_or("int") == "int";
                let shape = tensor.pointer("/config/shape").and_then(Value::as_array).cloned();
                let mut shape = shape.ok_or_else(|| {
                    wrong(format!("an input of the layer '{consumer}' has no 'shape'."))
                })?;
                // Keras notes an axis that the rows of a TextVectorization do not have.
                if class_of(layer) == "TextVectorization" && !indices && shape.len() == 3 {
                    shape.remove(1);
                }
                let dtype = if indices { "int32" } else { "float32" };
                new_inputs.push(input_layer(&name, &Value::Array(shape), dtype));
                let value = places.get(&from).ok_or_else(|| {
                    wrong(format!("there is no call {} of '{}'.", from.1, from.0))
                })?;
                fed.push((name.clone(), *value));
                taken.insert(from.clone(), name);
            }
            if let Some(history) = tensor.pointer_mut("/config/keras_history") {
                *history = json!([taken[&from], 0, 0]);
            }
            Ok(())
        })?;
    }
    if let Some(name) = outputs.iter().find(|name| hosts.contains_key(*name) || is_text(name)) {
        return Err(wrong(format!(
            "the output '{name}' is computed on the host. An output must be a result of a layer on the device."
        )));
    }
    // Inputs of numbers stay, except those that only the front takes.
    let in_front: HashSet<&str> = hosts
        .values()
        .flat_map(|host| host.calls.iter().flatten())
        .map(|(name, _)| &**name)
        .collect();
    let stays = |name: &str| {
        !is_text(name)
            && (!in_front.contains(name)
                || on_device.contains(name)
                || outputs.iter().any(|output| output == name))
    };
    layers.retain(|layer| match class_of(layer) {
        "InputLayer" => stays(name_of(layer)),
        class => !ON_HOST.contains(&class),
    });
    layers.splice(0..0, new_inputs);
    let mut feeds: Vec<usize> = (0..inputs.len()).filter(|at| stays(&inputs[*at])).collect();
    let mut input_layers: Vec<Value> = feeds.iter().map(|at| json!([inputs[*at], 0, 0])).collect();
    for (name, value) in fed {
        input_layers.push(json!([name, 0, 0]));
        feeds.push(value);
    }
    options.insert("input_layers".into(), json!(input_layers));
    let inputs: Vec<Value> = inputs
        .iter()
        .map(|name| {
            let (shape, dtype) = given.get(name).cloned().unwrap_or_default();
            json!({"name": name, "batch_shape": shape, "dtype": dtype})
        })
        .collect();
    let layers: Vec<Value> = order.iter().map(|(name, layer)| described(name, layer)).collect();
    Ok(Some(json!({"inputs": inputs, "layers": layers, "calls": calls, "feeds": feeds})))
}

/// The calls of the layers on the host in an order in which they can be computed, and the value that each makes.
type Ordered = (Vec<Value>, HashMap<(String, usize), usize>);

fn ordered(
    inputs: &[String],
    hosts: &HashMap<String, Host>,
    order: &[(String, Value)],
) -> Result<Ordered> {
    let mut places: HashMap<(String, usize), usize> =
        inputs.iter().enumerate().map(|(at, name)| ((name.clone(), 0), at)).collect();
    let mut waiting: HashMap<(String, usize), usize> = HashMap::new();
    let mut takers: HashMap<(String, usize), Vec<(usize, usize)>> = HashMap::new();
    let mut ready = std::collections::VecDeque::new();
    for (layer, (name, _)) in order.iter().enumerate() {
        for (call, from) in hosts[name].calls.iter().enumerate() {
            if from.is_empty() {
                return Err(wrong(format!("a call of the layer '{name}' takes nothing.")));
            }
            let mut open = 0;
            for source in from {
                if places.contains_key(source) {
                    continue;
                }
                let calls = hosts.get(&source.0).map(|host| host.calls.len());
                if calls.is_none_or(|calls| calls <= source.1) {
                    return Err(wrong(format!(
                        "the layer '{name}' computes on the host, and takes a result of '{}', which no input and no layer on the host \
                         makes.",
                        source.0
                    )));
                }
                open += 1;
                takers.entry(source.clone()).or_default().push((layer, call));
            }
            match open {
                0 => ready.push_back((layer, call)),
                _ => drop(waiting.insert((name.clone(), call), open)),
            }
        }
    }
    let mut calls = Vec::new();
    while let Some((layer, call)) = ready.pop_front() {
        let name = &order[layer].0;
        let from: Vec<usize> =
            hosts[name].calls[call].iter().filter_map(|from| places.get(from).copied()).collect();
        let own = (name.clone(), call);
        places.insert(own.clone(), inputs.len() + calls.len());
        calls.push(json!({"layer": layer, "from": from}));
        for (layer, call) in takers.remove(&own).unwrap_or_default() {
            let key = (order[layer].0.clone(), call);
            let Some(open) = waiting.get_mut(&key) else { continue };
            *open -= 1;
            if *open == 0 {
                waiting.remove(&key);
                ready.push_back((layer, call));
            }
        }
    }
    match waiting.keys().next() {
        Some((name, _)) => Err(wrong(format!("the layer '{name}' takes its own result."))),
        None => Ok((calls, places)),
    }
}

fn list<'a>(plan: &'a Value, key: &str) -> Result<&'a Vec<Value>> {
    let list = plan.get(key).and_then(Value::as_array);
    list.ok_or_else(|| wrong(format!("the plan of the front has no '{key}'.")))
}

/// The values in a list of numbers, each below `count`.
fn numbers(list: &Value, count: usize) -> Result<Vec<usize>> {
    let number = |value: &Value| {
        let number = value.as_u64().and_then(|number| usize::try_from(number).ok());
        number.filter(|number| *number < count)
    };
    let all = list.as_array().and_then(|list| list.iter().map(number).collect());
    all.ok_or_else(|| wrong(format!("{list} is no list of values below {count}.")))
}

/// Puts layers for strings in front of a model's config.
pub(super) fn put(config: &mut Value, plan: &Value) -> Result<()> {
    let stack = class_of(config) == "Sequential";
    let options = options_of(config)?;
    let (inputs, layers, calls) =
        (list(plan, "inputs")?, list(plan, "layers")?, list(plan, "calls")?);
    let mut names: HashSet<String> =
        layers_in(options)?.iter().map(|layer| name_of(layer).to_string()).collect();
    let own = names_in(options, "input_layers");
    let feeds = match stack {
        true => Vec::new(),
        false => numbers(plan.get("feeds").unwrap_or(&Value::Null), inputs.len() + calls.len())?,
    };
    // Layers on the host take over the names of the inputs that they replace.
    for (name, _) in own.iter().zip(&feeds).filter(|(_, feed)| **feed >= inputs.len()) {
        names.remove(name);
    }
    let mut free = |layer: &Value| {
        let class = snake_case(class_of(layer));
        let own = Some(name_of(layer)).filter(|name| !name.is_empty());
        let mut name = own.unwrap_or(&class).to_string();
        let mut number = 1;
        while !names.insert(name.clone()) {
            name = format!("{class}_{number}");
            number += 1;
        }
        name
    };
    let named: Vec<String> = layers.iter().map(&mut free).collect();
    if stack {
        let shape = inputs.first().and_then(|input| input.get("batch_shape"));
        let shape = shape.cloned().unwrap_or_else(|| json!([null, 1]));
        let dtype = inputs.first().and_then(|input| input.get("dtype")).and_then(Value::as_str);
        let mut front = vec![input_layer("input_layer", &shape, dtype.unwrap_or("string"))];
        if let Some(input) = front[0].as_object_mut() {
            input.retain(|key, _| key != "name" && key != "inbound_nodes");
        }
        front.extend(named.iter().zip(layers).map(|(name, layer)| described(name, layer)));
        options.insert("build_input_shape".into(), shape);
        let layers = layers_in(options)?;
        layers.retain(|layer| class_of(layer) != "InputLayer");
        front.append(layers);
        *layers = front;
        return Ok(());
    }
    if feeds.len() != own.len() {
        return Err(wrong(format!(
            "the front makes {} values, and the model has {} inputs.",
            feeds.len(),
            own.len()
        )));
    }
    // Where a value is: a layer and the number of its call.
    let mut at: Vec<Value> = Vec::with_capacity(inputs.len() + calls.len());
    let mut tensors_of: Vec<Value> = Vec::new();
    let mut front = Vec::new();
    for (place, input) in inputs.iter().enumerate() {
        let name = input.get("name").and_then(Value::as_str).unwrap_or_default();
        let direct = own.iter().zip(&feeds).find(|(_, feed)| **feed == place);
        let name = direct.map_or(name, |(own, _)| own);
        let shape = input.get("batch_shape").cloned().unwrap_or(Value::Null);
        let dtype = input.get("dtype").and_then(Value::as_str).unwrap_or("string");
        if direct.is_none() {
            if names.contains(name) {
                return Err(wrong(format!(
                    "an input and a layer are both called '{name}'. Give one of them another name."
                )));
            }
            front.push(input_layer(name, &shape, dtype));
        }
        at.push(json!([name, 0, 0]));
        tensors_of.push(json!({"shape": shape, "dtype": dtype}));
    }
    let mut nodes: Vec<Vec<Value>> = vec![Vec::new(); layers.len()];
    for call in calls {
        let layer = numbers(&json!([call.get("layer")]), layers.len())?[0];
        let from = numbers(call.get("from").unwrap_or(&Value::Null), at.len())?;
        let mut tensors = Vec::new();
        for from in &from {
            let mut config = tensors_of[*from].clone();
            config["keras_history"] = at[*from].clone();
            tensors.push(json!({"class_name": "__keras_tensor__", "config": config}));
        }
        let args = match class_of(&layers[layer]) {
            "HashedCrossing" => json!([tensors]),
            _ => json!(tensors),
        };
        at.push(json!([named[layer], nodes[layer].len(), 0]));
        let first = from.first().map(|from| tensors_of[*from].clone());
        tensors_of.push(first.unwrap_or_default());
        nodes[layer].push(json!({"args": args, "kwargs": {}}));
    }
    for ((name, layer), nodes) in named.iter().zip(layers).zip(nodes) {
        let mut described = described(name, layer);
        described["name"] = json!(name);
        described["inbound_nodes"] = json!(nodes);
        front.push(described);
    }
    let moved: HashMap<&str, &Value> = own
        .iter()
        .zip(&feeds)
        .filter(|(_, feed)| **feed >= inputs.len())
        .map(|(name, feed)| (&**name, &at[*feed]))
        .collect();
    let input_layers: Vec<&Value> = at.iter().take(inputs.len()).collect();
    options.insert("input_layers".into(), json!(input_layers));
    let outputs = names_in(options, "output_layers");
    if let Some(name) = outputs.iter().find(|name| moved.contains_key(&***name)) {
        return Err(wrong(format!(
            "the output '{name}' is computed on the host. An output must be a result of a layer on the device."
        )));
    }
    let layers = layers_in(options)?;
    layers.retain(|layer| !moved.contains_key(name_of(layer)));
    for nodes in layers.iter_mut().filter_map(|layer| layer.get_mut("inbound_nodes")) {
        tensors(nodes, &mut |tensor| {
            if let Some(history) = tensor.pointer_mut("/config/keras_history") {
                let name = history.get(0).and_then(Value::as_str).unwrap_or_default();
                if let Some(place) = moved.get(name) {
                    *history = (*place).clone();
                }
            }
            Ok(())
        })?;
    }
    layers.splice(0..0, front);
    Ok(())
}

impl Front {
    /// The front that a plan describes.
    pub(super) fn from_plan(plan: &Value) -> Result<Self> {
        let size = |size: &Value| size.as_u64().and_then(|size| usize::try_from(size).ok());
        let input = |input: &Value| {
            let text = |key: &str| input.get(key).and_then(Value::as_str).unwrap_or_default();
            let shape = input.get("batch_shape").and_then(Value::as_array);
            let shape = shape.map(|sizes| sizes.iter().map(size).collect());
            let shape = shape.ok_or_else(|| {
                wrong(format!("the input '{}' has no 'batch_shape'.", text("name")))
            })?;
            Ok(FrontInput { name: text("name").into(), shape, dtype: text("dtype").into() })
        };
        let inputs: Vec<FrontInput> =
            list(plan, "inputs")?.iter().map(input).collect::<Result<_>>()?;
        let mut layers = Vec::new();
        for layer in list(plan, "layers")? {
            let options = layer.get("config").and_then(Value::as_object).cloned();
            let config = Config::with_options(class_of(layer), options.unwrap_or_default());
            layers.push((
                name_of(layer).to_string(),
                match config.class() {
                    "HashedCrossing" => {
                        FrontLayer::Crossing(Arc::new(HashedCrossing::from_config(&config)?))
                    }
                    _ => FrontLayer::One(Arc::from(host_layer_from_config(&config)?)),
                },
            ));
        }
        let mut calls = Vec::new();
        for (at, call) in list(plan, "calls")?.iter().enumerate() {
            let layer = numbers(&json!([call.get("layer")]), layers.len())?[0];
            let from = numbers(call.get("from").unwrap_or(&Value::Null), inputs.len() + at)?;
            let (name, layer) = layers[layer].clone();
            calls.push(Call { layer, name: Some(name).filter(|name| !name.is_empty()), from });
        }
        let count = inputs.len() + calls.len();
        let feeds = numbers(plan.get("feeds").unwrap_or(&Value::Null), count)?;
        Ok(Front { inputs, calls, feeds })
    }

    /// The plan of the front.
    pub(super) fn plan(&self) -> Result<Value> {
        let inputs: Vec<Value> = self
            .inputs
            .iter()
            .map(|input| {
                json!({"name": input.name, "batch_shape": input.shape, "dtype": input.dtype})
            })
            .collect();
        let mut known: Vec<&FrontLayer> = Vec::new();
        let (mut layers, mut calls) = (Vec::new(), Vec::new());
        for call in &self.calls {
            let place = known.iter().position(|layer| layer.is(&call.layer));
            let place = match place {
                Some(place) => place,
                None => {
                    let config = match &call.layer {
                        FrontLayer::One(layer) => layer.describe()?,
                        FrontLayer::Crossing(layer) => layer.describe()?,
                    };
                    let mut options = config.options().clone();
                    if let Some(name) = &call.name {
                        options.insert("name".into(), json!(name));
                    }
                    layers.push(json!({"class_name": config.class(), "config": options}));
                    known.push(&call.layer);
                    known.len() - 1
                }
            };
            calls.push(json!({"layer": place, "from": call.from}));
        }
        Ok(json!({"inputs": inputs, "layers": layers, "calls": calls, "feeds": self.feeds}))
    }
}
