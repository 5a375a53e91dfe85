//! [`Conv1D`], [`Conv2D`], [`Conv3D`]: apply the same small kernels everywhere in a signal, an image, a volume.

use super::convolution::{Windows, channels_of_group, finish};
use crate::error::Result;
use crate::keras::layers::Layer;
use crate::keras::layers::macros::{configured, layer, unmasked};
use crate::keras::layers::shapes::SizeList;
use crate::keras::{Activation, Context, Regularizer, Weight};
use crate::ops::{Conv1dOptions, Conv2dOptions, Conv3dOptions, Padding, concat};
use crate::tensor::Tensor;

/// The padding mode of a [`Conv1D`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignalPadding {
    /// The same modes as for images.
    Both(Padding),
    /// Pads only at the start, so that each result does not depend on later positions.
    Causal,
}

crate::trackable::plain!(SignalPadding);

impl<P: Into<Padding>> From<P> for SignalPadding {
    fn from(padding: P) -> Self {
        SignalPadding::Both(padding.into())
    }
}

#[cfg(feature = "json")]
impl crate::keras::ConfigValue for SignalPadding {
    fn to_json(&self) -> std::result::Result<serde_json::Value, String> {
        match self {
            SignalPadding::Both(padding) => padding.to_json(),
            SignalPadding::Causal => Ok("causal".into()),
        }
    }

    fn from_json(value: &serde_json::Value) -> std::result::Result<Self, String> {
        if value.as_str() == Some("causal") {
            return Ok(SignalPadding::Causal);
        }
        let both = Padding::from_json(value).map(SignalPadding::Both);
        both.map_err(|words| format!("{words} or \"causal\""))
    }
}

macro_rules! convolution {
    (
        $(#[$doc:meta])*
        $layer:ident by $size:ty = $ones:expr, in PyTorch $torch:expr,
        padding $padding:ty $(as $given:ty)? = $valid:expr, which means |$of:ident| $means:expr;
        |$x:ident, $kernel:ident, $from:ident, $padded:ident| $sums:expr
    ) => {
        layer! {
            $(#[$doc])*
            pub struct $layer {
                /// Creates a layer with `filters` kernels of this size: stride 1, no padding, no activation, a Glorot
                /// uniform kernel initializer, a bias of zeros.
                new(filters: usize, kernel_size: $size);
                options {
                    /// Sets the strides.
                    strides: $size = $ones,
                    /// Sets the padding mode.
                    padding: $padding $(as $given)? = $valid,
                    /// Sets the dilation rate.
                    dilation_rate: $size = $ones,
                    /// Sets the number of groups of input channels; each filter sees the channels of one group.
                    groups: usize = 1,
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
                let $padded: Padding = {
                    let $of = self;
                    $means
                };
                let windows = Windows {
                    kernel_size: self.kernel_size.list(),
                    strides: self.strides.list(),
                    dilation_rate: self.dilation_rate.list(),
                    padding: $padded,
                };
                let channels = windows.check(NAME, $x)?;
                let channels = channels_of_group(NAME, self.groups, channels, self.filters)?;
                let mut shape = self.kernel_size.list().to_vec();
                shape.extend([channels, self.filters]);
                let $kernel = self.kernel.get($x, shape)?;
                let sums = $sums?;
                let bias = self.use_bias.then(|| self.bias.get($x, [self.filters])).transpose()?;
                finish(sums, bias, self.activation, self.activity_regularizer.as_ref(), cx)
            }
        }
    };
}

// The first becomes `pub struct Conv1D` with Keras's options, and a `Layer` that calls `Tensor::conv1d`.
convolution! {
    /// `y = activation(conv1d(x, kernel) + bias)`: signals `[N,W,C]`, kernel `[K,C,O]`, bias `[O]`, result `[N,OW,O]`.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// use tf::keras::{INFERENCE, Initializer, Layer, layers::{Conv1D, SignalPadding}};
    /// let layer = Conv1D::new(1, 2).padding(SignalPadding::Causal);
    /// let layer = layer.kernel_initializer(Initializer::Ones);
    /// let y = layer.call(&tf::constant([1.0, 2.0, 3.0])?.reshape([1, 3, 1])?, INFERENCE)?;
    /// assert_eq!(y.to_vec::<f32>()?, [1.0, 3.0, 5.0]);
    /// # Ok(())
    /// # }
    /// ```
    Conv1D by usize = 1, in PyTorch &CONV_1D,
    padding SignalPadding as impl Into<SignalPadding> = SignalPadding::Both(Padding::Valid),
    which means |layer| match layer.padding {
        SignalPadding::Both(padding) => padding,
        SignalPadding::Causal => {
            let before = layer.kernel_size.saturating_sub(1).saturating_mul(layer.dilation_rate);
            [(before, 0)].into()
        }
    };
    |x, kernel, layer, padding| {
        let options = Conv1dOptions::new().stride(layer.strides).dilations(layer.dilation_rate);
        x.conv1d(kernel, options.padding(padding))
    }
}
convolution! {
    /// `y = activation(conv2d(x, kernel) + bias)`: images `[N,H,W,C]`, kernel `[KH,KW,C,O]`, bias `[O]`, result
    /// `[N,OH,OW,O]`. Sizes are (rows, columns).
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
    Conv2D by [usize; 2] = [1, 1], in PyTorch &CONV_2D, padding Padding = Padding::Valid, which means |layer| layer.padding;
    |x, kernel, layer, padding| {
        let options = Conv2dOptions::new().strides(layer.strides).dilations(layer.dilation_rate);
        x.conv2d(kernel, options.padding(padding))
    }
}
convolution! {
    /// `y = activation(conv3d(x, kernel) + bias)`: volumes `[N,D,H,W,C]`, kernel `[KD,KH,KW,C,O]`, bias `[O]`, result
    /// `[N,OD,OH,OW,O]`. Sizes are (depth, rows, columns).
    Conv3D by [usize; 3] = [1, 1, 1], in PyTorch &CONV_3D, padding Padding = Padding::Valid, which means |layer| layer.padding;
    |x, kernel, layer, padding| {
        let options = Conv3dOptions::new().strides(layer.strides).dilations(layer.dilation_rate);
        let options = options.padding(padding);
        if layer.groups == 1 {
            x.conv3d(kernel, options)
        } else {
            let (parts, kernels) = (x.split(layer.groups, -1)?, kernel.split(layer.groups, -1)?);
            let sums = parts.iter().zip(&kernels).map(|(x, kernel)| x.conv3d(kernel, options));
            concat(sums.collect::<Result<Vec<_>>>()?, -1)
        }
    }
}
