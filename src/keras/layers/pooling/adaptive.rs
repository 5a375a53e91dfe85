//! Adaptive pooling: the window sizes follow from the size of the result.

use crate::error::Result;
use crate::keras::Context;
use crate::keras::layers::Layer;
use crate::keras::layers::macros::{configured, layer, unmasked};
use crate::keras::layers::shapes::expect_axes;
use crate::tensor::Tensor;

macro_rules! adaptive {
    ($(#[$doc:meta])* $layer:ident calls $op:ident with $count:literal by $size:ty as |$given:ident| $sizes:expr) => {
        layer! {
            $(#[$doc])*
            pub struct $layer {
                /// Creates a layer with this output size.
                new(output_size: $size);
                fixed {
                    data_format: "channels_last",
                }
            }
        }

        impl Layer for $layer {
            configured!();
            unmasked!();

            fn call(&self, x: &Tensor, _cx: Context<'_>) -> Result<Tensor> {
                expect_axes(stringify!($layer), x, $count)?;
                let $given = self.output_size;
                self.policy.autocast(x)?.$op($sizes)
            }
        }
    };
}

// The first becomes `pub struct AdaptiveAveragePooling1D` and a `Layer` that calls `Tensor::adaptive_avg_pool1d`.
adaptive! {
    /// Average pooling of signals `[N,W,C]`, with windows chosen to produce the output size: result `[N,output_size,C]`.
    AdaptiveAveragePooling1D calls adaptive_avg_pool1d with 1 by usize as |size| [size]
}
adaptive! {
    /// Average pooling of images `[N,H,W,C]`, with windows chosen to produce `output_size`.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// use tf::keras::{INFERENCE, Layer, layers::AdaptiveAveragePooling2D};
    /// let layer = AdaptiveAveragePooling2D::new([2, 3]);
    /// assert_eq!(layer.call(&tf::Tensor::zeros([1, 7, 9, 4])?, INFERENCE)?.shape(), [1, 2, 3, 4]);
    /// # Ok(())
    /// # }
    /// ```
    AdaptiveAveragePooling2D calls adaptive_avg_pool2d with 2 by [usize; 2] as |size| size
}
adaptive! {
    /// Average pooling of volumes `[N,D,H,W,C]`, with windows chosen to produce `output_size`.
    AdaptiveAveragePooling3D calls adaptive_avg_pool3d with 3 by [usize; 3] as |size| size
}
adaptive! {
    /// Max pooling of signals `[N,W,C]`, with windows chosen to produce the output size: result `[N,output_size,C]`.
    AdaptiveMaxPooling1D calls adaptive_max_pool1d with 1 by usize as |size| [size]
}
adaptive! {
    /// Max pooling of images `[N,H,W,C]`, with windows chosen to produce `output_size`.
    AdaptiveMaxPooling2D calls adaptive_max_pool2d with 2 by [usize; 2] as |size| size
}
adaptive! {
    /// Max pooling of volumes `[N,D,H,W,C]`, with windows chosen to produce `output_size`.
    AdaptiveMaxPooling3D calls adaptive_max_pool3d with 3 by [usize; 3] as |size| size
}
