//! [`ModelCheckpoint`]: saves the model while it is trained.

use std::path::{Path, PathBuf};

use super::monitor::{Mode, Monitor};
use super::pattern;
use super::{BatchLogs, Callback, Logs, Run};
use crate::error::{Error, Result, message};
#[cfg(feature = "safetensors")]
use crate::trackable::Trackable;
use crate::train::Checkpoint;

/// When a [`ModelCheckpoint`] saves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum SaveFreq {
    /// After each epoch.
    #[default]
    Epoch,
    /// After so many batches, counted across epochs.
    Batches(usize),
}

/// Saves the model after each epoch, or only if it is the best so far.
///
/// The callback writes a [`Checkpoint`] of the parts `model` and `optimizer`, from which a training can resume, or of `model`
/// alone with [`save_weights_only`](ModelCheckpoint::save_weights_only). [`latest_checkpoint`](crate::train::latest_checkpoint)
/// finds it. For weights alone and a name that ends in `.safetensors`, the callback writes the file of
/// [`save_weights`](crate::Trackable::save_weights). A checkpoint of the same name is replaced once the new one is complete; if
/// writing fails, as on a full disk, the old one remains and `fit` returns the error.
///
/// The name may contain `{epoch}`, counted from 1, and the names of the logs, with Python's format specifiers:
/// `{epoch:02d}-{val_loss:.2f}`.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::{Tensor, train::Checkpoint, keras::{CompileOptions, FitOptions, Model, Sequential, layers::Dense}};
/// use wgrad::keras::callbacks::ModelCheckpoint;
/// # let folder = std::env::temp_dir().join(format!("wgrad-best-{}", std::process::id()));
/// let model = Sequential::new().add(Dense::new(1));
/// model.compile("adam", "mse", CompileOptions::new())?;
/// let best = ModelCheckpoint::new(folder.join("epoch-{epoch:02d}"));
/// let (x, y) = (Tensor::ones([64, 2])?, Tensor::zeros([64, 1])?);
/// model.fit((&x, &y), FitOptions::new().epochs(2).callback(best))?;
///
/// let optimizer = model.trainer().optimizer()?;
/// let path = folder.join("epoch-02");
/// Checkpoint::new().with("model", &model).with("optimizer", &optimizer).read(path)?.assert_consumed()?;
/// # std::fs::remove_dir_all(folder).expect("it was written");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct ModelCheckpoint {
    path: String,
    monitor: Monitor,
    /// The value that the first model has to beat.
    threshold: Option<f64>,
    save_best_only: bool,
    save_weights_only: bool,
    save_freq: SaveFreq,
    verbose: bool,
    epoch: usize,
    /// Batches since the last file.
    since: usize,
    saved: Option<PathBuf>,
}

impl ModelCheckpoint {
    /// Creates a callback that saves full checkpoints after each epoch, at a path that may contain `{epoch}` and names of the
    /// logs.
    pub fn new(path: impl AsRef<Path>) -> Self {
        ModelCheckpoint {
            path: path.as_ref().to_string_lossy().into_owned(),
            monitor: Monitor::new("ModelCheckpoint", "val_loss"),
            threshold: None,
            save_best_only: false,
            save_weights_only: false,
            save_freq: SaveFreq::Epoch,
            verbose: false,
            epoch: 0,
            since: 0,
            saved: None,
        }
    }

    /// Sets the name of the value to monitor. Default: `val_loss`.
    pub fn monitor(mut self, name: &str) -> Self {
        self.monitor.name = name.to_string();
        self
    }

    /// Sets whether a lower or a higher value is better.
    pub fn mode(mut self, mode: Mode) -> Self {
        self.monitor.mode = mode;
        self
    }

    /// Sets whether to save a model only if it is better than all before.
    pub fn save_best_only(mut self, save_best_only: bool) -> Self {
        self.save_best_only = save_best_only;
        self
    }

    /// Sets whether to save only the model's weights.
    pub fn save_weights_only(mut self, save_weights_only: bool) -> Self {
        self.save_weights_only = save_weights_only;
        self
    }

    /// Sets when to save the model. With [`SaveFreq::Batches`], the device waits at each batch if only the best model is saved
    /// or if the path contains names of the logs.
    pub fn save_freq(mut self, save_freq: SaveFreq) -> Self {
        self.save_freq = save_freq;
        self
    }

    /// Sets the value that the first model has to beat.
    pub fn initial_value_threshold(mut self, threshold: f64) -> Self {
        self.threshold = Some(threshold);
        self.monitor.best = Some(threshold);
        self
    }

    /// Sets whether the callback reports its actions on standard error.
    pub fn verbose(mut self, verbose: bool) -> Self {
        self.verbose = verbose;
        self
    }

    /// Returns the path of the last file written.
    pub fn saved(&self) -> Option<&Path> {
        self.saved.as_deref()
    }

    fn announce(&self, epoch: usize, what: &str) {
        if self.verbose {
            super::say(&format!("\nEpoch {}: {what}\n", epoch + 1));
        }
    }

    fn is_wanted(&mut self, epoch: usize, logs: &Logs, path: &Path) -> Result<bool> {
        let path = path.display();
        let value = match self.save_best_only {
            true => self.monitor.value(logs),
            false => None,
        };
        let Some(value) = value else {
            self.announce(epoch, &format!("saving model to {path}"));
            return Ok(true);
        };
        let best = self.monitor.best.map_or("None".to_string(), |best| format!("{best:.5}"));
        let name = &self.monitor.name;
        if !self.monitor.better(value, self.monitor.best)? {
            self.announce(epoch, &format!("{name} did not improve from {best}"));
            return Ok(false);
        }
        let what = format!("{name} improved from {best} to {value:.5}, saving model to {path}");
        self.announce(epoch, &what);
        Ok(true)
    }

    fn save(
        &mut self,
        epoch: usize,
        batch: Option<usize>,
        logs: &Logs,
        run: &Run<'_>,
    ) -> Result<()> {
        let path = PathBuf::from(pattern::fill(&self.path, epoch, batch, logs)?);
        if !self.is_wanted(epoch, logs, &path)? {
            return Ok(());
        }
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            crate::files::make_folder(folder).map_err(|error| Error::io(folder, error))?;
        }
        let model = run.model();
        let safetensors = path.extension().is_some_and(|ending| ending == "safetensors");
        match (self.save_weights_only, safetensors) {
            #[cfg(feature = "safetensors")]
            (true, true) => (&model).save_weights(&path)?,
            (false, true) => {
                return Err(Error::Data(message!(
                    "ModelCheckpoint: {} is the name of a file of weights, and the optimizer is to be saved, too. Set \
                     save_weights_only(true), or leave out the ending .safetensors.",
                    path.display()
                )));
            }
            (true, _) => drop(Checkpoint::new().with("model", &model).write_newest(&path)?),
            (false, _) => {
                let optimizer = run.optimizer()?;
                let checkpoint = Checkpoint::new().with("model", &model);
                checkpoint.with("optimizer", &optimizer).write_newest(&path)?;
            }
        }
        // Only a model that was saved can be the best.
        if let (true, Some(value)) = (self.save_best_only, logs.get(&self.monitor.name)) {
            self.monitor.best = Some(value);
        }
        self.saved = Some(path);
        Ok(())
    }
}

impl Callback for ModelCheckpoint {
    fn is_for_chief(&self) -> bool {
        true
    }

    fn batch_logs(&self) -> BatchLogs {
        // The file must contain the weights of the batch whose logs are in its name.
        let needs_logs = self.save_best_only || pattern::needs_logs(&self.path);
        match (self.save_freq, needs_logs) {
            (SaveFreq::Batches(_), true) => BatchLogs::Now,
            _ => BatchLogs::Unused,
        }
    }

    fn on_epoch_begin(&mut self, epoch: usize, _: &mut Run<'_>) -> Result<()> {
        self.epoch = epoch;
        Ok(())
    }

    fn on_train_batch_end(&mut self, batch: usize, logs: &Logs, run: &mut Run<'_>) -> Result<()> {
        let SaveFreq::Batches(every) = self.save_freq else { return Ok(()) };
        self.since += 1;
        if self.since < every {
            return Ok(());
        }
        self.since = 0;
        self.save(self.epoch, Some(batch), logs, run)
    }

    fn on_epoch_end(&mut self, epoch: usize, logs: &mut Logs, run: &mut Run<'_>) -> Result<()> {
        match self.save_freq {
            SaveFreq::Epoch => self.save(epoch, None, logs, run),
            SaveFreq::Batches(_) => Ok(()),
        }
    }
}
