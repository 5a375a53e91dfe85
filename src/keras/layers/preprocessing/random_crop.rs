//! [`RandomCrop`]: crops images at random positions.

use super::center_crop::middle;
use super::images::Images;
use crate::error::Result;
use crate::keras::Context;
use crate::keras::layers::Layer;
use crate::keras::layers::macros::{configured, layer, unmasked};
use crate::keras::layers::shapes::positive;
use crate::ops::concat;
use crate::ops::image::{AffineTransformOptions, Interpolation, affine_transform_with};
use crate::tensor::Tensor;

layer! {
    /// In training, crops a `height` by `width` region of each image `[H,W,C]` at a random position. In inference,
    /// crops the center. As in [`CenterCrop`](super::CenterCrop), smaller images are resized, after a central crop to
    /// this aspect ratio.
    ///
    /// Each image of a batch gets its own position; in Keras all images of a batch share one. In inference, the code of
    /// Keras 3 returns images unchanged, contrary to its documentation and `compute_output_shape`: the following layers
    /// would receive a different size than in training, which a `Dense` after a `Flatten` rejects. In wgrad the result
    /// always has the same size.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// use tf::keras::{Layer, TRAINING, layers::RandomCrop};
    /// let y = RandomCrop::new(24, 24).call(&tf::Tensor::ones([8, 28, 28, 1])?, TRAINING)?;
    /// assert_eq!(y.shape(), [8, 24, 24, 1]);
    /// # Ok(())
    /// # }
    /// ```
    pub struct RandomCrop {
        /// Creates a layer whose output images have this height and width.
        new(height: usize, width: usize);
        random(generator);
        fixed {
            data_format: "channels_last",
        }
    }
}

impl Layer for RandomCrop {
    configured!();
    unmasked!();

    fn call(&self, x: &Tensor, cx: Context<'_>) -> Result<Tensor> {
        let images = Images::new("RandomCrop", x, self.policy)?;
        let size = [self.height, self.width];
        positive("RandomCrop", "the size", &size)?;
        let [n, h, w] = images.sizes();
        if !cx.training() || h < self.height || w < self.width {
            return middle("RandomCrop", &images, size);
        }
        let place = |more: usize| -> Result<Tensor> {
            let draw = images.draw(self.generator.get(), [0.0, (more + 1) as f32])?.floor()?;
            // A draw just below the upper bound may be rounded to it.
            draw.minimum(more as f32)?.reshape_to([n, 1].into())
        };
        let (down, right) = (place(h - self.height)?, place(w - self.width)?);
        let (zero, one) = (down.zeros_like()?, down.ones_like()?);
        let moved = concat([&one, &zero, &right, &zero, &one, &down, &zero, &zero], 1)?;
        let options =
            AffineTransformOptions::new().interpolation(Interpolation::Nearest).output_shape(size);
        images.back(affine_transform_with(&images.batch, &moved, options)?)
    }
}
