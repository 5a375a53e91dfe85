//! Losses of numbers.

use super::row::loss;

loss! {
    /// The mean of `(y_true - y_pred)^2` along the last axis: both `[..,D]`.
    pub struct MeanSquaredError = "mean_squared_error" {}
    |_, y_true, y_pred| y_pred.squared_difference(y_true)?.reduce_mean(-1)
}
