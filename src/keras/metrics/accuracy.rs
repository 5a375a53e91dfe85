//! Accuracies: how often a prediction is right.

use super::{Mean, Metric};
use crate::dtype::DType;
use crate::error::{Error, Result, message};
use crate::keras::losses::class_labels;
use crate::tensor::Tensor;
use crate::trackable::Trackable;

/// The share of rows whose largest prediction is the label's: labels `[..]` or `[..,1]`, predictions `[..,C]`.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// use tf::keras::metrics::{Metric, SparseCategoricalAccuracy};
/// let accuracy = SparseCategoricalAccuracy::new("accuracy");
/// accuracy.update_state(&tf::constant([0, 1])?, &tf::constant([[0.9, 0.1], [0.8, 0.2]])?)?;
/// assert_eq!(accuracy.result()?.item::<f32>()?, 0.5);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Trackable)]
pub struct SparseCategoricalAccuracy {
    #[track(flatten)]
    mean: Mean,
}

impl SparseCategoricalAccuracy {
    /// An accuracy of nothing.
    pub fn new(name: impl Into<String>) -> Self {
        SparseCategoricalAccuracy { mean: Mean::new(name) }
    }
}

impl Metric for SparseCategoricalAccuracy {
    fn name(&self) -> &str {
        self.mean.name()
    }

    fn update(
        &self,
        y_true: &Tensor,
        y_pred: &Tensor,
        sample_weight: Option<&Tensor>,
    ) -> Result<()> {
        let labels = class_labels(y_true, y_pred)?;
        let places = y_pred.stop_gradient().argmax(-1)?;
        if labels.shape() != places.shape() {
            return Err(Error::Shape(message!(
                "SparseCategoricalAccuracy: y_true is {:?} and y_pred is {:?}; labels need the shape of the predictions \
                 without the last axis.",
                y_true.shape(),
                y_pred.shape()
            )));
        }
        self.mean.update(&places.equal(&labels)?.cast(DType::F32)?, sample_weight)
    }

    fn result(&self) -> Result<Tensor> {
        self.mean.result()
    }

    fn reset_state(&self) -> Result<()> {
        self.mean.reset_state()
    }
}
