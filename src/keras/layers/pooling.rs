//! [`MaxPooling2D`] and [`AveragePooling2D`]: one number for each window of an image.

use super::{Layer, in_layer, named};
use crate::error::Result;
use crate::ops::{Padding, Pool2dOptions};
use crate::tensor::Tensor;

macro_rules! pooling {
    ($(#[$doc:meta])* $layer:ident, $name:literal, $op:ident) => {
        $(#[$doc])*
        pub struct $layer {
            name: String,
            pool_size: [usize; 2],
            options: Pool2dOptions,
        }

        impl $layer {
            /// Windows of `pool_size` (rows, columns), one beside the other and inside the image.
            pub fn new(pool_size: [usize; 2]) -> Self {
                $layer { name: $name.into(), pool_size, options: Pool2dOptions::new() }
            }

            /// Steps between windows, as (rows, columns).
            pub fn strides(mut self, strides: [usize; 2]) -> Self {
                self.options.strides = Some(strides);
                self
            }

            /// How far windows may leave the image.
            pub fn padding(mut self, padding: Padding) -> Self {
                self.options.padding = padding;
                self
            }

            /// The layer's name.
            pub fn named(mut self, name: impl Into<String>) -> Self {
                self.name = name.into();
                self
            }
        }

        impl Layer for $layer {
            named!();

            fn call(&self, x: &Tensor, _training: bool) -> Result<Tensor> {
                in_layer(&self.name, x.$op(self.pool_size, self.options))
            }
        }
    };
}

// The first becomes `pub struct MaxPooling2D { name, pool_size, options }` with its builders and a `Layer` that calls
// `Tensor::max_pool2d`.
pooling! {
    /// The largest element of each window and channel: images `[N,H,W,C]`, result `[N,OH,OW,C]`.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// use tf::keras::{Layer, layers::MaxPooling2D};
    /// let x = tf::constant([1.0, 5.0, 2.0, 3.0])?.reshape([1, 2, 2, 1])?;
    /// assert_eq!(MaxPooling2D::new([2, 2]).call(&x, false)?.to_vec::<f32>()?, [5.0]);
    /// # Ok(())
    /// # }
    /// ```
    MaxPooling2D, "max_pooling2d", max_pool2d
}
pooling! {
    /// The mean of each window and channel, of those elements that lie in the image: images `[N,H,W,C]`, result
    /// `[N,OH,OW,C]`.
    AveragePooling2D, "average_pooling2d", avg_pool2d
}
