//! [`layers`]: the objects that describe layers, and the layers made from them. Each table row defines both for one layer.

#[cfg(feature = "ops")]
use js_sys::Object;
use wasm_bindgen::prelude::*;
use wgrad::keras::Sequential;
use wgrad::keras::layers::{
    Activate, AveragePooling2D, Conv2D, Dense, Dropout, Flatten, Layer, LayerNormalization,
    MaxPooling2D,
};
#[cfg(feature = "ops")]
use wgrad::keras::layers::{
    BatchNormalization, Conv1D, Conv2DTranspose, DepthwiseConv2D, Embedding, GaussianNoise,
    GlobalAveragePooling1D, GlobalAveragePooling2D, GlobalMaxPooling2D, LeakyRelu, RepeatVector,
    Rescaling, Solarization, UpSampling2D, ZeroPadding2D,
};

use crate::args::Options;
use crate::config::{Described, activation, axes, find, initializer, padding};
use crate::error::Result;

/// Makes the objects that describe layers: `layers.dense({ units: 10 })` is `{ type: 'dense', units: 10 }`.
#[cfg(feature = "ops")]
#[wasm_bindgen]
#[allow(non_camel_case_types)] // A namespace, not a class: it has no instances.
pub struct layers;

macro_rules! layers {
    ($($(#[$doc:meta])* $name:ident $type:literal, $given:literal: $interface:literal { $fields:literal }
        [$($option:literal),*] $(@$whole:tt)? $make:expr;)*) => {
        #[cfg(feature = "ops")]
        #[wasm_bindgen]
        impl layers {$(
            $(#[$doc])*
            #[wasm_bindgen(js_name = $type, unchecked_return_type = "LayerConfig")]
            pub fn $name(#[wasm_bindgen(unchecked_param_type = $given)] options: &JsValue) -> Result<Object> {
                describe($type, options)
            }
        )*}

        static LAYERS: &[Described<Box<dyn Layer>>] = &[$(
            $(#[cfg(feature = $whole)])?
            Described { name: $type, options: &["type", $($option,)* "name", #[cfg(feature = "ops")] "inputShape"], make: $make },
        )*];

        #[wasm_bindgen(typescript_custom_section)]
        const TYPES: &str = concat!(
            "/** What all layers have. `inputShape`, without the batch axis, is for the first: the model is then built at once. */\n",
            "export interface LayerOptions { name?: string; inputShape?: readonly number[]; }\n",
            $("export interface ", $interface, " extends LayerOptions { ", $fields, " }\n",)*
            "/** A layer of a model, as a plain object that can be kept as JSON. */\nexport type LayerConfig =\n",
            $("  | ({ type: '", $type, "' } & ", $interface, ")\n",)*
            "  ;\n",
        );
    };
}
// The first becomes `static dense(options: DenseOptions): LayerConfig`, an entry of `LAYERS`, and in TypeScript
// `interface DenseOptions { units: number; ...; name?: string; }`.
layers! {
    /// `activation(x kernel + bias)`, along the last axis.
    dense "dense", "DenseOptions": "DenseOptions" {
        "units: number; activation?: Activation; useBias?: boolean; kernelInitializer?: Initializer;"
    } ["units", "activation", "useBias", "kernelInitializer"] |options| {
        let units = options.required("units", options.count("units")?)?;
        let layer = Dense::new(units)
            .activation(activation(options)?.unwrap_or_default())
            .use_bias(options.bool("useBias")?.unwrap_or(true))
            .kernel_initializer(initializer(options)?);
        Ok(Box::new(layer))
    };
    /// Convolves images `[N,H,W,C]` with trained filters.
    conv2d "conv2d", "Conv2dLayerOptions": "Conv2dLayerOptions" {
        "filters: number; kernelSize: Pair; strides?: Pair; padding?: Padding; dilations?: Pair; \
         activation?: Activation; useBias?: boolean; kernelInitializer?: Initializer;"
    } [
        "filters", "kernelSize", "strides", "padding", "dilations", "activation", "useBias", "kernelInitializer"
    ] |options| {
        let filters = options.required("filters", options.count("filters")?)?;
        let kernel = options.required("kernelSize", options.pair("kernelSize")?)?;
        let layer = Conv2D::new(filters, kernel)
            .strides(options.pair("strides")?.unwrap_or([1, 1]))
            .padding(padding(options)?)
            .dilation_rate(options.pair("dilations")?.unwrap_or([1, 1]))
            .activation(activation(options)?.unwrap_or_default())
            .use_bias(options.bool("useBias")?.unwrap_or(true))
            .kernel_initializer(initializer(options)?);
        Ok(Box::new(layer))
    };
    /// The largest element of each window.
    max_pooling2d "maxPooling2d", "PoolingOptions | void": "PoolingOptions" {
        "poolSize?: Pair; strides?: Pair; padding?: Padding;"
    } ["poolSize", "strides", "padding"] |options| {
        let (window, strides) = windows(options)?;
        Ok(Box::new(MaxPooling2D::new(window).strides(strides).padding(padding(options)?)))
    };
    /// The mean of each window.
    average_pooling2d "averagePooling2d", "PoolingOptions | void": "AveragePoolingOptions" {
        "poolSize?: Pair; strides?: Pair; padding?: Padding;"
    } ["poolSize", "strides", "padding"] |options| {
        let (window, strides) = windows(options)?;
        Ok(Box::new(AveragePooling2D::new(window).strides(strides).padding(padding(options)?)))
    };
    /// Scales each example to mean 0 and variance 1 along axes, by default the last one.
    layer_normalization "layerNormalization", "LayerNormalizationOptions | void": "LayerNormalizationOptions" {
        "axis?: number | readonly number[]; epsilon?: number; center?: boolean; scale?: boolean;"
    } ["axis", "epsilon", "center", "scale"] |options| {
        let layer = LayerNormalization::new()
            .epsilon(options.number("epsilon")?.unwrap_or(1e-3) as f32)
            .center(options.bool("center")?.unwrap_or(true))
            .scale(options.bool("scale")?.unwrap_or(true));
        Ok(Box::new(match axes(options)? {
            Some(axes) => layer.axis(axes),
            None => layer,
        }))
    };
    /// Sets a part of the elements to 0 during training.
    dropout "dropout", "DropoutOptions": "DropoutOptions" {
        "rate: number; seed?: number;"
    } ["rate", "seed"] |options| {
        let rate = options.required("rate", options.number("rate")?)?;
        let layer = Dropout::new(rate as f32);
        Ok(Box::new(match options.size("seed")? {
            Some(seed) => layer.seed(seed as u64),
            None => layer,
        }))
    };
    /// A function of each element.
    activation "activation", "ActivationOptions": "ActivationOptions" {
        "activation: Activation;"
    } ["activation"] |options| {
        let function = options.required("activation", activation(options)?)?;
        Ok(Box::new(Activate::new(function)))
    };
    /// Convolves signals `[N,W,C]` with trained filters.
    conv1d "conv1d", "Conv1dLayerOptions": "Conv1dLayerOptions" {
        "filters: number; kernelSize: number; strides?: number; padding?: Padding; dilations?: number; \
         activation?: Activation; useBias?: boolean; kernelInitializer?: Initializer;"
    } [
        "filters", "kernelSize", "strides", "padding", "dilations", "activation", "useBias", "kernelInitializer"
    ] @"ops" |options| {
        let filters = options.required("filters", options.count("filters")?)?;
        let kernel = options.required("kernelSize", options.count("kernelSize")?)?;
        let layer = Conv1D::new(filters, kernel)
            .strides(options.count("strides")?.unwrap_or(1))
            .padding(padding(options)?)
            .dilation_rate(options.count("dilations")?.unwrap_or(1))
            .activation(activation(options)?.unwrap_or_default())
            .use_bias(options.bool("useBias")?.unwrap_or(true))
            .kernel_initializer(initializer(options)?);
        Ok(Box::new(layer))
    };
    /// Transposed convolution of images `[N,H,W,C]` with trained filters, as in the gradient of a convolution.
    conv2d_transpose "conv2dTranspose", "Conv2dTransposeLayerOptions": "Conv2dTransposeLayerOptions" {
        "filters: number; kernelSize: Pair; strides?: Pair; padding?: Padding; activation?: Activation; \
         useBias?: boolean; kernelInitializer?: Initializer;"
    } ["filters", "kernelSize", "strides", "padding", "activation", "useBias", "kernelInitializer"] @"ops" |options| {
        let filters = options.required("filters", options.count("filters")?)?;
        let kernel = options.required("kernelSize", options.pair("kernelSize")?)?;
        let layer = Conv2DTranspose::new(filters, kernel)
            .strides(options.pair("strides")?.unwrap_or([1, 1]))
            .padding(padding(options)?)
            .activation(activation(options)?.unwrap_or_default())
            .use_bias(options.bool("useBias")?.unwrap_or(true))
            .kernel_initializer(initializer(options)?);
        Ok(Box::new(layer))
    };
    /// Convolves each channel of images `[N,H,W,C]` with its own filters.
    depthwise_conv2d "depthwiseConv2d", "DepthwiseConv2dLayerOptions": "DepthwiseConv2dLayerOptions" {
        "kernelSize: Pair; strides?: Pair; padding?: Padding; depthMultiplier?: number; activation?: Activation; \
         useBias?: boolean;"
    } ["kernelSize", "strides", "padding", "depthMultiplier", "activation", "useBias"] @"ops" |options| {
        let kernel = options.required("kernelSize", options.pair("kernelSize")?)?;
        let layer = DepthwiseConv2D::new(kernel)
            .strides(options.pair("strides")?.unwrap_or([1, 1]))
            .padding(padding(options)?)
            .depth_multiplier(options.count("depthMultiplier")?.unwrap_or(1))
            .activation(activation(options)?.unwrap_or_default())
            .use_bias(options.bool("useBias")?.unwrap_or(true));
        Ok(Box::new(layer))
    };
    /// Scales each channel of a batch to mean 0 and variance 1; inference uses moving statistics.
    batch_normalization "batchNormalization", "BatchNormalizationOptions | void": "BatchNormalizationOptions" {
        "axis?: number; momentum?: number; epsilon?: number; center?: boolean; scale?: boolean;"
    } ["axis", "momentum", "epsilon", "center", "scale"] @"ops" |options| {
        let layer = BatchNormalization::new()
            .axis(options.number("axis")?.map_or(-1, |axis| axis as i64))
            .momentum(options.number("momentum")?.unwrap_or(0.99) as f32)
            .epsilon(options.number("epsilon")?.unwrap_or(1e-3) as f32)
            .center(options.bool("center")?.unwrap_or(true))
            .scale(options.bool("scale")?.unwrap_or(true));
        Ok(Box::new(layer))
    };
    /// A trained row for each whole number below `inputDim`.
    embedding "embedding", "EmbeddingOptions": "EmbeddingOptions" {
        "inputDim: number; outputDim: number; maskZero?: boolean;"
    } ["inputDim", "outputDim", "maskZero"] @"ops" |options| {
        let rows = options.required("inputDim", options.count("inputDim")?)?;
        let size = options.required("outputDim", options.count("outputDim")?)?;
        Ok(Box::new(Embedding::new(rows, size).mask_zero(options.bool("maskZero")?.unwrap_or(false))))
    };
    /// The mean of each channel of an image.
    global_average_pooling2d "globalAveragePooling2d", "GlobalPoolingOptions | void": "GlobalPoolingOptions" {
        "keepdims?: boolean;"
    } ["keepdims"] @"ops" |options| {
        let keepdims = options.bool("keepdims")?.unwrap_or(false);
        Ok(Box::new(GlobalAveragePooling2D::new().keepdims(keepdims)))
    };
    /// The maximum of each channel of an image.
    global_max_pooling2d "globalMaxPooling2d", "GlobalPoolingOptions | void": "GlobalMaxPoolingOptions" {
        "keepdims?: boolean;"
    } ["keepdims"] @"ops" |options| {
        let keepdims = options.bool("keepdims")?.unwrap_or(false);
        Ok(Box::new(GlobalMaxPooling2D::new().keepdims(keepdims)))
    };
    /// The mean of each channel of a sequence over the steps that the mask keeps.
    global_average_pooling1d "globalAveragePooling1d", "GlobalPoolingOptions | void": "GlobalAveragePooling1dOptions" {
        "keepdims?: boolean;"
    } ["keepdims"] @"ops" |options| {
        let keepdims = options.bool("keepdims")?.unwrap_or(false);
        Ok(Box::new(GlobalAveragePooling1D::new().keepdims(keepdims)))
    };
    /// Repeats each pixel of images.
    up_sampling2d "upSampling2d", "UpSamplingOptions | void": "UpSamplingOptions" { "size?: Pair;" } ["size"] @"ops" |options| {
        Ok(Box::new(UpSampling2D::new(options.pair("size")?.unwrap_or([2, 2]))))
    };
    /// Puts zeros around images: `padding` rows above and below, columns left and right.
    zero_padding2d "zeroPadding2d", "ZeroPaddingOptions | void": "ZeroPaddingOptions" { "padding?: Pair;" } ["padding"] @"ops" |options| {
        Ok(Box::new(ZeroPadding2D::new(options.pair("padding")?.unwrap_or([1, 1]))))
    };
    /// `x` above 0, `negativeSlope x` below.
    leaky_re_lu "leakyReLU", "LeakyReLUOptions | void": "LeakyReLUOptions" { "negativeSlope?: number;" } ["negativeSlope"] @"ops" |options| {
        let slope = options.number("negativeSlope")?.unwrap_or(0.3);
        Ok(Box::new(LeakyRelu::new().negative_slope(slope as f32)))
    };
    /// Adds normal noise during training.
    gaussian_noise "gaussianNoise", "GaussianNoiseOptions": "GaussianNoiseOptions" { "stddev: number;" } ["stddev"] @"ops" |options| {
        let stddev = options.required("stddev", options.number("stddev")?)?;
        Ok(Box::new(GaussianNoise::new(stddev as f32)))
    };
    /// `x scale + offset`.
    rescaling "rescaling", "RescalingOptions": "RescalingOptions" { "scale: number; offset?: number;" } ["scale", "offset"] @"ops" |options| {
        let scale = options.required("scale", options.number("scale")?)?;
        Ok(Box::new(Rescaling::new(scale as f32).offset(options.number("offset")?.unwrap_or(0.0) as f32)))
    };
    /// In training, inverts the pixels that are not below a threshold.
    solarization "solarization", "SolarizationOptions | void": "SolarizationOptions" {
        "additionFactor?: number; thresholdFactor?: number; valueRange?: readonly [number, number];"
    } ["additionFactor", "thresholdFactor", "valueRange"] @"ops" |options| {
        let addition = options.number("additionFactor")?.unwrap_or(0.0);
        let threshold = options.number("thresholdFactor")?.unwrap_or(0.0);
        let range = options.read("valueRange", "a list of two numbers", pair_of_numbers)?.unwrap_or([0.0, 255.0]);
        let layer = Solarization::new().addition_factor(addition as f32).threshold_factor(threshold as f32);
        Ok(Box::new(layer.value_range(range)))
    };
    /// Repeats each row `n` times.
    repeat_vector "repeatVector", "RepeatVectorOptions": "RepeatVectorOptions" { "n: number;" } ["n"] @"ops" |options| {
        Ok(Box::new(RepeatVector::new(options.required("n", options.count("n")?)?)))
    };
    /// Merges all axes but the first.
    flatten "flatten", "FlattenOptions | void": "FlattenOptions" { "" } [] |_| Ok(Box::new(Flatten::new()));
}

/// A list of two numbers.
#[cfg(feature = "ops")]
fn pair_of_numbers(value: &JsValue) -> Option<[f32; 2]> {
    let list = value.dyn_ref::<js_sys::Array>().filter(|list| list.length() == 2)?;
    Some([list.get(0).as_f64()? as f32, list.get(1).as_f64()? as f32])
}

/// The object that describes a layer. Invalid options are refused here, where the program wrote them.
#[cfg(feature = "ops")]
fn describe(kind: &'static str, given: &JsValue) -> Result<Object> {
    let config = Object::new();
    // Setting a property of a new object cannot fail.
    let _ = js_sys::Reflect::set(&config, &"type".into(), &kind.into());
    let known = find("layers", "a layer", &kind.into(), LAYERS)?;
    let call = format!("layers.{kind}");
    let options = Options::new(&call, given, known.options)?;
    if let Some(other) = options.get("type").filter(|other| *other != kind) {
        return Err(crate::error::bad_type(format!(
            "{call}: the option 'type' is {}; leave it out.",
            crate::args::show(&other)
        )));
    }
    (known.make)(&options)?;
    options.string("name")?;
    Ok(match given.dyn_ref::<Object>() {
        Some(given) => Object::assign(&config, given),
        None => config,
    })
}

/// The sizes of a pool's windows, and its strides.
fn windows(options: &Options) -> Result<([usize; 2], [usize; 2])> {
    let window = options.pair("poolSize")?.unwrap_or([2, 2]);
    Ok((window, options.pair("strides")?.unwrap_or(window)))
}

/// Appends the layer that `config` describes.
pub(crate) fn add_layer(model: Sequential, config: &JsValue) -> Result<Sequential> {
    let kind = find("Sequential", "a layer", config, LAYERS)?;
    let options = Options::new(kind.name, config, kind.options)?;
    let layer = (kind.make)(&options)?;
    Ok(match options.string("name")? {
        Some(name) => model.add_named(&name, layer),
        None => model.add(layer),
    })
}
