//! Regression losses.

use super::EPSILON;
use super::row::loss;
use crate::ops::where_;
use crate::shape::{Axes, Axis};
use crate::tensor::Tensor;

loss! {
    /// The mean of `(y_true - y_pred)^2` along the last axis: both `[..,D]`.
    pub struct MeanSquaredError = "mean_squared_error" {}
    |_, y_true, y_pred| y_pred.squared_difference(y_true)?.reduce_mean(-1)
}

loss! {
    /// The mean of `|y_true - y_pred|` along the last axis: both `[..,D]`. The gradient is 0 where they are equal.
    pub struct MeanAbsoluteError = "mean_absolute_error" {}
    |_, y_true, y_pred| y_true.subtract(y_pred)?.abs()?.reduce_mean(-1)
}

loss! {
    /// 100 times the mean of `|y_true - y_pred| / max(|y_true|, 1e-7)` along the last axis: both `[..,D]`.
    pub struct MeanAbsolutePercentageError = "mean_absolute_percentage_error" {}
    |_, y_true, y_pred| {
        let part = y_true.subtract(y_pred)?.divide(y_true.abs()?.maximum(EPSILON)?)?;
        part.abs()?.reduce_mean(-1)?.multiply(100.0)
    }
}

loss! {
    /// The mean of `(log(max(y_pred, 1e-7) + 1) - log(max(y_true, 1e-7) + 1))^2` along the last axis: both `[..,D]`.
    pub struct MeanSquaredLogarithmicError = "mean_squared_logarithmic_error" {}
    |_, y_true, y_pred| {
        let log = |x: &Tensor| x.maximum(EPSILON)?.add(1.0)?.log();
        log(y_pred)?.squared_difference(log(y_true)?)?.reduce_mean(-1)
    }
}

loss! {
    /// Minus the cosine of the angle between `y_true` and `y_pred`: -1 where they point the same way, 0 where they are
    /// orthogonal or one is 0, 1 where they are opposite.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// use tf::keras::losses::{CosineSimilarity, Loss, Reduction};
    /// let apart = CosineSimilarity::new().reduction(Reduction::None);
    /// let y = apart.call(&tf::constant([[0.0, 2.0], [1.0, 0.0]])?, &tf::constant([[0.0, 1.0], [0.0, 3.0]])?)?;
    /// assert_eq!(y.to_vec::<f32>()?, [-1.0, 0.0]);
    /// # Ok(())
    /// # }
    /// ```
    pub struct CosineSimilarity = "cosine_similarity" {
        /// The axis of the vectors' elements.
        axis: Axis as impl Into<Axis> = Axis::from(-1),
    }
    |options, y_true, y_pred| {
        let direction = |x: &Tensor| {
            let square = x.square()?.reduce_sum(Axes::from(options.axis).keepdims(true))?;
            // The factor is at most 1 / 1e-7, so that 0 stays 0.
            x.multiply(square.maximum(EPSILON * EPSILON)?.rsqrt()?)
        };
        direction(y_true)?.multiply(direction(y_pred)?)?.reduce_sum(options.axis)?.negative()
    }
}

loss! {
    /// With `e = y_pred - y_true` the mean of `e^2 / 2` where `|e| <= delta`, of `delta |e| - delta^2 / 2` elsewhere,
    /// along the last axis: both `[..,D]`.
    pub struct Huber = "huber_loss" {
        /// The error at which the loss changes from quadratic to linear.
        delta: f32 = 1.0,
    }
    |Huber { delta, .. }, y_true, y_pred| {
        let error = y_pred.subtract(y_true)?;
        let size = error.abs()?;
        let line = size.multiply(*delta)?.subtract(0.5 * delta * delta)?;
        let square = error.square()?.multiply(0.5)?;
        where_(&size.less_equal(*delta)?, &square, &line)?.reduce_mean(-1)
    }
}

loss! {
    /// The mean of `log(cosh(y_pred - y_true))` along the last axis: both `[..,D]`. For small errors it is about half
    /// the square, for large errors about the absolute value minus `log 2`.
    pub struct LogCosh = "log_cosh" {}
    |_, y_true, y_pred| {
        let error = y_pred.subtract(y_true)?;
        let log_cosh = error.add(error.multiply(-2.0)?.softplus()?)?;
        log_cosh.subtract(std::f32::consts::LN_2)?.reduce_mean(-1)
    }
}
