//! [`EarlyStopping`]: stops a training that does not improve any more.

use super::monitor::{Mode, Monitor};
use super::{BatchLogs, Callback, Logs, Run};
use crate::error::Result;
use crate::tensor::Tensor;
use crate::variable::Variable;

/// Stops the training once a value of the logs has not improved for some epochs.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::{Tensor, keras::{CompileOptions, FitOptions, Model, Sequential, layers::Dense}};
/// use wgrad::keras::callbacks::EarlyStopping;
/// let model = Sequential::new().add(Dense::new(1));
/// model.compile("sgd", "mse", CompileOptions::new())?;
/// let mut stopping = EarlyStopping::new().monitor("loss").patience(2).min_delta(1e-3).restore_best_weights(true);
/// let (x, y) = (Tensor::ones([32, 2])?, Tensor::ones([32, 1])?);
/// let history = model.fit((&x, &y), FitOptions::new().epochs(1000).callback(&mut stopping))?;
/// assert_eq!(stopping.stopped_epoch(), history.epochs().last().copied());
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct EarlyStopping {
    monitor: Monitor,
    patience: usize,
    baseline: Option<f64>,
    restore_best_weights: bool,
    start_from_epoch: usize,
    verbose: bool,
    wait: usize,
    stopped_epoch: Option<usize>,
    best_epoch: usize,
    best_weights: Option<Vec<(Variable, Tensor)>>,
}

impl Default for EarlyStopping {
    fn default() -> Self {
        EarlyStopping::new()
    }
}

impl EarlyStopping {
    /// Creates a callback that monitors `val_loss`, with a patience of 0.
    pub fn new() -> Self {
        EarlyStopping {
            monitor: Monitor::new("EarlyStopping", "val_loss"),
            patience: 0,
            baseline: None,
            restore_best_weights: false,
            start_from_epoch: 0,
            verbose: false,
            wait: 0,
            stopped_epoch: None,
            best_epoch: 0,
            best_weights: None,
        }
    }

    /// Sets the name of the value to monitor.
    pub fn monitor(mut self, name: &str) -> Self {
        self.monitor.name = name.to_string();
        self
    }

    /// Sets the minimum change that counts as an improvement.
    pub fn min_delta(mut self, min_delta: f64) -> Self {
        self.monitor.min_delta = min_delta.abs();
        self
    }

    /// Sets how many epochs in a row may pass without an improvement.
    pub fn patience(mut self, patience: usize) -> Self {
        self.patience = patience;
        self
    }

    /// Sets whether a lower or a higher value is better.
    pub fn mode(mut self, mode: Mode) -> Self {
        self.monitor.mode = mode;
        self
    }

    /// Sets the value that the training must beat before the patience runs out.
    pub fn baseline(mut self, baseline: f64) -> Self {
        self.baseline = Some(baseline);
        self
    }

    /// Sets whether to restore the weights of the best epoch at the end. The device stores a copy of them.
    pub fn restore_best_weights(mut self, restore: bool) -> Self {
        self.restore_best_weights = restore;
        self
    }

    /// Sets the first epoch to monitor.
    pub fn start_from_epoch(mut self, epoch: usize) -> Self {
        self.start_from_epoch = epoch;
        self
    }

    /// Sets whether the callback reports its actions on standard error.
    pub fn verbose(mut self, verbose: bool) -> Self {
        self.verbose = verbose;
        self
    }

    /// Returns the epoch, counted from 0, after which the callback stopped the training.
    pub fn stopped_epoch(&self) -> Option<usize> {
        self.stopped_epoch
    }

    /// Returns the best epoch, counted from 0, and its value.
    pub fn best(&self) -> Option<(usize, f64)> {
        self.monitor.best.map(|best| (self.best_epoch, best))
    }

    fn keep(&mut self, epoch: usize, run: &Run<'_>) {
        self.best_epoch = epoch;
        if self.restore_best_weights {
            // Tensors are immutable, so holding one acts as a copy.
            let variables = run.model().variables().into_iter();
            let value = |variable: Variable| {
                let now = variable.read().stop_gradient();
                (variable, now)
            };
            self.best_weights = Some(variables.map(value).collect());
        }
    }
}

impl Callback for EarlyStopping {
    fn batch_logs(&self) -> BatchLogs {
        BatchLogs::Unused
    }

    fn on_train_begin(&mut self, _: &mut Run<'_>) -> Result<()> {
        (self.wait, self.stopped_epoch, self.best_epoch) = (0, None, 0);
        (self.monitor.best, self.best_weights) = (None, None);
        Ok(())
    }

    fn on_epoch_end(&mut self, epoch: usize, logs: &mut Logs, run: &mut Run<'_>) -> Result<()> {
        let Some(value) = self.monitor.value(logs) else { return Ok(()) };
        if epoch < self.start_from_epoch {
            return Ok(());
        }
        if self.restore_best_weights && self.best_weights.is_none() {
            self.keep(epoch, run);
        }
        self.wait += 1;
        if self.monitor.better(value, self.monitor.best)? {
            self.monitor.best = Some(value);
            self.keep(epoch, run);
            // The patience starts again only for a value that also beats the baseline.
            if self.monitor.better(value, self.baseline)? {
                self.wait = 0;
            }
        } else if self.wait >= self.patience && epoch > 0 {
            self.stopped_epoch = Some(epoch);
            run.stop_training();
        }
        Ok(())
    }

    fn on_train_end(&mut self, _: &Logs, _: &mut Run<'_>) -> Result<()> {
        if let (Some(epoch), true) = (self.stopped_epoch, self.verbose) {
            super::say(&format!("Epoch {}: early stopping\n", epoch + 1));
        }
        if let Some(best) = self.best_weights.take() {
            if self.verbose {
                let epoch = self.best_epoch + 1;
                super::say(&format!(
                    "Restoring the weights of the end of the best epoch: {epoch}.\n"
                ));
            }
            best.iter().try_for_each(|(variable, value)| variable.assign(value))?;
        }
        Ok(())
    }
}
