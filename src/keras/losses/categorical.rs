//! Cross-entropies of several classes, with distributions as truth.

use super::EPSILON;
use super::binary::focus;
use super::row::loss;
use crate::error::Result;
use crate::ops::softmax_cross_entropy_with_logits;
use crate::shape::{Axes, Axis, axis_index};
use crate::tensor::Tensor;

loss! {
    /// `-sum of y_true log p` along the classes' axis: both `[..,C]`.
    pub struct CategoricalCrossentropy = "categorical_crossentropy" {
        /// Whether predictions are logits; if not, they are probabilities, which the loss scales to the sum 1 and clips
        /// to 1e-7 to 1 - 1e-7.
        from_logits: bool = false,
        /// How much of the truth is distributed evenly over all classes: `y_true (1 - s) + s / C`.
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

loss! {
    /// `-sum of alpha (1 - p)^gamma y_true log p` along the classes' axis: both `[..,C]`. Well-classified examples
    /// count less (Lin et al. 2017).
    pub struct CategoricalFocalCrossentropy = "categorical_focal_crossentropy" {
        /// A factor for all classes.
        alpha: f32 = 0.25,
        /// The focusing parameter: the larger it is, the less well-classified examples count.
        gamma: f32 = 2.0,
        /// Whether predictions are logits; if not, they are probabilities, which the loss scales to the sum 1 and clips
        /// to 1e-7 to 1 - 1e-7.
        from_logits: bool = false,
        /// How much of the truth is distributed evenly over all classes: `y_true (1 - s) + s / C`.
        label_smoothing: f32 = 0.0,
        /// The axis of the classes.
        axis: Axis as impl Into<Axis> = Axis::from(-1),
    }
    |options, y_true, y_pred| {
        const NAME: &str = "CategoricalFocalCrossentropy";
        let y_true = &smooth(&classes_last(NAME, y_true, options.axis)?, options.label_smoothing)?;
        let y_pred = &classes_last(NAME, y_pred, options.axis)?;
        let y_pred = &if options.from_logits { y_pred.softmax(-1)? } else { y_pred.clone() };
        let p = cut(&shares(y_pred)?)?;
        let losses = focus(&y_true.multiply(p.log()?)?.negative()?, &p, options.gamma)?;
        losses.multiply(options.alpha)?.reduce_sum(-1)
    }
}

/// The tensor with the axis of the classes moved to the end.
pub(super) fn classes_last(loss: &str, x: &Tensor, axis: Axis) -> Result<Tensor> {
    let at = axis_index(loss, axis, x.rank())?;
    if at + 1 == x.rank() {
        return Ok(x.clone());
    }
    let others = (0..x.rank()).filter(|other| *other != at);
    x.transpose(others.chain([at]).collect::<Vec<_>>())
}

/// The distributions, with the fraction `smoothing` distributed evenly over all classes, the last axis.
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

pub(super) fn cut(probabilities: &Tensor) -> Result<Tensor> {
    probabilities.clip_by_value(EPSILON, 1.0 - EPSILON)
}
