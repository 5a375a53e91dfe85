//! Cross-entropies of several classes, from labels or distributions.

use super::agreement::float;
use super::row::{loss, loss_options};
use super::{Loss, Reduction};
use crate::dtype::DType;
use crate::error::Result;
use crate::ops::{
    softmax_cross_entropy_with_logits, sparse_softmax_cross_entropy_with_logits, where_,
};
use crate::shape::{Axes, Axis, axis_index};
use crate::tensor::Tensor;

/// Probabilities are kept this far from 0 and 1, so that their logarithms are finite: Keras's `epsilon()`.
pub(super) const EPSILON: f64 = 1e-7;

loss_options! {
    /// `-log p[label]` for each row: labels `[..]` or `[..,1]` of any integer or float dtype, predictions `[..,C]`.
    ///
    /// A label outside `0..C` gives NaN, as on TensorFlow's GPUs.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// use tf::keras::losses::{Loss, SparseCategoricalCrossentropy};
    /// let loss = SparseCategoricalCrossentropy::new().from_logits(true);
    /// let value = loss.call(&tf::constant([1, 0])?, &tf::constant([[0.0, 0.0], [0.0, 0.0]])?)?;
    /// assert!((value.item::<f32>()? - 2f32.ln()).abs() < 1e-6);
    /// # Ok(())
    /// # }
    /// ```
    pub struct SparseCategoricalCrossentropy {
        /// Whether predictions are logits; if not, they are probabilities, which the loss clips to 1e-7 to 1 - 1e-7.
        from_logits: bool = false,
        /// A label whose positions do not count: their losses are 0, and a mean is that of the other positions.
        ignore_class: Option<i32> as impl Into<Option<i32>> = None,
        /// The axis of the classes.
        axis: Axis as impl Into<Axis> = Axis::from(-1),
    }
}

impl Loss for SparseCategoricalCrossentropy {
    fn name(&self) -> &str {
        "sparse_categorical_crossentropy"
    }

    fn losses(&self, y_true: &Tensor, y_pred: &Tensor) -> Result<Tensor> {
        const NAME: &str = "SparseCategoricalCrossentropy";
        let y_pred = &classes_last(NAME, &float(NAME, y_pred)?, self.axis)?;
        let labels = self.labels(y_true, y_pred)?;
        let Some(ignored) = self.ignore_class else { return self.of_labels(&labels, y_pred) };
        let counts = labels.not_equal(ignored)?;
        let labels = where_(&counts, &labels, &labels.zeros_like()?)?;
        // What is predicted at a position that does not count may be NaN.
        let y_pred = where_(&counts.expand_dims(-1)?, y_pred, &y_pred.zeros_like()?)?;
        let losses = self.of_labels(&labels, &y_pred)?;
        where_(&counts, &losses, &losses.zeros_like()?)
    }

    fn reduction(&self) -> Reduction {
        self.reduction
    }

    fn mask(&self, y_true: &Tensor, y_pred: &Tensor) -> Result<Option<Tensor>> {
        let Some(ignored) = self.ignore_class else { return Ok(None) };
        Ok(Some(self.labels(y_true, y_pred)?.not_equal(ignored)?))
    }
}

impl SparseCategoricalCrossentropy {
    fn labels(&self, y_true: &Tensor, y_pred: &Tensor) -> Result<Tensor> {
        let stays = y_true.rank() != y_pred.rank();
        class_labels(
            &if stays { y_true.clone() } else { classes_last("labels", y_true, self.axis)? },
            y_pred,
        )
    }

    /// Logarithms of probabilities are logits; the softmax inside corrects what clipping has added, as in Keras.
    fn of_labels(&self, labels: &Tensor, y_pred: &Tensor) -> Result<Tensor> {
        match self.from_logits {
            true => sparse_softmax_cross_entropy_with_logits(labels, y_pred),
            false => sparse_softmax_cross_entropy_with_logits(labels, &cut(y_pred)?.log()?),
        }
    }
}

loss! {
    /// `-sum of y_true log p` along the classes' axis: both `[..,C]`.
    pub struct CategoricalCrossentropy = "categorical_crossentropy" {
        /// Whether predictions are logits; if not, they are probabilities, which the loss scales to the sum 1 and clips
        /// to 1e-7 to 1 - 1e-7.
        from_logits: bool = false,
        /// How much of the truth is spread evenly over all classes: `y_true (1 - s) + s / C`.
        label_smoothing: f32 = 0.0,
        /// The axis of the classes.
        axis: Axis as impl Into<Axis> = Axis::from(-1),
    }
    |options, y_true, y_pred| {
        const NAME: &str = "CategoricalCrossentropy";
        let y_true = &smooth(&classes_last(NAME, y_true, options.axis)?, options.label_smoothing)?;
        let y_pred = &classes_last(NAME, y_pred, options.axis)?;
        if options.from_logits {
            return softmax_cross_entropy_with_logits(y_true, y_pred);
        }
        y_true.multiply(cut(&shares(y_pred)?)?.log()?)?.reduce_sum(-1)?.negative()
    }
}

/// The tensor with the axis of the classes as the last.
fn classes_last(loss: &str, x: &Tensor, axis: Axis) -> Result<Tensor> {
    let at = axis_index(loss, axis, x.rank())?;
    if at + 1 == x.rank() {
        return Ok(x.clone());
    }
    let others = (0..x.rank()).filter(|other| *other != at);
    x.transpose(others.chain([at]).collect::<Vec<_>>())
}

/// The distributions, of which `smoothing` is spread evenly over all classes, the last axis.
fn smooth(y_true: &Tensor, smoothing: f32) -> Result<Tensor> {
    let classes = y_true.shape().last().copied().unwrap_or(1);
    match smoothing == 0.0 {
        true => Ok(y_true.clone()),
        false => y_true.multiply(1.0 - smoothing)?.add(smoothing / classes as f32),
    }
}

/// The predictions, scaled to the sum 1.
fn shares(y_pred: &Tensor) -> Result<Tensor> {
    y_pred.divide(y_pred.reduce_sum(Axes::from(-1).keepdims(true))?)
}

/// Converts labels to what the ops take: `i32`, one axis less than the predictions.
pub(in crate::keras) fn class_labels(y_true: &Tensor, y_pred: &Tensor) -> Result<Tensor> {
    let column = y_true.rank() == y_pred.rank() && y_true.shape().last() == Some(&1);
    let labels = if column { y_true.squeeze([-1])? } else { y_true.clone() };
    labels.cast(DType::I32)
}

pub(super) fn cut(probabilities: &Tensor) -> Result<Tensor> {
    probabilities.clip_by_value(EPSILON, 1.0 - EPSILON)
}
