//! [`Callback`]: what a program does while `fit` runs, and [`Run`], by which it acts on the training.

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

/// When a callback hears of the end of a batch, and with what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[non_exhaustive]
pub enum BatchLogs {
    /// At once, with empty logs. Costs nothing.
    Unused,
    /// With the logs, once they have been read: in order, and up to some 100 batches behind the training. A batch costs the
    /// reading of a few scalars, for which nobody waits.
    #[default]
    Behind,
    /// With the logs, before the next batch begins. The device idles at each batch, until the host has read them.
    Now,
}

/// When a callback hears of the end of an epoch or of a validation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[non_exhaustive]
pub enum EpochLogs {
    /// Once the numbers have been read, in order. The training goes on meanwhile, so that the model may be some epochs ahead:
    /// for a callback that only writes the numbers down, or that hears of no such end.
    Behind,
    /// Before the next epoch begins. The device idles at the end of each epoch until the host has read the numbers.
    #[default]
    Now,
}

/// Hears of the beginnings and ends of epochs and batches. All methods do nothing unless a callback writes them.
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
    /// When the ends of batches are heard of.
    fn batch_logs(&self) -> BatchLogs {
        BatchLogs::default()
    }

    /// When the ends of epochs and validations are heard of. If nobody needs them at once and no bar is drawn, `fit` does not wait
    /// for the device between two epochs.
    fn epoch_logs(&self) -> EpochLogs {
        EpochLogs::default()
    }

    /// Before the first epoch.
    ///
    /// # Errors
    /// Ends the training, like the errors of all methods.
    fn on_train_begin(&mut self, run: &mut Run<'_>) -> Result<()> {
        Ok(())
    }

    /// After the last epoch, with its logs.
    ///
    /// # Errors
    /// The callback's own.
    fn on_train_end(&mut self, logs: &Logs, run: &mut Run<'_>) -> Result<()> {
        Ok(())
    }

    /// Before an epoch, counted from 0.
    ///
    /// # Errors
    /// The callback's own.
    fn on_epoch_begin(&mut self, epoch: usize, run: &mut Run<'_>) -> Result<()> {
        Ok(())
    }

    /// After an epoch and its validation. The callbacks that follow, and the history, see what this one sets in `logs`.
    ///
    /// # Errors
    /// The callback's own.
    fn on_epoch_end(&mut self, epoch: usize, logs: &mut Logs, run: &mut Run<'_>) -> Result<()> {
        Ok(())
    }

    /// Before a batch, counted from 0 in each epoch.
    ///
    /// # Errors
    /// The callback's own.
    fn on_train_batch_begin(&mut self, batch: usize, run: &mut Run<'_>) -> Result<()> {
        Ok(())
    }

    /// After a batch: [`BatchLogs`] says when.
    ///
    /// # Errors
    /// The callback's own.
    fn on_train_batch_end(&mut self, batch: usize, logs: &Logs, run: &mut Run<'_>) -> Result<()> {
        Ok(())
    }

    /// Before a validation or an evaluation.
    ///
    /// # Errors
    /// The callback's own.
    fn on_test_begin(&mut self, run: &mut Run<'_>) -> Result<()> {
        Ok(())
    }

    /// After a validation or an evaluation.
    ///
    /// # Errors
    /// The callback's own.
    fn on_test_end(&mut self, logs: &Logs, run: &mut Run<'_>) -> Result<()> {
        Ok(())
    }

    /// Before a batch that is measured.
    ///
    /// # Errors
    /// The callback's own.
    fn on_test_batch_begin(&mut self, batch: usize, run: &mut Run<'_>) -> Result<()> {
        Ok(())
    }

    /// After a batch that was measured: [`BatchLogs`] says when.
    ///
    /// # Errors
    /// The callback's own.
    fn on_test_batch_end(&mut self, batch: usize, logs: &Logs, run: &mut Run<'_>) -> Result<()> {
        Ok(())
    }

    /// Before a prediction.
    ///
    /// # Errors
    /// The callback's own.
    fn on_predict_begin(&mut self, run: &mut Run<'_>) -> Result<()> {
        Ok(())
    }

    /// After a prediction.
    ///
    /// # Errors
    /// The callback's own.
    fn on_predict_end(&mut self, run: &mut Run<'_>) -> Result<()> {
        Ok(())
    }

    /// Before a batch that is predicted.
    ///
    /// # Errors
    /// The callback's own.
    fn on_predict_batch_begin(&mut self, batch: usize, run: &mut Run<'_>) -> Result<()> {
        Ok(())
    }

    /// After the ops of a batch that is predicted were called.
    ///
    /// # Errors
    /// The callback's own.
    fn on_predict_batch_end(&mut self, batch: usize, run: &mut Run<'_>) -> Result<()> {
        Ok(())
    }

    /// Whether the callback wants to save the whole training, behind so many batches of the epoch, or with `None` behind the epoch.
    /// The training then reads what it has computed and calls `back_up`.
    #[cfg(all(feature = "checkpoint", not(target_family = "wasm")))]
    #[doc(hidden)]
    fn wants_backup(&mut self, batches: Option<usize>) -> bool {
        false
    }

    #[cfg(all(feature = "checkpoint", not(target_family = "wasm")))]
    #[doc(hidden)]
    fn back_up(&mut self, run: &mut Run<'_>) -> Result<()> {
        Ok(())
    }

    /// What the training waits for after an epoch: work that `on_epoch_end` has begun and that only a future completes,
    /// as in a browser.
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

            #[cfg(all(feature = "checkpoint", not(target_family = "wasm")))]
            fn wants_backup(&mut self, batches: Option<usize>) -> bool {
                (**self).wants_backup(batches)
            }

            #[cfg(all(feature = "checkpoint", not(target_family = "wasm")))]
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
// A pointer to a callback is a callback: `fit` takes `&mut stopper`, and the program looks at it afterwards.
pointers!(&mut C, Box<C>);

/// The training that a callback belongs to.
pub struct Run<'a> {
    model: &'a dyn AnyModel,
    compiled: Option<Arc<Compiled>>,
    epochs: usize,
    steps: Option<usize>,
    stopped: bool,
    batch_logs: Logs,
    #[cfg(all(feature = "checkpoint", not(target_family = "wasm")))]
    pub(super) backup: Backup,
}

/// What is known of an epoch when it begins, and belongs to a backup.
#[cfg(all(feature = "checkpoint", not(target_family = "wasm")))]
#[derive(Default)]
pub(super) struct Epoch {
    pub(super) number: usize,
    pub(super) rate: f32,
    /// What the validation's feed has written.
    pub(super) validation: Vec<u8>,
}

/// What a callback that saves whole trainings shares with the loop.
#[cfg(all(feature = "checkpoint", not(target_family = "wasm")))]
#[derive(Default)]
pub(super) struct Backup {
    /// The epoch that runs.
    pub(super) epoch: Epoch,
    /// Where the training stands, for `back_up`.
    pub(super) place: Vec<u8>,
    /// Where a callback wants it to go on.
    pub(super) go_on: Option<Vec<u8>>,
    /// Whether a callback will want to save between two batches.
    pub(super) wanted: bool,
    pub(super) interrupted: bool,
}

#[cfg(all(feature = "checkpoint", not(target_family = "wasm")))]
impl Run<'_> {
    /// In `back_up`: where the training stands, as bytes.
    pub(crate) fn place(&self) -> &[u8] {
        &self.backup.place
    }

    /// In `on_train_begin`: says that `wants_backup` will want one between two batches.
    pub(crate) fn will_back_up(&mut self) {
        self.backup.wanted = true;
    }

    /// In `on_train_begin`: lets the training go on from a [`Run::place`].
    pub(crate) fn go_on_from(&mut self, place: Vec<u8>) {
        self.backup.go_on = Some(place);
    }

    /// In `on_train_end`: whether a signal has ended the training before its end.
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
            #[cfg(all(feature = "checkpoint", not(target_family = "wasm")))]
            backup: Backup::default(),
        }
    }

    /// Ends the training after this batch, or after this epoch, if the call comes between two batches.
    pub fn stop_training(&mut self) {
        self.stopped = true;
    }

    /// True if somebody has called [`Run::stop_training`].
    pub fn stopped(&self) -> bool {
        self.stopped
    }

    /// The model's variables and parts.
    pub fn model(&self) -> &'a dyn Trackable {
        self.model
    }

    /// The model in Keras's JSON, if it is one of Keras's kinds and all its layers can be written.
    #[cfg(all(feature = "json", feature = "summary", not(target_family = "wasm")))]
    pub(crate) fn model_json(&self) -> Option<String> {
        self.model.json()
    }

    /// The model's results for `inputs`, outside training.
    ///
    /// # Errors
    /// As [`Layer::call`](crate::keras::Layer::call).
    pub fn call(&self, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
        Ok(self.model.call_all(inputs, INFERENCE)?.0)
    }

    /// The optimizer.
    ///
    /// # Errors
    /// [`Error::Data`](crate::Error::Data) if the model is not compiled, as it need not be for `predict`.
    pub fn optimizer(&self) -> Result<&dyn Optimizer> {
        match &self.compiled {
            Some(compiled) => Ok(compiled.optimizer()),
            None => Err(super::trainer::not_compiled("Run::optimizer")),
        }
    }

    /// The optimizer's learning rate.
    ///
    /// # Errors
    /// As [`Run::optimizer`].
    pub fn learning_rate(&self) -> Result<f32> {
        Ok(self.optimizer()?.learning_rate())
    }

    /// Sets the learning rate of the steps from now on.
    ///
    /// # Errors
    /// As [`Run::optimizer`], and [`Error::Check`](crate::Error::Check) if the optimizer has a schedule.
    pub fn set_learning_rate(&self, rate: f32) -> Result<()> {
        self.optimizer()?.set_learning_rate(rate)
    }

    /// The number of epochs after which the training ends.
    pub fn epochs(&self) -> usize {
        self.epochs
    }

    /// The number of batches in an epoch, if it is known.
    pub fn steps(&self) -> Option<usize> {
        self.steps
    }

    /// In `on_train_batch_end` and `on_test_batch_end`: the numbers of this batch alone, where the logs are means over the
    /// epoch so far. Metrics have none.
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
