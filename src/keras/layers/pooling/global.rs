//! Global pooling: reduces all positions of a channel to one number.

use crate::dtype::DType;
use crate::error::{Error, Result, message};
use crate::keras::Context;
use crate::keras::layers::Layer;
use crate::keras::layers::macros::{configured, layer, unmasked};
use crate::keras::layers::shapes::expect_axes;
use crate::ops::where_;
use crate::shape::Axes;
use crate::tensor::Tensor;

/// The spatial axes of an input that has `count` of them.
fn axes(layer: &str, x: &Tensor, count: usize, keepdims: bool) -> Result<Axes> {
    expect_axes(layer, x, count)?;
    if x.shape()[1..=count].contains(&0) {
        return Err(Error::Shape(message!(
            "{layer}: the input is {:?}; an empty input has no maximum and no mean.",
            x.shape()
        )));
    }
    Ok(Axes::from((1..=count).collect::<Vec<usize>>()).keepdims(keepdims))
}

/// The mean of the unmasked steps; as in Keras, NaN if there are none.
fn masked_mean(x: &Tensor, mask: &Tensor, axes: Axes) -> Result<Tensor> {
    if *mask.shape() != x.shape()[..2] {
        return Err(Error::Shape(message!(
            "GlobalAveragePooling1D: the input is {:?} and the mask {:?}; the mask must have the input's batch and steps.",
            x.shape(),
            mask.shape()
        )));
    }
    let mask = mask.expand_dims(-1)?.cast(DType::Bool)?;
    let kept = where_(&mask, x, &x.zeros_like()?)?;
    // A sum in f16 could exceed its range even if the mean does not.
    let sum = kept.cast(DType::F32)?.reduce_sum(&axes)?;
    sum.divide(mask.cast(DType::F32)?.reduce_sum(&axes)?)?.cast(x.dtype())
}

macro_rules! global {
    (
        $(#[$doc:meta])* $layer:ident of $count:literal;
        |$x:ident, $axes:ident, $cx:ident| $pool:expr
    ) => {
        layer! {
            $(#[$doc])*
            pub struct $layer {
                /// Creates the layer.
                new();
                options {
                    /// Sets whether to keep the spatial axes, with size 1.
                    keepdims: bool = false,
                }
                fixed {
                    data_format: "channels_last",
                }
            }
        }

        impl Layer for $layer {
            configured!();
            unmasked!();

            fn call(&self, x: &Tensor, $cx: Context<'_>) -> Result<Tensor> {
                let $axes = axes(stringify!($layer), x, $count, self.keepdims)?;
                let $x = self.policy.autocast(x)?;
                $pool
            }
        }
    };
}

// The first becomes `pub struct GlobalAveragePooling1D` with `keepdims` and a `Layer` that averages axis 1.
global! {
    /// The mean over all time steps, per channel: signals `[N,W,C]`, result `[N,C]`. Masked steps do not count.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// use tf::keras::{INFERENCE, Layer, layers::GlobalAveragePooling1D};
    /// let x = tf::constant([1.0, 3.0, 8.0])?.reshape([1, 3, 1])?;
    /// let layer = GlobalAveragePooling1D::new();
    /// assert_eq!(layer.call(&x, INFERENCE)?.to_vec::<f32>()?, [4.0]);
    /// let mask = tf::constant([[true, true, false]])?;
    /// let masked = INFERENCE.with_mask(Some(&mask));
    /// assert_eq!(layer.call(&x, masked)?.to_vec::<f32>()?, [2.0]);
    /// # Ok(())
    /// # }
    /// ```
    GlobalAveragePooling1D of 1;
    |x, axes, cx| match cx.mask() {
        Some(mask) => masked_mean(&x, mask, axes),
        None => x.reduce_mean(axes),
    }
}
global! {
    /// The mean over all positions, per channel: images `[N,H,W,C]`, result `[N,C]`.
    GlobalAveragePooling2D of 2; |x, axes, _cx| x.reduce_mean(axes)
}
global! {
    /// The mean over all positions, per channel: volumes `[N,D,H,W,C]`, result `[N,C]`.
    GlobalAveragePooling3D of 3; |x, axes, _cx| x.reduce_mean(axes)
}
global! {
    /// The maximum per channel: signals `[N,W,C]`, result `[N,C]`.
    GlobalMaxPooling1D of 1; |x, axes, _cx| x.reduce_max(axes)
}
global! {
    /// The maximum per channel: images `[N,H,W,C]`, result `[N,C]`.
    GlobalMaxPooling2D of 2; |x, axes, _cx| x.reduce_max(axes)
}
global! {
    /// The maximum per channel: volumes `[N,D,H,W,C]`, result `[N,C]`.
    GlobalMaxPooling3D of 3; |x, axes, _cx| x.reduce_max(axes)
}
