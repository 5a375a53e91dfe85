//! Reads models. The text is not trusted: missing, unknown or cyclic parts are reported as errors.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use serde_json::Value;

use super::custom::CustomObjects;
use super::order::in_order;
use crate::error::{Error, Result, message};
use crate::keras::config::shown;
use crate::keras::functional::{
    Argument, AttentionCall, Constant, MASKS, Operation, QUERIES, connect_shared, dtype_named,
    keras_op, operation_of,
};
use crate::keras::layers::formats::is_functional;
use crate::keras::layers::{AnyLayer, AttentionLayer, any_from_config, in_layer, with_others};
use crate::keras::{Config, Functional, Input, PartialShape, Sequential, SymbolicTensor};
use crate::trackable::Trackable;

fn wrong(text: String) -> Error {
    Error::Data(message!("from_json: {text}"))
}

fn text<'a>(value: &'a Value, key: &str, what: &str) -> Result<&'a str> {
    value
        .get(key)
        .and_then(Value::as_str)
        .ok_or_else(|| wrong(format!("{what} has no '{key}'; it must be a string.")))
}

fn list<'a>(value: &'a Value, key: &str, what: &str) -> Result<&'a [Value]> {
    let list = value.get(key).and_then(Value::as_array);
    list.map(|list| &list[..])
        .ok_or_else(|| wrong(format!("{what} has no '{key}'; it must be a list.")))
}

/// The config of an object of this class.
fn config_of<'a>(value: &'a Value, class: &str) -> Result<&'a Value> {
    let found = text(value, "class_name", "the model")?;
    if found != class {
        return Err(wrong(format!(
            "the text describes a {found}, and a {class} was requested. Call {found}::from_json."
        )));
    }
    value.get("config").ok_or_else(|| wrong(format!("the {class} has no 'config'.")))
}

pub(super) fn sequential(value: &Value, custom: &CustomObjects) -> Result<Sequential> {
    let config = config_of(value, "Sequential")?;
    scoped(custom, || sequential_of(config))
}

pub(super) fn functional(value: &Value, custom: &CustomObjects) -> Result<Functional> {
    // Keras's class of a model created by `keras.Model(inputs, outputs)`.
    let class = text(value, "class_name", "the model")?;
    let config = config_of(value, if class == "Model" { "Model" } else { "Functional" })?;
    scoped(custom, || functional_of(config, custom))
}

/// Runs `f`, in which layers that contain layers can also contain custom layers and models.
pub(super) fn scoped<R>(custom: &CustomObjects, f: impl FnOnce() -> Result<R>) -> Result<R> {
    let custom = custom.clone();
    let others = move |config: &Config| -> Option<Result<AnyLayer>> {
        Some(special(config, &custom)?.map(|special| match special {
            Special::Layer(layer) => layer,
            Special::Functional(model) => AnyLayer::One(Box::new(model)),
        }))
    };
    with_others(Rc::new(others), f)
}

/// A custom layer or a model.
enum Special {
    Layer(AnyLayer),
    Functional(Functional),
}

fn special(config: &Config, custom: &CustomObjects) -> Option<Result<Special>> {
    if let Some(made) = custom.make(config) {
        return Some(made.map(Special::Layer));
    }
    let options = Value::Object(config.options().clone());
    match config.class() {
        "Sequential" => {
            let model = sequential_of(&options);
            Some(model.map(|model| Special::Layer(AnyLayer::One(Box::new(model)))))
        }
        "Functional" | "Model" => Some(functional_of(&options, custom).map(Special::Functional)),
        _ => None,
    }
}

/// The class and options of a layer.
fn layer_config(value: &Value) -> Result<Config> {
    let class = text(value, "class_name", "a layer")?;
    // Custom layers are registered as `package>Class`.
    let class = class.rsplit('>').next().unwrap_or(class);
    let options = value.get("config").and_then(Value::as_object).cloned();
    let options = options.ok_or_else(|| wrong(format!("a layer {class} has no 'config'.")))?;
    Ok(Config::with_options(class, options))
}

fn name_of(value: &Value) -> Option<&str> {
    value.get("name").or_else(|| value.pointer("/config/name")).and_then(Value::as_str)
}

fn is_frozen(value: &Value) -> bool {
    value.pointer("/config/trainable") == Some(&Value::Bool(false))
}

fn sizes(value: &Value) -> Option<PartialShape> {
    let size = |size: &Value| match size {
        Value::Null => Some(None),
        size => Some(Some(usize::try_from(size.as_u64()?).ok()?)),
    };
    let sizes: Option<Vec<Option<usize>>> = value.as_array()?.iter().map(size).collect();
    sizes.map(PartialShape::from)
}

/// The input that an `InputLayer` describes.
fn input_of(value: &Value, name: Option<&str>) -> Result<Input> {
    let given = |key: &str| value.pointer(&format!("/config/{key}"));
    let shape = given("batch_shape").or_else(|| given("batch_input_shape")).ok_or_else(|| {
        wrong("an InputLayer has no 'batch_shape', such as [null, 28, 28, 1].".to_string())
    })?;
    let shape = sizes(shape).ok_or_else(|| {
        wrong(format!("'batch_shape' is {}; it must be a list of sizes and null.", shown(shape)))
    })?;
    let dtype = given("dtype").and_then(Value::as_str).unwrap_or("float32");
    if dtype == "string" {
        return Err(wrong(
            "an InputLayer has strings, which layers on the host take, so the model is a FrontModel: load its file with \
             FrontModel::load (a Sequential) or FrontModel::load_functional (feature preprocessing)."
                .to_string(),
        ));
    }
    let dtype = dtype_named(dtype).map_err(|what| wrong(format!("an InputLayer has {what}.")))?;
    let input = Input::batch_shape(shape).with_dtype(dtype);
    Ok(match name {
        Some(name) => input.with_name(name),
        None => input,
    })
}

fn sequential_of(config: &Value) -> Result<Sequential> {
    let mut model = Sequential::new();
    if let Some(name) = config.get("name").and_then(Value::as_str) {
        model = model.with_name(name);
    }
    let mut shape = config.get("build_input_shape").and_then(sizes);
    let mut frozen = Vec::new();
    for value in list(config, "layers", "the Sequential")? {
        let options = layer_config(value)?;
        if options.class() == "InputLayer" {
            let input = input_of(value, None)?;
            shape = Some(PartialShape::from(input.shape()));
            continue;
        }
        let name = name_of(value);
        let layer = in_layer(name.unwrap_or(options.class()), any_from_config(&options))?;
        let layer = layer.into_one().ok_or_else(|| {
            wrong(format!(
                "a {} takes several inputs, so it cannot be in a Sequential.",
                options.class()
            ))
        })?;
        frozen.push(is_frozen(value));
        model = match name {
            Some(name) => model.add_named(name, layer),
            None => model.add(layer),
        };
    }
    for ((_, layer), _) in model.layers().zip(frozen).filter(|(_, frozen)| *frozen) {
        layer.set_trainable(false);
    }
    if config.get("trainable") == Some(&Value::Bool(false)) {
        model.set_trainable(false);
    }
    if let Some(shape) = shape {
        model.build(shape)?;
    }
    Ok(model)
}

/// A layer of a functional model while the model is read.
struct Made<'a> {
    name: &'a str,
    what: What,
    /// Its calls.
    calls: Vec<Wanted>,
    results: Vec<Vec<SymbolicTensor>>,
    frozen: bool,
}

pub(super) enum What {
    Input(Input),
    Layer(Arc<Operation>),
    /// Each call has its own masks.
    Attention(Arc<dyn AttentionLayer>),
    /// A call of an op: its module and its config.
    Operator(String, Config),
}

impl What {
    fn part(&self) -> Option<&dyn Trackable> {
        match self {
            What::Layer(operation) => Some(operation.callable.part()),
            What::Attention(layer) => Some(layer),
            What::Input(_) | What::Operator(..) => None,
        }
    }
}

/// A result of a layer that a call uses.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct Taken {
    pub(super) layer: usize,
    call: usize,
    output: usize,
}

/// A call of a layer as the text describes it.
#[derive(Default)]
pub(super) struct Wanted {
    pub(super) inputs: Vec<Taken>,
    mask: Option<Taken>,
    /// The arguments of an op: tensors, numbers, lists of both.
    pub(super) args: Vec<Argument>,
    pub(super) kwargs: Vec<(String, Argument)>,
    /// The argument that each input of attention belongs to.
    pub(super) names: Vec<&'static str>,
    pub(super) causal: bool,
    pub(super) scores: bool,
}

fn functional_of(config: &Value, custom: &CustomObjects) -> Result<Functional> {
    let values = list(config, "layers", "the Functional")?;
    let mut places: HashMap<&str, usize> = HashMap::new();
    for (at, value) in values.iter().enumerate() {
        let name = name_of(value).ok_or_else(|| wrong("a layer has no 'name'.".to_string()))?;
        if places.insert(name, at).is_some() {
            return Err(wrong(format!("two layers are called '{name}'.")));
        }
    }
    let mut layers: Vec<Made<'_>> = Vec::new();
    for value in values {
        let name = name_of(value).unwrap_or_default();
        let what = in_layer(name, what_of(value, name, custom))?;
        let mut made =
            Made { name, what, calls: Vec::new(), results: Vec::new(), frozen: is_frozen(value) };
        if let What::Input(input) = &made.what {
            made.results.push(vec![(**input).clone()]);
        } else {
            let nodes = list(value, "inbound_nodes", &format!("the layer '{name}'"))?;
            made.calls = nodes
                .iter()
                .map(|node| in_layer(name, wanted(node, &places, &made.what)))
                .collect::<Result<_>>()?;
        }
        layers.push(made);
    }
    call_all(&mut layers)?;
    for layer in layers.iter().filter(|layer| layer.frozen) {
        if let Some(part) = layer.what.part() {
            part.set_trainable(false);
        }
    }
    let ends = |key: &str| -> Result<Vec<SymbolicTensor>> {
        let value =
            config.get(key).ok_or_else(|| wrong(format!("the Functional has no '{key}'.")))?;
        let mut found = Vec::new();
        end_list(value, &places, &mut found)?;
        found
            .into_iter()
            .map(|mut taken| {
                // Keras counts the calls of a functional model inside another one from 1.
                if let What::Layer(operation) = &layers[taken.layer].what {
                    taken.call -=
                        usize::from(is_functional(operation.callable.part()) && taken.call > 0);
                }
                result(&layers, taken).cloned().ok_or_else(|| {
                    wrong(format!(
                        "'{key}' names result {} of call {} of '{}', which has none.",
                        taken.output, taken.call, layers[taken.layer].name
                    ))
                })
            })
            .collect()
    };
    let model = Functional::new(ends("input_layers")?, ends("output_layers")?)?;
    if config.get("trainable") == Some(&Value::Bool(false)) {
        model.set_trainable(false);
    }
    Ok(match config.get("name").and_then(Value::as_str) {
        Some(name) => model.with_name(name),
        None => model,
    })
}

fn what_of(value: &Value, name: &str, custom: &CustomObjects) -> Result<What> {
    let config = layer_config(value)?;
    if config.class() == "InputLayer" {
        return input_of(value, Some(name)).map(What::Input);
    }
    let module = value.get("module").and_then(Value::as_str).unwrap_or_default();
    if module.starts_with("keras.src.ops") || module.starts_with("keras.ops") {
        return Ok(What::Operator(module.to_string(), config));
    }
    let made = match special(&config, custom) {
        Some(made) => made?,
        None => Special::Layer(any_from_config(&config)?),
    };
    Ok(match made {
        Special::Layer(AnyLayer::Attention(layer)) => What::Attention(Arc::from(layer)),
        Special::Layer(layer) => What::Layer(operation_of(name, layer)),
        Special::Functional(model) => What::Layer(model.into_operation(name)),
    })
}

/// `["dense", 0, 0]`.
fn taken(value: &Value, places: &HashMap<&str, usize>) -> Result<Option<Taken>> {
    let Some([name, call, output]) = value.as_array().map(Vec::as_slice) else { return Ok(None) };
    let (Some(name), Some(call), Some(output)) = (name.as_str(), call.as_u64(), output.as_u64())
    else {
        return Ok(None);
    };
    let layer = places.get(name).copied();
    let layer = layer
        .ok_or_else(|| wrong(format!("there is no layer '{name}', whose result is taken.")))?;
    let (call, output) = (usize::try_from(call), usize::try_from(output));
    Ok(Some(Taken {
        layer,
        call: call.unwrap_or(usize::MAX),
        output: output.unwrap_or(usize::MAX),
    }))
}

/// Collects the results in a list of any form: one result, a list, or a map.
fn end_list(value: &Value, places: &HashMap<&str, usize>, found: &mut Vec<Taken>) -> Result<()> {
    if let Some(taken) = taken(value, places)? {
        found.push(taken);
        return Ok(());
    }
    match value {
        Value::Array(list) => list.iter().try_for_each(|value| end_list(value, places, found)),
        Value::Object(map) => map.values().try_for_each(|value| end_list(value, places, found)),
        _ => Err(wrong(format!("{} is not a result such as [\"dense\", 0, 0].", shown(value)))),
    }
}

/// Collects the tensors among the arguments of a layer's call.
fn tensors(value: &Value, places: &HashMap<&str, usize>, found: &mut Vec<Taken>) -> Result<()> {
    match value {
        Value::Null => Ok(()),
        Value::Array(list) => list.iter().try_for_each(|value| tensors(value, places, found)),
        _ if is_tensor(value) => {
            found.push(tensor(value, places)?);
            Ok(())
        }
        other => {
            Err(wrong(format!("an argument of a call is {}, which cannot be read.", shown(other))))
        }
    }
}

fn is_tensor(value: &Value) -> bool {
    value.get("class_name").and_then(Value::as_str) == Some("__keras_tensor__")
}

/// An argument of an op's call.
fn argument(
    value: &Value,
    places: &HashMap<&str, usize>,
    inputs: &mut Vec<Taken>,
) -> Result<Argument> {
    match (value, value.get("class_name").and_then(Value::as_str)) {
        (Value::Array(list), _) => {
            let before = inputs.len();
            let list: Vec<Argument> =
                list.iter().map(|value| argument(value, places, inputs)).collect::<Result<_>>()?;
            let plain = list.iter().all(|item| matches!(item, Argument::Value(_)));
            Ok(match plain && inputs.len() == before {
                true => Argument::Value(value.clone()),
                false => Argument::List(list),
            })
        }
        (_, Some("__keras_tensor__")) => {
            inputs.push(tensor(value, places)?);
            Ok(Argument::Tensor(inputs.len() - 1))
        }
        (_, Some("__tensor__" | "__numpy__")) => {
            let constant = Constant::read(value.get("config").unwrap_or(&Value::Null));
            let constant =
                constant.map_err(|what| wrong(format!("an argument of a call is {what}.")))?;
            Ok(Argument::Constant(constant, value.clone()))
        }
        _ => Ok(Argument::Value(value.clone())),
    }
}

fn tensor(value: &Value, places: &HashMap<&str, usize>) -> Result<Taken> {
    let history = value.pointer("/config/keras_history");
    let history =
        history.ok_or_else(|| wrong(format!("{} has no 'keras_history'.", shown(value))))?;
    taken(history, places)?.ok_or_else(|| {
        wrong(format!("'keras_history' is {}; it must be like [\"dense\", 0, 0].", shown(history)))
    })
}

pub(super) fn wanted(node: &Value, places: &HashMap<&str, usize>, what: &What) -> Result<Wanted> {
    let mut wanted = Wanted::default();
    let args = node.get("args").unwrap_or(&Value::Null);
    let kwargs = node.get("kwargs").and_then(Value::as_object);
    match what {
        What::Operator(..) => {
            let Wanted { inputs, .. } = &mut wanted;
            let each = args.as_array().into_iter().flatten();
            wanted.args =
                each.map(|value| argument(value, places, inputs)).collect::<Result<_>>()?;
            for (key, value) in kwargs.into_iter().flatten().filter(|(_, value)| !value.is_null()) {
                let value = argument(value, places, &mut wanted.inputs)?;
                wanted.kwargs.push((key.clone(), value));
            }
        }
        What::Attention(_) => attended(args, kwargs, places, &mut wanted)?,
        _ => {
            tensors(args, places, &mut wanted.inputs)?;
            // The inputs precede the states.
            const INPUTS: [&str; 5] = ["inputs", "sequences", "sequence", "x", "data"];
            const STATES: [&str; 2] = ["initial_state", "initial_states"];
            let named = |names: &[&str]| -> Vec<&Value> {
                names.iter().filter_map(|name| kwargs?.get(*name)).collect()
            };
            for value in [named(&INPUTS), named(&STATES)].concat() {
                tensors(value, places, &mut wanted.inputs)?;
            }
            for (key, value) in kwargs.into_iter().flatten() {
                match (key.as_str(), value) {
                    // In wgrad, the context of each call specifies whether it is part of training.
                    ("training", _) | (_, Value::Null) => {}
                    ("mask", value) if is_tensor(value) => {
                        wanted.mask = Some(tensor(value, places)?)
                    }
                    // As Keras writes the call of a model on several inputs that have no masks.
                    ("mask", Value::Array(masks)) if masks.iter().all(Value::is_null) => {}
                    (key, _) if INPUTS.contains(&key) || STATES.contains(&key) => {}
                    (key, value) => return Err(unknown(key, value)),
                }
            }
        }
    }
    if wanted.inputs.is_empty() {
        return Err(wrong("a call takes no result of another layer.".to_string()));
    }
    Ok(wanted)
}

fn unknown(key: &str, value: &Value) -> Error {
    wrong(format!(
        "a call has the argument '{key}': {}, which is not known. Leave it out in Keras, and save the model again.",
        shown(value)
    ))
}

/// A call of attention: query, value and key by position or name, and masks.
fn attended(
    args: &Value,
    kwargs: Option<&serde_json::Map<String, Value>>,
    places: &HashMap<&str, usize>,
    wanted: &mut Wanted,
) -> Result<()> {
    let mut of: HashMap<&'static str, Taken> = HashMap::new();
    let mut put = |name: &'static str, value: &Value| -> Result<()> {
        match value {
            Value::Null => Ok(()),
            value if is_tensor(value) => {
                of.insert(name, tensor(value, places)?);
                Ok(())
            }
            value => Err(wrong(format!(
                "an argument of a call is {}, which cannot be read: '{name}' must be the result of a layer.",
                shown(value)
            ))),
        }
    };
    let places_of: Vec<&str> = QUERIES.into_iter().chain(MASKS.into_iter().take(1)).collect();
    let by_place = |value: &Value, put: &mut dyn FnMut(&'static str, &Value) -> Result<()>| {
        // One list for all, or an argument for each.
        let list = value.as_array().map(Vec::as_slice).unwrap_or_default();
        let list = match list {
            [Value::Array(inner)] => inner,
            list => list,
        };
        if list.len() > places_of.len() {
            return Err(wrong(format!("attention is called with {} arguments.", list.len())));
        }
        let names = QUERIES.into_iter().chain(MASKS.into_iter().take(1));
        names.zip(list).try_for_each(|(name, value)| put(name, value))
    };
    by_place(args, &mut put)?;
    for (key, value) in kwargs.into_iter().flatten() {
        let named = QUERIES.into_iter().chain(MASKS).find(|name| name == key);
        match (key.as_str(), value) {
            ("training", _) | (_, Value::Null) => {}
            ("inputs", value) => by_place(value, &mut put)?,
            // The masks of the query and of the value.
            ("mask", Value::Array(list)) => {
                let names = MASKS.into_iter().skip(1);
                names.zip(list).try_for_each(|(name, value)| put(name, value))?;
            }
            ("use_causal_mask", Value::Bool(causal)) => wanted.causal = *causal,
            ("return_attention_scores", Value::Bool(scores)) => wanted.scores = *scores,
            (key, value) => match named {
                Some(name) => put(name, value)?,
                None => return Err(unknown(key, value)),
            },
        }
    }
    if !of.contains_key("query") || !of.contains_key("value") {
        return Err(wrong("attention is called without a query or without a value.".to_string()));
    }
    for name in QUERIES.into_iter().chain(MASKS) {
        if let Some(taken) = of.get(name) {
            wanted.names.push(name);
            wanted.inputs.push(*taken);
        }
    }
    Ok(())
}

fn result<'m>(layers: &'m [Made<'_>], taken: Taken) -> Option<&'m SymbolicTensor> {
    layers[taken.layer].results.get(taken.call)?.get(taken.output)
}

/// Makes all calls, each after those whose results it uses.
fn call_all(layers: &mut [Made<'_>]) -> Result<()> {
    let made = layers.iter().map(|layer| layer.results.len()).collect();
    let order = in_order(made, |at, call| {
        let wanted = layers[at].calls.get(call)?;
        Some(wanted.inputs.iter().chain(&wanted.mask).map(|taken| (taken.layer, taken.call)))
    });
    for (at, call) in order {
        let results = called(layers, at, call)?;
        layers[at].results.push(results);
    }
    let stuck = layers.iter().find(|layer| {
        !matches!(layer.what, What::Input(_)) && layer.results.len() < layer.calls.len()
    });
    match stuck {
        None => Ok(()),
        Some(layer) => Err(wrong(format!(
            "call {} of '{}' uses results that are never computed: the layers form a cycle, or one refers to a call \
             that does not exist.",
            layer.results.len(),
            layer.name
        ))),
    }
}

/// Makes a call of the layer `at`.
fn called(layers: &[Made<'_>], at: usize, call: usize) -> Result<Vec<SymbolicTensor>> {
    let wanted = &layers[at].calls[call];
    let symbol = |taken: &Taken| {
        result(layers, *taken).cloned().ok_or_else(|| {
            wrong(format!(
                "'{}' takes result {} of '{}', which has none.",
                layers[at].name, taken.output, layers[taken.layer].name
            ))
        })
    };
    let inputs: Vec<SymbolicTensor> = wanted.inputs.iter().map(symbol).collect::<Result<_>>()?;
    let mask = wanted.mask.as_ref().map(symbol).transpose()?;
    let name = layers[at].name;
    match &layers[at].what {
        // An input exists from the beginning.
        What::Input(_) => Ok(Vec::new()),
        What::Layer(operation) => connect_shared(operation.clone(), inputs, mask),
        What::Attention(layer) => {
            let call = AttentionCall {
                layer: layer.clone(),
                names: wanted.names.clone(),
                causal: wanted.causal,
                scores: wanted.scores,
            };
            connect_shared(Arc::new(Operation::named(name, call)), inputs, mask)
        }
        What::Operator(module, config) => {
            let (args, kwargs) = (wanted.args.clone(), wanted.kwargs.clone());
            let (class, config) = (config.class(), config.options());
            let operation = keras_op(name, module, class, config, args, kwargs);
            connect_shared(in_layer(name, operation)?, inputs, mask)
        }
    }
}
