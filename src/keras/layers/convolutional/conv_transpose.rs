//! [`Conv1DTranspose`], [`Conv2DTranspose`], [`Conv3DTranspose`]: spread each position by a kernel, so that results are larger
//! than inputs.

use super::convolution::{Windows, channels_of_group, finish};
use crate::error::{Error, Result, message};
use crate::keras::layers::Layer;
use crate::keras::layers::macros::{configured, layer, unmasked};
use crate::keras::layers::shapes::SizeList;
use crate::keras::{Activation, Context, Regularizer, Weight};
use crate::ops::{Conv1dTransposeOptions, Conv2dTransposeOptions, Conv3dTransposeOptions, Padding};
use crate::tensor::Tensor;

/// The sizes of a result along the spatial axes, by Keras's rule.
fn larger(
    layer: &str,
    x: &Tensor,
    windows: &Windows<'_>,
    output_padding: Option<&[usize]>,
) -> Result<Vec<usize>> {
    let sizes = &x.shape()[1..=windows.kernel_size.len()];
    let along = |axis: usize| -> Option<usize> {
        let (size, stride) = (sizes[axis], windows.strides[axis]);
        let span = (windows.kernel_size[axis] - 1).checked_mul(windows.dilation_rate[axis])?;
        let span = span.checked_add(1)?;
        let steps = size.saturating_sub(1).checked_mul(stride)?;
        match (windows.padding, output_padding) {
            (Padding::Same, None) => size.checked_mul(stride),
            (Padding::Same, Some(more)) => steps.checked_add(span % 2)?.checked_add(more[axis]),
            (_, None) => steps.checked_add(span.max(stride)),
            (_, Some(more)) => steps.checked_add(span)?.checked_add(more[axis]),
        }
    };
    let larger: Option<Vec<usize>> = (0..sizes.len()).map(along).collect();
    larger.ok_or_else(|| {
        Error::Shape(message!("{layer}: the result of {:?} would be too large.", x.shape()))
    })
}

/// Refuses an `output_padding` that is not below the strides.
fn check_output_padding(layer: &str, more: &[usize], strides: &[usize]) -> Result<()> {
    if more.iter().zip(strides).all(|(more, stride)| more < stride) {
        return Ok(());
    }
    Err(Error::Shape(message!(
        "{layer}: output_padding is {more:?} and strides {strides:?}; the padding must be below the stride."
    )))
}

macro_rules! transposed {
    (
        $(#[$doc:meta])*
        $layer:ident by $size:ty = $ones:expr, in PyTorch $torch:expr;
        |$x:ident, $kernel:ident, $from:ident, $shape:ident| $sums:expr
    ) => {
        layer! {
            $(#[$doc])*
            pub struct $layer {
                /// Creates a layer with `filters` kernels of this size: stride 1, no padding, no activation, a Glorot
                /// uniform kernel initializer, a bias of zeros.
                new(filters: usize, kernel_size: $size);
                options {
                    /// Sets the strides: the distance in the output between adjacent positions of the input.
                    strides: $size = $ones,
                    /// Sets the padding mode. With [`Padding::Same`] the output size is the input size times the strides.
                    padding: Padding = Padding::Valid,
                    /// Sets the number of extra positions at the end of the output; must be less than the stride.
                    /// Default: as many as fit.
                    output_padding: Option<$size> as impl Into<Option<$size>> = None,
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
                    kernel = Weight::new() => [kernel_initializer, kernel_regularizer, kernel_constraint],
                    bias if use_bias = Weight::zeros() => [bias_initializer, bias_regularizer, bias_constraint],
                }
                fixed {
                    data_format: "channels_last",
                }
                class {
                    pytorch($torch);
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
                // No kernel is too large for an input here.
                let channels = Windows { padding: Padding::Same, ..windows }.check(NAME, $x)?;
                channels_of_group(NAME, 1, channels, self.filters)?;
                let more = self.output_padding.as_ref().map(|more| more.list());
                if let Some(more) = more {
                    check_output_padding(NAME, more, self.strides.list())?;
                }
                let mut shape = self.kernel_size.list().to_vec();
                shape.extend([self.filters, channels]);
                let $kernel = self.kernel.get($x, shape)?;
                let windows = Windows { padding: self.padding, ..windows };
                let mut sizes = vec![$x.shape()[0]];
                sizes.extend(larger(NAME, $x, &windows, more)?);
                sizes.push(self.filters);
                // There are as many sizes as input axes, which were checked before.
                let $shape = std::array::from_fn(|axis| sizes.get(axis).copied().unwrap_or(0));
                let sums = $sums?;
                let bias = self.use_bias.then(|| self.bias.get($x, [self.filters])).transpose()?;
                finish(sums, bias, self.activation, self.activity_regularizer.as_ref(), cx)
            }
        }
    };
}

// The first becomes `pub struct Conv1DTranspose` with Keras's options, and a `Layer` that calls `Tensor::conv1d_transpose`.
transposed! {
    /// Transposed convolution of signals `[N,W,C]` with a kernel `[K,O,C]`, result `[N,OW,O]`; same as the gradient of
    /// [`Conv1D`](super::Conv1D).
    Conv1DTranspose by usize = 1, in PyTorch &CONV_1D;
    |x, kernel, layer, shape| {
        let options = Conv1dTransposeOptions::new().strides(layer.strides).padding(layer.padding);
        x.conv1d_transpose(kernel, options.dilations(layer.dilation_rate).output_shape(shape))
    }
}
transposed! {
    /// Transposed convolution of images `[N,H,W,C]` with a kernel `[KH,KW,O,C]`, result `[N,OH,OW,O]`; same as the gradient of
    /// [`Conv2D`](super::Conv2D) with respect to its input.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// use tf::keras::{INFERENCE, Layer, layers::Conv2DTranspose};
    /// let layer = Conv2DTranspose::new(8, [3, 3]).strides([2, 2]).padding(tf::Padding::Same);
    /// let y = layer.call(&tf::Tensor::zeros([2, 7, 7, 4])?, INFERENCE)?;
    /// assert_eq!(y.shape(), [2, 14, 14, 8]);
    /// # Ok(())
    /// # }
    /// ```
    Conv2DTranspose by [usize; 2] = [1, 1], in PyTorch &CONV_2D;
    |x, kernel, layer, shape| {
        let options = Conv2dTransposeOptions::new().strides(layer.strides).padding(layer.padding);
        x.conv2d_transpose(kernel, options.dilations(layer.dilation_rate).output_shape(shape))
    }
}
transposed! {
    /// Transposed convolution of volumes `[N,D,H,W,C]` with a kernel `[KD,KH,KW,O,C]`, result `[N,OD,OH,OW,O]`; same as
    /// the gradient of [`Conv3D`](super::Conv3D).
    Conv3DTranspose by [usize; 3] = [1, 1, 1], in PyTorch &CONV_3D;
    |x, kernel, layer, shape| {
        let options = Conv3dTransposeOptions::new().strides(layer.strides).padding(layer.padding);
        x.conv3d_transpose(kernel, options.dilations(layer.dilation_rate).output_shape(shape))
    }
}
