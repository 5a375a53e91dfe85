//! [`Conv2D`]: applies the same small kernels everywhere in an image.

use super::Layer;
use crate::error::{Error, Result, message};
use crate::keras::{Activation, Context, Initializer, Weight};
use crate::ops::{Conv2dOptions, Padding};
use crate::tensor::Tensor;
use crate::trackable::Trackable;

/// `y = activation(conv2d(x, kernel) + bias)`: images `[N,H,W,C]`, kernel `[KH,KW,C,O]`, bias `[O]`, result
/// `[N,OH,OW,O]`.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// use tf::keras::{Activation, INFERENCE, Layer, layers::Conv2D};
/// let layer = Conv2D::new(8, [5, 5]).padding(tf::Padding::Same).activation(Activation::Relu);
/// let y = layer.call(&tf::Tensor::zeros([2, 28, 28, 1])?, INFERENCE)?;
/// assert_eq!(y.shape(), [2, 28, 28, 8]);
/// # Ok(())
/// # }
/// ```
#[derive(Trackable)]
pub struct Conv2D {
    filters: usize,
    window: [usize; 2],
    options: Conv2dOptions,
    activation: Activation,
    kernel: Weight,
    bias: Option<Weight>,
}

impl Conv2D {
    /// A layer of `filters` kernels, their size given as (rows, columns): stride 1, no padding, no activation, a Glorot
    /// uniform kernel, a bias of zeros.
    pub fn new(filters: usize, kernel_size: [usize; 2]) -> Self {
        Conv2D {
            filters,
            window: kernel_size,
            options: Conv2dOptions::default(),
            activation: Activation::Linear,
            kernel: Weight::new(),
            bias: Some(Weight::zeros()),
        }
    }

    /// Sets the steps between windows, as (rows, columns).
    pub fn strides(mut self, strides: [usize; 2]) -> Self {
        self.options.strides = strides;
        self
    }

    /// Sets how far windows may reach beyond the image.
    pub fn padding(mut self, padding: Padding) -> Self {
        self.options.padding = padding;
        self
    }

    /// Sets the distance between the elements that a window takes, as (rows, columns).
    pub fn dilations(mut self, dilations: [usize; 2]) -> Self {
        self.options.dilations = dilations;
        self
    }

    /// Sets the function applied to the sums.
    pub fn activation(mut self, activation: Activation) -> Self {
        self.activation = activation;
        self
    }

    /// Sets whether the layer has a bias.
    pub fn use_bias(mut self, use_bias: bool) -> Self {
        let bias = self.bias.take().unwrap_or_else(Weight::zeros);
        self.bias = use_bias.then_some(bias);
        self
    }

    /// Sets the numbers at which the kernel starts.
    pub fn kernel_initializer(mut self, initializer: Initializer) -> Self {
        self.kernel = self.kernel.initializer(initializer);
        self
    }

    /// Sets the numbers at which the bias starts, if there is one.
    pub fn bias_initializer(mut self, initializer: Initializer) -> Self {
        self.bias = self.bias.map(|bias| bias.initializer(initializer));
        self
    }
}

impl Layer for Conv2D {
    fn call(&self, x: &Tensor, _cx: Context<'_>) -> Result<Tensor> {
        let &[_, _, _, channels] = x.shape() else {
            return Err(Error::Shape(message!(
                "Conv2D: the input is {:?}; it must be [N, H, W, C]. Give grey images a last axis with expand_dims(-1).",
                x.shape()
            )));
        };
        let [rows, columns] = self.window;
        let kernel = self.kernel.get(x, [rows, columns, channels, self.filters])?;
        let mut sums = x.conv2d(kernel, self.options)?;
        if let Some(bias) = &self.bias {
            sums = sums.add(bias.get(x, [self.filters])?)?;
        }
        self.activation.apply(&sums)
    }
}
