//! [`MaxPooling2D`] and [`AveragePooling2D`]: each window of an image becomes one number.

use crate::error::Result;
use crate::keras::Context;
use crate::keras::layers::Layer;
use crate::keras::layers::macros::{configured, layer};
use crate::ops::{Padding, Pool2dOptions};
use crate::tensor::Tensor;

macro_rules! pooling {
    ($(#[$doc:meta])* $layer:ident calls $op:ident) => {
        layer! {
            $(#[$doc])*
            pub struct $layer {
                /// A layer with windows of `pool_size` (rows, columns), side by side and inside the image.
                new(pool_size: [usize; 2]);
                options {
                    /// Sets the steps between windows, as (rows, columns); the size of the windows.
                    strides: Option<[usize; 2]> as impl Into<Option<[usize; 2]>> = None,
                    /// Sets how far windows may reach beyond the image.
                    padding: Padding = Padding::Valid,
                }
                fixed {
                    data_format: "channels_last",
                }
            }
        }

        impl Layer for $layer {
            configured!();

            fn call(&self, x: &Tensor, _cx: Context<'_>) -> Result<Tensor> {
                let mut options = Pool2dOptions::new().padding(self.padding);
                options.strides = self.strides;
                self.policy.autocast(x)?.$op(self.pool_size, options)
            }
        }
    };
}

// The first becomes `pub struct MaxPooling2D` with its setters and a `Layer` that calls `Tensor::max_pool2d`.
pooling! {
    /// The largest element of each window and channel: images `[N,H,W,C]`, result `[N,OH,OW,C]`.
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
    MaxPooling2D calls max_pool2d
}
pooling! {
    /// The mean of the elements of each window and channel that lie in the image: images `[N,H,W,C]`, result
    /// `[N,OH,OW,C]`.
    AveragePooling2D calls avg_pool2d
}
