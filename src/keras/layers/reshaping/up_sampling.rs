//! [`UpSampling1D`], [`UpSampling2D`], [`UpSampling3D`]: make signals, images and volumes larger.

use crate::error::Result;
use crate::keras::Context;
use crate::keras::layers::Layer;
use crate::keras::layers::macros::{configured, layer, unmasked};
use crate::keras::layers::shapes::{SizeList, expect_axes, positive};
use crate::ops::image::{ResizeMethod, ResizeOptions, resize_with};
use crate::tensor::Tensor;

/// Repeats each position along each axis by the size of that axis in `sizes`.
fn repeated(layer: &str, x: &Tensor, sizes: &[usize]) -> Result<Tensor> {
    expect_axes(layer, x, sizes.len())?;
    positive(layer, "size", sizes)?;
    (1usize..).zip(sizes).try_fold(x.clone(), |x, (axis, size)| x.repeat(&[*size], axis))
}

macro_rules! up_sampling {
    ($(#[$doc:meta])* $layer:ident by $size:ty $(, $fixed:ident: $only:literal)?) => {
        layer! {
            $(#[$doc])*
            pub struct $layer {
                /// Creates a layer that repeats each position `size` times along each axis.
                new(size: $size);
                fixed {
                    $($fixed: $only,)?
                }
            }
        }

        impl Layer for $layer {
            configured!();
            unmasked!();

            fn call(&self, x: &Tensor, _cx: Context<'_>) -> Result<Tensor> {
                repeated(stringify!($layer), &self.policy.autocast(x)?, self.size.list())
            }
        }
    };
}

// The first becomes `pub struct UpSampling1D` with `new(usize)` and a `Layer` that repeats along axis 1.
up_sampling! {
    /// Repeats each time step of signals: input `[N,W,C]`, result `[N, size W, C]`.
    UpSampling1D by usize
}
up_sampling! {
    /// Repeats each position of volumes: input `[N,D,H,W,C]`, with the spatial axes multiplied by `size`.
    UpSampling3D by [usize; 3], data_format: "channels_last"
}

layer! {
    /// Upsamples images: input `[N,H,W,C]`, result `[N, size0 H, size1 W, C]`.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// use tf::image::ResizeMethod;
    /// use tf::keras::{INFERENCE, Layer, layers::UpSampling2D};
    /// let x = tf::constant([0.0, 4.0])?.reshape([1, 1, 2, 1])?;
    /// let y = UpSampling2D::new([1, 2]).call(&x, INFERENCE)?;
    /// assert_eq!(y.to_vec::<f32>()?, [0.0, 0.0, 4.0, 4.0]);
    /// let smooth = UpSampling2D::new([1, 2]).interpolation(ResizeMethod::Bilinear);
    /// assert_eq!(smooth.call(&x, INFERENCE)?.to_vec::<f32>()?, [0.0, 1.0, 3.0, 4.0]);
    /// # Ok(())
    /// # }
    /// ```
    pub struct UpSampling2D {
        /// Creates a layer that repeats each pixel `size` times, as (rows, columns).
        new(size: [usize; 2]);
        options {
            /// Sets the interpolation method. Default: nearest neighbor.
            interpolation: ResizeMethod = ResizeMethod::NearestNeighbor,
        }
        fixed {
            data_format: "channels_last",
        }
    }
}

impl Layer for UpSampling2D {
    configured!();
    unmasked!();

    fn call(&self, x: &Tensor, _cx: Context<'_>) -> Result<Tensor> {
        let x = &self.policy.autocast(x)?;
        if self.interpolation == ResizeMethod::NearestNeighbor {
            return repeated("UpSampling2D", x, &self.size);
        }
        expect_axes("UpSampling2D", x, 2)?;
        positive("UpSampling2D", "size", &self.size)?;
        let larger = |axis: usize| x.shape()[axis + 1].saturating_mul(self.size[axis]);
        let options = ResizeOptions::new().method(self.interpolation);
        let y = resize_with(x, [larger(0), larger(1)], options)?;
        if x.dtype().is_float() { y.cast(x.dtype()) } else { Ok(y) }
    }
}
