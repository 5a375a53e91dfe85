//! [`BackupAndRestore`]: resumes a training that was interrupted.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{BatchLogs, Callback, Logs, Run, SaveFreq};
use crate::error::{Error, Result};
use crate::host_array::HostDType;
use crate::support::options::options;
use crate::trackable::{HostState, Parts, Trackable};
use crate::train::{Checkpoint, CheckpointManager, CheckpointSaveOptions};

options! {
    /// The options of [`BackupAndRestore`].
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct BackupOptions {
        /// When to save the training: after each epoch, or after so many batches, counted across epochs.
        save_freq: SaveFreq = SaveFreq::Epoch,
        /// Whether to also keep the second-latest backup, from which the training resumes if the latest cannot be read.
        double_checkpoint: bool = false,
        /// Whether to delete the backups when the training completes.
        delete_checkpoint: bool = true,
    }
}

/// Saves the complete state of a training while it runs, so that calling the same `fit` again after an interruption resumes at
/// the same epoch and batch, with the losses that the uninterrupted training would have had.
///
/// A backup contains the model, the optimizer, the random generators, the position in the data and its shuffled order, the
/// metrics and the mean loss of the current epoch. As in Keras, it does not contain the state of other callbacks, but it
/// contains the learning rate that they have set. A closure or an iterator must produce the batches before the backup again;
/// they are skipped. The history of a resumed training begins with the epoch in which it resumed.
///
/// Backups are TensorFlow checkpoints `ckpt-N` in a separate folder. A new backup replaces the previous one once it is
/// complete. With [`SaveFreq::Batches`], the device waits until the backup is written.
///
/// With several processes ([`distribute`](crate::distribute)), the chief writes the backups and all read them, so `backup_dir` is a
/// folder that all share. The training can resume with another number of processes.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::{Tensor, keras::{CompileOptions, FitOptions, Initializer, Model, Sequential, layers::Dense}};
/// use wgrad::keras::callbacks::{BackupAndRestore, BackupOptions, LambdaCallback};
/// # let folder = std::env::temp_dir().join(format!("wgrad-backup-{}", std::process::id()));
/// let (x, y) = (Tensor::ones([64, 2])?, Tensor::zeros([64, 1])?);
/// let fit = |fails: bool| {
///     let model = Sequential::new().add(Dense::new(1).kernel_initializer(Initializer::Ones));
///     model.compile("adam", "mse", CompileOptions::new())?;
///     let power_cut = LambdaCallback::new().on_epoch_begin(move |epoch, _| match (fails, epoch) {
///         (true, 3) => Err(wgrad::Error::Data("the power is gone".into())),
///         _ => Ok(()),
///     });
///     let backup = BackupAndRestore::new(&folder, BackupOptions::new());
///     model.fit((&x, &y), FitOptions::new().epochs(5).callback(backup).callback(power_cut))
/// };
/// assert!(fit(true).is_err());
/// let history = fit(false)?; // in another process, later
/// assert_eq!(history.epochs(), [3, 4]);
/// assert!(!folder.exists());
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct BackupAndRestore {
    backup_dir: PathBuf,
    options: BackupOptions,
    /// Batches since the last backup.
    since: usize,
    /// The number of the last backup.
    number: u64,
    due: bool,
}

impl BackupAndRestore {
    /// Creates a callback that stores the backups in `backup_dir`, a folder that contains nothing else.
    pub fn new(backup_dir: impl AsRef<Path>, options: BackupOptions) -> Self {
        let backup_dir = backup_dir.as_ref().to_path_buf();
        BackupAndRestore { backup_dir, options, since: 0, number: 0, due: false }
    }

    /// Calls `act` with the manager of this training's backups; `place` is the position of the training in the data.
    fn with_manager<R>(
        &self,
        run: &Run<'_>,
        place: &Bytes,
        act: impl FnOnce(&CheckpointManager<'_>) -> Result<R>,
    ) -> Result<R> {
        let (model, optimizer) = (run.model(), run.optimizer()?);
        let checkpoint = Checkpoint::new().with("model", &model).with("optimizer", &optimizer);
        let checkpoint = checkpoint.with("training", place);
        let most = if self.options.double_checkpoint { 2 } else { 1 };
        let manager = CheckpointManager::new(&checkpoint, &self.backup_dir)?;
        act(&manager.max_to_keep(most).fall_back(self.options.double_checkpoint))
    }
}

impl Callback for BackupAndRestore {
    fn batch_logs(&self) -> BatchLogs {
        BatchLogs::Unused
    }

    fn on_train_begin(&mut self, run: &mut Run<'_>) -> Result<()> {
        if let SaveFreq::Batches(every) = self.options.save_freq {
            if every == 0 {
                return Err(Error::Data(
                    "BackupAndRestore: save_freq is 0 batches; it must be at least 1.".into(),
                ));
            }
            run.will_back_up();
        }
        let place = Bytes::default();
        let restored = self.with_manager(run, &place, |manager| manager.restore_or_initialize())?;
        (self.since, self.number) = (0, restored.as_deref().map_or(0, number));
        if restored.is_some() {
            run.go_on_from(std::mem::take(&mut *place.lock()));
        }
        Ok(())
    }

    fn wants_backup(&mut self, batches: Option<usize>) -> bool {
        self.due = match (self.options.save_freq, batches) {
            (SaveFreq::Epoch, None) => true,
            (SaveFreq::Batches(every), Some(_)) => {
                self.since += 1;
                self.since >= every
            }
            _ => false,
        };
        self.due
    }

    fn back_up(&mut self, run: &mut Run<'_>) -> Result<()> {
        if !std::mem::take(&mut self.due) {
            return Ok(());
        }
        let next = self.number.saturating_add(1);
        if !run.is_chief() {
            (self.since, self.number) = (0, next);
            return Ok(());
        }
        let place = Bytes(Mutex::new(run.place().to_vec()));
        let options = CheckpointSaveOptions::new().checkpoint_number(next);
        self.with_manager(run, &place, |manager| manager.save_with(options))?;
        (self.since, self.number) = (0, next);
        Ok(())
    }

    fn on_train_end(&mut self, _: &Logs, run: &mut Run<'_>) -> Result<()> {
        if !self.options.delete_checkpoint || run.interrupted() || !run.is_chief() {
            return Ok(());
        }
        self.with_manager(run, &Bytes::default(), |manager| manager.clear())
    }
}

/// The number of the checkpoint at `path`.
fn number(path: &Path) -> u64 {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name.rsplit_once('-').and_then(|(_, number)| number.parse().ok()).unwrap_or(0)
}

/// A checkpoint part that consists of bytes.
#[derive(Default)]
struct Bytes(Mutex<Vec<u8>>);

impl Bytes {
    fn lock(&self) -> MutexGuard<'_, Vec<u8>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Trackable for Bytes {
    fn track(&self, parts: &mut Parts<'_>) {
        parts.state_here(self);
    }
}

impl HostState for Bytes {
    fn form(&self) -> (HostDType, Option<&'static [usize]>) {
        (HostDType::U8, None)
    }

    fn get(&self) -> Result<Vec<u8>> {
        Ok(self.lock().clone())
    }

    fn set(&self, bytes: &[u8]) -> Result<()> {
        *self.lock() = bytes.to_vec();
        Ok(())
    }
}
