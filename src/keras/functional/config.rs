//! The config of a functional model: its layers, and the inputs of each of their calls.

use serde_json::{Value, json};

use super::network::{Link, Network};
use super::operation::Called;
use super::{Functional, SymbolicTensor};
use crate::error::{Error, Result, message};
use crate::keras::Config;
use crate::keras::layers::formats::is_functional;
use crate::keras::layers::{in_layer, written, written_input};
use crate::trackable::Trackable;

pub(super) fn config(model: &Functional) -> Result<Config> {
    let network = &model.network;
    let mut layers = Vec::new();
    for (at, layer) in network.layers.iter().enumerate() {
        let mut value = match (&layer.operation, layer.calls.first()) {
            (Some(operation), Some(call)) => {
                let shapes: Vec<_> =
                    call.inputs.iter().map(|link| json!(network.symbol(link).shape())).collect();
                // A layer with a separate argument for each tensor has no single input shape unless it has one tensor.
                let input = match (&shapes[..], operation.callable.takes_list()) {
                    ([one], false) => Some(one.clone()),
                    (_, true) => Some(Value::Array(shapes)),
                    (_, false) => None,
                };
                match in_layer(&layer.name, operation.callable.called())? {
                    Called::Layer(config) => written(
                        &config,
                        Some((&layer.name, operation.callable.part())),
                        input.clone(),
                    ),
                    Called::Operator { module, class, mut config } => {
                        config.insert("name".to_string(), json!(layer.name));
                        json!({
                            "module": module, "class_name": class, "config": config,
                            "registered_name": class,
                        })
                    }
                }
            }
            _ => {
                let x = model.inputs().get(layer.input.unwrap_or(0)).ok_or_else(lost)?;
                written_input(&layer.name, x.shape(), x.dtype())
            }
        };
        value["name"] = json!(layer.name);
        let calls = if layer.operation.is_some() { &layer.calls[..] } else { &[] };
        let nodes: Result<Vec<Value>> =
            (0..calls.len()).map(|call| node(network, at, call)).collect();
        value["inbound_nodes"] = Value::Array(nodes?);
        layers.push(value);
    }
    let ends = |links: &[Link]| -> Value {
        let ends: Vec<Value> = links.iter().map(|link| end(network, link)).collect();
        match &ends[..] {
            [one] => one.clone(),
            _ => Value::Array(ends),
        }
    };
    let mut config = Config::new("Functional");
    config.set_json("name", json!(model.title()));
    config.set_json("trainable", json!(true));
    config.set_json("layers", Value::Array(layers));
    config.set_json("input_layers", ends(&network.input_links));
    config.set_json("output_layers", ends(&network.output_links));
    Ok(config)
}

fn lost() -> Error {
    Error::Data(message!("to_json: the model has lost an input."))
}

/// An input or output of the model. Keras counts the calls of a functional model inside another one from 1.
fn end(network: &Network, link: &Link) -> Value {
    let layer = &network.layers[link.layer];
    let model =
        layer.operation.as_ref().is_some_and(|operation| is_functional(operation.callable.part()));
    json!([layer.name, link.call + usize::from(model), link.output])
}

/// A call of a layer, with its arguments.
fn node(network: &Network, layer: usize, call: usize) -> Result<Value> {
    let layer = &network.layers[layer];
    let operation = layer.operation.as_ref().ok_or_else(lost)?;
    let call = &layer.calls[call];
    let tensor = |link: &Link| -> Value {
        let symbol: &SymbolicTensor = network.symbol(link);
        json!({
            "class_name": "__keras_tensor__",
            "config": {
                "shape": symbol.shape(), "dtype": symbol.dtype().tensorflow_name(),
                "keras_history": [network.layers[link.layer].name, link.call, link.output],
            },
        })
    };
    let operation = call.operation.as_ref().unwrap_or(operation);
    let tensors: Vec<Value> = call.inputs.iter().map(tensor).collect();
    let (args, mut kwargs) = operation.callable.arguments(tensors)?;
    if let Some(mask) = &call.mask {
        kwargs.insert("mask".to_string(), tensor(mask));
    }
    Ok(json!({"args": args, "kwargs": kwargs}))
}
