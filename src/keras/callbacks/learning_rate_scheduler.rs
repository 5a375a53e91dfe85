//! [`LearningRateScheduler`]: sets the learning rate at the beginning of each epoch.

use super::{BatchLogs, Callback, Logs, Run};
use crate::error::Result;

/// Sets the learning rate at the beginning of each epoch to the result of a function of the epoch's number, counted from 0, and
/// the current rate. Sets `learning_rate` in the logs.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::{Tensor, keras::{CompileOptions, FitOptions, Model, Sequential, layers::Dense}};
/// use wgrad::keras::callbacks::LearningRateScheduler;
/// let model = Sequential::new().add(Dense::new(1));
/// model.compile("sgd", "mse", CompileOptions::new())?;
/// let halve = LearningRateScheduler::new(|epoch, rate| if epoch < 1 { 0.5 } else { rate / 2.0 });
/// let (x, y) = (Tensor::ones([32, 2])?, Tensor::zeros([32, 1])?);
/// let history = model.fit((&x, &y), FitOptions::new().epochs(3).callback(halve))?;
/// assert_eq!(history.get("learning_rate"), Some(&[0.5, 0.25, 0.125][..]));
/// # Ok(())
/// # }
/// ```
pub struct LearningRateScheduler<F> {
    schedule: F,
    verbose: bool,
}

impl<F> std::fmt::Debug for LearningRateScheduler<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LearningRateScheduler")
            .field("verbose", &self.verbose)
            .finish_non_exhaustive()
    }
}

impl<F: FnMut(usize, f32) -> f32> LearningRateScheduler<F> {
    /// Creates a callback with this function.
    pub fn new(schedule: F) -> Self {
        LearningRateScheduler { schedule, verbose: false }
    }

    /// Sets whether the callback reports its actions on standard error.
    pub fn verbose(mut self, verbose: bool) -> Self {
        self.verbose = verbose;
        self
    }
}

impl<F: FnMut(usize, f32) -> f32> Callback for LearningRateScheduler<F> {
    fn batch_logs(&self) -> BatchLogs {
        BatchLogs::Unused
    }

    fn on_epoch_begin(&mut self, epoch: usize, run: &mut Run<'_>) -> Result<()> {
        let rate = (self.schedule)(epoch, run.learning_rate()?);
        run.set_learning_rate(rate)?;
        if self.verbose {
            super::say(&format!(
                "\nEpoch {}: LearningRateScheduler setting learning rate to {rate}.\n",
                epoch + 1
            ));
        }
        Ok(())
    }

    fn on_epoch_end(&mut self, _: usize, logs: &mut Logs, run: &mut Run<'_>) -> Result<()> {
        logs.set("learning_rate", f64::from(run.learning_rate()?));
        Ok(())
    }
}
