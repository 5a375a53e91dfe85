//! Puts files of arrays on the disk and takes them from it, where there is one.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use crate::error::{Error, Result, message};
use crate::files;

/// Writes a file at `path`.
pub(crate) fn save(path: &Path, bytes: &[u8]) -> Result<()> {
    // A power cut leaves the old file or the new one.
    let write = |file: &mut File| file.write_all(bytes);
    files::replace_durably(path, write).map_err(|error| Error::io(path, error))
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
