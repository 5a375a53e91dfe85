//! The circle loss of embeddings.

use super::agreement::float;
use super::row::loss_options;
use super::{Loss, Reduction, class_labels};
use crate::dtype::DType;
use crate::error::{Error, Result, message};
use crate::ops::{MatmulOptions, where_};
use crate::shape::Axes;
use crate::tensor::Tensor;

loss_options! {
    /// The circle loss (Sun et al. 2020): labels `[N]`, embeddings `[N,D]` of length 1. It pulls embeddings of the same label
    /// together and pushes others apart.
    ///
    /// With the distances `d = max(1 - y_pred y_pred^T, 0)`, an example's loss is
    /// `softplus(logsumexp of -gamma (margin + d) (margin - d) + logsumexp of gamma (1 + margin - d) (1 - margin - d))`, where
    /// the first sum runs over the other examples of its label and the second over examples of other labels; the factors
    /// `margin + d` and `1 + margin - d` are clipped to at least 0. If one of the sums is empty for an example, its loss is 0.
    /// Losses of 0 are ignored in the mean.
    pub struct Circle {
        /// The scale of the loss.
        gamma: f32 = 80.0,
        /// The permitted deviation of the distances from their targets.
        margin: f32 = 0.4,
        /// Whether to exclude each example's pair with itself.
        remove_diagonal: bool = true,
    }
}

impl Loss for Circle {
    fn name(&self) -> &str {
        "circle"
    }

    fn losses(&self, y_true: &Tensor, y_pred: &Tensor) -> Result<Tensor> {
        let y_pred = float("Circle", y_pred)?;
        let labels = class_labels(y_true, &y_pred)?;
        if y_pred.rank() != 2 || labels.shape() != &y_pred.shape()[..1] {
            return Err(Error::Shape(message!(
                "Circle: y_true is {:?} and y_pred is {:?}; it needs labels [N] and embeddings [N,D].",
                y_true.shape(),
                y_pred.shape()
            )));
        }
        let margin = f64::from(self.margin);
        let likeness = y_pred.matmul_with(&y_pred, MatmulOptions::new().transpose_b(true))?;
        let distance = likeness.negative()?.add(1.0)?.maximum(0.0)?;
        let same = labels.expand_dims(-1)?.equal(labels.expand_dims(0)?)?;
        let others = same.logical_not()?;
        let own = match self.remove_diagonal {
            false => same,
            true => {
                let eye = y_pred.device().scope(|| Tensor::eye(labels.len()))?;
                same.logical_and(eye.cast(DType::Bool)?.logical_not()?)?
            }
        };
        let steep = |weight: Tensor, gap: Tensor, sign: f32| {
            weight.maximum(0.0)?.multiply(gap)?.multiply(sign * self.gamma)
        };
        let away = |from: f64| distance.negative()?.add(from);
        let (near, near_is) =
            log_sum_exp(&steep(distance.add(margin)?, away(margin)?, -1.0)?, &own)?;
        let (far, far_is) =
            log_sum_exp(&steep(away(1.0 + margin)?, away(1.0 - margin)?, 1.0)?, &others)?;
        let losses = near.add(far)?.softplus()?;
        where_(&near_is.logical_and(far_is)?, &losses, &losses.zeros_like()?)
    }

    fn reduction(&self) -> Reduction {
        self.reduction
    }

    fn mask(&self, y_true: &Tensor, y_pred: &Tensor) -> Result<Option<Tensor>> {
        Ok(Some(self.losses(y_true, y_pred)?.greater(0.0)?))
    }
}

/// `log(sum of e^x)` along the last axis where the mask is true, and whether it is true anywhere; 0 where it is not.
fn log_sum_exp(x: &Tensor, mask: &Tensor) -> Result<(Tensor, Tensor)> {
    let any = mask.reduce_any(Axes::from(-1).keepdims(true))?;
    let least = x.device().scope(|| Tensor::full([], f32::MIN))?;
    let low = where_(mask, x, &least)?.stop_gradient();
    let top = low.reduce_max(Axes::from(-1).keepdims(true))?;
    let top = where_(&any, &top, &top.zeros_like()?)?.stop_gradient();
    let zeros = x.zeros_like()?;
    let shifted = where_(mask, &x.subtract(&top)?, &zeros)?;
    let sum = where_(mask, &shifted.exp()?, &zeros)?.reduce_sum(Axes::from(-1).keepdims(true))?;
    let sum = where_(&any, &sum, &sum.ones_like()?)?;
    Ok((sum.log()?.add(top)?.squeeze([-1])?, any.squeeze([-1])?))
}
