//! [`MaxPooling2D`], [`AveragePooling2D`] and the corresponding layers for signals and volumes: each window becomes one
//! number.

use crate::error::{Error, Result, message};
use crate::keras::Context;
use crate::keras::layers::Layer;
use crate::keras::layers::macros::{configured, layer, unmasked};
use crate::keras::layers::shapes::{SizeList, expect_axes, positive};
use crate::ops::{Padding, Pool1dOptions, Pool2dOptions, Pool3dOptions};
use crate::tensor::Tensor;

/// Refuses windows that do not fit an input.
fn check(layer: &str, x: &Tensor, pool_size: &[usize], padding: Padding) -> Result<()> {
    expect_axes(layer, x, pool_size.len())?;
    positive(layer, "pool_size", pool_size)?;
    let mut sizes = x.shape()[1..].iter().zip(pool_size);
    if padding == Padding::Valid && sizes.any(|(size, window)| size < window) {
        return Err(Error::Shape(message!(
            "{layer}: the input is {:?}, which is smaller than a window of {pool_size:?}. Take smaller windows, or padding \
             'same'.",
            x.shape()
        )));
    }
    Ok(())
}

macro_rules! pooling {
    ($(#[$doc:meta])* $layer:ident calls $op:ident with $options:ident by $size:ty) => {
        layer! {
            $(#[$doc])*
            pub struct $layer {
                /// Creates a layer with adjacent windows of `pool_size`, without padding.
                new(pool_size: $size);
                options {
                    /// Sets the strides. Default: `pool_size`.
                    strides: Option<$size> as impl Into<Option<$size>> = None,
                    /// Sets the padding mode.
                    padding: Padding = Padding::Valid,
                }
                fixed {
                    data_format: "channels_last",
                }
            }
        }

        impl Layer for $layer {
            configured!();
            unmasked!();

            fn call(&self, x: &Tensor, _cx: Context<'_>) -> Result<Tensor> {
                const NAME: &str = stringify!($layer);
                check(NAME, x, self.pool_size.list(), self.padding)?;
                if let Some(strides) = &self.strides {
                    positive(NAME, "strides", strides.list())?;
                }
                let mut options = $options::new().padding(self.padding);
                options.strides = self.strides;
                self.policy.autocast(x)?.$op(self.pool_size, options)
            }
        }
    };
}

// The first becomes `pub struct MaxPooling1D` with its setters and a `Layer` that calls `Tensor::max_pool1d`.
pooling! {
    /// Max pooling, per window and channel: signals `[N,W,C]`, result `[N,OW,C]`.
    MaxPooling1D calls max_pool1d with Pool1dOptions by usize
}
pooling! {
    /// Average pooling, per window and channel, without the padding: signals `[N,W,C]`, result `[N,OW,C]`.
    AveragePooling1D calls avg_pool1d with Pool1dOptions by usize
}
pooling! {
    /// Max pooling, per window and channel: images `[N,H,W,C]`, result `[N,OH,OW,C]`. Sizes are (rows, columns).
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// use tf::keras::{INFERENCE, Layer, layers::MaxPooling2D};
    /// let x = tf::constant([1.0, 5.0, 2.0, 3.0])?.reshape([1, 2, 2, 1])?;
    /// assert_eq!(MaxPooling2D::new([2, 2]).call(&x, INFERENCE)?.to_vec::<f32>()?, [5.0]);
    /// # Ok(())
    /// # }
    /// ```
    MaxPooling2D calls max_pool2d with Pool2dOptions by [usize; 2]
}
pooling! {
    /// Average pooling, per window and channel, without the padding: images `[N,H,W,C]`, result `[N,OH,OW,C]`. Sizes
    /// are (rows, columns).
    AveragePooling2D calls avg_pool2d with Pool2dOptions by [usize; 2]
}
pooling! {
    /// Max pooling, per window and channel: volumes `[N,D,H,W,C]`, result `[N,OD,OH,OW,C]`.
    MaxPooling3D calls max_pool3d with Pool3dOptions by [usize; 3]
}
pooling! {
    /// Average pooling, per window and channel, without the padding: volumes `[N,D,H,W,C]`, result `[N,OD,OH,OW,C]`.
    AveragePooling3D calls avg_pool3d with Pool3dOptions by [usize; 3]
}
