//! Binary cross-entropies.

use super::EPSILON;
use super::row::loss;
use crate::error::Result;
use crate::ops::sigmoid_cross_entropy_with_logits;
use crate::shape::Axis;
use crate::tensor::Tensor;

loss! {
    /// The mean of `-(y_true log p + (1 - y_true) log(1 - p))` along an axis: both `[..,D]`, `y_true` of zeros and ones.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// use tf::keras::losses::{BinaryCrossentropy, Loss};
    /// let loss = BinaryCrossentropy::new().from_logits(true);
    /// let value = loss.call(&tf::constant([1.0, 0.0])?, &tf::constant([[1000.0], [-1000.0]])?)?;
    /// assert_eq!(value.item::<f32>()?, 0.0);
    /// # Ok(())
    /// # }
    /// ```
    pub struct BinaryCrossentropy = "binary_crossentropy" {
        /// Whether predictions are logits; if not, they are probabilities, which the loss clips to 1e-7 to 1 - 1e-7.
        from_logits: bool = false,
        /// How much of the truth is distributed evenly over both values: `y_true (1 - s) + s / 2`.
        label_smoothing: f32 = 0.0,
        /// The axis along which the mean is taken.
        axis: Axis as impl Into<Axis> = Axis::from(-1),
    }
    |options, y_true, y_pred| {
        let y_true = &smooth(y_true, options.label_smoothing)?;
        let losses = match options.from_logits {
            true => sigmoid_cross_entropy_with_logits(y_true, y_pred)?,
            false => of_probabilities(y_true, y_pred)?,
        };
        losses.reduce_mean(options.axis)
    }
}

loss! {
    /// [`BinaryCrossentropy`] with the factor `(1 - q)^gamma`, where `q` is the predicted probability of the true value:
    /// well-classified elements count less (Lin et al. 2017).
    pub struct BinaryFocalCrossentropy = "binary_focal_crossentropy" {
        /// Whether to weight positives by `alpha` and negatives by `1 - alpha`.
        apply_class_balancing: bool = false,
        /// The weight of positives.
        alpha: f32 = 0.25,
        /// The focusing parameter: the larger it is, the less well-classified elements count.
        gamma: f32 = 2.0,
        /// Whether predictions are logits; if not, they are probabilities.
        from_logits: bool = false,
        /// How much of the truth is distributed evenly over both values: `y_true (1 - s) + s / 2`.
        label_smoothing: f32 = 0.0,
        /// The axis along which the mean is taken.
        axis: Axis as impl Into<Axis> = Axis::from(-1),
    }
    |options, y_true, y_pred| {
        let y_true = &smooth(y_true, options.label_smoothing)?;
        let y_pred = &if options.from_logits { y_pred.sigmoid()? } else { y_pred.clone() };
        let right = mix(y_true, y_pred, &other(y_pred)?)?;
        let mut losses = focus(&of_probabilities(y_true, y_pred)?, &right, options.gamma)?;
        if options.apply_class_balancing {
            let alpha = f64::from(options.alpha);
            let weight = y_true.multiply(2.0 * alpha - 1.0)?.add(1.0 - alpha)?;
            losses = losses.multiply(weight)?;
        }
        losses.reduce_mean(options.axis)
    }
}

/// `(1 - right)^gamma` times the losses. The powers 0 and 1 are special cases, because the gradient of `pow` would be NaN at 0.
pub(super) fn focus(losses: &Tensor, right: &Tensor, gamma: f32) -> Result<Tensor> {
    let wrong = || right.negative()?.add(1.0);
    if gamma == 0.0 {
        return Ok(losses.clone());
    }
    losses.multiply(match gamma {
        1.0 => wrong()?,
        2.0 => wrong()?.square()?,
        _ => wrong()?.pow(gamma)?,
    })
}

fn of_probabilities(y_true: &Tensor, y_pred: &Tensor) -> Result<Tensor> {
    let p = y_pred.clip_by_value(EPSILON, 1.0 - EPSILON)?;
    mix(y_true, &p.log()?, &other(&p)?.log()?)?.negative()
}

/// `y_true a + (1 - y_true) b`.
fn mix(y_true: &Tensor, a: &Tensor, b: &Tensor) -> Result<Tensor> {
    y_true.multiply(a)?.add(other(y_true)?.multiply(b)?)
}

fn other(share: &Tensor) -> Result<Tensor> {
    share.negative()?.add(1.0)
}

fn smooth(y_true: &Tensor, smoothing: f32) -> Result<Tensor> {
    match smoothing == 0.0 {
        true => Ok(y_true.clone()),
        false => y_true.multiply(1.0 - smoothing)?.add(0.5 * smoothing),
    }
}
