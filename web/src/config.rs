//! Layers, optimizers and losses as plain objects.

use js_sys::Object;
use wasm_bindgen::prelude::*;
use wgrad::keras::layers::{
    Activate, AveragePooling2D, Conv2D, Dense, Dropout, Flatten, Layer, MaxPooling2D,
};
use wgrad::keras::losses::{MeanSquaredError, SparseCategoricalCrossentropy};
use wgrad::keras::optimizers::{Adam, Optimizer, Sgd};
use wgrad::keras::{Activation, Initializer, Sequential};
use wgrad::{Padding, Tensor, sigmoid_cross_entropy_with_logits};

use crate::args::{Options, show};
use crate::error::{Result, bad_type};

/// Makes the objects that describe layers: `layers.dense({ units: 10 })` is `{ type: 'dense', units: 10 }`.
#[wasm_bindgen]
#[allow(non_camel_case_types)] // A namespace, not a class: nobody makes one.
pub struct layers;

macro_rules! builders {
    ($($(#[$doc:meta])* $name:ident($options:literal) = $type:literal;)*) => {
        #[wasm_bindgen]
        impl layers {$(
            $(#[$doc])*
            #[wasm_bindgen(js_name = $type, unchecked_return_type = "LayerConfig")]
            pub fn $name(
                #[wasm_bindgen(unchecked_param_type = $options)] options: &JsValue,
            ) -> Object {
                let config = Object::new();
                // A new object takes any property.
                let _ = js_sys::Reflect::set(&config, &"type".into(), &$type.into());
                match options.dyn_ref::<Object>() {
                    Some(options) => Object::assign(&config, options),
                    None => config,
                }
            }
        )*}
    };
}
// The first becomes `static dense(options: DenseOptions): LayerConfig`.
builders! {
    /// `activation(x kernel + bias)`, along the last axis.
    dense("DenseOptions") = "dense";
    /// Convolves images `[N,H,W,C]` with trained filters.
    conv2d("Conv2dLayerOptions") = "conv2d";
    /// The largest element of each window.
    max_pooling2d("PoolingOptions | void") = "maxPooling2d";
    /// The mean of each window.
    average_pooling2d("PoolingOptions | void") = "averagePooling2d";
    /// Leaves out a part of the elements while training.
    dropout("DropoutOptions") = "dropout";
    /// A function of each element.
    activation("ActivationOptions") = "activation";
    /// All axes but the first as one.
    flatten("FlattenOptions | void") = "flatten";
}

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

/// What training makes small.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Loss {
    SparseCategoricalCrossentropy,
    BinaryCrossentropy,
    MeanSquaredError,
}

impl Loss {
    pub(crate) fn named(name: Option<&str>) -> Result<Self> {
        match name {
            None | Some("sparseCategoricalCrossentropy") => Ok(Loss::SparseCategoricalCrossentropy),
            Some("binaryCrossentropy") => Ok(Loss::BinaryCrossentropy),
            Some("meanSquaredError") => Ok(Loss::MeanSquaredError),
            Some(other) => Err(bad_type(format!(
                "compile: there is no loss '{other}'. The known ones are sparseCategoricalCrossentropy, \
                 binaryCrossentropy and meanSquaredError."
            ))),
        }
    }

    /// The mean loss of a batch.
    pub(crate) fn call(self, y: &Tensor, predicted: &Tensor) -> wgrad::Result<Tensor> {
        match self {
            Loss::SparseCategoricalCrossentropy => {
                let loss =
                    SparseCategoricalCrossentropy { from_logits: true, ..Default::default() };
                loss.call(y, predicted)
            }
            Loss::BinaryCrossentropy => {
                let labels = y.cast(predicted.dtype())?;
                sigmoid_cross_entropy_with_logits(&labels, predicted)?.reduce_mean((), false)
            }
            Loss::MeanSquaredError => MeanSquaredError::default().call(y, predicted),
        }
    }

    /// The part of a batch that was predicted right, a scalar.
    pub(crate) fn accuracy(self, y: &Tensor, predicted: &Tensor) -> wgrad::Result<Tensor> {
        let predicted = predicted.stop_gradient();
        let hits = match self {
            Loss::BinaryCrossentropy => {
                predicted.greater(0.0)?.equal(&y.cast(predicted.dtype())?.greater(0.5)?)?
            }
            _ => {
                let column = y.rank() == predicted.rank() && y.shape().last() == Some(&1);
                let labels = if column { y.squeeze(&[-1])? } else { y.clone() };
                predicted.argmax(-1)?.equal(&labels.cast(wgrad::DType::I32)?)?
            }
        };
        hits.cast(wgrad::DType::F32)?.reduce_mean((), false)
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
