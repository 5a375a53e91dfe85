//! [`Solarization`].

use super::images::{Factor, Images};
use super::random_colors::check_range;
use crate::error::Result;
use crate::keras::Context;
use crate::keras::layers::Layer;
use crate::keras::layers::macros::{configured, layer};
use crate::ops::where_;
use crate::tensor::Tensor;

layer! {
    /// In training, inverts the pixels of `value_range` that are not below a threshold: `x` becomes `low + high - x`. Before,
    /// it adds a number to each image and clips to the range. For each image, both are drawn from their factors times the
    /// width of the range. In inference returns `x`.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// use tf::keras::{Layer, TRAINING, layers::Solarization};
    /// let x = tf::constant([59.0, 62.0, 63.0])?.reshape([1, 1, 3])?;
    /// let y = Solarization::new().call(&x, TRAINING)?;
    /// assert_eq!(y.to_vec::<f32>()?, [196.0, 193.0, 192.0]);
    /// # Ok(())
    /// # }
    /// ```
    pub struct Solarization {
        /// Creates a layer that inverts all pixels.
        new();
        options {
            /// Sets what is added: a number `f` from 0 to 1 for 0 to `f`, or a pair (lowest, highest). The lowest is also a
            /// fraction of the range, as in Keras's documentation (its code draws from `lowest / 255` on).
            addition_factor: Factor as impl Into<Factor> = 0.0.into(),
            /// Sets the threshold, in the same form.
            threshold_factor: Factor as impl Into<Factor> = 0.0.into(),
            /// Sets the range of the pixel values.
            value_range: [f32; 2] = [0.0, 255.0],
        }
        random(generator);
    }
}

impl Layer for Solarization {
    configured!();

    fn call(&self, x: &Tensor, cx: Context<'_>) -> Result<Tensor> {
        const NAME: &str = "Solarization";
        let images = Images::new(NAME, x, self.policy)?;
        let additions = self.addition_factor.within(NAME, "addition_factor", [0.0, 1.0])?;
        let thresholds = self.threshold_factor.within(NAME, "threshold_factor", [0.0, 1.0])?;
        let [low, high] = check_range(NAME, self.value_range)?;
        if !cx.training() {
            return images.back(images.batch.clone());
        }
        let dtype = images.batch.dtype();
        let draw = |factor: [f32; 2]| {
            images.draw(self.generator.get(), factor)?.multiply(high - low)?.cast(dtype)
        };
        let y = images.batch.add(draw(additions)?)?.clip_by_value(low, high)?;
        let below = y.less(draw(thresholds)?.add(low)?)?;
        images.back(where_(&below, &y, &y.negative()?.add(low + high)?)?)
    }
}
