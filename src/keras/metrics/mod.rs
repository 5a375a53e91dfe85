//! Metrics accumulate values over many batches, without reading anything back in between.
//!
//! The device holds the totals (`Totals`). [`Metric::result`] returns a tensor, which a program reads when it needs the number.

mod accuracy;
mod auc;
mod counts;
mod f_score;
#[cfg(feature = "json")]
mod from_config;
mod iou;
mod mean;
mod mean_metric_wrapper;
mod names;
mod of_losses;
mod r2_score;
mod regression;
mod row;
mod sum;
mod thresholds;
mod totals;
mod trade_offs;
mod weights;
mod wrappers;

pub use accuracy::{
    Accuracy, BinaryAccuracy, CategoricalAccuracy, SparseCategoricalAccuracy,
    SparseTopKCategoricalAccuracy, TopKCategoricalAccuracy,
};
pub use auc::{Auc, Curve, SummationMethod};
pub use counts::{FalseNegatives, FalsePositives, Precision, Recall, TrueNegatives, TruePositives};
pub use f_score::{Average, F1Score, FBetaScore};
#[cfg(feature = "json")]
pub use from_config::from_config;
pub use iou::{BinaryIou, Iou, MeanIou, OneHotIou, OneHotMeanIou};
pub use mean::Mean;
pub use mean_metric_wrapper::MeanMetricWrapper;
pub use names::get;
pub use of_losses::{
    BinaryCrossentropy, CategoricalCrossentropy, CategoricalHinge, Hinge, KlDivergence,
    LogCoshError, MeanAbsoluteError, MeanAbsolutePercentageError, MeanSquaredError,
    MeanSquaredLogarithmicError, Poisson, SparseCategoricalCrossentropy, SquaredHinge,
};
pub use r2_score::{ClassAggregation, R2Score};
pub use regression::{
    ConcordanceCorrelation, CosineSimilarity, MeanRelativeError, PearsonCorrelation,
    RootMeanSquaredError,
};
pub use sum::Sum;
pub use thresholds::Thresholds;
pub use trade_offs::{
    PrecisionAtRecall, RecallAtPrecision, SensitivityAtSpecificity, SpecificityAtSensitivity,
};

use crate::error::Result;
use crate::tensor::Tensor;
use crate::trackable::Trackable;

/// A metric accumulated from pairs of truth and prediction.
///
/// `new` accepts a name for logs; `default()` uses Keras's. `Box`, `Arc` and references of metrics are metrics.
pub trait Metric: Trackable {
    /// Returns the metric's name in messages and logs.
    fn name(&self) -> &str;

    /// Adds a batch of weighted examples: weights `[N]`, or in the shape of the values that the metric averages.
    ///
    /// # Errors
    /// [`Error::Shape`](crate::Error::Shape) or [`Error::DType`](crate::Error::DType) if truth, predictions and weights
    /// do not fit together.
    fn update(
        &self,
        y_true: &Tensor,
        y_pred: &Tensor,
        sample_weight: Option<&Tensor>,
    ) -> Result<()>;

    /// Adds a batch of examples of equal weight.
    ///
    /// # Errors
    /// [`Error::Shape`](crate::Error::Shape) or [`Error::DType`](crate::Error::DType) if truth and predictions do not fit
    /// together.
    fn update_state(&self, y_true: &Tensor, y_pred: &Tensor) -> Result<()> {
        self.update(y_true, y_pred, None)
    }

    /// Returns the value over all batches since the last reset; 0 before the first. It is a scalar, unless the metric has a
    /// number for each threshold or class.
    ///
    /// # Errors
    /// [`Error::Device`](crate::Error::Device) if there is no device.
    fn result(&self) -> Result<Tensor>;

    /// Resets the metric.
    ///
    /// # Errors
    /// [`Error::Device`](crate::Error::Device) if the device's memory is used up.
    fn reset_state(&self) -> Result<()>;
}
