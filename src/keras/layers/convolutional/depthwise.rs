//! [`DepthwiseConv1D`] and [`DepthwiseConv2D`]: convolve each channel with separate kernels.

use super::convolution::{Windows, finish};
use crate::error::{Error, Result, message};
use crate::keras::layers::Layer;
use crate::keras::layers::macros::{configured, layer, unmasked};
use crate::keras::layers::shapes::{SizeList, positive};
use crate::keras::{Activation, Context, Regularizer, Weight};
use crate::ops::{Conv2dOptions, Padding};
use crate::tensor::Tensor;

/// The total number of channels of the result.
pub(super) fn all_channels(layer: &str, channels: usize, depth_multiplier: usize) -> Result<usize> {
    positive(layer, "depth_multiplier", &[depth_multiplier])?;
    channels.checked_mul(depth_multiplier).ok_or_else(|| {
        Error::Shape(message!(
            "{layer}: {depth_multiplier} kernels for each of {channels} channels are too many."
        ))
    })
}

/// Computes a convolution along one axis as a convolution of images with one row.
pub(super) fn as_rows(
    x: &Tensor,
    kernels: &[&Tensor],
    convolve: impl FnOnce(&Tensor, &[Tensor]) -> Result<Tensor>,
) -> Result<Tensor> {
    let kernels: Vec<Tensor> = kernels.iter().map(|k| k.expand_dims(0)).collect::<Result<_>>()?;
    convolve(&x.expand_dims(1)?, &kernels)?.squeeze(1)
}

macro_rules! depthwise {
    (
        $(#[$doc:meta])*
        $layer:ident by $size:ty = $ones:expr;
        |$x:ident, $kernel:ident, $from:ident| $sums:expr
    ) => {
        layer! {
            $(#[$doc])*
            pub struct $layer {
                /// Creates a layer with one kernel of this size per channel: stride 1, no padding, no activation, a
                /// Glorot uniform kernel initializer, a bias of zeros.
                new(kernel_size: $size);
                options {
                    /// Sets the strides.
                    strides: $size = $ones,
                    /// Sets the padding mode.
                    padding: Padding = Padding::Valid,
                    /// Sets the number of depthwise kernels per input channel.
                    depth_multiplier: usize = 1,
                    /// Sets the dilation rate.
                    dilation_rate: $size = $ones,
                    /// Sets the activation function.
                    activation: Activation = Activation::Linear,
                    /// Sets whether the layer uses a bias.
                    use_bias: bool = true,
                    /// Sets the regularizer applied to the layer's output.
                    activity_regularizer: Option<Regularizer> as impl Into<Option<Regularizer>> = None,
                }
                weights {
                    kernel = Weight::new()
                        => [depthwise_initializer, depthwise_regularizer, depthwise_constraint],
                    bias if use_bias = Weight::zeros() => [bias_initializer, bias_regularizer, bias_constraint],
                }
                fixed {
                    data_format: "channels_last",
                }
                class {
                    pytorch(&DEPTHWISE);
                }
            }
        }

        impl Layer for $layer {
            configured!();
            unmasked!();

            fn call(&self, x: &Tensor, cx: Context<'_>) -> Result<Tensor> {
                const NAME: &str = stringify!($layer);
                let ($x, $from) = (&self.policy.autocast(x)?, self);
                let windows = Windows {
                    kernel_size: self.kernel_size.list(),
                    strides: self.strides.list(),
                    dilation_rate: self.dilation_rate.list(),
                    padding: self.padding,
                };
                let channels = windows.check(NAME, $x)?;
                let all = all_channels(NAME, channels, self.depth_multiplier)?;
                let mut shape = self.kernel_size.list().to_vec();
                shape.extend([channels, self.depth_multiplier]);
                let $kernel = &self.kernel.get($x, shape)?;
                let sums = $sums?;
                let bias = self.use_bias.then(|| self.bias.get($x, [all])).transpose()?;
                finish(sums, bias, self.activation, self.activity_regularizer.as_ref(), cx)
            }
        }
    };
}

// The first becomes `pub struct DepthwiseConv1D` with Keras's options, and a `Layer` that calls `depthwise_conv2d`.
depthwise! {
    /// Convolves each channel of signals `[N,W,C]` with its own kernels `[K,C,M]`: result `[N,OW,C M]`.
    DepthwiseConv1D by usize = 1;
    |x, kernel, layer| as_rows(x, &[kernel], |x, kernels| {
        let options = Conv2dOptions::new().strides([1, layer.strides]).padding(layer.padding.under_axis());
        x.depthwise_conv2d(&kernels[0], options.dilations([1, layer.dilation_rate]))
    })
}
depthwise! {
    /// Convolves each channel of images `[N,H,W,C]` with its own kernels `[KH,KW,C,M]`: result `[N,OH,OW,C M]`.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// use tf::keras::{INFERENCE, Layer, layers::DepthwiseConv2D};
    /// let layer = DepthwiseConv2D::new([3, 3]).depth_multiplier(2);
    /// let y = layer.call(&tf::Tensor::zeros([2, 8, 8, 4])?, INFERENCE)?;
    /// assert_eq!(y.shape(), [2, 6, 6, 8]);
    /// # Ok(())
    /// # }
    /// ```
    DepthwiseConv2D by [usize; 2] = [1, 1];
    |x, kernel, layer| {
        let options = Conv2dOptions::new().strides(layer.strides).padding(layer.padding);
        x.depthwise_conv2d(kernel, options.dilations(layer.dilation_rate))
    }
}
