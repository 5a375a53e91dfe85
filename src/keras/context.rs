//! [`Context`]: what a layer receives besides its input, and where it adds its own losses.

use std::sync::{Mutex, PoisonError};

use super::Regularizer;
use crate::error::{Error, Result};
use crate::tensor::Tensor;

/// Whether a call is part of training, the mask of its input, and the collector of the losses that layers add.
///
/// A program passes [`TRAINING`] or [`INFERENCE`]; a layer passes its own context on to the layers inside. A context is
/// small and cheap to copy.
#[derive(Debug, Clone, Copy, Default)]
pub struct Context<'a> {
    training: bool,
    mask: Option<&'a Tensor>,
    /// The mask of each input, for a call on several inputs.
    masks: &'a [Option<Tensor>],
    losses: Option<&'a Losses>,
}

/// The context of a call in a training step: dropout is active, and moving means are updated.
pub const TRAINING: Context<'static> =
    Context { training: true, mask: None, masks: &[], losses: None };

/// The context of a call outside training.
pub const INFERENCE: Context<'static> =
    Context { training: false, mask: None, masks: &[], losses: None };

impl From<bool> for Context<'_> {
    fn from(training: bool) -> Self {
        Context { training, mask: None, masks: &[], losses: None }
    }
}

impl<'a> Context<'a> {
    /// True in a training step.
    pub fn training(&self) -> bool {
        self.training
    }

    /// Returns the mask of the input, if it has one: booleans such as `[N,T]` for an input `[N,T,D]`, true for the
    /// elements that count.
    pub fn mask(&self) -> Option<&'a Tensor> {
        self.mask
    }

    /// Returns the same context with this mask of the input.
    pub fn with_mask(self, mask: Option<&'a Tensor>) -> Self {
        Context { mask, masks: &[], ..self }
    }

    /// The same context for several inputs, with the mask of each.
    pub fn with_masks(self, masks: &'a [Option<Tensor>]) -> Self {
        Context { masks, ..self }
    }

    /// The masks of the inputs of a call on several; empty if the individual masks are not known.
    pub fn masks(&self) -> &'a [Option<Tensor>] {
        self.masks
    }

    /// Returns the same context, with `losses` as the collector of the losses that layers add: `model.call(&x,
    /// TRAINING.collect(&losses))?`.
    pub fn collect(self, losses: &'a Losses) -> Self {
        Context { losses: Some(losses), ..self }
    }

    /// Adds a loss, such as a penalty on the layer's output, to the collected losses. Outside training and without a
    /// collector, the loss is dropped.
    ///
    /// # Errors
    /// [`Error::Gradient`] in a training step without a collector: the training would silently ignore the loss.
    pub fn add_loss(&self, loss: Tensor) -> Result<()> {
        match self.losses {
            Some(losses) => losses.list().push(loss),
            None if self.training => {
                return Err(Error::Gradient(
                    "add_loss: the model adds a loss, and nothing collects it. Call the model with \
                     TRAINING.collect(&losses), where losses is a Losses::new(), and add losses.sum() to the loss."
                        .into(),
                ));
            }
            None => {}
        }
        Ok(())
    }

    /// Adds the penalty that a layer's `activity_regularizer` puts on its result, divided by the size of the batch.
    pub(super) fn regularize(&self, regularizer: Option<&Regularizer>, y: &Tensor) -> Result<()> {
        let Some(regularizer) = regularizer else { return Ok(()) };
        let penalty = regularizer.call(y)?;
        match y.shape().first() {
            Some(&batch) if batch > 1 => self.add_loss(penalty.multiply(1.0 / batch as f32)?),
            _ => self.add_loss(penalty),
        }
    }
}

/// Collects the losses that layers add in one call of a model ([`Context::collect`]).
#[derive(Debug, Default)]
pub struct Losses(Mutex<Vec<Tensor>>);

impl Losses {
    /// Creates a collector without losses.
    pub fn new() -> Self {
        Losses::default()
    }

    /// Returns the sum of all elements of the losses, a scalar; 0 if there are none.
    ///
    /// # Errors
    /// [`Error::DType`] if the losses have different dtypes; [`Error::Device`] if there is no device.
    pub fn sum(&self) -> Result<Tensor> {
        let list = self.list();
        let Some((first, rest)) = list.split_first() else { return Tensor::zeros([]) };
        rest.iter().try_fold(first.reduce_sum(())?, |sum, loss| sum.add(loss.reduce_sum(())?))
    }

    /// Returns the losses in the order in which layers added them.
    pub fn to_vec(&self) -> Vec<Tensor> {
        self.list().clone()
    }

    fn list(&self) -> std::sync::MutexGuard<'_, Vec<Tensor>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_is_never_dropped_in_silence() {
        let loss = || Tensor::zeros([]).unwrap();
        let error = TRAINING.add_loss(loss()).unwrap_err().to_string();
        assert!(
            error.starts_with("add_loss: the model adds a loss, and nothing collects it."),
            "{error}"
        );
        INFERENCE.add_loss(loss()).unwrap();
        let losses = Losses::new();
        Context::from(true).collect(&losses).add_loss(loss()).unwrap();
        assert_eq!(losses.to_vec().len(), 1);
    }
}
