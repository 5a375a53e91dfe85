//! Regression metrics that are not the mean of a loss.

use super::row::{mean_metric, metric};
use super::{Mean, Metric};
use crate::dtype::DType;
use crate::error::Result;
use crate::keras::losses::{EPSILON, agree_cast};
use crate::shape::{Axes, Axis};
use crate::tensor::Tensor;

metric! {
    /// The root of the mean of `(y_true - y_pred)^2`: both of the same shape.
    pub struct RootMeanSquaredError = "root_mean_squared_error" (mean: Mean = Mean::default()) {}
}

impl Metric for RootMeanSquaredError {
    fn name(&self) -> &str {
        &self.name
    }

    fn update(
        &self,
        y_true: &Tensor,
        y_pred: &Tensor,
        sample_weight: Option<&Tensor>,
    ) -> Result<()> {
        let [y_true, y_pred] = agree_cast("RootMeanSquaredError", y_true, &y_pred.stop_gradient())?;
        self.mean.add(&self.name, &y_pred.squared_difference(y_true)?, sample_weight)
    }

    fn result(&self) -> Result<Tensor> {
        self.mean.result()?.sqrt()
    }

    fn reset_state(&self) -> Result<()> {
        self.mean.reset_state()
    }
}

mean_metric! {
    /// The cosine of the angle between `y_true` and `y_pred`: 1 where they point the same way, -1 where they are opposite. The
    /// loss of this name has the opposite sign.
    pub struct CosineSimilarity = "cosine_similarity" {
        /// The axis of the vectors' elements.
        axis: Axis as impl Into<Axis> = Axis::from(-1),
    }
    |metric, y_true, y_pred| {
        let [y_true, y_pred] = agree_cast("CosineSimilarity", y_true, y_pred)?;
        let direction = |x: &Tensor| {
            let square = x.square()?.reduce_sum(Axes::from(metric.axis).keepdims(true))?;
            x.multiply(square.maximum(EPSILON * EPSILON)?.rsqrt()?)
        };
        direction(&y_true)?.multiply(direction(&y_pred)?)?.reduce_sum(metric.axis)
    }
}

mean_metric! {
    /// Pearson's correlation along an axis: both `[..,D]`, 1 if one is an increasing linear function of the other, NaN if one
    /// is constant.
    pub struct PearsonCorrelation = "pearson_correlation" {
        /// The axis of the numbers of a series.
        axis: Axis as impl Into<Axis> = Axis::from(-1),
    }
    |metric, y_true, y_pred| {
        let [y_true, y_pred] = agree_cast("PearsonCorrelation", y_true, y_pred)?;
        let normal = |x: &Tensor| {
            let kept = Axes::from(metric.axis).keepdims(true);
            let centred = x.subtract(x.reduce_mean(&kept)?)?;
            centred.divide(centred.square()?.reduce_mean(&kept)?.sqrt()?)
        };
        normal(&y_true)?.multiply(normal(&y_pred)?)?.reduce_mean(metric.axis)
    }
}

mean_metric! {
    /// Lin's concordance correlation along an axis, `2 cov / (var(y_true) + var(y_pred) + (mean(y_true) - mean(y_pred))^2 +
    /// 1e-7)`: both `[..,D]`, 1 where they are equal.
    pub struct ConcordanceCorrelation = "concordance_correlation" {
        /// The axis of the numbers of a series.
        axis: Axis as impl Into<Axis> = Axis::from(-1),
    }
    |metric, y_true, y_pred| {
        let [y_true, y_pred] = agree_cast("ConcordanceCorrelation", y_true, y_pred)?;
        let kept = Axes::from(metric.axis).keepdims(true);
        let (mean_true, mean_pred) = (y_true.reduce_mean(&kept)?, y_pred.reduce_mean(&kept)?);
        let (centred_true, centred) = (y_true.subtract(&mean_true)?, y_pred.subtract(&mean_pred)?);
        let variances = centred_true
            .square()?
            .reduce_mean(&kept)?
            .add(centred.square()?.reduce_mean(&kept)?)?;
        let norm = variances.add(mean_true.squared_difference(mean_pred)?)?.add(EPSILON)?;
        let common = centred_true.multiply(&centred)?.multiply(2.0)?.divide(norm)?;
        common.reduce_mean(metric.axis)
    }
}

/// The mean of `|y_true - y_pred| / normalizer`, with 0 for elements with a normalizer of 0: all of the same shape, or
/// broadcast to it.
#[derive(Debug)]
pub struct MeanRelativeError {
    name: String,
    normalizer: Tensor,
    mean: Mean,
}

impl MeanRelativeError {
    /// Creates a metric with this normalizer.
    pub fn new(name: impl Into<String>, normalizer: impl std::borrow::Borrow<Tensor>) -> Self {
        let normalizer = normalizer.borrow().stop_gradient();
        MeanRelativeError { name: name.into(), normalizer, mean: Mean::default() }
    }
}

impl Metric for MeanRelativeError {
    fn name(&self) -> &str {
        &self.name
    }

    fn update(
        &self,
        y_true: &Tensor,
        y_pred: &Tensor,
        sample_weight: Option<&Tensor>,
    ) -> Result<()> {
        let [y_true, y_pred] = agree_cast("MeanRelativeError", y_true, &y_pred.stop_gradient())?;
        let normalizer = self.normalizer.cast(DType::F32)?.broadcast_to(y_true.shape())?;
        let errors = y_true.subtract(y_pred)?.abs()?.divide_no_nan(normalizer)?;
        self.mean.add(&self.name, &errors, sample_weight)
    }

    fn result(&self) -> Result<Tensor> {
        self.mean.result()
    }

    fn reset_state(&self) -> Result<()> {
        self.mean.reset_state()
    }
}

impl crate::trackable::Trackable for MeanRelativeError {
    fn track(&self, parts: &mut crate::trackable::Parts<'_>) {
        self.mean.track(parts);
    }
}
