//! [`Cropping1D`], [`Cropping2D`], [`Cropping3D`]: cut the borders off signals, images and volumes.

use crate::error::{Error, Result, message};
use crate::keras::Context;
use crate::keras::layers::Layer;
use crate::keras::layers::macros::{configured, layer, unmasked};
use crate::keras::layers::shapes::{Borders, expect_axes};
use crate::tensor::Tensor;

/// Cuts `borders` off the axes after the first.
fn cropped(layer: &str, x: &Tensor, borders: &[(usize, usize)]) -> Result<Tensor> {
    expect_axes(layer, x, borders.len())?;
    let (mut begin, mut size) = (vec![0], vec![-1]);
    for (&(before, after), &have) in borders.iter().zip(&x.shape()[1..]) {
        let left = before.checked_add(after).and_then(|cut| have.checked_sub(cut));
        let Some(left) = left.filter(|left| *left > 0) else {
            return Err(Error::Shape(message!(
                "{layer}: the input is {:?} and the cropping {borders:?}, which leaves nothing.",
                x.shape()
            )));
        };
        begin.push(before);
        size.push(left as i64);
    }
    begin.push(0);
    size.push(-1);
    x.slice(&begin, &size)
}

macro_rules! cropping {
    ($(#[$doc:meta])* $layer:ident of $axes:literal $(, $fixed:ident: $only:literal)?) => {
        layer! {
            $(#[$doc])*
            pub struct $layer {
                /// Creates a layer that crops by this amount: one number for all sides, one for each axis, or a pair
                /// (start, end) for each axis.
                new(cropping: Borders<$axes> as impl Into<Borders<$axes>>);
                fixed {
                    $($fixed: $only,)?
                }
            }
        }

        impl Layer for $layer {
            configured!();
            unmasked!();

            fn call(&self, x: &Tensor, _cx: Context<'_>) -> Result<Tensor> {
                cropped(stringify!($layer), &self.policy.autocast(x)?, &self.cropping.0)
            }
        }
    };
}

// The first becomes `pub struct Cropping1D` with `new(impl Into<Borders<1>>)` and a `Layer` that cuts axis 1.
cropping! {
    /// Crops both ends of signals `[N,W,C]`.
    Cropping1D of 1
}
cropping! {
    /// Crops the borders of images `[N,H,W,C]`.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// use tf::keras::{INFERENCE, Layer, layers::Cropping2D};
    /// let x = tf::Tensor::ones([1, 4, 5, 1])?;
    /// assert_eq!(Cropping2D::new([(1, 0), (1, 1)]).call(&x, INFERENCE)?.shape(), [1, 3, 3, 1]);
    /// # Ok(())
    /// # }
    /// ```
    Cropping2D of 2, data_format: "channels_last"
}
cropping! {
    /// Crops the borders of volumes `[N,D,H,W,C]`.
    Cropping3D of 3, data_format: "channels_last"
}
