//! [`Callback`]: a program's actions while `fit` runs, and [`Run`], through which they affect the training.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use super::any_model::AnyModel;
use super::logs::Logs;
use super::trainer::Compiled;
use crate::error::Result;
use crate::keras::INFERENCE;
use crate::keras::optimizers::Optimizer;
use crate::tensor::Tensor;
use crate::trackable::Trackable;

/// When a callback is notified of the end of a batch, and with which logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[non_exhaustive]
pub enum BatchLogs {
    /// Immediately, with empty logs. This has no cost.
    Unused,
    /// With the logs, once they have been read: in order, and up to about 100 batches behind the training. Each batch reads a
    /// few scalars, without waiting for them.
    #[default]
    Behind,
    /// With the logs, before the next batch begins. The device idles after each batch until the host has read them.
    Now,
}

/// When a callback is notified of the end of an epoch or a validation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[non_exhaustive]
pub enum EpochLogs {
    /// Once the logs have been read, in order. The training continues meanwhile, so the model may be some epochs ahead.
    /// Suitable for a callback that only records the logs, or that ignores the ends of epochs.
    Behind,
    /// Before the next epoch begins. The device idles at the end of each epoch until the host has read the logs.
    #[default]
    Now,
}

/// Is notified of the beginnings and ends of epochs and batches. By default, all methods do nothing.
///
/// Logs have Keras's names and values: `loss` and the metrics are means over the epoch so far. An error ends the call of
/// `fit`, which returns it.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// use tf::keras::{CompileOptions, FitOptions, Model, Sequential, layers::Dense};
/// use tf::keras::callbacks::{Callback, Logs, Run};
///
/// /// Ends the training once the loss is small.
/// struct Enough(f64);
///
/// impl Callback for Enough {
///     fn on_epoch_end(&mut self, _epoch: usize, logs: &mut Logs, run: &mut Run<'_>) -> tf::Result<()> {
///         if logs.get("loss").is_some_and(|loss| loss < self.0) {
///             run.stop_training();
///         }
///         Ok(())
///     }
/// }
///
/// let model = Sequential::new().add(Dense::new(1));
/// model.compile("sgd", "mse", CompileOptions::new())?;
/// let (x, y) = (tf::Tensor::ones([64, 3])?, tf::Tensor::zeros([64, 1])?);
/// let history = model.fit((&x, &y), FitOptions::new().epochs(100).callback(Enough(1e-3)))?;
/// assert!(history.epochs().len() < 100);
/// # Ok(())
/// # }
/// ```
#[allow(unused_variables)] // The names of the arguments are for the reader.
pub trait Callback {
    /// Returns when the callback is notified of the end of a batch.
    fn batch_logs(&self) -> BatchLogs {
        BatchLogs::default()
    }

    /// Returns when the callback is notified of the end of an epoch or a validation. If no callback needs the logs immediately
    /// and no progress bar is shown, `fit` does not wait for the device between two epochs.
    fn epoch_logs(&self) -> EpochLogs {
        EpochLogs::default()
    }

    /// Called before the first epoch.
    ///
    /// # Errors
    /// An error of this or any other method ends the training.
    fn on_train_begin(&mut self, run: &mut Run<'_>) -> Result<()> {
        Ok(())
    }

    /// Called after the last epoch, with its logs.
    ///
    /// # Errors
    /// The errors of the callback.
    fn on_train_end(&mut self, logs: &Logs, run: &mut Run<'_>) -> Result<()> {
        Ok(())
    }

    /// Called before an epoch, counted from 0.
    ///
    /// # Errors
    /// The errors of the callback.
    fn on_epoch_begin(&mut self, epoch: usize, run: &mut Run<'_>) -> Result<()> {
        Ok(())
    }

    /// Called after an epoch and its validation. Later callbacks and the history see the values that this one sets in `logs`.
    ///
    /// # Errors
    /// The errors of the callback.
    fn on_epoch_end(&mut self, epoch: usize, logs: &mut Logs, run: &mut Run<'_>) -> Result<()> {
        Ok(())
    }

    /// Called before a batch, counted from 0 in each epoch.
    ///
    /// # Errors
    /// The errors of the callback.
    fn on_train_batch_begin(&mut self, batch: usize, run: &mut Run<'_>) -> Result<()> {
        Ok(())
    }

    /// Called after a batch; [`BatchLogs`] specifies when.
    ///
    /// # Errors
    /// The errors of the callback.
    fn on_train_batch_end(&mut self, batch: usize, logs: &Logs, run: &mut Run<'_>) -> Result<()> {
        Ok(())
    }

    /// Called before a validation or an evaluation.
    ///
    /// # Errors
    /// The errors of the callback.
    fn on_test_begin(&mut self, run: &mut Run<'_>) -> Result<()> {
        Ok(())
    }

    /// Called after a validation or an evaluation.
    ///
    /// # Errors
    /// The errors of the callback.
    fn on_test_end(&mut self, logs: &Logs, run: &mut Run<'_>) -> Result<()> {
        Ok(())
    }

    /// Called before a batch of a validation or an evaluation.
    ///
    /// # Errors
    /// The errors of the callback.
    fn on_test_batch_begin(&mut self, batch: usize, run: &mut Run<'_>) -> Result<()> {
        Ok(())
    }

    /// Called after a batch of a validation or an evaluation; [`BatchLogs`] specifies when.
    ///
    /// # Errors
    /// The errors of the callback.
    fn on_test_batch_end(&mut self, batch: usize, logs: &Logs, run: &mut Run<'_>) -> Result<()> {
        Ok(())
    }

    /// Called before a prediction.
    ///
    /// # Errors
    /// The errors of the callback.
    fn on_predict_begin(&mut self, run: &mut Run<'_>) -> Result<()> {
        Ok(())
    }

    /// Called after a prediction.
    ///
    /// # Errors
    /// The errors of the callback.
    fn on_predict_end(&mut self, run: &mut Run<'_>) -> Result<()> {
        Ok(())
    }

    /// Called before a batch of a prediction.
    ///
    /// # Errors
    /// The errors of the callback.
    fn on_predict_batch_begin(&mut self, batch: usize, run: &mut Run<'_>) -> Result<()> {
        Ok(())
    }

    /// Called after the ops of a batch of a prediction have been called.
    ///
    /// # Errors
    /// The errors of the callback.
    fn on_predict_batch_end(&mut self, batch: usize, run: &mut Run<'_>) -> Result<()> {
        Ok(())
    }

    /// Whether only the chief of several processes calls this callback, because it writes files or prints.
    #[doc(hidden)]
    fn is_for_chief(&self) -> bool {
        false
    }

    /// Whether the callback requests a backup of the training, after so many batches of the epoch, or with `None` after the
    /// epoch. The training then reads its results and calls `back_up`.
    #[doc(hidden)]
    fn wants_backup(&mut self, batches: Option<usize>) -> bool {
        false
    }

    #[doc(hidden)]
    fn back_up(&mut self, run: &mut Run<'_>) -> Result<()> {
        Ok(())
    }

    /// Returns a future that the training awaits after an epoch: work that `on_epoch_end` has begun and that completes
    /// asynchronously, as in a browser.
    fn after_epoch(&mut self) -> Option<Pin<Box<dyn Future<Output = Result<()>> + '_>>> {
        None
    }
}

macro_rules! pointers {
    ($($pointer:ty),*) => {$(
        impl<C: Callback + ?Sized> Callback for $pointer {
            fn batch_logs(&self) -> BatchLogs {
                (**self).batch_logs()
            }

            fn epoch_logs(&self) -> EpochLogs {
                (**self).epoch_logs()
            }

            pointers! {
                on_train_begin() on_train_end(logs: &Logs) on_epoch_begin(epoch: usize)
                on_epoch_end(epoch: usize, logs: &mut Logs) on_train_batch_begin(batch: usize)
                on_train_batch_end(batch: usize, logs: &Logs) on_test_begin() on_test_end(logs: &Logs)
                on_test_batch_begin(batch: usize) on_test_batch_end(batch: usize, logs: &Logs)
                on_predict_begin() on_predict_end() on_predict_batch_begin(batch: usize)
                on_predict_batch_end(batch: usize)
            }

            fn is_for_chief(&self) -> bool {
                (**self).is_for_chief()
            }

            fn wants_backup(&mut self, batches: Option<usize>) -> bool {
                (**self).wants_backup(batches)
            }

            fn back_up(&mut self, run: &mut Run<'_>) -> Result<()> {
                (**self).back_up(run)
            }

            fn after_epoch(&mut self) -> Option<Pin<Box<dyn Future<Output = Result<()>> + '_>>> {
                (**self).after_epoch()
            }
        }
    )*};
    ($($hook:ident($($name:ident: $type:ty),*))*) => {$(
        fn $hook(&mut self, $($name: $type,)* run: &mut Run<'_>) -> Result<()> {
            (**self).$hook($($name,)* run)
        }
    )*};
}
// A pointer to a callback is a callback: a program can pass `&mut stopper` to `fit` and inspect it afterwards.
pointers!(&mut C, Box<C>);

/// The training that a callback belongs to.
pub struct Run<'a> {
    model: &'a dyn AnyModel,
    compiled: Option<Arc<Compiled>>,
    epochs: usize,
    steps: Option<usize>,
    stopped: bool,
    batch_logs: Logs,
    pub(super) backup: Backup,
}

impl std::fmt::Debug for Run<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Run")
            .field("epochs", &self.epochs)
            .field("steps", &self.steps)
            .field("stopped", &self.stopped)
            .finish_non_exhaustive()
    }
}

/// The state at the beginning of an epoch, for a backup.
#[derive(Default)]
pub(super) struct Epoch {
    pub(super) number: usize,
    pub(super) rate: f32,
    /// The saved state of the validation's feed.
    pub(super) validation: Vec<u8>,
}

/// The state that a callback that saves backups shares with the loop.
#[derive(Default)]
pub(super) struct Backup {
    /// The current epoch.
    pub(super) epoch: Epoch,
    /// The position of the training, for `back_up`.
    pub(super) place: Vec<u8>,
    /// The position from which a callback resumes the training.
    pub(super) go_on: Option<Vec<u8>>,
    /// Whether a callback will request a backup between two batches.
    pub(super) wanted: bool,
    pub(super) interrupted: bool,
}

impl Run<'_> {
    /// In `back_up`: the position of the training, as bytes.
    pub(crate) fn place(&self) -> &[u8] {
        &self.backup.place
    }

    /// In `on_train_begin`: announces that `wants_backup` will request one between two batches.
    pub(crate) fn will_back_up(&mut self) {
        self.backup.wanted = true;
    }

    /// In `on_train_begin`: resumes the training from a [`Run::place`].
    pub(crate) fn go_on_from(&mut self, place: Vec<u8>) {
        self.backup.go_on = Some(place);
    }

    /// In `on_train_end`: whether a signal has ended the training early.
    pub(crate) fn interrupted(&self) -> bool {
        self.backup.interrupted
    }
}

impl<'a> Run<'a> {
    pub(super) fn new(model: &'a dyn AnyModel, epochs: usize, steps: Option<usize>) -> Self {
        let compiled = model.trainer().compiled_if_any();
        Run {
            model,
            compiled,
            epochs,
            steps,
            stopped: false,
            batch_logs: Logs::new(),
            backup: Backup::default(),
        }
    }

    /// Whether this process writes files and shows progress: the only one, or the first of several.
    pub fn is_chief(&self) -> bool {
        #[cfg(not(target_family = "wasm"))]
        if let Some(strategy) = self.model.trainer().strategy() {
            return strategy.is_chief();
        }
        true
    }

    /// Ends the training after this batch, or after this epoch if called outside a batch.
    pub fn stop_training(&mut self) {
        self.stopped = true;
    }

    /// Returns true if [`Run::stop_training`] was called.
    pub fn stopped(&self) -> bool {
        self.stopped
    }

    /// Returns the model, with its variables and parts.
    pub fn model(&self) -> &'a dyn Trackable {
        self.model
    }

    /// The model in Keras's JSON, if it is a Keras model and all its layers can be written.
    #[cfg(all(feature = "json", feature = "summary", not(target_family = "wasm")))]
    pub(crate) fn model_json(&self) -> Option<String> {
        self.model.json()
    }

    /// Calls the model on `inputs`, in inference mode.
    ///
    /// # Errors
    /// Same as [`Layer::call`](crate::keras::Layer::call).
    pub fn call(&self, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
        Ok(self.model.call_all(inputs, INFERENCE)?.0)
    }

    /// Returns the optimizer.
    ///
    /// # Errors
    /// [`Error::Data`](crate::Error::Data) if the model is not compiled, which `predict` does not require.
    pub fn optimizer(&self) -> Result<&dyn Optimizer> {
        match &self.compiled {
            Some(compiled) => Ok(compiled.optimizer()),
            None => Err(super::trainer::not_compiled("Run::optimizer")),
        }
    }

    /// Returns the optimizer's learning rate.
    ///
    /// # Errors
    /// Same as [`Run::optimizer`].
    pub fn learning_rate(&self) -> Result<f32> {
        Ok(self.optimizer()?.learning_rate())
    }

    /// Sets the learning rate of the steps from now on.
    ///
    /// # Errors
    /// The errors of [`Run::optimizer`], and [`Error::Check`](crate::Error::Check) if the optimizer has a schedule.
    pub fn set_learning_rate(&self, rate: f32) -> Result<()> {
        self.optimizer()?.set_learning_rate(rate)
    }

    /// Returns the number of epochs after which the training ends.
    pub fn epochs(&self) -> usize {
        self.epochs
    }

    /// Returns the number of batches in an epoch, if it is known.
    pub fn steps(&self) -> Option<usize> {
        self.steps
    }

    /// In `on_train_batch_end` and `on_test_batch_end`: returns the values of this batch alone, whereas the logs are means over
    /// the epoch so far. Metrics are not included.
    pub fn batch_logs(&self) -> &Logs {
        &self.batch_logs
    }

    pub(super) fn set_batch_logs(&mut self, logs: Logs) {
        self.batch_logs = logs;
    }

    pub(super) fn set_steps(&mut self, steps: Option<usize>) {
        self.steps = steps;
    }
}
