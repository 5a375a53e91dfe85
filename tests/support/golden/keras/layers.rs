//! The golden cases of Keras's layers except recurrent layers and attention. A case's attributes are Keras's arguments, so they
//! are the layer's config.

use serde_json::{Map, Value, json};
use wgrad::keras::layers::layer_from_config;
use wgrad::keras::{Config, INFERENCE, Layer};
use wgrad::{Error, Trackable};

use super::super::call::{Answer, Call, Stop, to_tensor};

/// The layer of a case with the case's weights.
pub fn layer(c: &Call) -> Answer<Box<dyn Layer>> {
    let layer = unbuilt(c)?;
    layer.call(c.x()?, INFERENCE)?;
    let variables = layer.variables();
    if variables.len() != c.case.weights.len() {
        let (got, want) = (variables.len(), c.case.weights.len());
        return Err(Error::Shape(format!("{got} variables, Keras has {want}").into()).into());
    }
    for (variable, (_, name)) in variables.iter().zip(&c.case.weights) {
        variable.assign(&to_tensor(&c.golden.tensor(c.case, name))?)?;
    }
    Ok(layer)
}

/// Keras's defaults for arguments that a case omits and a layer here requires.
fn defaults(class: &str) -> Value {
    match class {
        _ if class.starts_with("Global") => json!({}),
        _ if class.contains("Pooling") => json!({"pool_size": 2}),
        _ if class.starts_with("UpSampling") => json!({"size": 2}),
        _ if class.starts_with("ZeroPadding") => json!({"padding": 1}),
        _ if class.starts_with("Cropping") => json!({"cropping": 1}),
        _ => json!({}),
    }
}

fn unbuilt(c: &Call) -> Answer<Box<dyn Layer>> {
    let class = c.case.op.strip_prefix("keras.layers.").unwrap_or_default();
    let mut options: Map<String, Value> = defaults(class).as_object().cloned().unwrap_or_default();
    for (key, value) in c.case.attrs.iter().filter(|(_, value)| !value.is_null()) {
        // An argument of the call, not of the layer.
        if key != "training" {
            c.remark(key);
            options.insert(key.clone(), value.clone());
        }
    }
    // Sizes that a case omits are those of its weights.
    let size = |weight: &str, axis: usize| -> Option<usize> {
        let (_, name) = c.case.weights.iter().find(|(key, _)| key == weight)?;
        let shape = c.golden.tensor(c.case, name).shape().to_vec();
        shape.get(axis.min(shape.len().checked_sub(1)?)).copied()
    };
    let sizes = match class {
        "Dense" => vec![("units", size("kernel", 1))],
        "Embedding" => {
            vec![("input_dim", size("embeddings", 0)), ("output_dim", size("embeddings", 1))]
        }
        _ if class.starts_with("Separable") => vec![("filters", size("pointwise_kernel", 9))],
        _ if class.starts_with("Depthwise") => vec![],
        "Conv1DTranspose" => vec![("filters", size("kernel", 1))],
        "Conv2DTranspose" => vec![("filters", size("kernel", 2))],
        "Conv3DTranspose" => vec![("filters", size("kernel", 3))],
        _ if class.starts_with("Conv") => vec![("filters", size("kernel", 9))],
        _ => vec![],
    };
    for (key, size) in sizes {
        options.entry(key).or_insert(json!(c.need(key, size)?));
    }
    match layer_from_config(&Config::with_options(class, options)) {
        Err(error) if error.to_string().contains("there is no layer") => {
            Err(Stop::Lacks(String::new()))
        }
        made => Ok(made?),
    }
}
