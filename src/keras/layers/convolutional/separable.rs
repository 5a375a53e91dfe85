//! [`SeparableConv1D`] and [`SeparableConv2D`]: a depthwise convolution, followed by a pointwise convolution.

use super::convolution::{Windows, channels_of_group, finish};
use super::depthwise::{all_channels, as_rows};
use crate::error::Result;
use crate::keras::layers::Layer;
use crate::keras::layers::macros::{configured, layer, unmasked};
use crate::keras::layers::shapes::SizeList;
use crate::keras::{Activation, Context, Regularizer, Weight};
use crate::ops::{Conv2dOptions, Padding};
use crate::tensor::Tensor;

macro_rules! separable {
    (
        $(#[$doc:meta])*
        $layer:ident by $size:ty = $ones:expr;
        |$x:ident, $depthwise:ident, $pointwise:ident, $from:ident| $sums:expr
    ) => {
        layer! {
            $(#[$doc])*
            pub struct $layer {
                /// Creates a layer with `filters` pointwise filters after depthwise kernels of this size: stride 1, no
                /// padding, no activation, Glorot uniform kernel initializers, a bias of zeros.
                new(filters: usize, kernel_size: $size);
                options {
                    /// Sets the strides.
                    strides: $size = $ones,
                    /// Sets the padding mode.
                    padding: Padding = Padding::Valid,
                    /// Sets the dilation rate.
                    dilation_rate: $size = $ones,
                    /// Sets the number of depthwise kernels per input channel.
                    depth_multiplier: usize = 1,
                    /// Sets the activation function.
                    activation: Activation = Activation::Linear,
                    /// Sets whether the layer uses a bias.
                    use_bias: bool = true,
                    /// Sets the regularizer applied to the layer's output.
                    activity_regularizer: Option<Regularizer> as impl Into<Option<Regularizer>> = None,
                }
                weights {
                    depthwise_kernel = Weight::new()
                        => [depthwise_initializer, depthwise_regularizer, depthwise_constraint],
                    pointwise_kernel = Weight::new()
                        => [pointwise_initializer, pointwise_regularizer, pointwise_constraint],
                    bias if use_bias = Weight::zeros() => [bias_initializer, bias_regularizer, bias_constraint],
                }
                fixed {
                    data_format: "channels_last",
                }
            }
        }

        impl Layer for $layer {
            configured!();
            unmasked!();

            fn call(&self, x: &Tensor, cx: Context<'_>) -> Result<Tensor> {
                const NAME: &str = stringify!($layer);
                let ($x, $from) = (&self.policy.autocast(x)?, self);
                let kernel_size = self.kernel_size.list();
                let windows = Windows {
                    kernel_size,
                    strides: self.strides.list(),
                    dilation_rate: self.dilation_rate.list(),
                    padding: self.padding,
                };
                let channels = windows.check(NAME, $x)?;
                channels_of_group(NAME, 1, channels, self.filters)?;
                let all = all_channels(NAME, channels, self.depth_multiplier)?;
                let mut shape = kernel_size.to_vec();
                shape.extend([channels, self.depth_multiplier]);
                let $depthwise = &self.depthwise_kernel.get($x, shape)?;
                let mut shape = vec![1; kernel_size.len()];
                shape.extend([all, self.filters]);
                let $pointwise = &self.pointwise_kernel.get($x, shape)?;
                let sums = $sums?;
                let bias = self.use_bias.then(|| self.bias.get($x, [self.filters])).transpose()?;
                finish(sums, bias, self.activation, self.activity_regularizer.as_ref(), cx)
            }
        }
    };
}

// The first becomes `pub struct SeparableConv1D` with Keras's options, and a `Layer` that calls `separable_conv2d`.
separable! {
    /// Depthwise separable convolution: convolves each channel of signals `[N,W,C]` with its own kernels `[K,C,M]`,
    /// then mixes the channels of each position with a pointwise kernel `[1,C M,O]`: result `[N,OW,O]`.
    SeparableConv1D by usize = 1;
    |x, depthwise, pointwise, layer| as_rows(x, &[depthwise, pointwise], |x, kernels| {
        let options = Conv2dOptions::new().strides([1, layer.strides]).padding(layer.padding.under_axis());
        x.separable_conv2d(&kernels[0], &kernels[1], options.dilations([1, layer.dilation_rate]))
    })
}
separable! {
    /// Depthwise separable convolution: convolves each channel of images `[N,H,W,C]` with its own kernels
    /// `[KH,KW,C,M]`, then mixes the channels of each pixel with a pointwise kernel `[1,1,C M,O]`: result
    /// `[N,OH,OW,O]`.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad::{self as tf, Trackable};
    /// use tf::keras::{INFERENCE, Layer, layers::SeparableConv2D};
    /// let layer = SeparableConv2D::new(16, [3, 3]);
    /// assert_eq!(layer.call(&tf::Tensor::zeros([2, 8, 8, 4])?, INFERENCE)?.shape(), [2, 6, 6, 16]);
    /// assert_eq!(layer.count_params(), 3 * 3 * 4 + 4 * 16 + 16); // of 592 that Conv2D has
    /// # Ok(())
    /// # }
    /// ```
    SeparableConv2D by [usize; 2] = [1, 1];
    |x, depthwise, pointwise, layer| {
        let options = Conv2dOptions::new().strides(layer.strides).padding(layer.padding);
        x.separable_conv2d(depthwise, pointwise, options.dilations(layer.dilation_rate))
    }
}
