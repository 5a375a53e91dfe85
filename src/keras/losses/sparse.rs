//! Cross-entropies of several classes, with labels as truth.

use super::agreement::float;
use super::categorical::{classes_last, cut};
use super::row::loss_options;
use super::{ClassLabels, Loss, Reduction};
use crate::dtype::DType;
use crate::error::{Error, Result, message};
use crate::ops::{one_hot, sparse_softmax_cross_entropy_with_logits, where_};
use crate::shape::{Axis, axis_index};
use crate::tensor::Tensor;

loss_options! {
    /// `-log p[label]` for each row: labels `[..]` or `[..,1]` of any integer or float dtype, predictions `[..,C]`.
    ///
    /// The loss of a label outside `0..C` is NaN, as in TensorFlow on a GPU.
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
        /// A label whose positions are ignored: their losses are 0, and a mean is taken over the other positions.
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
        // The predictions at an ignored position may be NaN.
        let y_pred = where_(&counts.expand_dims(-1)?, y_pred, &y_pred.zeros_like()?)?;
        let losses = self.of_labels(&labels, &y_pred)?;
        where_(&counts, &losses, &losses.zeros_like()?)
    }

    fn reduction(&self) -> Reduction {
        self.reduction
    }

    fn class_labels(&self, y_pred: &Tensor) -> Option<ClassLabels> {
        let axis = axis_index(self.name(), self.axis, y_pred.rank()).ok()?;
        Some(ClassLabels { classes: y_pred.shape()[axis], ignored: self.ignore_class })
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

    /// Logarithms of probabilities are logits. As in Keras, the softmax inside normalizes the clipped probabilities.
    fn of_labels(&self, labels: &Tensor, y_pred: &Tensor) -> Result<Tensor> {
        match self.from_logits {
            true => sparse_softmax_cross_entropy_with_logits(labels, y_pred),
            false => sparse_softmax_cross_entropy_with_logits(labels, &cut(y_pred)?.log()?),
        }
    }
}

loss_options! {
    /// `(1 - p[label]^q) / q` for each row, between the mean absolute error (`q = 1`) and the cross-entropy (`q` near 0):
    /// labels `[..]` or `[..,1]`, probabilities `[..,C]` (Zhang and Sabuncu 2018). The loss of a label outside `0..C` is NaN.
    pub struct CategoricalGeneralizedCrossEntropy {
        /// The exponent, between 0 and 1.
        q: f32 = 0.5,
    }
}

impl Loss for CategoricalGeneralizedCrossEntropy {
    fn name(&self) -> &str {
        "categorical_generalized_cross_entropy"
    }

    fn losses(&self, y_true: &Tensor, y_pred: &Tensor) -> Result<Tensor> {
        const NAME: &str = "CategoricalGeneralizedCrossEntropy";
        if !(self.q > 0.0 && self.q < 1.0) {
            return Err(Error::Data(message!(
                "{NAME}: q is {}; it must be above 0 and below 1.",
                self.q
            )));
        }
        let y_pred = float(NAME, y_pred)?;
        let labels = class_labels(y_true, &y_pred)?;
        let Some((&classes, _)) =
            y_pred.shape().split_last().filter(|(_, rows)| *rows == labels.shape())
        else {
            return Err(Error::Shape(message!(
                "{NAME}: y_true is {:?} and y_pred is {:?}; labels need the shape of the predictions without the last \
                 axis.",
                y_true.shape(),
                y_pred.shape()
            )));
        };
        let known = labels.greater_equal(0)?.logical_and(labels.less(classes)?)?;
        let hot = y_pred.device().scope(|| one_hot(&labels, classes))?.cast(DType::Bool)?;
        // Selected, not multiplied: the slope at 0 is infinite, and its product with 0 would be NaN for the other classes.
        let own = where_(&hot, &y_pred, &y_pred.zeros_like()?)?.reduce_sum(-1)?;
        let losses = own.pow(self.q)?.negative()?.add(1.0)?.divide(self.q)?;
        let nan = losses.device().scope(|| Tensor::full([], f32::NAN))?;
        where_(&known, &losses, &nan)
    }

    fn class_labels(&self, y_pred: &Tensor) -> Option<ClassLabels> {
        y_pred.shape().last().map(|classes| ClassLabels { classes: *classes, ignored: None })
    }

    fn reduction(&self) -> Reduction {
        self.reduction
    }
}

/// Converts labels to the form that the ops accept: `i32`, with one axis less than the predictions.
pub(in crate::keras) fn class_labels(y_true: &Tensor, y_pred: &Tensor) -> Result<Tensor> {
    let column = y_true.rank() == y_pred.rank() && y_true.shape().last() == Some(&1);
    let labels = if column { y_true.squeeze([-1])? } else { y_true.clone() };
    labels.cast(DType::I32)
}
