//! [`CenterCrop`]: crops the center of images.

use super::images::Images;
use super::resizing::cut;
use crate::error::Result;
use crate::keras::Context;
use crate::keras::layers::Layer;
use crate::keras::layers::macros::{configured, layer, unmasked};
use crate::keras::layers::shapes::positive;
use crate::ops::image::{ResizeOptions, resize_with};
use crate::tensor::Tensor;

layer! {
    /// Crops the central `height` by `width` region of images `[N,H,W,C]` or `[H,W,C]`. Smaller images are resized,
    /// after a central crop to this aspect ratio.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// use tf::keras::{INFERENCE, Layer, layers::CenterCrop};
    /// let x = tf::constant([1.0, 2.0, 3.0])?.reshape([1, 3, 1])?;
    /// assert_eq!(CenterCrop::new(1, 1).call(&x, INFERENCE)?.to_vec::<f32>()?, [2.0]);
    /// # Ok(())
    /// # }
    /// ```
    pub struct CenterCrop {
        /// Creates a layer whose output images have this height and width.
        new(height: usize, width: usize);
        fixed {
            data_format: "channels_last",
        }
    }
}

/// The center of images. Smaller images are cropped by [`cut`] and resized.
pub(super) fn middle(layer: &str, images: &Images, size: [usize; 2]) -> Result<Tensor> {
    positive(layer, "the size", &size)?;
    let [_, h, w] = images.sizes();
    positive(layer, "the size of the images", &[h, w])?;
    let [height, width] = size;
    if h < height || w < width {
        let part = cut(&images.batch, size)?;
        return images.back(resize_with(&part, size, ResizeOptions::new())?);
    }
    let begin = [0, (h - height) / 2, (w - width) / 2, 0];
    images.back(images.batch.slice(&begin, &[-1, height as i64, width as i64, -1])?)
}

impl Layer for CenterCrop {
    configured!();
    unmasked!();

    fn call(&self, x: &Tensor, _cx: Context<'_>) -> Result<Tensor> {
        let images = Images::new("CenterCrop", x, self.policy)?;
        middle("CenterCrop", &images, [self.height, self.width])
    }
}
