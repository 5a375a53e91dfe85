//! [`CheckpointPath`]: how a program names the checkpoint that it restores.

use std::path::{Path, PathBuf};

/// What names a checkpoint: its prefix, or what [`latest_checkpoint`](crate::train::latest_checkpoint) found.
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
pub(super) fn numbered(prefix: &Path, number: u64) -> PathBuf {
    let mut path = prefix.as_os_str().to_os_string();
    path.push(format!("-{number}"));
    PathBuf::from(path)
}
