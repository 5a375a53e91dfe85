//! [`CheckpointManager`]: saves checkpoints in a folder and deletes obsolete ones.
//!
//! `policy` decides which stay, `folder` records them, `background` saves while training continues.

mod background;
mod folder;
mod policy;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use background::Background;
use folder::Folder;
pub use policy::Best;
use policy::Rules;

use super::{Checkpoint, Snapshot};
use crate::error::{Error, Result, message};
use crate::runtime::Device;
use crate::support::options::options;

options! {
    /// The options of [`CheckpointManager::save_with`].
    #[derive(Debug, Clone, PartialEq)]
    pub struct CheckpointSaveOptions {
        /// The number in the checkpoint's name. By default it is the checkpoint's own number of saves, which increases in any
        /// case.
        checkpoint_number: Option<u64> as impl Into<Option<u64>> = None,
        /// Whether to save only after the interval has passed. If not, only a second checkpoint of the same step is skipped.
        check_interval: bool = true,
        /// The metric of the checkpoint: a loss or an accuracy, for [`CheckpointManager::best`].
        metric: Option<f64> as impl Into<Option<f64>> = None,
    }
}

/// Saves checkpoints in a folder, and deletes obsolete ones (`tf.train.CheckpointManager`).
///
/// Its list of checkpoints is stored in the folder, in TensorFlow's state file, so that the manager of the next process
/// continues with it. A checkpoint is deleted only once the file lists a newer one, whose files are complete. A folder must
/// have only one manager at a time: two would each delete checkpoints that the other does not know.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::keras::{Sequential, layers::Dense, optimizers::Adam};
/// use wgrad::train::{Checkpoint, CheckpointManager, latest_checkpoint};
/// # let folder = std::env::temp_dir().join(format!("wgrad-manager-{}", std::process::id()));
/// let (model, adam) = (Sequential::new().add(Dense::new(1)), Adam::new(1e-3));
/// model.build([1, 4])?;
/// let checkpoint = Checkpoint::new().with("model", &model).with("optimizer", &adam);
/// let manager = CheckpointManager::new(&checkpoint, &folder)?.max_to_keep(3);
/// manager.restore_or_initialize()?; // nothing is there yet
/// for _ in 0..5 {
///     // Train; and then:
///     manager.save()?;
/// }
/// assert_eq!(manager.checkpoints(), [3, 4, 5].map(|n| folder.join(format!("ckpt-{n}"))));
/// assert_eq!(latest_checkpoint(&folder)?, manager.latest_checkpoint());
/// # std::fs::remove_dir_all(folder).expect("it was written");
/// # Ok(())
/// # }
/// ```
pub struct CheckpointManager<'a> {
    checkpoint: &'a Checkpoint<'a>,
    directory: PathBuf,
    checkpoint_name: String,
    rules: Rules,
    step_counter: Option<Box<dyn Fn() -> Result<u64> + 'a>>,
    checkpoint_interval: Option<u64>,
    init_fn: Option<Box<dyn Fn() -> Result<()> + 'a>>,
    background: bool,
    fall_back: bool,
    folder: Arc<Mutex<Folder>>,
    last_checkpoint_step: Mutex<Option<u64>>,
    running: Mutex<Background>,
}

impl<'a> CheckpointManager<'a> {
    /// A manager of the checkpoints in `directory`, which the first save creates. By default it keeps all checkpoints.
    ///
    /// # Errors
    /// [`Error::Io`] if the folder cannot be read; [`Error::Data`] if its state file is corrupt.
    pub fn new(checkpoint: &'a Checkpoint<'a>, directory: impl AsRef<Path>) -> Result<Self> {
        let directory = directory.as_ref().to_path_buf();
        let folder = Folder::open(&directory)?;
        Ok(CheckpointManager {
            checkpoint,
            directory,
            checkpoint_name: "ckpt".to_string(),
            rules: Rules::default(),
            step_counter: None,
            checkpoint_interval: None,
            init_fn: None,
            background: false,
            fall_back: false,
            folder: Arc::new(Mutex::new(folder)),
            last_checkpoint_step: Mutex::new(None),
            running: Mutex::default(),
        })
    }

    /// Sets how many checkpoints to keep: the newest, or with [`best`](CheckpointManager::best) the best. Default: all.
    pub fn max_to_keep(mut self, max_to_keep: impl Into<Option<usize>>) -> Self {
        self.rules.max_to_keep = max_to_keep.into();
        self
    }

    /// For each interval of this many hours, preserves one of the obsolete checkpoints permanently. It is not in
    /// [`checkpoints`](CheckpointManager::checkpoints).
    pub fn keep_checkpoint_every_n_hours(mut self, hours: f64) -> Self {
        self.rules.keep_checkpoint_every_n_hours = Some(hours);
        self
    }

    /// Keeps the best checkpoints, by the [`CheckpointSaveOptions::metric`] of each, and the newest, from which a
    /// program continues. A checkpoint without a metric counts as the worst.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad::train::{Best, Checkpoint, CheckpointManager, CheckpointSaveOptions};
    /// # let folder = std::env::temp_dir().join(format!("wgrad-best-of-{}", std::process::id()));
    /// let weight = wgrad::Variable::new(&wgrad::constant(1.0)?);
    /// let checkpoint = Checkpoint::new().with("weight", &weight);
    /// let manager = CheckpointManager::new(&checkpoint, &folder)?.max_to_keep(1).best(Best::Min);
    /// for loss in [0.5, 0.25, 0.75] {
    ///     manager.save_with(CheckpointSaveOptions::new().metric(loss))?;
    /// }
    /// assert_eq!(manager.best_checkpoint(), Some(folder.join("ckpt-2")));
    /// assert_eq!(manager.latest_checkpoint(), Some(folder.join("ckpt-3")));
    /// # std::fs::remove_dir_all(folder).expect("it was written");
    /// # Ok(())
    /// # }
    /// ```
    pub fn best(mut self, best: Best) -> Self {
        self.rules.best = Some(best);
        self
    }

    /// Sets the name before the number; default: `ckpt`.
    pub fn checkpoint_name(mut self, name: &str) -> Self {
        self.checkpoint_name = name.to_string();
        self
    }

    /// Sets the function that returns the number of steps, such as `|| Ok(adam.iterations())`.
    pub fn step_counter(mut self, step_counter: impl Fn() -> Result<u64> + 'a) -> Self {
        self.step_counter = Some(Box::new(step_counter));
        self
    }

    /// Sets the minimum number of steps between two checkpoints; an earlier save does nothing.
    pub fn checkpoint_interval(mut self, steps: u64) -> Self {
        self.checkpoint_interval = Some(steps);
        self
    }

    /// Sets what [`restore_or_initialize`](CheckpointManager::restore_or_initialize) does if there is no checkpoint: for
    /// example, it may load pretrained weights.
    pub fn init_fn(mut self, init_fn: impl Fn() -> Result<()> + 'a) -> Self {
        self.init_fn = Some(Box::new(init_fn));
        self
    }

    /// Sets whether a thread reads the values and writes the files while training continues.
    ///
    /// A save then captures the current values and returns; they stay on the device until they are read, and are written to the
    /// files piece by piece. One save runs at a time: the next waits for it, so that at most one set of old values uses memory
    /// in addition to the current ones. The error of a save is returned by the next, which then saves nothing, or by
    /// [`sync`](CheckpointManager::sync); a manager that is dropped waits, and logs it.
    pub fn background(mut self, background: bool) -> Self {
        self.background = background;
        self
    }

    /// Sets whether [`restore_or_initialize`](CheckpointManager::restore_or_initialize) falls back to an older checkpoint if
    /// the newest cannot be read, with a warning in the log. By default it returns the error.
    pub fn fall_back(mut self, fall_back: bool) -> Self {
        self.fall_back = fall_back;
        self
    }

    /// The folder.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The newest complete checkpoint.
    pub fn latest_checkpoint(&self) -> Option<PathBuf> {
        self.folder().latest.clone()
    }

    /// The checkpoints that the manager may delete, oldest first.
    pub fn checkpoints(&self) -> Vec<PathBuf> {
        self.folder().active.kept.iter().map(|kept| kept.path.clone()).collect()
    }

    /// The best of [`checkpoints`](CheckpointManager::checkpoints), if one has a metric and [`best`](CheckpointManager::best)
    /// defines which is better.
    pub fn best_checkpoint(&self) -> Option<PathBuf> {
        let best = self.rules.best?;
        self.folder().active.best(best).map(|kept| kept.path.clone())
    }

    /// Saves the checkpoint under the next number. Returns its path; `None` if the interval has not passed.
    ///
    /// # Errors
    /// As [`Checkpoint::save`]; after an error all earlier checkpoints are unchanged.
    pub fn save(&self) -> Result<Option<PathBuf>> {
        self.save_with(CheckpointSaveOptions::new())
    }

    /// As [`CheckpointManager::save`], with options, such as a number other than the count of saves.
    ///
    /// # Errors
    /// As [`CheckpointManager::save`].
    pub fn save_with(&self, options: CheckpointSaveOptions) -> Result<Option<PathBuf>> {
        let mut running = self.running();
        if let Err(error) = running.wait() {
            // The step of the failed save has not been saved.
            *self.last_step() = None;
            return Err(error);
        }
        self.check()?;
        let step = self.step()?;
        if self.is_too_early(step, options.check_interval) {
            return Ok(None);
        }
        let before = self.checkpoint.save_counter();
        let counted = before.saturating_add(1);
        let number = options.checkpoint_number.unwrap_or(counted);
        let prefix = self.directory.join(format!("{}-{number}", self.checkpoint_name));
        // The count is one of the saved values.
        let snapshot = self.checkpoint.counted_snapshot(counted);
        let saved = snapshot.and_then(|snapshot| {
            self.write(&mut running, snapshot, prefix.clone(), options.metric)
        });
        if let Err(error) = saved {
            self.checkpoint.set_save_counter(before);
            return Err(error);
        }
        *self.last_step() = step;
        Ok(Some(prefix))
    }

    fn write(
        &self,
        running: &mut Background,
        snapshot: Snapshot,
        prefix: PathBuf,
        metric: Option<f64>,
    ) -> Result<()> {
        let (folder, rules) = (self.folder.clone(), self.rules);
        let work = move || {
            snapshot.write(&prefix)?;
            let mut folder = folder.lock().unwrap_or_else(PoisonError::into_inner);
            folder.record(&prefix, metric, &rules)
        };
        match self.background {
            true => {
                // Computed values need no flush when the thread reads them, which would otherwise occur in the middle of a
                // step.
                Device::current()?.flush()?;
                running.begin(Box::new(work))
            }
            false => work(),
        }
    }

    /// Restores the newest checkpoint and returns its path; without a checkpoint it calls `init_fn` and returns `None`.
    ///
    /// # Errors
    /// As [`Checkpoint::restore`]: a damaged checkpoint is an error that lists the older ones, unless
    /// [`fall_back`](CheckpointManager::fall_back) is set. The errors of `init_fn`, and of a running save.
    pub fn restore_or_initialize(&self) -> Result<Option<PathBuf>> {
        self.sync()?;
        self.check()?;
        let (latest, mut older) = {
            let folder = self.folder();
            let Some(latest) = folder.latest.clone() else {
                drop(folder);
                return self.init_fn.as_ref().map_or(Ok(()), |init_fn| init_fn()).map(|()| None);
            };
            let kept = folder.active.kept.iter().map(|kept| kept.path.clone());
            let older: Vec<PathBuf> = kept.filter(|path| *path != latest).collect();
            (latest, older)
        };
        let mut path = latest;
        loop {
            let error = match self.checkpoint.restore(&path) {
                Ok(_) => break,
                Err(error) => error,
            };
            // Another model, or a lost device, would reject the older ones as well.
            let damaged = matches!(error, Error::Data(_) | Error::Io(_));
            match older.pop() {
                Some(next) if damaged && self.fall_back => {
                    log::warn!(
                        "CheckpointManager: {} cannot be read, so {} is restored: {error}",
                        path.display(),
                        next.display()
                    );
                    path = next;
                }
                Some(next) if damaged => {
                    older.push(next);
                    return Err(cannot_be_read(&path, &error, &older));
                }
                _ => return Err(error),
            }
        }
        if self.checkpoint_interval.is_some() {
            *self.last_step() = self.step()?;
        }
        Ok(Some(path))
    }

    /// Waits until the running save has ended.
    ///
    /// # Errors
    /// Those of the save.
    pub fn sync(&self) -> Result<()> {
        let ended = self.running().wait();
        if ended.is_err() {
            *self.last_step() = None;
        }
        ended
    }

    /// Deletes all checkpoints, and the folder if it contains nothing else.
    pub(crate) fn clear(&self) -> Result<()> {
        self.sync()?;
        self.folder().clear()
    }

    fn check(&self) -> Result<()> {
        if self.rules.max_to_keep == Some(0) {
            return Err(Error::Data(
                "CheckpointManager: max_to_keep is 0; it must be at least 1. Leave it out to keep all.".into(),
            ));
        }
        let name = &self.checkpoint_name;
        if name.is_empty() || name.contains(['/', '\\', '\0']) {
            return Err(Error::Data(message!(
                "CheckpointManager: checkpoint_name is {name:?}; it must be the name of a file in the folder {}, such as ckpt.",
                self.directory.display()
            )));
        }
        if let (Some(interval), None) = (self.checkpoint_interval, &self.step_counter) {
            return Err(Error::Data(message!(
                "CheckpointManager: checkpoint_interval is {interval}, and nothing counts the steps. Add step_counter(|| \
                 Ok(optimizer.iterations()))."
            )));
        }
        Ok(())
    }

    /// The current step, if the interval uses it.
    fn step(&self) -> Result<Option<u64>> {
        match (&self.step_counter, self.checkpoint_interval) {
            (Some(step_counter), Some(_)) => step_counter().map(Some),
            _ => Ok(None),
        }
    }

    fn is_too_early(&self, step: Option<u64>, check_interval: bool) -> bool {
        let (Some(step), Some(interval)) = (step, self.checkpoint_interval) else { return false };
        let last = *self.last_step();
        last.is_some_and(|last| {
            step == last || check_interval && step < last.saturating_add(interval)
        })
    }

    fn folder(&self) -> MutexGuard<'_, Folder> {
        self.folder.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn running(&self) -> MutexGuard<'_, Background> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn last_step(&self) -> MutexGuard<'_, Option<u64>> {
        self.last_checkpoint_step.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The problem of the newest checkpoint, and the list of the others.
fn cannot_be_read(path: &Path, error: &Error, older: &[PathBuf]) -> Error {
    let names: Vec<String> = older.iter().rev().map(|path| folder::file_name(path)).collect();
    Error::Data(message!(
        "CheckpointManager: the newest checkpoint, {}, cannot be read: {error} Older ones are {}. Restore one of them by its \
         name, or let the manager do so: fall_back(true).",
        folder::file_name(path),
        names.join(", ")
    ))
}

impl std::fmt::Debug for CheckpointManager<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "CheckpointManager({})", self.directory.display())
    }
}
