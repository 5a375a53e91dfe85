//! Losses by name, each with its matching accuracy.

#[cfg(feature = "ops")]
use wgrad::keras::losses::{self, Loss as _};
use wgrad::{DType, Result, Tensor};

use crate::error::{self, bad_type};

/// A loss as a function of targets and predictions.
pub(crate) struct Loss {
    name: &'static str,
    /// The mean loss of a batch.
    pub(crate) call: fn(&Tensor, &Tensor) -> Result<Tensor>,
    /// The fraction of a batch that was predicted right, a scalar.
    pub(crate) accuracy: fn(&Tensor, &Tensor) -> Result<Tensor>,
}

/// The first is the default, and the only one of the page's own build.
static LOSSES: &[Loss] = &[
    Loss {
        name: "sparseCategoricalCrossentropy",
        // Calls the op: the loss class would add its code for masks and weights to the page.
        call: |y, predicted| {
            let labels = class_labels(y, predicted)?;
            wgrad::sparse_softmax_cross_entropy_with_logits(&labels, predicted)?.reduce_mean(())
        },
        accuracy: class_accuracy,
    },
    #[cfg(feature = "ops")]
    Loss {
        name: "binaryCrossentropy",
        call: |y, predicted| losses::BinaryCrossentropy::new().from_logits(true).call(y, predicted),
        accuracy: side_accuracy,
    },
    #[cfg(feature = "ops")]
    Loss {
        name: "binaryFocalCrossentropy",
        call: |y, predicted| {
            losses::BinaryFocalCrossentropy::new().from_logits(true).call(y, predicted)
        },
        accuracy: side_accuracy,
    },
    #[cfg(feature = "ops")]
    Loss {
        name: "categoricalCrossentropy",
        call: |y, predicted| {
            losses::CategoricalCrossentropy::new().from_logits(true).call(y, predicted)
        },
        accuracy: hot_accuracy,
    },
    #[cfg(feature = "ops")]
    Loss {
        name: "categoricalFocalCrossentropy",
        call: |y, predicted| {
            losses::CategoricalFocalCrossentropy::new().from_logits(true).call(y, predicted)
        },
        accuracy: hot_accuracy,
    },
    #[cfg(feature = "ops")]
    Loss {
        name: "categoricalHinge",
        call: |y, predicted| losses::CategoricalHinge::new().call(y, predicted),
        accuracy: hot_accuracy,
    },
    #[cfg(feature = "ops")]
    Loss {
        name: "hinge",
        call: |y, predicted| losses::Hinge::new().call(y, predicted),
        accuracy: side_accuracy,
    },
    #[cfg(feature = "ops")]
    Loss {
        name: "squaredHinge",
        call: |y, predicted| losses::SquaredHinge::new().call(y, predicted),
        accuracy: side_accuracy,
    },
    #[cfg(feature = "ops")]
    Loss {
        name: "meanSquaredError",
        call: |y, predicted| losses::MeanSquaredError::new().call(y, predicted),
        accuracy: class_accuracy,
    },
    #[cfg(feature = "ops")]
    Loss {
        name: "meanAbsoluteError",
        call: |y, predicted| losses::MeanAbsoluteError::new().call(y, predicted),
        accuracy: class_accuracy,
    },
    #[cfg(feature = "ops")]
    Loss {
        name: "huber",
        call: |y, predicted| losses::Huber::new().call(y, predicted),
        accuracy: class_accuracy,
    },
    #[cfg(feature = "ops")]
    Loss {
        name: "logCosh",
        call: |y, predicted| losses::LogCosh::new().call(y, predicted),
        accuracy: class_accuracy,
    },
    #[cfg(feature = "ops")]
    Loss {
        name: "cosineSimilarity",
        call: |y, predicted| losses::CosineSimilarity::new().call(y, predicted),
        accuracy: hot_accuracy,
    },
    #[cfg(feature = "ops")]
    Loss {
        name: "poisson",
        call: |y, predicted| losses::Poisson::new().call(y, predicted),
        accuracy: class_accuracy,
    },
];

/// The losses of models that end with a softmax or a sigmoid, as those of other programs often do.
#[cfg(feature = "ops")]
static OF_PROBABILITIES: &[Loss] = &[
    Loss {
        name: "sparseCategoricalCrossentropy",
        call: |y, predicted| {
            let labels = class_labels(y, predicted)?;
            losses::SparseCategoricalCrossentropy::new().call(&labels, predicted)
        },
        accuracy: class_accuracy,
    },
    Loss {
        name: "binaryCrossentropy",
        call: |y, predicted| losses::BinaryCrossentropy::new().call(y, predicted),
        accuracy: half_accuracy,
    },
    Loss {
        name: "binaryFocalCrossentropy",
        call: |y, predicted| losses::BinaryFocalCrossentropy::new().call(y, predicted),
        accuracy: half_accuracy,
    },
    Loss {
        name: "categoricalCrossentropy",
        call: |y, predicted| losses::CategoricalCrossentropy::new().call(y, predicted),
        accuracy: hot_accuracy,
    },
    Loss {
        name: "categoricalFocalCrossentropy",
        call: |y, predicted| losses::CategoricalFocalCrossentropy::new().call(y, predicted),
        accuracy: hot_accuracy,
    },
];

impl Loss {
    /// The loss of this name for predictions that are probabilities, not logits.
    #[cfg(feature = "ops")]
    pub(crate) fn of_probabilities(name: Option<&str>) -> error::Result<&'static Loss> {
        let name = Loss::named(name)?.name;
        OF_PROBABILITIES.iter().find(|loss| loss.name == name).ok_or_else(|| {
            let known: Vec<&str> = OF_PROBABILITIES.iter().map(|loss| loss.name).collect();
            bad_type(format!(
                "compile: fromLogits is false, and {name} takes any numbers. Leave it out; it is for {}.",
                known.join(", ")
            ))
        })
    }

    #[cfg(feature = "models")]
    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    /// True if the targets are class indices.
    #[cfg(feature = "ops")]
    pub(crate) fn of_labels(&self) -> bool {
        self.name == "sparseCategoricalCrossentropy"
    }

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

/// The fraction of rows whose largest prediction is at the label.
fn class_accuracy(y: &Tensor, predicted: &Tensor) -> Result<Tensor> {
    let labels = class_labels(y, predicted)?;
    let hits = predicted.stop_gradient().argmax(-1)?.equal(&labels)?;
    hits.cast(DType::F32)?.reduce_mean(())
}

/// The fraction of rows whose largest prediction is where the target's largest element is.
#[cfg(feature = "ops")]
fn hot_accuracy(y: &Tensor, predicted: &Tensor) -> Result<Tensor> {
    let hits = predicted.stop_gradient().argmax(-1)?.equal(y.argmax(-1)?)?;
    hits.cast(DType::F32)?.reduce_mean(())
}

/// The fraction of probabilities on the same side of a half as the target.
#[cfg(feature = "ops")]
fn half_accuracy(y: &Tensor, predicted: &Tensor) -> Result<Tensor> {
    side_accuracy(y, &predicted.subtract(0.5)?)
}

/// The fraction of predictions on the same side of 0 as the target.
#[cfg(feature = "ops")]
fn side_accuracy(y: &Tensor, predicted: &Tensor) -> Result<Tensor> {
    let predicted = predicted.stop_gradient();
    // A list and a column would broadcast to a matrix.
    let y = y.cast(predicted.dtype())?.reshape(predicted.shape())?;
    let hits = predicted.greater(0.0)?.equal(&y.greater(0.5)?)?;
    hits.cast(DType::F32)?.reduce_mean(())
}

fn class_labels(y: &Tensor, predicted: &Tensor) -> Result<Tensor> {
    let column = y.rank() == predicted.rank() && y.shape().last() == Some(&1);
    let labels = if column { y.squeeze([-1])? } else { y.clone() };
    labels.cast(DType::I32)
}
