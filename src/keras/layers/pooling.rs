//! [`MaxPooling2D`] and [`AveragePooling2D`]: each window of an image becomes one number.

use super::Layer;
use crate::error::Result;
use crate::keras::Context;
use crate::ops::{Padding, Pool2dOptions};
use crate::tensor::Tensor;
use crate::trackable::Trackable;

macro_rules! pooling {
    ($(#[$doc:meta])* pub struct $layer:ident calls $op:ident) => {
        $(#[$doc])*
        #[derive(Trackable)]
        pub struct $layer {
            pool_size: [usize; 2],
            options: Pool2dOptions,
        }

        impl $layer {
            /// A layer with windows of `pool_size` (rows, columns), side by side and inside the image.
            pub fn new(pool_size: [usize; 2]) -> Self {
                $layer { pool_size, options: Pool2dOptions::new() }
            }

            /// Sets the steps between windows, as (rows, columns).
            pub fn strides(mut self, strides: [usize; 2]) -> Self {
                self.options.strides = Some(strides);
                self
            }

            /// Sets how far windows may reach beyond the image.
            pub fn padding(mut self, padding: Padding) -> Self {
                self.options.padding = padding;
                self
            }
        }

        impl Layer for $layer {
            fn call(&self, x: &Tensor, _cx: Context<'_>) -> Result<Tensor> {
                x.$op(self.pool_size, self.options)
            }
        }
    };
}

// The first becomes `pub struct MaxPooling2D { pool_size, options }` with its builders and a `Layer` that calls
// `Tensor::max_pool2d`.
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
    pub struct MaxPooling2D calls max_pool2d
}
pooling! {
    /// The mean of the elements of each window and channel that lie in the image: images `[N,H,W,C]`, result
    /// `[N,OH,OW,C]`.
    pub struct AveragePooling2D calls avg_pool2d
}
