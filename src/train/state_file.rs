//! The file `checkpoint`, which lists the newest checkpoint of a folder, and all that are kept.
//!
//! It is TensorFlow's `CheckpointState` as a protocol buffer's text. Checkpoints in the file's own folder have paths
//! relative to it, so that the folder can be moved.

use std::path::{Component, Path, PathBuf};

use super::bundle::index_path;
use super::state_text;
pub use super::state_text::CheckpointState;
use crate::error::{Error, Result, message};
use crate::files;

/// The name of the file.
const NAME: &str = "checkpoint";

/// The newest checkpoint that was saved in a folder (`tf.train.latest_checkpoint`), for
/// [`load_checkpoint`](super::load_checkpoint).
///
/// None if no file names one, or if its files do not exist, as in TensorFlow.
///
/// ```
/// use wgrad::train;
/// let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/checkpoint/module");
/// let newest = train::latest_checkpoint(folder)?.expect("TensorFlow saved some");
/// assert!(newest.ends_with("ckpt-2"));
/// assert_eq!(train::latest_checkpoint("no-such-folder")?, None);
/// # Ok::<(), wgrad::Error>(())
/// ```
///
/// # Errors
/// [`Error::Data`] if the file `checkpoint` is damaged, [`Error::Io`] if it cannot be read. TensorFlow treats both as a
/// folder without checkpoints, so that training would start from the beginning.
pub fn latest_checkpoint(folder: impl AsRef<Path>) -> Result<Option<PathBuf>> {
    let state = get_checkpoint_state(folder)?;
    let newest = state.map(|state| state.model_checkpoint_path);
    Ok(newest.filter(|prefix| index_path(prefix).is_file()))
}

/// The contents of the file `checkpoint` of a folder (`tf.train.get_checkpoint_state`); none if there is no such file.
///
/// ```
/// use wgrad::train;
/// let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/checkpoint/module");
/// let state = train::get_checkpoint_state(folder)?.expect("TensorFlow wrote it");
/// assert_eq!(state.all_model_checkpoint_paths.len(), 2);
/// assert_eq!(state.model_checkpoint_path, state.all_model_checkpoint_paths[1]);
/// # Ok::<(), wgrad::Error>(())
/// ```
///
/// # Errors
/// As for [`latest_checkpoint`].
pub fn get_checkpoint_state(folder: impl AsRef<Path>) -> Result<Option<CheckpointState>> {
    let folder = folder.as_ref();
    let path = folder.join(NAME);
    let bytes = match files::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Error::io(path, error)),
    };
    CheckpointState::parse(&bytes, folder).map(Some)
}

/// Records the newest checkpoint of a folder and those that are kept, in one step that survives a power cut. All paths are as
/// in the program; they are written relative to the folder.
///
/// # Errors
/// [`Error::Io`] if writing fails, [`Error::Data`] if a checkpoint has the name of the file.
pub(crate) fn update_checkpoint_state(folder: &Path, state: &CheckpointState) -> Result<()> {
    use std::io::Write;
    let path = folder.join(NAME);
    let state = state.relative_to(folder).map_err(|error| Error::io(&path, error))?;
    if state.model_checkpoint_path.as_os_str() == NAME {
        return Err(Error::Data(message!(
            "A checkpoint cannot be saved as {}: the file that names the newest one has this name. Choose another.",
            path.display()
        )));
    }
    let text = state_text::write(&state);
    files::make_folder(folder)
        .and_then(|()| files::replace(&path, |file| file.write_all(&text)))
        .map_err(|error| Error::io(&path, error))
}

impl CheckpointState {
    /// The contents of a file `checkpoint` in `folder`.
    ///
    /// # Errors
    /// [`Error::Data`] if they are damaged.
    pub fn parse(bytes: &[u8], folder: impl AsRef<Path>) -> Result<Self> {
        let folder = folder.as_ref();
        let broken = |what: String| {
            let name = folder.join(NAME);
            Error::Data(message!(
                "{}: {what}. The file is damaged or of another program; name a checkpoint by its own path.",
                name.display()
            ))
        };
        let mut state = state_text::read(bytes).map_err(broken)?;
        if state.model_checkpoint_path.as_os_str().is_empty() {
            return Err(broken("it names no checkpoint".to_string()));
        }
        // An absolute path replaces the folder.
        let newest = std::iter::once(&mut state.model_checkpoint_path);
        for path in newest.chain(&mut state.all_model_checkpoint_paths) {
            *path = folder.join(&*path);
        }
        Ok(state)
    }

    pub(super) fn relative_to(&self, folder: &Path) -> std::io::Result<Self> {
        let folder = plain(folder)?;
        let all = self.all_model_checkpoint_paths.iter();
        Ok(CheckpointState {
            model_checkpoint_path: relative(&self.model_checkpoint_path, &folder)?,
            all_model_checkpoint_paths: all
                .map(|path| relative(path, &folder))
                .collect::<Result<_, _>>()?,
            ..self.clone()
        })
    }
}

/// The absolute path, without `.` and `..`; links are not followed.
fn plain(path: &Path) -> std::io::Result<PathBuf> {
    let mut plain = PathBuf::new();
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    for part in std::path::absolute(path)?.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(plain.pop()),
            part => plain.push(part),
        }
    }
    Ok(plain)
}

/// The relative path from `folder`, which is normalised, to `path`.
fn relative(path: &Path, folder: &Path) -> std::io::Result<PathBuf> {
    let path = plain(path)?;
    let shared = path.components().zip(folder.components()).take_while(|(a, b)| a == b).count();
    if shared == 0 {
        // Another drive.
        return Ok(path);
    }
    let up = folder.components().skip(shared).map(|_| Component::ParentDir);
    Ok(up.chain(path.components().skip(shared)).collect())
}
