//! What the networks for images are made of: layers with names, called on symbols, and a network's end.

use super::loading::load;
use super::names::WeightNames;
use super::{ApplicationOptions, Pooling};
use crate::error::Result;
use crate::keras::layers::{
    Activate, Add, BatchNormalization, Concatenate, Conv2D, Dense, DepthwiseConv2D, Dropout,
    GlobalAveragePooling2D, GlobalMaxPooling2D, MaxPooling2D, Multiply, Relu, ZeroPadding2D,
};
use crate::keras::loading::loading;
use crate::keras::{Activation, Functional, Input, LayerExt, SymbolicTensor};
use crate::ops::Padding;

/// The constants of a network's layers.
#[derive(Clone, Copy)]
pub(super) struct Style {
    /// Of the batch normalizations.
    pub(super) epsilon: f32,
    pub(super) momentum: f32,
    /// Whether convolutions have a bias.
    pub(super) bias: bool,
    /// Whether strided convolutions pad as in PyTorch, alike on both sides.
    pub(super) torch: bool,
}

impl Style {
    /// The constants of `keras.applications`, and those of torchvision's networks with PyTorch's defaults.
    pub(super) fn new(options: &ApplicationOptions, epsilon: f32, momentum: f32) -> Self {
        match options.torchvision() {
            true => Style { epsilon: 1e-5, momentum: 0.9, bias: false, torch: true },
            false => Style { epsilon, momentum, bias: false, torch: false },
        }
    }

    /// A convolution with `filters` square kernels, without padding if it has a stride.
    pub(super) fn conv(
        self,
        x: &SymbolicTensor,
        name: &str,
        filters: usize,
        kernel: usize,
        stride: usize,
    ) -> Result<SymbolicTensor> {
        let padding = if stride == 1 { Padding::Same } else { Padding::Valid };
        Conv2D::new(filters, [kernel, kernel])
            .strides([stride, stride])
            .padding(padding)
            .use_bias(self.bias)
            .on_named(name, x)
    }

    /// The same for each channel.
    pub(super) fn depthwise(
        self,
        x: &SymbolicTensor,
        name: &str,
        kernel: usize,
        stride: usize,
    ) -> Result<SymbolicTensor> {
        let padding = if stride == 1 { Padding::Same } else { Padding::Valid };
        DepthwiseConv2D::new([kernel, kernel])
            .strides([stride, stride])
            .padding(padding)
            .use_bias(false)
            .on_named(name, x)
    }

    pub(super) fn norm(self, x: &SymbolicTensor, name: &str) -> Result<SymbolicTensor> {
        BatchNormalization::new().epsilon(self.epsilon).momentum(self.momentum).on_named(name, x)
    }

    /// Pads for a convolution with stride 2: PyTorch alike on all sides, Keras less at the start of an even size, as
    /// TensorFlow's `same` does.
    pub(super) fn pad(
        self,
        x: &SymbolicTensor,
        name: &str,
        kernel: usize,
    ) -> Result<SymbolicTensor> {
        let half = kernel / 2;
        let before = |size: Option<usize>| match (self.torch, size) {
            (true, _) => half,
            (false, Some(size)) => half - (1 - size % 2),
            (false, None) => half - 1,
        };
        let sides = [(before(x.shape()[1]), half), (before(x.shape()[2]), half)];
        ZeroPadding2D::new(sides).on_named(name, x)
    }
}

pub(super) fn activation(
    x: &SymbolicTensor,
    name: &str,
    activation: Activation,
) -> Result<SymbolicTensor> {
    Activate::new(activation).on_named(name, x)
}

pub(super) fn relu(x: &SymbolicTensor, name: &str) -> Result<SymbolicTensor> {
    activation(x, name, Activation::Relu)
}

pub(super) fn relu6(x: &SymbolicTensor, name: &str) -> Result<SymbolicTensor> {
    Relu::new().max_value(6.0).on_named(name, x)
}

pub(super) fn zeros(x: &SymbolicTensor, name: &str, border: usize) -> Result<SymbolicTensor> {
    ZeroPadding2D::new(border).on_named(name, x)
}

pub(super) fn max_pool(
    x: &SymbolicTensor,
    name: &str,
    size: usize,
    stride: usize,
) -> Result<SymbolicTensor> {
    MaxPooling2D::new([size, size]).strides([stride, stride]).on_named(name, x)
}

pub(super) fn add(a: &SymbolicTensor, b: &SymbolicTensor, name: &str) -> Result<SymbolicTensor> {
    Add::new().on_all_named(name, [a, b])
}

pub(super) fn multiply(
    a: &SymbolicTensor,
    b: &SymbolicTensor,
    name: &str,
) -> Result<SymbolicTensor> {
    Multiply::new().on_all_named(name, [a, b])
}

pub(super) fn concatenate(
    a: &SymbolicTensor,
    b: &SymbolicTensor,
    name: &str,
) -> Result<SymbolicTensor> {
    Concatenate::new().on_all_named(name, [a, b])
}

/// A network's end: the mean over all positions and the classifier, or without top what `pooling` says. Keras's networks
/// name their pooling layer, but for one.
pub(super) fn top(
    x: &SymbolicTensor,
    options: &ApplicationOptions,
    names: [&str; 2],
    dropout: Option<f32>,
) -> Result<SymbolicTensor> {
    if !options.include_top {
        return pooled(x, options.pooling, names);
    }
    let mut x = named(GlobalAveragePooling2D::new(), names[0], x)?;
    if let Some(rate) = dropout {
        x = Dropout::new(rate).on(&x)?;
    }
    classifier(options).on_named("predictions", &x)
}

/// The last layer of a classifier.
pub(super) fn classifier(options: &ApplicationOptions) -> Dense {
    Dense::new(options.classes).activation(options.classifier_activation)
}

/// The features of a network without top.
pub(super) fn pooled(
    x: &SymbolicTensor,
    pooling: Pooling,
    [avg, max]: [&str; 2],
) -> Result<SymbolicTensor> {
    match pooling {
        Pooling::None => Ok(x.clone()),
        Pooling::Avg => named(GlobalAveragePooling2D::new(), avg, x),
        Pooling::Max => named(GlobalMaxPooling2D::new(), max, x),
    }
}

/// A layer with a name, or without one if it is empty.
fn named(
    layer: impl crate::keras::Layer + 'static,
    name: &str,
    x: &SymbolicTensor,
) -> Result<SymbolicTensor> {
    match name {
        "" => layer.on(x),
        name => layer.on_named(name, x),
    }
}

/// Builds a network with `build`; if the options name a file of weights, without initial values for those in the file.
pub(super) fn built(
    options: &ApplicationOptions,
    build: impl FnOnce() -> Result<Functional>,
) -> Result<Functional> {
    if options.weights.as_os_str().is_empty() { build() } else { loading(build) }
}

/// The model from `input` to `output`, with the weights of the file that the options name.
pub(super) fn finished(
    name: &str,
    input: &Input,
    output: &SymbolicTensor,
    options: &ApplicationOptions,
    names: impl FnOnce() -> WeightNames,
) -> Result<Functional> {
    let model = Functional::new(input, output)?.with_name(name);
    if options.weights.as_os_str().is_empty() {
        return Ok(model);
    }
    load(&model, &options.weights, &names(), name, options.include_top)?;
    Ok(model)
}
