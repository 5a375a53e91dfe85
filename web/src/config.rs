//! Layers and optimizers as plain objects.

use wasm_bindgen::JsValue;
use wgrad::Padding;
use wgrad::keras::layers::{
    Activate, AveragePooling2D, Conv2D, Dense, Dropout, Flatten, Layer, MaxPooling2D,
};
use wgrad::keras::optimizers::{Adam, Optimizer, Sgd};
use wgrad::keras::{Activation, Initializer, Sequential};

use crate::args::{Options, show};
use crate::error::{Result, bad_type};

const INITIALIZERS: [(&str, Initializer); 8] = [
    ("glorot_uniform", Initializer::GlorotUniform),
    ("glorot_normal", Initializer::GlorotNormal),
    ("he_uniform", Initializer::HeUniform),
    ("he_normal", Initializer::HeNormal),
    ("lecun_uniform", Initializer::LecunUniform),
    ("lecun_normal", Initializer::LecunNormal),
    ("zeros", Initializer::Zeros),
    ("ones", Initializer::Ones),
];

fn initializer(options: &Options) -> Result<Initializer> {
    let read = |value: &JsValue| {
        let name = value.as_string()?;
        INITIALIZERS.iter().find(|(known, _)| *known == name).map(|(_, found)| *found)
    };
    let wanted = INITIALIZERS.map(|(name, _)| name).join(", ");
    let found = options.read("kernelInitializer", &format!("one of {wanted}"), read)?;
    Ok(found.unwrap_or(Initializer::GlorotUniform))
}

fn activation_of(options: &Options) -> Result<Option<Activation>> {
    let name = options.string("activation")?;
    Ok(name.map(|name| name.parse()).transpose()?)
}

/// Appends the layer that `config` describes.
pub(crate) fn add_layer(model: Sequential, config: &JsValue) -> Result<Sequential> {
    let kind = js_sys::Reflect::get(config, &"type".into()).ok().and_then(|kind| kind.as_string());
    let (mut layer, options): (Box<dyn Layer>, Options) = match kind.as_deref() {
        Some("flatten") => {
            let options = Options::new("flatten", config, &["type", "name"])?;
            (Box::new(Flatten::new()), options)
        }
        Some("dense") => {
            let known = ["type", "units", "activation", "useBias", "kernelInitializer", "name"];
            let options = Options::new("dense", config, &known)?;
            let units = options.required("units", options.count("units")?)?;
            let layer = Dense::new(units)
                .activation(activation_of(&options)?.unwrap_or_default())
                .use_bias(options.bool("useBias")?.unwrap_or(true))
                .kernel_initializer(initializer(&options)?);
            (Box::new(layer), options)
        }
        Some("conv2d") => {
            let known = [
                "type",
                "filters",
                "kernelSize",
                "strides",
                "padding",
                "dilations",
                "activation",
                "useBias",
                "kernelInitializer",
                "name",
            ];
            let options = Options::new("conv2d", config, &known)?;
            let filters = options.required("filters", options.count("filters")?)?;
            let kernel = options.required("kernelSize", options.pair("kernelSize")?)?;
            let layer = Conv2D::new(filters, kernel)
                .strides(options.pair("strides")?.unwrap_or([1, 1]))
                .padding(padding(&options)?)
                .dilations(options.pair("dilations")?.unwrap_or([1, 1]))
                .activation(activation_of(&options)?.unwrap_or_default())
                .use_bias(options.bool("useBias")?.unwrap_or(true))
                .kernel_initializer(initializer(&options)?);
            (Box::new(layer), options)
        }
        Some(kind @ ("maxPooling2d" | "averagePooling2d")) => {
            let options = Options::new(
                "pooling",
                config,
                &["type", "poolSize", "strides", "padding", "name"],
            )?;
            let window = options.pair("poolSize")?.unwrap_or([2, 2]);
            let strides = options.pair("strides")?.unwrap_or(window);
            let padding = padding(&options)?;
            let layer: Box<dyn Layer> = match kind {
                "maxPooling2d" => {
                    Box::new(MaxPooling2D::new(window).strides(strides).padding(padding))
                }
                _ => Box::new(AveragePooling2D::new(window).strides(strides).padding(padding)),
            };
            (layer, options)
        }
        Some("dropout") => {
            let options = Options::new("dropout", config, &["type", "rate", "seed", "name"])?;
            let rate = options.required("rate", options.number("rate")?)?;
            let layer = Dropout::new(rate as f32);
            let layer = match options.size("seed")? {
                Some(seed) => layer.seed(seed as u64),
                None => layer,
            };
            (Box::new(layer), options)
        }
        Some("activation") => {
            let options = Options::new("activation", config, &["type", "activation", "name"])?;
            let function = options.required("activation", activation_of(&options)?)?;
            (Box::new(Activate::new(function)), options)
        }
        _ => {
            return Err(bad_type(format!(
                "Sequential: {} is not a layer; its type must be flatten, dense, conv2d, maxPooling2d, \
                 averagePooling2d, dropout or activation.",
                show(config)
            )));
        }
    };
    if let Some(name) = options.string("name")? {
        layer.set_name(name);
    }
    Ok(model.add_boxed(layer))
}

/// The optimizer that `config` describes.
pub(crate) fn optimizer(config: &JsValue) -> Result<Box<dyn Optimizer>> {
    let named = config.as_string();
    let empty = JsValue::UNDEFINED;
    let kind = match &named {
        Some(name) => Some(name.clone()),
        None => js_sys::Reflect::get(config, &"type".into()).ok().and_then(|kind| kind.as_string()),
    };
    let config = if named.is_some() { &empty } else { config };
    match kind.as_deref() {
        Some("adam") => {
            let known = ["type", "learningRate", "beta1", "beta2", "epsilon"];
            let options = Options::new("adam", config, &known)?;
            let mut adam = Adam::new(options.number("learningRate")?.unwrap_or(1e-3) as f32);
            if let Some(beta) = options.number("beta1")? {
                adam = adam.beta_1(beta);
            }
            if let Some(beta) = options.number("beta2")? {
                adam = adam.beta_2(beta);
            }
            if let Some(epsilon) = options.number("epsilon")? {
                adam = adam.epsilon(epsilon);
            }
            Ok(Box::new(adam))
        }
        Some("sgd") => {
            let known = ["type", "learningRate", "momentum", "nesterov"];
            let options = Options::new("sgd", config, &known)?;
            let sgd = Sgd::new(options.number("learningRate")?.unwrap_or(1e-2) as f32)
                .momentum(options.number("momentum")?.unwrap_or(0.0))
                .nesterov(options.bool("nesterov")?.unwrap_or(false));
            Ok(Box::new(sgd))
        }
        _ => Err(bad_type(format!(
            "compile: {} is not an optimizer; it must be 'adam', 'sgd', or an object with one of them as its type.",
            show(config)
        ))),
    }
}

/// VALID unless given.
pub(crate) fn padding(options: &Options) -> Result<Padding> {
    let read = |value: &JsValue| match value.as_string()?.as_str() {
        "same" => Some(Padding::Same),
        "valid" => Some(Padding::Valid),
        _ => None,
    };
    Ok(options.read("padding", "'same' or 'valid'", read)?.unwrap_or(Padding::Valid))
}
