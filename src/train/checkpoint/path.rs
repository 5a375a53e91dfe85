//! [`CheckpointPath`]: the path of a checkpoint to restore.

use std::path::{Path, PathBuf};

/// The path of a checkpoint: its prefix, or the result of
/// [`latest_checkpoint`](crate::train::latest_checkpoint).
pub trait CheckpointPath {
    /// The prefix of the files, if there is a checkpoint.
    fn prefix(self) -> Option<PathBuf>;
}

macro_rules! paths {
    ($($path:ty),*) => {$(
        impl CheckpointPath for $path {
            fn prefix(self) -> Option<PathBuf> {
                Some(PathBuf::from(self))
            }
        }
    )*};
}
paths!(PathBuf, String, &str, &String);

impl CheckpointPath for &Path {
    fn prefix(self) -> Option<PathBuf> {
        Some(self.to_path_buf())
    }
}

impl CheckpointPath for &PathBuf {
    fn prefix(self) -> Option<PathBuf> {
        Some(self.clone())
    }
}

impl<P: CheckpointPath> CheckpointPath for Option<P> {
    fn prefix(self) -> Option<PathBuf> {
        self.and_then(P::prefix)
    }
}

/// `PREFIX-N`.
#[cfg(not(target_family = "wasm"))]
pub(super) fn numbered(prefix: &Path, number: u64) -> crate::error::Result<PathBuf> {
    if prefix.file_name().is_none() {
        let prefix = prefix.display();
        return Err(crate::error::Error::Checkpoint(crate::error::message!(
            "save: \"{prefix}\" does not end with a file name; append one, such as ckpt."
        )));
    }
    let mut path = prefix.as_os_str().to_os_string();
    path.push(format!("-{number}"));
    Ok(PathBuf::from(path))
}

/// The reason why there is no checkpoint at `prefix`, if the program probably meant another one.
#[cfg(not(target_family = "wasm"))]
pub(super) fn mistake(prefix: &Path) -> Option<String> {
    let shown = prefix.display();
    if prefix.is_dir() {
        return Some(format!(
            "restore: {shown} is a folder, not a checkpoint. Take the newest in it: restore(latest_checkpoint(folder)?)."
        ));
    }
    let name = prefix.to_str()?;
    let ending = name.rfind(".index").or_else(|| name.rfind(".data-"))?;
    Some(format!(
        "restore: {shown} is a file of a checkpoint. Name the checkpoint: {}.",
        &name[..ending]
    ))
}
