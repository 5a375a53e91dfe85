//! Margin losses: a prediction with the right sign and an absolute value of at least 1 has no loss.

use super::row::loss;
use crate::error::Result;
use crate::ops::where_;
use crate::shape::Axes;
use crate::tensor::Tensor;

loss! {
    /// The mean of `max(1 - y_true y_pred, 0)` along the last axis: both `[..,D]`, `y_true` of -1 and 1. If `y_true` has
    /// zeros and ones alone, 0 means -1.
    pub struct Hinge = "hinge" {}
    |_, y_true, y_pred| margin(y_true, y_pred)?.reduce_mean(-1)
}

loss! {
    /// The mean of `max(1 - y_true y_pred, 0)^2` along the last axis, with labels as in [`Hinge`].
    pub struct SquaredHinge = "squared_hinge" {}
    |_, y_true, y_pred| margin(y_true, y_pred)?.square()?.reduce_mean(-1)
}

loss! {
    /// `max(neg - pos + 1, 0)` with `pos` the sum of `y_true y_pred` and `neg` the largest of `(1 - y_true) y_pred` along
    /// the last axis: both `[..,C]`, `y_true` of zeros and ones.
    pub struct CategoricalHinge = "categorical_hinge" {}
    |_, y_true, y_pred| {
        let positive = y_true.multiply(y_pred)?.reduce_sum(-1)?;
        let negative = y_true.negative()?.add(1.0)?.multiply(y_pred)?.reduce_max(Axes::from(-1))?;
        negative.subtract(positive)?.add(1.0)?.maximum(0.0)
    }
}

fn margin(y_true: &Tensor, y_pred: &Tensor) -> Result<Tensor> {
    let zeros_and_ones = y_true.equal(0.0)?.logical_or(y_true.equal(1.0)?)?.reduce_all(())?;
    let signs = where_(&zeros_and_ones, &y_true.multiply(2.0)?.subtract(1.0)?, y_true)?;
    signs.multiply(y_pred)?.negative()?.add(1.0)?.maximum(0.0)
}
