//! [`Resizing`]: resizes images to one size.

use super::images::Images;
use crate::error::{Error, Result, message};
use crate::keras::Context;
use crate::keras::layers::Layer;
use crate::keras::layers::macros::{configured, layer, unmasked};
use crate::keras::layers::shapes::positive;
use crate::ops::PadMode;
use crate::ops::image::{ResizeMethod, ResizeOptions, resize_with};
use crate::tensor::Tensor;

layer! {
    /// Resizes images `[N,H,W,C]` or `[H,W,C]` to `height` and `width`.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// use tf::keras::{INFERENCE, Layer, layers::Resizing};
    /// let images = tf::Tensor::ones([2, 30, 40, 3])?;
    /// assert_eq!(Resizing::new(8, 8).call(&images, INFERENCE)?.shape(), [2, 8, 8, 3]);
    /// let whole = Resizing::new(8, 8).pad_to_aspect_ratio(true).call(&images, INFERENCE)?;
    /// assert_eq!(whole.to_vec::<f32>()?[..3], [0.0; 3]); // a border above
    /// # Ok(())
    /// # }
    /// ```
    pub struct Resizing {
        /// Creates a layer that resizes images to this height and width, by bilinear interpolation.
        new(height: usize, width: usize);
        options {
            /// Sets the interpolation method.
            interpolation: ResizeMethod = ResizeMethod::Bilinear,
            /// Sets whether an image with a different aspect ratio is cropped instead of distorted.
            crop_to_aspect_ratio: bool = false,
            /// Sets whether an image with a different aspect ratio is padded instead of distorted.
            pad_to_aspect_ratio: bool = false,
            /// Sets the value of the padding.
            fill_value: f32 = 0.0,
            /// Sets whether to use antialiasing when downsampling: an output pixel averages all input pixels that it
            /// covers.
            antialias: bool = false,
        }
        fixed {
            data_format: "channels_last",
            fill_mode: "constant",
        }
    }
}

/// The proportional size: `size other / of`, rounded down, at least 1.
fn proportion(size: usize, other: usize, of: usize) -> usize {
    ((size as f64 * other as f64 / of as f64) as usize).max(1)
}

/// Crops the largest central part with the target's aspect ratio.
pub(super) fn cut(x: &Tensor, [height, width]: [usize; 2]) -> Result<Tensor> {
    let [h, w] = [x.shape()[1], x.shape()[2]];
    let (tall, wide) = (proportion(w, height, width).min(h), proportion(h, width, height).min(w));
    let begin = [0, (h - tall) / 2, (w - wide) / 2, 0];
    x.slice(&begin, &[-1, tall as i64, wide as i64, -1])
}

impl Layer for Resizing {
    configured!();
    unmasked!();

    fn call(&self, x: &Tensor, _cx: Context<'_>) -> Result<Tensor> {
        const NAME: &str = "Resizing";
        let images = Images::new(NAME, x, self.policy)?;
        let size = [self.height, self.width];
        positive(NAME, "the size", &size)?;
        let [_, h, w] = images.sizes();
        positive(NAME, "the size of the images", &[h, w])?;
        if self.crop_to_aspect_ratio && self.pad_to_aspect_ratio {
            return Err(Error::Shape(message!(
                "{NAME}: crop_to_aspect_ratio and pad_to_aspect_ratio exclude each other; choose one."
            )));
        }
        let mut batch = images.batch.clone();
        if self.crop_to_aspect_ratio {
            batch = cut(&batch, size)?;
        } else if self.pad_to_aspect_ratio {
            let tall = proportion(w, self.height, self.width).max(h);
            let wide = proportion(h, self.width, self.height).max(w);
            let (above, left) = ((tall - h) / 2, (wide - w) / 2);
            // In Keras both borders are equal, even if the difference is odd.
            let borders = [(0, 0), (above, above), (left, left), (0, 0)];
            batch = batch.pad_with(&borders, PadMode::Constant(self.fill_value.into()))?;
        }
        let options = ResizeOptions::new().method(self.interpolation).antialias(self.antialias);
        images.back(resize_with(&batch, size, options)?)
    }
}
