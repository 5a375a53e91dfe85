//! [`Conv2D`]: applies the same small kernels everywhere in an image.

use crate::error::{Error, Result, message};
use crate::keras::layers::Layer;
use crate::keras::layers::macros::{configured, layer};
use crate::keras::{Activation, Context, Regularizer, Weight};
use crate::ops::{Conv2dOptions, Padding};
use crate::tensor::Tensor;

layer! {
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
    pub struct Conv2D {
        /// A layer of `filters` kernels, their size given as (rows, columns): stride 1, no padding, no activation, a Glorot
        /// uniform kernel, a bias of zeros.
        new(filters: usize, kernel_size: [usize; 2]);
        options {
            /// Sets the steps between windows, as (rows, columns).
            strides: [usize; 2] = [1, 1],
            /// Sets how far windows may reach beyond the image.
            padding: Padding = Padding::Valid,
            /// Sets the distance between the elements that a window takes, as (rows, columns).
            dilation_rate: [usize; 2] = [1, 1],
            /// Sets the function applied to the sums.
            activation: Activation = Activation::Linear,
            /// Sets whether the layer has a bias.
            use_bias: bool = true,
            /// Sets the penalty on the result.
            activity_regularizer: Option<Regularizer> as impl Into<Option<Regularizer>> = None,
        }
        weights {
            kernel = Weight::new() => [kernel_initializer, kernel_regularizer, kernel_constraint],
            bias if use_bias = Weight::zeros() => [bias_initializer, bias_regularizer, bias_constraint],
        }
        fixed {
            data_format: "channels_last",
            groups: 1,
        }
    }
}

impl Layer for Conv2D {
    configured!();

    fn call(&self, x: &Tensor, cx: Context<'_>) -> Result<Tensor> {
        let x = &self.policy.autocast(x)?;
        let &[_, _, _, channels] = x.shape() else {
            return Err(Error::Shape(message!(
                "Conv2D: the input is {:?}; it must be [N, H, W, C]. Give grey images a last axis with expand_dims(-1).",
                x.shape()
            )));
        };
        let [rows, columns] = self.kernel_size;
        let kernel = self.kernel.get(x, [rows, columns, channels, self.filters])?;
        let options = Conv2dOptions::new().strides(self.strides).padding(self.padding);
        let mut sums = x.conv2d(kernel, options.dilations(self.dilation_rate))?;
        if self.use_bias {
            sums = sums.add(self.bias.get(x, [self.filters])?)?;
        }
        let y = self.activation.apply(&sums)?;
        cx.regularize(self.activity_regularizer.as_ref(), &y)?;
        Ok(y)
    }
}
