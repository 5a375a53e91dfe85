//! Losses of regions, based on their overlap.

use super::agreement::agree;
use super::{EPSILON, Loss, Reduction};
use crate::error::Result;
use crate::shape::Axes;
use crate::support::options::options;
use crate::tensor::Tensor;

options! {
    /// `1 - 2 sum(y_true y_pred) / (sum(y_true) + sum(y_pred) + 1e-7)`, the Dice loss: both of the same shape, with the
    /// probability that an element belongs to the region. By default, it is one number for the whole batch.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Dice {
        /// The axes of a region. Default: all.
        axis: Axes as impl Into<Axes> = Axes::ALL,
        /// How the losses of a batch are reduced to one number.
        reduction: Reduction = Reduction::SumOverBatchSize,
    }
}

impl Loss for Dice {
    fn name(&self) -> &str {
        "dice"
    }

    fn losses(&self, y_true: &Tensor, y_pred: &Tensor) -> Result<Tensor> {
        let [y_true, y_pred] = agree("Dice", y_true, y_pred)?;
        let both = y_true.multiply(&y_pred)?.reduce_sum(&self.axis)?;
        let sizes = y_true.reduce_sum(&self.axis)?.add(y_pred.reduce_sum(&self.axis)?)?;
        both.multiply(2.0)?.divide(sizes.add(EPSILON)?)?.negative()?.add(1.0)
    }

    fn reduction(&self) -> Reduction {
        self.reduction
    }
}

options! {
    /// `1 - s / (s + alpha a + beta b + 1e-7)` with `s = sum(y_true y_pred)`, `a = sum(y_true (1 - y_pred))` and
    /// `b = sum((1 - y_true) y_pred)`, the Tversky loss: both of the same shape. With 0.5 and 0.5 it is [`Dice`].
    #[derive(Debug, Clone, PartialEq)]
    pub struct Tversky {
        /// The weight of false negatives: the part of the true region outside the predicted one.
        alpha: f32 = 0.5,
        /// The weight of false positives: the part of the predicted region outside the true one.
        beta: f32 = 0.5,
        /// The axes of a region. Default: all.
        axis: Axes as impl Into<Axes> = Axes::ALL,
        /// How the losses of a batch are reduced to one number.
        reduction: Reduction = Reduction::SumOverBatchSize,
    }
}

impl Loss for Tversky {
    fn name(&self) -> &str {
        "tversky"
    }

    fn losses(&self, y_true: &Tensor, y_pred: &Tensor) -> Result<Tensor> {
        let [y_true, y_pred] = agree("Tversky", y_true, y_pred)?;
        let sum = |x: Tensor| x.reduce_sum(&self.axis);
        let both = sum(y_true.multiply(&y_pred)?)?;
        let missed = sum(y_true.multiply(y_pred.negative()?.add(1.0)?)?)?;
        let invented = sum(y_pred.multiply(y_true.negative()?.add(1.0)?)?)?;
        let all = both.add(missed.multiply(self.alpha)?)?.add(invented.multiply(self.beta)?)?;
        both.divide(all.add(EPSILON)?)?.negative()?.add(1.0)
    }

    fn reduction(&self) -> Reduction {
        self.reduction
    }
}

crate::trackable::plain!(Dice, Tversky);
