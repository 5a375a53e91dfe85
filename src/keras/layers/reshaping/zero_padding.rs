//! [`ZeroPadding1D`], [`ZeroPadding2D`], [`ZeroPadding3D`]: put zeros around signals, images and volumes.

use crate::error::Result;
use crate::keras::Context;
use crate::keras::layers::Layer;
use crate::keras::layers::macros::{configured, layer, unmasked};
use crate::keras::layers::shapes::{Borders, expect_axes};
use crate::tensor::Tensor;

macro_rules! zero_padding {
    ($(#[$doc:meta])* $layer:ident of $axes:literal $(, $fixed:ident: $only:literal)?) => {
        layer! {
            $(#[$doc])*
            pub struct $layer {
                /// Creates a layer with this much padding: one number for all sides, one for each axis, or a pair
                /// (start, end) for each axis.
                new(padding: Borders<$axes> as impl Into<Borders<$axes>>);
                fixed {
                    $($fixed: $only,)?
                }
            }
        }

        impl Layer for $layer {
            configured!();
            unmasked!();

            fn call(&self, x: &Tensor, _cx: Context<'_>) -> Result<Tensor> {
                expect_axes(stringify!($layer), x, $axes)?;
                let mut paddings = vec![(0, 0)];
                paddings.extend(self.padding.0);
                paddings.push((0, 0));
                self.policy.autocast(x)?.pad(&paddings)
            }
        }
    };
}

// The first becomes `pub struct ZeroPadding1D` with `new(impl Into<Borders<1>>)` and a `Layer` that pads axis 1.
zero_padding! {
    /// Pads signals `[N,W,C]` with zeros at both ends.
    ZeroPadding1D of 1, data_format: "channels_last"
}
zero_padding! {
    /// Pads images `[N,H,W,C]` with zeros on all sides.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// use tf::keras::{INFERENCE, Layer, layers::ZeroPadding2D};
    /// let x = tf::Tensor::ones([1, 4, 4, 1])?;
    /// assert_eq!(ZeroPadding2D::new(1).call(&x, INFERENCE)?.shape(), [1, 6, 6, 1]);
    /// assert_eq!(ZeroPadding2D::new([(1, 2), (0, 3)]).call(&x, INFERENCE)?.shape(), [1, 7, 7, 1]);
    /// # Ok(())
    /// # }
    /// ```
    ZeroPadding2D of 2, data_format: "channels_last"
}
zero_padding! {
    /// Pads volumes `[N,D,H,W,C]` with zeros on all sides.
    ZeroPadding3D of 3, data_format: "channels_last"
}
