//! Accuracies: how often a prediction is right.

use super::row::mean_metric;
use crate::dtype::DType;
use crate::error::{Error, Result, message};
use crate::keras::losses::{class_labels, same_shape};
use crate::tensor::Tensor;

mean_metric! {
    /// How often `y_pred` equals `y_true`: both of the same shape.
    pub struct Accuracy = "accuracy" {}
    |_, y_true, y_pred| {
        let y_true = y_true.cast(y_pred.dtype())?;
        let [y_true, y_pred] = same_shape("Accuracy", &y_true, y_pred)?;
        y_true.equal(&y_pred)?.cast(DType::F32)
    }
}

mean_metric! {
    /// How often `y_pred` is on the right side of a threshold: both of the same shape, `y_true` of zeros and ones.
    pub struct BinaryAccuracy = "binary_accuracy" {
        /// The threshold above which a prediction counts as 1.
        threshold: f32 = 0.5,
    }
    |metric, y_true, y_pred| {
        let y_true = y_true.cast(DType::F32)?;
        let [y_true, y_pred] = same_shape("BinaryAccuracy", &y_true, &y_pred.cast(DType::F32)?)?;
        y_pred.greater(metric.threshold)?.cast(DType::F32)?.equal(&y_true)?.cast(DType::F32)
    }
}

mean_metric! {
    /// The fraction of rows in which prediction and truth are largest at the same class: both `[..,C]`.
    pub struct CategoricalAccuracy = "categorical_accuracy" {}
    |_, y_true, y_pred| {
        let [y_true, y_pred] = same_shape("CategoricalAccuracy", y_true, y_pred)?;
        y_pred.argmax(-1)?.equal(y_true.argmax(-1)?)?.cast(DType::F32)
    }
}

mean_metric! {
    /// The fraction of rows in which the prediction of the label's class is the largest: labels `[..]` or `[..,1]`,
    /// predictions `[..,C]`.
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
    pub struct SparseCategoricalAccuracy = "sparse_categorical_accuracy" {}
    |_, y_true, y_pred| {
        let labels = labels_of("SparseCategoricalAccuracy", y_true, y_pred)?;
        y_pred.argmax(-1)?.equal(&labels)?.cast(DType::F32)
    }
}

mean_metric! {
    /// The fraction of rows in which the true class, where `y_true` is largest, is among the `k` largest predictions:
    /// both `[..,C]`.
    pub struct TopKCategoricalAccuracy = "top_k_categorical_accuracy" {
        /// The number of largest predictions to consider.
        k: usize = 5,
    }
    |metric, y_true, y_pred| {
        let [y_true, y_pred] = same_shape("TopKCategoricalAccuracy", y_true, y_pred)?;
        in_top_k(&y_true.argmax(-1)?, &y_pred, metric.k)
    }
}

mean_metric! {
    /// The fraction of rows whose label is among the `k` largest predictions: labels `[..]` or `[..,1]`, predictions
    /// `[..,C]`.
    pub struct SparseTopKCategoricalAccuracy = "sparse_top_k_categorical_accuracy" {
        /// The number of largest predictions to consider.
        k: usize = 5,
        /// Whether predictions are class indices, the most likely first, instead of a score for each class.
        from_sorted_ids: bool = false,
    }
    |metric, y_true, y_pred| {
        let labels = labels_of("SparseTopKCategoricalAccuracy", y_true, y_pred)?;
        if !metric.from_sorted_ids {
            return in_top_k(&labels, y_pred, metric.k);
        }
        let width = y_pred.shape().last().copied().unwrap_or(0);
        let mut size = vec![-1; y_pred.rank()];
        size[y_pred.rank() - 1] = metric.k.min(width) as i64;
        let first = y_pred.slice(&vec![0; y_pred.rank()], &size)?.cast(DType::I32)?;
        first.equal(labels.expand_dims(-1)?)?.reduce_any(-1)?.cast(DType::F32)
    }
}

fn labels_of(metric: &str, y_true: &Tensor, y_pred: &Tensor) -> Result<Tensor> {
    let labels = class_labels(y_true, y_pred)?;
    match y_pred.shape().split_last() {
        Some((_, rows)) if rows == labels.shape() => Ok(labels),
        _ => Err(Error::Shape(message!(
            "{metric}: y_true is {:?} and y_pred is {:?}; labels need the shape of the predictions without the last axis.",
            y_true.shape(),
            y_pred.shape()
        ))),
    }
}

fn in_top_k(labels: &Tensor, y_pred: &Tensor, k: usize) -> Result<Tensor> {
    let y_pred = y_pred.cast(DType::F32)?;
    let classes = y_pred.shape().last().copied().unwrap_or(1);
    let rows = y_pred.reshape([labels.len(), classes])?;
    let hits = labels.cast(DType::I32)?.reshape([-1])?.in_top_k(&rows, k)?;
    hits.cast(DType::F32)?.reshape(labels.shape())
}
