//! [`ReduceLrOnPlateau`]: reduces the learning rate when a training does not improve any more.

use super::monitor::{Mode, Monitor};
use super::{BatchLogs, Callback, Logs, Run};
use crate::error::{Error, Result, message};

/// Multiplies the learning rate by a factor once a value of the logs has not improved for some epochs. Sets
/// `learning_rate` in the logs.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::{Tensor, keras::{CompileOptions, FitOptions, Model, Sequential, layers::Dense}};
/// use wgrad::keras::{callbacks::ReduceLrOnPlateau, optimizers::Sgd};
/// let model = Sequential::new().add(Dense::new(1));
/// model.compile(Sgd::new(0.0), "mse", CompileOptions::new())?; // which gets no better
/// model.trainer().optimizer()?.set_learning_rate(1e-30)?;
/// let reduce = ReduceLrOnPlateau::new().monitor("loss").patience(2).factor(0.5);
/// let (x, y) = (Tensor::ones([32, 2])?, Tensor::zeros([32, 1])?);
/// let history = model.fit((&x, &y), FitOptions::new().epochs(4).callback(reduce))?;
/// let rates: Vec<f32> = history.get("learning_rate").expect("it").iter().map(|&rate| rate as f32).collect();
/// assert_eq!(rates, [1e-30, 1e-30, 1e-30, 5e-31]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[doc(alias = "ReduceLROnPlateau")]
pub struct ReduceLrOnPlateau {
    monitor: Monitor,
    factor: f64,
    patience: usize,
    cooldown: usize,
    min_lr: f64,
    verbose: bool,
    cooling: usize,
    wait: usize,
}

impl Default for ReduceLrOnPlateau {
    fn default() -> Self {
        ReduceLrOnPlateau::new()
    }
}

impl ReduceLrOnPlateau {
    /// Creates a callback that monitors `val_loss` and divides the rate by 10 after 10 epochs without an improvement.
    pub fn new() -> Self {
        let mut monitor = Monitor::new("ReduceLROnPlateau", "val_loss");
        monitor.min_delta = 1e-4;
        ReduceLrOnPlateau {
            monitor,
            factor: 0.1,
            patience: 10,
            cooldown: 0,
            min_lr: 0.0,
            verbose: false,
            cooling: 0,
            wait: 0,
        }
    }

    /// Sets the name of the value to monitor.
    pub fn monitor(mut self, name: &str) -> Self {
        self.monitor.name = name.to_string();
        self
    }

    /// Sets the factor by which the rate is multiplied, below 1.
    pub fn factor(mut self, factor: f64) -> Self {
        self.factor = factor;
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

    /// Sets the minimum change that counts as an improvement. Default: 1e-4.
    pub fn min_delta(mut self, min_delta: f64) -> Self {
        self.monitor.min_delta = min_delta.abs();
        self
    }

    /// Sets how many epochs after a reduction do not count.
    pub fn cooldown(mut self, cooldown: usize) -> Self {
        self.cooldown = cooldown;
        self
    }

    /// Sets the lower bound of the rate.
    pub fn min_lr(mut self, min_lr: f64) -> Self {
        self.min_lr = min_lr;
        self
    }

    /// Sets whether the callback reports its actions on standard error.
    pub fn verbose(mut self, verbose: bool) -> Self {
        self.verbose = verbose;
        self
    }
}

impl Callback for ReduceLrOnPlateau {
    fn batch_logs(&self) -> BatchLogs {
        BatchLogs::Unused
    }

    fn on_train_begin(&mut self, _: &mut Run<'_>) -> Result<()> {
        if self.factor >= 1.0 {
            return Err(Error::Data(message!(
                "ReduceLROnPlateau: the factor is {}; it must be below 1.",
                self.factor
            )));
        }
        (self.monitor.best, self.cooling, self.wait) = (None, 0, 0);
        Ok(())
    }

    fn on_epoch_end(&mut self, epoch: usize, logs: &mut Logs, run: &mut Run<'_>) -> Result<()> {
        let rate = f64::from(run.learning_rate()?);
        logs.set("learning_rate", rate);
        let Some(value) = self.monitor.value(logs) else { return Ok(()) };
        if self.cooling > 0 {
            self.cooling -= 1;
            self.wait = 0;
        }
        if self.monitor.better(value, self.monitor.best)? {
            self.monitor.best = Some(value);
            self.wait = 0;
            return Ok(());
        }
        if self.cooling > 0 {
            return Ok(());
        }
        self.wait += 1;
        if self.wait >= self.patience && rate > f64::from(self.min_lr as f32) {
            let rate = (rate * self.factor).max(self.min_lr);
            run.set_learning_rate(rate as f32)?;
            if self.verbose {
                super::say(&format!(
                    "\nEpoch {}: ReduceLROnPlateau reducing learning rate to {rate}.\n",
                    epoch + 1
                ));
            }
            (self.cooling, self.wait) = (self.cooldown, 0);
        }
        Ok(())
    }
}
