//! [`Relu`]: a rectifier with a ceiling, a slope and a threshold.

use crate::error::{Error, Result, message};
use crate::keras::Context;
use crate::keras::layers::Layer;
use crate::keras::layers::macros::{configured, layer};
use crate::ops::where_;
use crate::tensor::Tensor;

layer! {
    /// ReLU: `max_value` if `x >= max_value`, `x` if `threshold <= x < max_value`, else `negative_slope (x - threshold)`.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// use tf::keras::{INFERENCE, Layer, layers::Relu};
    /// let layer = Relu::new().max_value(1.0).negative_slope(0.5);
    /// let y = layer.call(&tf::constant([-1.0, 0.5, 2.0])?, INFERENCE)?;
    /// assert_eq!(y.to_vec::<f32>()?, [-0.5, 0.5, 1.0]);
    /// # Ok(())
    /// # }
    /// ```
    pub struct Relu["ReLU"] {
        /// Creates a layer that computes `max(x, 0)`.
        new();
        options {
            /// Sets the maximum of the result. Default: none.
            max_value: Option<f32> as impl Into<Option<f32>> = None,
            /// Sets the slope for inputs below the threshold.
            negative_slope: f32 = 0.0,
            /// Sets the threshold from which inputs pass unchanged.
            threshold: f32 = 0.0,
        }
        class {
            positions(Positions::Kept);
        }
    }
}

impl Layer for Relu {
    configured!();

    fn call(&self, x: &Tensor, _cx: Context<'_>) -> Result<Tensor> {
        let numbers = [
            ("max_value", self.max_value.unwrap_or(0.0)),
            ("negative_slope", self.negative_slope),
            ("threshold", self.threshold),
        ];
        if let Some((name, value)) =
            numbers.into_iter().find(|(_, value)| value.is_nan() || *value < 0.0)
        {
            return Err(Error::Index(message!("ReLU: {name} is {value}; it must be at least 0.")));
        }
        let x = &self.policy.autocast(x)?;
        let mut y = match self.threshold {
            0.0 => x.relu()?,
            limit => where_(&x.less_equal(limit)?, &x.zeros_like()?, x)?,
        };
        if let Some(most) = self.max_value {
            y = y.clip_by_value(0.0, most)?;
        }
        if self.negative_slope == 0.0 {
            return Ok(y);
        }
        let below = x.negative()?.add(self.threshold)?.relu()?;
        y.subtract(below.multiply(self.negative_slope)?)
    }
}
