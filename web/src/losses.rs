//! Losses by name, each with the accuracy that goes with it.

#[cfg(feature = "ops")]
use wgrad::keras::losses::{self, Loss as _};
use wgrad::{DType, Result, Tensor};

use crate::error::{self, bad_type};

/// What training makes small, of what a batch is to give and what was predicted for it.
pub(crate) struct Loss {
    name: &'static str,
    /// The mean loss of a batch.
    pub(crate) call: fn(&Tensor, &Tensor) -> Result<Tensor>,
    /// The part of a batch that was predicted right, a scalar.
    pub(crate) accuracy: fn(&Tensor, &Tensor) -> Result<Tensor>,
}

/// The first is taken where none is named. The page trains with that one.
static LOSSES: &[Loss] = &[
    Loss {
        name: "sparseCategoricalCrossentropy",
        // The op, as the page would otherwise hold what the loss does for masks and weights.
        call: |y, predicted| {
            let labels = class_labels(y, predicted)?;
            wgrad::sparse_softmax_cross_entropy_with_logits(&labels, predicted)?.reduce_mean(())
        },
        accuracy: class_accuracy,
    },
    #[cfg(feature = "ops")]
    Loss {
        name: "binaryCrossentropy",
        call: |y, predicted| {
            let labels = y.cast(predicted.dtype())?;
            wgrad::sigmoid_cross_entropy_with_logits(&labels, predicted)?.reduce_mean(())
        },
        accuracy: |y, predicted| {
            let predicted = predicted.stop_gradient();
            let hits = predicted.greater(0.0)?.equal(&y.cast(predicted.dtype())?.greater(0.5)?)?;
            hits.cast(DType::F32)?.reduce_mean(())
        },
    },
    #[cfg(feature = "ops")]
    Loss {
        name: "meanSquaredError",
        call: |y, predicted| losses::MeanSquaredError::default().call(y, predicted),
        accuracy: class_accuracy,
    },
];

impl Loss {
    pub(crate) fn named(name: Option<&str>) -> error::Result<&'static Loss> {
        let Some(name) = name else { return Ok(&LOSSES[0]) };
        LOSSES.iter().find(|loss| loss.name == name).ok_or_else(|| {
            let known: Vec<&str> = LOSSES.iter().map(|loss| loss.name).collect();
            bad_type(format!(
                "compile: there is no loss '{name}'. The known ones are {}.",
                known.join(", ")
            ))
        })
    }
}

/// How often the largest of the predicted values is that of the label.
fn class_accuracy(y: &Tensor, predicted: &Tensor) -> Result<Tensor> {
    let labels = class_labels(y, predicted)?;
    let hits = predicted.stop_gradient().argmax(-1)?.equal(&labels)?;
    hits.cast(DType::F32)?.reduce_mean(())
}

fn class_labels(y: &Tensor, predicted: &Tensor) -> Result<Tensor> {
    let column = y.rank() == predicted.rank() && y.shape().last() == Some(&1);
    let labels = if column { y.squeeze([-1])? } else { y.clone() };
    labels.cast(DType::I32)
}
