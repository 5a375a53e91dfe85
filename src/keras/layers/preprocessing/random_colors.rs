//! [`RandomContrast`] and [`RandomBrightness`].

use super::images::{Factor, Images};
use crate::error::{Error, Result, message};
use crate::keras::Context;
use crate::keras::layers::Layer;
use crate::keras::layers::macros::{configured, layer};
use crate::shape::Axes;
use crate::tensor::Tensor;

layer! {
    /// In training, adjusts the contrast of each channel of each image: `(x - mean) f + mean`, with `f` drawn from
    /// `1 - factor` to `1 + factor` for each image, clipped to `value_range`; in inference returns `x`.
    pub struct RandomContrast {
        /// Creates a layer with this factor: a number from 0 to 1 for both directions, as in Keras's documentation (its
        /// code only increases the contrast), or a pair (lower, upper).
        new(factor: Factor as impl Into<Factor>);
        options {
            /// Sets the range of the pixel values.
            value_range: [f32; 2] = [0.0, 255.0],
        }
        random(generator);
    }
}

impl Layer for RandomContrast {
    configured!();

    fn call(&self, x: &Tensor, cx: Context<'_>) -> Result<Tensor> {
        let images = Images::new("RandomContrast", x, self.policy)?;
        let [below, above] = self.factor.both("RandomContrast")?;
        check_range("RandomContrast", self.value_range)?;
        if !cx.training() {
            return images.back(images.batch.clone());
        }
        let x = &images.batch;
        let factor =
            images.draw(self.generator.get(), [1.0 - below, 1.0 + above])?.cast(x.dtype())?;
        let mean = x.reduce_mean(Axes::from([1, 2]).keepdims(true))?;
        let y = x.subtract(&mean)?.multiply(factor)?.add(mean)?;
        images.back(y.clip_by_value(self.value_range[0], self.value_range[1])?)
    }
}

layer! {
    /// In training, adds a number to each image, drawn from `factor` times the width of `value_range`, and clips to
    /// that range; in inference returns `x`.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// use tf::keras::{Layer, TRAINING, layers::RandomBrightness};
    /// let layer = RandomBrightness::new([0.1, 0.1]).value_range([0.0, 1.0]);
    /// let y = layer.call(&tf::Tensor::full([1, 1, 1, 1], 0.5)?, TRAINING)?;
    /// assert!((y.item::<f32>()? - 0.6).abs() < 1e-6);
    /// # Ok(())
    /// # }
    /// ```
    pub struct RandomBrightness {
        /// Creates a layer with this factor: a number from 0 to 1, or a pair (lowest, highest) with values from -1 to 1.
        new(factor: Factor as impl Into<Factor>);
        options {
            /// Sets the range of the pixel values.
            value_range: [f32; 2] = [0.0, 255.0],
        }
        random(generator);
    }
}

impl Layer for RandomBrightness {
    configured!();

    fn call(&self, x: &Tensor, cx: Context<'_>) -> Result<Tensor> {
        let images = Images::new("RandomBrightness", x, self.policy)?;
        let range = self.factor.within("RandomBrightness", "factor", [-1.0, 1.0])?;
        let [low, high] = check_range("RandomBrightness", self.value_range)?;
        if !cx.training() {
            return images.back(images.batch.clone());
        }
        let delta = images.draw(self.generator.get(), range)?.multiply(high - low)?;
        let y = images.batch.add(delta.cast(images.batch.dtype())?)?;
        images.back(y.clip_by_value(low, high)?)
    }
}

pub(super) fn check_range(layer: &str, range: [f32; 2]) -> Result<[f32; 2]> {
    if range[0] < range[1] {
        return Ok(range);
    }
    Err(Error::Index(message!(
        "{layer}: the value_range is {} to {}; it must increase.",
        range[0],
        range[1]
    )))
}
