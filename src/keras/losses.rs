//! Losses measure how far predictions are from the truth, and average as Keras does.
//!
//! The cross-entropies from logits are ops; this file adds Keras's forms of labels, probabilities and reductions.

use crate::dtype::DType;
use crate::error::{Error, Result, message};
use crate::ops::{softmax_cross_entropy_with_logits, sparse_softmax_cross_entropy_with_logits};
use crate::options::options;
use crate::shape::Axes;
use crate::tensor::Tensor;

/// How the losses of a batch become one number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Reduction {
    /// The mean of the losses.
    #[default]
    SumOverBatchSize,
    /// The sum of the losses.
    Sum,
    /// No reduction: one loss for each example.
    None,
}

impl Reduction {
    fn apply(self, losses: Tensor) -> Result<Tensor> {
        match self {
            Reduction::SumOverBatchSize => losses.reduce_mean(()),
            Reduction::Sum => losses.reduce_sum(()),
            Reduction::None => Ok(losses),
        }
    }
}

/// Probabilities are kept this far from 0 and 1, so that their logarithms are finite.
const EPSILON: f64 = 1e-7;

options! {
    /// `-log p[label]` for each row: labels `[..]` or `[..,1]` of any integer or float dtype, predictions `[..,C]`.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// use tf::keras::losses::SparseCategoricalCrossentropy;
    /// let loss = SparseCategoricalCrossentropy::new().from_logits(true);
    /// let value = loss.call(&tf::constant([1, 0])?, &tf::constant([[0.0, 0.0], [0.0, 0.0]])?)?;
    /// assert!((value.item::<f32>()? - 2f32.ln()).abs() < 1e-6);
    /// # Ok(())
    /// # }
    /// ```
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct SparseCategoricalCrossentropy {
        /// Whether predictions are logits; if not, they are probabilities, which the loss clips to 1e-7 to 1 - 1e-7.
        from_logits: bool = false,
        /// How the losses of a batch become one number.
        reduction: Reduction = Reduction::SumOverBatchSize,
    }
}

impl SparseCategoricalCrossentropy {
    /// The loss: a scalar, or `[..]` without a reduction.
    ///
    /// # Errors
    /// [`Error::Shape`] if labels and predictions do not fit together; [`Error::DType`] if predictions are not float.
    pub fn call(&self, y_true: &Tensor, y_pred: &Tensor) -> Result<Tensor> {
        let labels = class_labels(y_true, y_pred)?;
        // Logarithms of probabilities are logits; the softmax inside corrects what clipping has added, as in Keras.
        let losses = match self.from_logits {
            true => sparse_softmax_cross_entropy_with_logits(&labels, y_pred)?,
            false => sparse_softmax_cross_entropy_with_logits(&labels, &cut(y_pred)?.log()?)?,
        };
        self.reduction.apply(losses)
    }
}

options! {
    /// `-sum of y_true log p` along the last axis: both `[..,C]`.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct CategoricalCrossentropy {
        /// Whether predictions are logits; if not, they are probabilities, which the loss scales to the sum 1 and clips
        /// to 1e-7 to 1 - 1e-7.
        from_logits: bool = false,
        /// How the losses of a batch become one number.
        reduction: Reduction = Reduction::SumOverBatchSize,
    }
}

impl CategoricalCrossentropy {
    /// The loss: a scalar, or `[..]` without a reduction.
    ///
    /// # Errors
    /// [`Error::Shape`] if the shapes differ; [`Error::DType`] if the predictions are not float.
    pub fn call(&self, y_true: &Tensor, y_pred: &Tensor) -> Result<Tensor> {
        same_shape("CategoricalCrossentropy", y_true, y_pred)?;
        let y_true = y_true.cast(y_pred.dtype())?;
        let losses = match self.from_logits {
            true => softmax_cross_entropy_with_logits(&y_true, y_pred)?,
            false => {
                let shares = y_pred.divide(y_pred.reduce_sum(Axes::from(-1).keepdims(true))?)?;
                y_true.multiply(cut(&shares)?.log()?)?.reduce_sum(-1)?.negative()?
            }
        };
        self.reduction.apply(losses)
    }
}

options! {
    /// The mean of `(y_true - y_pred)^2` along the last axis: both `[..,D]`.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct MeanSquaredError {
        /// How the losses of a batch become one number.
        reduction: Reduction = Reduction::SumOverBatchSize,
    }
}

impl MeanSquaredError {
    /// The loss: a scalar, or `[..]` without a reduction.
    ///
    /// # Errors
    /// [`Error::Shape`] if the shapes differ; [`Error::Index`] if they are scalars; [`Error::DType`] if the
    /// predictions are not float.
    pub fn call(&self, y_true: &Tensor, y_pred: &Tensor) -> Result<Tensor> {
        same_shape("MeanSquaredError", y_true, y_pred)?;
        let squares = y_pred.squared_difference(y_true.cast(y_pred.dtype())?)?;
        self.reduction.apply(squares.reduce_mean(-1)?)
    }
}

/// Converts labels to what the ops take: `i32`, one axis less than the predictions.
pub(super) fn class_labels(y_true: &Tensor, y_pred: &Tensor) -> Result<Tensor> {
    let column = y_true.rank() == y_pred.rank() && y_true.shape().last() == Some(&1);
    let labels = if column { y_true.squeeze([-1])? } else { y_true.clone() };
    labels.cast(DType::I32)
}

fn cut(probabilities: &Tensor) -> Result<Tensor> {
    probabilities.clip_by_value(EPSILON, 1.0 - EPSILON)
}

// A column broadcast against a row would give a number that looks like a loss and is none.
fn same_shape(loss: &str, y_true: &Tensor, y_pred: &Tensor) -> Result<()> {
    if y_true.shape() == y_pred.shape() {
        return Ok(());
    }
    Err(Error::Shape(message!(
        "{loss}: y_true is {:?} and y_pred is {:?}; they must have one shape. Reshape one of them.",
        y_true.shape(),
        y_pred.shape()
    )))
}
