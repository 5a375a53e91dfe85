//! Puts files of arrays on the disk and takes them from it, where there is one.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use crate::error::{Error, Result, message};
use crate::files;

/// Writes a file at `path`.
pub(crate) fn save(path: &Path, bytes: &[u8]) -> Result<()> {
    let write = |file: &mut File| {
        file.write_all(bytes)?;
        // The new bytes reach the disk before the old file goes, so that a power cut leaves one of the two.
        file.sync_all()
    };
    files::replace(path, write).map_err(|error| Error::io(path, error))
}

/// Passes the contents of the file at `path` to `take`, whose errors then name the file.
pub(crate) fn load(path: &Path, take: impl FnOnce(&[u8]) -> Result<()>) -> Result<()> {
    let bytes = files::read(path).map_err(|error| Error::io(path, error))?;
    take(&bytes).map_err(|error| match error {
        Error::Data(text) => Error::Data(message!("{}: {text}", path.display())),
        Error::Checkpoint(text) => Error::Checkpoint(message!("{}: {text}", path.display())),
        other => other,
    })
}
