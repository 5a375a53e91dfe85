//! [`TerminateOnNan`]: stops a training whose loss is NaN or infinite.

use super::{Callback, Logs, Run};
use crate::error::{Error, Result, message};

/// Stops the training once the loss is NaN or infinite. The loss is read with a delay, so the training first runs a few
/// more batches.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::{Tensor, keras::{CompileOptions, FitOptions, Model, Sequential, layers::Dense}};
/// use wgrad::keras::{callbacks::TerminateOnNan, optimizers::Sgd};
/// let model = Sequential::new().add(Dense::new(1));
/// model.compile(Sgd::new(1e20), "mse", CompileOptions::new())?;
/// let (x, y) = (Tensor::ones([64, 2])?, Tensor::zeros([64, 1])?);
/// let history = model.fit((&x, &y), FitOptions::new().epochs(100).callback(TerminateOnNan::new()))?;
/// assert!(history.epochs().len() < 100);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default)]
#[doc(alias = "TerminateOnNaN")]
pub struct TerminateOnNan {
    raise_error: bool,
}

impl TerminateOnNan {
    /// Creates a callback that stops the training without an error.
    pub fn new() -> Self {
        TerminateOnNan::default()
    }

    /// Sets whether `fit` returns an error instead.
    pub fn raise_error(mut self, raise_error: bool) -> Self {
        self.raise_error = raise_error;
        self
    }
}

impl Callback for TerminateOnNan {
    fn on_train_batch_end(&mut self, batch: usize, logs: &Logs, run: &mut Run<'_>) -> Result<()> {
        let Some(loss) = logs.get("loss").filter(|loss| !loss.is_finite()) else { return Ok(()) };
        if self.raise_error {
            return Err(Error::Check(message!(
                "TerminateOnNaN: the loss is {loss} at batch {batch}. Lower the learning rate, or look for NaN in the data."
            )));
        }
        if !run.stopped() {
            crate::warnings::warn_user!(
                "TerminateOnNaN: the loss is {loss} at batch {batch}; the training ends."
            );
        }
        run.stop_training();
        Ok(())
    }
}
