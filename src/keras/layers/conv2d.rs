//! [`Conv2D`]: one small kernel everywhere in an image.

use std::sync::OnceLock;

use super::{Layer, Start, Weights, in_layer, named};
use crate::error::{Error, Result, message};
use crate::keras::{Activation, Initializer};
use crate::ops::{Conv2dOptions, Padding};
use crate::tensor::Tensor;
use crate::variable::Variable;

/// `y = activation(conv2d(x, kernel) + bias)`: images `[N,H,W,C]`, kernel `[KH,KW,C,O]`, bias `[O]`, result
/// `[N,OH,OW,O]`.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// use tf::keras::{Activation, Layer, layers::Conv2D};
/// let layer = Conv2D::new(8, [5, 5]).padding(tf::Padding::Same).activation(Activation::Relu);
/// let y = layer.call(&tf::Tensor::zeros([2, 28, 28, 1])?, false)?;
/// assert_eq!(y.shape(), [2, 28, 28, 8]);
/// # Ok(())
/// # }
/// ```
pub struct Conv2D {
    name: String,
    filters: usize,
    window: [usize; 2],
    options: Conv2dOptions,
    activation: Activation,
    start: Start,
    weights: OnceLock<Weights>,
}

impl Conv2D {
    /// `filters` kernels of a size given as (rows, columns): stride 1, no padding, no activation, a Glorot uniform
    /// kernel, a bias of zeros.
    pub fn new(filters: usize, kernel_size: [usize; 2]) -> Self {
        Conv2D {
            name: "conv2d".into(),
            filters,
            window: kernel_size,
            options: Conv2dOptions::default(),
            activation: Activation::Linear,
            start: Start::default(),
            weights: OnceLock::new(),
        }
    }

    /// Steps between windows, as (rows, columns).
    pub fn strides(mut self, strides: [usize; 2]) -> Self {
        self.options.strides = strides;
        self
    }

    /// How far windows may leave the image.
    pub fn padding(mut self, padding: Padding) -> Self {
        self.options.padding = padding;
        self
    }

    /// Distance between the elements that a window takes, as (rows, columns).
    pub fn dilations(mut self, dilations: [usize; 2]) -> Self {
        self.options.dilations = dilations;
        self
    }

    /// What is done with the sums.
    pub fn activation(mut self, activation: Activation) -> Self {
        self.activation = activation;
        self
    }

    /// Whether there is a bias.
    pub fn use_bias(mut self, use_bias: bool) -> Self {
        self.start.use_bias = use_bias;
        self
    }

    /// How the kernel starts.
    pub fn kernel_initializer(mut self, initializer: Initializer) -> Self {
        self.start.kernel = initializer;
        self
    }

    /// How the bias starts.
    pub fn bias_initializer(mut self, initializer: Initializer) -> Self {
        self.start.bias = initializer;
        self
    }

    /// The layer's name, with which its variables' names begin.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let &[_, _, _, channels] = x.shape() else {
            return Err(Error::Shape(message!(
                "Conv2D: the input is {:?}; it must be [N, H, W, C]. Give grey images a last axis with expand_dims(-1).",
                x.shape()
            )));
        };
        let [rows, columns] = self.window;
        let kernel = [rows, columns, channels, self.filters];
        let weights = self.start.weights(&self.weights, &self.name, x, &kernel)?;
        self.activation.apply(&weights.add_bias(x.conv2d(&weights.kernel, self.options)?)?)
    }
}

impl Layer for Conv2D {
    named!();

    fn call(&self, x: &Tensor, _training: bool) -> Result<Tensor> {
        in_layer(&self.name, self.forward(x))
    }

    fn variables(&self) -> Vec<Variable> {
        Weights::list(&self.weights)
    }
}
