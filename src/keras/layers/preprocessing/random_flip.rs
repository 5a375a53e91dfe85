//! [`RandomFlip`]: mirrors images.

use super::images::Images;
use crate::error::Result;
use crate::keras::Context;
use crate::keras::layers::Layer;
use crate::keras::layers::macros::{configured, layer};
use crate::ops::where_;
use crate::tensor::Tensor;

/// The direction in which [`RandomFlip`] flips.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FlipMode {
    /// Left-right.
    Horizontal,
    /// Top-bottom.
    Vertical,
    /// Both.
    #[default]
    HorizontalAndVertical,
}

#[cfg(feature = "json")]
impl crate::keras::ConfigValue for FlipMode {
    fn to_json(&self) -> std::result::Result<serde_json::Value, String> {
        Ok(match self {
            FlipMode::Horizontal => "horizontal".into(),
            FlipMode::Vertical => "vertical".into(),
            FlipMode::HorizontalAndVertical => "horizontal_and_vertical".into(),
        })
    }

    fn from_json(value: &serde_json::Value) -> std::result::Result<Self, String> {
        match value.as_str() {
            Some("horizontal") => Ok(FlipMode::Horizontal),
            Some("vertical") => Ok(FlipMode::Vertical),
            Some("horizontal_and_vertical") => Ok(FlipMode::HorizontalAndVertical),
            _ => Err("horizontal, vertical or horizontal_and_vertical".into()),
        }
    }
}

layer! {
    /// In training, flips each image `[H,W,C]` with probability 1/2 per direction, and in both directions with 1/4; in
    /// inference returns `x`.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// use tf::keras::{Layer, TRAINING, layers::{FlipMode, RandomFlip}};
    /// let layer = RandomFlip::new().mode(FlipMode::Horizontal);
    /// let x = tf::constant([1.0, 2.0])?.reshape([1, 1, 2, 1])?;
    /// let y = layer.call(&x, TRAINING)?.to_vec::<f32>()?;
    /// assert!(y == [1.0, 2.0] || y == [2.0, 1.0]);
    /// # Ok(())
    /// # }
    /// ```
    pub struct RandomFlip {
        /// Creates a layer that flips in both directions.
        new();
        options {
            /// Sets the direction.
            mode: FlipMode = FlipMode::HorizontalAndVertical,
        }
        random(generator);
        fixed {
            data_format: "channels_last",
        }
    }
}

impl Layer for RandomFlip {
    configured!();

    fn call(&self, x: &Tensor, cx: Context<'_>) -> Result<Tensor> {
        let images = Images::new("RandomFlip", x, self.policy)?;
        let mut y = images.batch.clone();
        if cx.training() {
            for (mode, axis) in [(FlipMode::Vertical, 2), (FlipMode::Horizontal, 1)] {
                if self.mode != mode {
                    let flips = images.draw(self.generator.get(), [0.0, 1.0])?.less_equal(0.5)?;
                    y = where_(&flips, &y.reverse(axis)?, &y)?;
                }
            }
        }
        images.back(y)
    }
}
