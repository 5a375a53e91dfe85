//! [`SpatialDropout1D`], [`SpatialDropout2D`], [`SpatialDropout3D`]: drop whole channels.

use crate::error::Result;
use crate::keras::Context;
use crate::keras::layers::Layer;
use crate::keras::layers::macros::{configured, layer};
use crate::keras::layers::noise::check_rate;
use crate::keras::layers::shapes::expect_axes;
use crate::random::DropoutOptions;
use crate::tensor::Tensor;

macro_rules! spatial_dropout {
    ($(#[$doc:meta])* $layer:ident of $axes:literal $(, $fixed:ident: $only:literal)?) => {
        layer! {
            $(#[$doc])*
            pub struct $layer {
                /// Creates a layer that drops channels with probability `rate`, in `0..1`.
                new(rate: f32);
                random(generator);
                fixed {
                    $($fixed: $only,)?
                }
            }
        }

        impl Layer for $layer {
            configured!();

            fn call(&self, x: &Tensor, cx: Context<'_>) -> Result<Tensor> {
                const NAME: &str = stringify!($layer);
                check_rate(NAME, self.rate)?;
                expect_axes(NAME, x, $axes)?;
                let x = &self.policy.autocast(x)?;
                if !cx.training() || self.rate == 0.0 {
                    return Ok(x.clone());
                }
                let mut noise = vec![1; $axes + 2];
                noise[0] = x.shape()[0];
                noise[$axes + 1] = x.shape()[$axes + 1];
                x.dropout_with(self.rate, self.generator.get(), DropoutOptions::new().noise_shape(noise))
            }
        }
    };
}

// The first becomes `pub struct SpatialDropout1D`, whose draws have the shape `[N,1,C]`.
spatial_dropout! {
    /// In training, drops whole channels of signals `[N,W,C]` with probability `rate`, and divides the others by
    /// `1 - rate`; in inference returns `x`.
    SpatialDropout1D of 1
}
spatial_dropout! {
    /// In training, drops whole channels of images `[N,H,W,C]` with probability `rate`, and divides the others by
    /// `1 - rate`; in inference returns `x`.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// use tf::keras::{Layer, TRAINING, layers::SpatialDropout2D};
    /// let x = tf::Tensor::ones([1, 2, 2, 8])?;
    /// let y = SpatialDropout2D::new(0.5).call(&x, TRAINING)?.to_vec::<f32>()?;
    /// assert!(y.chunks(8).all(|place| place == &y[..8])); // a channel is kept everywhere, or nowhere
    /// # Ok(())
    /// # }
    /// ```
    SpatialDropout2D of 2, data_format: "channels_last"
}
spatial_dropout! {
    /// In training, drops whole channels of volumes `[N,D,H,W,C]` with probability `rate`, and divides the others by
    /// `1 - rate`; in inference returns `x`.
    SpatialDropout3D of 3, data_format: "channels_last"
}
