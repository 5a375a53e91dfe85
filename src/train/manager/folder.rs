//! A manager's folder: the state file with the list of its checkpoints, and the metrics by which the best are selected.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::policy::{Active, Kept, Rules};
use crate::error::{Error, Result, message};
use crate::files;
use crate::train::bundle;
use crate::train::state_file::{CheckpointState, get_checkpoint_state, update_checkpoint_state};

/// The file of the metrics, next to TensorFlow's state file, which has no field for them.
const METRICS: &str = "checkpoint_metrics";

/// TensorFlow's state file.
const STATE: &str = "checkpoint";

/// The contents of the folder's files, in memory.
pub(super) struct Folder {
    pub(super) directory: PathBuf,
    pub(super) active: Active,
    pub(super) latest: Option<PathBuf>,
}

/// Seconds since 1970.
pub(super) fn now() -> f64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    now.map_or(0.0, |since| since.as_secs_f64())
}

impl Folder {
    /// The state that earlier managers have left in `directory`.
    pub(super) fn open(directory: &Path) -> Result<Self> {
        let (directory, now) = (directory.to_path_buf(), now());
        let Some(state) = get_checkpoint_state(&directory)? else {
            return Ok(Folder { directory, active: Active::new(now), latest: None });
        };
        let latest = state.model_checkpoint_path;
        let last_preserved = state.last_preserved_timestamp.unwrap_or(0.0);
        let mut timestamps = state.all_model_checkpoint_timestamps.into_iter();
        let metrics = read_metrics(&directory)?;
        let kept = state.all_model_checkpoint_paths.into_iter().map(|path| Kept {
            timestamp: timestamps.next().unwrap_or(last_preserved),
            metric: metrics.iter().find(|(name, _)| *name == file_name(&path)).map(|(_, m)| *m),
            path,
        });
        // A process that was killed while it deleted a checkpoint has left its name.
        let there = |kept: &Kept| kept.path == latest || bundle::index_path(&kept.path).exists();
        let active = Active::recovered(kept.filter(there).collect(), last_preserved, now);
        Ok(Folder { directory, active, latest: Some(latest) })
    }

    /// Records the newest checkpoint, whose files are complete, and then deletes obsolete ones. If it cannot be recorded,
    /// nothing changes.
    pub(super) fn record(&mut self, path: &Path, metric: Option<f64>, rules: &Rules) -> Result<()> {
        let before = (self.active.clone(), self.latest.clone());
        self.active.add(path, now(), metric);
        self.latest = Some(path.to_path_buf());
        // The state lists the new one before an old one is deleted, and all old ones until they are deleted.
        if let Err(error) = self.write() {
            (self.active, self.latest) = before;
            if self.active.kept.iter().all(|kept| kept.path != path) {
                // No file lists it, and the disk may be full.
                let _ = bundle::remove(path);
            }
            return Err(error);
        }
        let mut remaining = self.active.clone();
        let surplus = remaining.sweep(rules);
        let changed = remaining.kept.len() != self.active.kept.len();
        for kept in surplus {
            if let Err(error) = bundle::remove(&kept.path) {
                log::warn!("CheckpointManager: an old checkpoint could not be deleted: {error}");
                remaining.kept.insert(0, kept);
            }
        }
        self.active = remaining;
        if changed { self.write() } else { Ok(()) }
    }

    /// Deletes all checkpoints, and the folder if it contains nothing else.
    pub(super) fn clear(&mut self) -> Result<()> {
        // First of all, no state file may refer to them.
        for name in [STATE, METRICS] {
            let path = self.directory.join(name);
            match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(Error::io(&path, error));
                }
                _ => {}
            }
        }
        self.latest = None;
        if self.directory.is_dir() {
            // In whatever order the disk writes: a state never lists a deleted checkpoint.
            files::sync_folder(&self.directory)
                .map_err(|error| Error::io(&self.directory, error))?;
        }
        for kept in std::mem::take(&mut self.active.kept) {
            bundle::remove(&kept.path)?;
        }
        // Files of others stay.
        let _ = fs::remove_dir(&self.directory);
        Ok(())
    }

    fn write(&self) -> Result<()> {
        let Some(latest) = &self.latest else { return Ok(()) };
        let kept = &self.active.kept;
        if kept.iter().any(|kept| kept.metric.is_some()) {
            write_metrics(&self.directory, kept)?;
        }
        update_checkpoint_state(
            &self.directory,
            &CheckpointState {
                model_checkpoint_path: latest.clone(),
                all_model_checkpoint_paths: kept.iter().map(|kept| kept.path.clone()).collect(),
                all_model_checkpoint_timestamps: kept.iter().map(|kept| kept.timestamp).collect(),
                last_preserved_timestamp: Some(self.active.last_preserved),
            },
        )
    }
}

/// The last part of a checkpoint's path.
pub(super) fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// The metrics by the names of checkpoints.
fn read_metrics(directory: &Path) -> Result<Vec<(String, f64)>> {
    let path = directory.join(METRICS);
    let text = match files::read(&path) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(Error::io(&path, error)),
    };
    let number = |(at, line): (usize, &str)| {
        let found = line.rsplit_once('\t');
        let found = found.and_then(|(name, number)| Some((name.to_string(), number.parse().ok()?)));
        found.ok_or_else(|| {
            Error::Data(message!(
                "{}: line {} is {line:?}, not a name and a number separated by a tab. The file is damaged; delete \
                 it, and all checkpoints that it names count as the worst.",
                path.display(),
                at + 1
            ))
        })
    };
    text.lines().enumerate().map(number).collect()
}

fn write_metrics(directory: &Path, kept: &[Kept]) -> Result<()> {
    let path = directory.join(METRICS);
    let lines = kept.iter().filter_map(|kept| {
        kept.metric.map(|metric| format!("{}\t{metric:?}\n", file_name(&kept.path)))
    });
    let text: String = lines.collect();
    files::replace(&path, |file| file.write_all(text.as_bytes()))
        .map_err(|error| Error::io(&path, error))
}
