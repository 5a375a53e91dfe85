//! The config of a stack of layers.

use serde_json::{Value, json};

use super::Sequential;
use crate::dtype::DType;
use crate::error::Result;
use crate::keras::Config;
use crate::keras::layers::{in_layer, written, written_input};
use crate::trackable::Trackable;

pub(super) fn config(model: &Sequential) -> Result<Config> {
    let mut layers = Vec::new();
    let input = model.described(0).inputs.into_iter().next();
    if let Some(input) = &input {
        layers.push(written_input("input_layer", input, DType::F32));
    }
    for (at, (name, layer)) in model.layers().enumerate() {
        let config = in_layer(name, layer.get_config())?;
        let shape = model.described(at).inputs.into_iter().next().map(|shape| json!(shape));
        layers.push(written(&config, Some((name, &layer)), shape));
    }
    let mut config = Config::new("Sequential");
    config.set_json("name", json!(model.title()));
    config.set_json("trainable", json!(true));
    config.set_json("layers", Value::Array(layers));
    if let Some(input) = input {
        config.set_json("build_input_shape", json!(input));
    }
    Ok(config)
}
