//! [`Reduction`], and the weights and masks that are applied to losses before it.

use super::agreement::same_rank;
use crate::dtype::DType;
use crate::error::{Error, Result, message};
use crate::tensor::Tensor;

/// How the losses of a batch are reduced to one number. The sum and the mean of no losses are 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Reduction {
    /// The sum of the weighted losses, divided by their number.
    #[default]
    SumOverBatchSize,
    /// The sum of the weighted losses.
    Sum,
    /// Same as [`Reduction::SumOverBatchSize`].
    Mean,
    /// The sum of the weighted losses, divided by the sum of the weights; without weights, the mean.
    MeanWithSampleWeight,
    /// No reduction: one loss for each example.
    None,
}

impl Reduction {
    /// Reduces losses without weights.
    pub(super) fn reduce(self, losses: &Tensor) -> Result<Tensor> {
        match self {
            Reduction::None => Ok(losses.clone()),
            _ if losses.rank() == 0 => Ok(losses.clone()),
            Reduction::Sum => losses.reduce_sum(()),
            _ if losses.is_empty() => losses.reduce_sum(()),
            _ => losses.reduce_mean(()),
        }
    }
}

/// Reduces the losses for which all `masks` are true, multiplied by their weights.
pub(super) fn weigh(
    loss: &str,
    losses: &Tensor,
    reduction: Reduction,
    masks: [Option<&Tensor>; 2],
    sample_weight: Option<&Tensor>,
) -> Result<Tensor> {
    let mask = match masks {
        [Some(a), Some(b)] => Some(a.cast(DType::Bool)?.logical_and(b.cast(DType::Bool)?)?),
        [a, b] => a.or(b).cloned(),
    };
    let mask = mask.map(|mask| mask_weights(&mask, reduction)?.cast(losses.dtype())).transpose()?;
    let sample_weight = sample_weight.map(|weight| weight.cast(losses.dtype())).transpose()?;
    let weights = match (mask, sample_weight) {
        (None, None) => return reduction.reduce(losses),
        (Some(only), None) | (None, Some(only)) => only,
        (Some(mask), Some(weight)) => {
            let [mask, weight] = same_rank(&mask, &weight)?;
            weight.multiply(&mask)?
        }
    };
    let [values, weights] = same_rank(losses, &weights)?;
    fit(loss, losses, &values, &weights)?;
    let values = values.multiply(&weights)?;
    match reduction {
        Reduction::MeanWithSampleWeight => {
            values.reduce_sum(())?.divide_no_nan(weights.reduce_sum(())?)
        }
        _ => reduction.reduce(&values),
    }
}

/// Converts the mask to weights. For a mean, they are scaled so that their sum is the number of all positions.
fn mask_weights(mask: &Tensor, reduction: Reduction) -> Result<Tensor> {
    let ones = mask.cast(DType::Bool)?.cast(DType::F32)?;
    match reduction {
        Reduction::SumOverBatchSize | Reduction::Mean => {
            let weight = ones.reduce_sum(())?.reciprocal_no_nan()?.multiply(mask.len())?;
            ones.multiply(weight)
        }
        _ => Ok(ones),
    }
}

/// Checks that weights do not broadcast the losses to a larger shape, nor apply to other axes than intended.
fn fit(loss: &str, losses: &Tensor, values: &Tensor, weights: &Tensor) -> Result<()> {
    let (shape, own) = (values.shape(), weights.shape());
    let along = own.len() == shape.len() && own.iter().zip(shape).all(|(w, v)| *w == 1 || w == v);
    if along || own.is_empty() || shape.is_empty() {
        return Ok(());
    }
    Err(Error::Shape(message!(
        "{loss}: the weights (of samples, or a mask) are {own:?} and the losses {:?}; weights need the losses' rank, and \
         along each axis their size or 1. Reshape them, such as [N] to [N,1].",
        losses.shape()
    )))
}
