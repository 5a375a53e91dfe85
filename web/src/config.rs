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

fn activation(options: &Options) -> Result<Option<Activation>> {
    let name = options.string("activation")?;
    Ok(name.map(|name| name.parse()).transpose()?)
}

/// What a plain object can describe, by the value of its `type`.
struct Kind<T: 'static> {
    name: &'static str,
    options: &'static [&'static str],
    make: fn(&Options) -> Result<T>,
}

static LAYERS: [Kind<Box<dyn Layer>>; 7] = [
    Kind { name: "flatten", options: &["type", "name"], make: |_| Ok(Box::new(Flatten::new())) },
    Kind {
        name: "dense",
        options: &["type", "units", "activation", "useBias", "kernelInitializer", "name"],
        make: dense,
    },
    Kind {
        name: "conv2d",
        options: &[
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
        ],
        make: conv2d,
    },
    Kind {
        name: "maxPooling2d",
        options: POOLING,
        make: |options| {
            let (window, strides) = windows(options)?;
            let layer = MaxPooling2D::new(window).strides(strides);
            Ok(Box::new(layer.padding(padding(options)?)))
        },
    },
    Kind {
        name: "averagePooling2d",
        options: POOLING,
        make: |options| {
            let (window, strides) = windows(options)?;
            let layer = AveragePooling2D::new(window).strides(strides);
            Ok(Box::new(layer.padding(padding(options)?)))
        },
    },
    Kind { name: "dropout", options: &["type", "rate", "seed", "name"], make: dropout },
    Kind {
        name: "activation",
        options: &["type", "activation", "name"],
        make: |options| {
            let function = options.required("activation", activation(options)?)?;
            Ok(Box::new(Activate::new(function)))
        },
    },
];

const POOLING: &[&str] = &["type", "poolSize", "strides", "padding", "name"];

fn dense(options: &Options) -> Result<Box<dyn Layer>> {
    let units = options.required("units", options.count("units")?)?;
    let layer = Dense::new(units)
        .activation(activation(options)?.unwrap_or_default())
        .use_bias(options.bool("useBias")?.unwrap_or(true))
        .kernel_initializer(initializer(options)?);
    Ok(Box::new(layer))
}

fn conv2d(options: &Options) -> Result<Box<dyn Layer>> {
    let filters = options.required("filters", options.count("filters")?)?;
    let kernel = options.required("kernelSize", options.pair("kernelSize")?)?;
    let layer = Conv2D::new(filters, kernel)
        .strides(options.pair("strides")?.unwrap_or([1, 1]))
        .padding(padding(options)?)
        .dilations(options.pair("dilations")?.unwrap_or([1, 1]))
        .activation(activation(options)?.unwrap_or_default())
        .use_bias(options.bool("useBias")?.unwrap_or(true))
        .kernel_initializer(initializer(options)?);
    Ok(Box::new(layer))
}

/// Sizes of a pool's windows, and how far they are apart.
fn windows(options: &Options) -> Result<([usize; 2], [usize; 2])> {
    let window = options.pair("poolSize")?.unwrap_or([2, 2]);
    Ok((window, options.pair("strides")?.unwrap_or(window)))
}

fn dropout(options: &Options) -> Result<Box<dyn Layer>> {
    let rate = options.required("rate", options.number("rate")?)?;
    let layer = Dropout::new(rate as f32);
    let layer = match options.size("seed")? {
        Some(seed) => layer.seed(seed as u64),
        None => layer,
    };
    Ok(Box::new(layer))
}

static OPTIMIZERS: [Kind<Box<dyn Optimizer>>; 2] = [
    Kind {
        name: "adam",
        options: &["type", "learningRate", "beta1", "beta2", "epsilon"],
        make: |options| {
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
        },
    },
    Kind {
        name: "sgd",
        options: &["type", "learningRate", "momentum", "nesterov"],
        make: |options| {
            let sgd = Sgd::new(options.number("learningRate")?.unwrap_or(1e-2) as f32)
                .momentum(options.number("momentum")?.unwrap_or(0.0))
                .nesterov(options.bool("nesterov")?.unwrap_or(false));
            Ok(Box::new(sgd))
        },
    },
];

/// What `config` says that it is.
fn type_of(config: &JsValue) -> Option<String> {
    js_sys::Reflect::get(config, &"type".into()).ok()?.as_string()
}

/// Appends the layer that `config` describes.
pub(crate) fn add_layer(model: Sequential, config: &JsValue) -> Result<Sequential> {
    let name = type_of(config);
    let Some(kind) = LAYERS.iter().find(|kind| name.as_deref() == Some(kind.name)) else {
        return Err(bad_type(format!(
            "Sequential: {} is not a layer; its type must be flatten, dense, conv2d, maxPooling2d, \
             averagePooling2d, dropout or activation.",
            show(config)
        )));
    };
    let options = Options::new(kind.name, config, kind.options)?;
    let layer = (kind.make)(&options)?;
    Ok(match options.string("name")? {
        Some(name) => model.add_named(&name, layer),
        None => model.add(layer),
    })
}

/// The optimizer that `config` describes: its name alone, or an object.
pub(crate) fn optimizer(config: &JsValue) -> Result<Box<dyn Optimizer>> {
    let (name, given) = match config.as_string() {
        Some(name) => (Some(name), &JsValue::UNDEFINED),
        None => (type_of(config), config),
    };
    let Some(kind) = OPTIMIZERS.iter().find(|kind| name.as_deref() == Some(kind.name)) else {
        return Err(bad_type(format!(
            "compile: {} is not an optimizer; it must be 'adam', 'sgd', or an object with one of them as its type.",
            show(config)
        )));
    };
    (kind.make)(&Options::new(kind.name, given, kind.options)?)
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
