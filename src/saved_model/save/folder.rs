//! The folder of a SavedModel, which is replaced whole.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use crate::error::{Error, Result};
use crate::files::replace_folder;

/// What a SavedModel's folder may have.
const KNOWN: [&str; 6] = [
    "saved_model.pb",
    "fingerprint.pb",
    "variables",
    "assets",
    "assets.extra",
    "keras_metadata.pb",
];

/// Replaces a model's folder by what `write` writes, unless other files would be lost.
pub(super) fn replace(path: &Path, write: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    let none =
        || io::Error::new(io::ErrorKind::InvalidInput, "it has no name; pass that of a folder");
    path.file_name().ok_or_else(none).map_err(|error| Error::io(path, error))?;
    check_free(path).map_err(|error| Error::io(path, error))?;
    replace_folder(path, write)
}

/// Whether nothing but a model would be lost.
fn check_free(path: &Path) -> io::Result<()> {
    let entries = match fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    for entry in entries {
        let name = entry?.file_name();
        if !KNOWN.iter().any(|known| name == OsStr::new(known)) {
            let words = format!(
                "it has {}, which is no part of a SavedModel and would be lost; save into another folder",
                name.to_string_lossy()
            );
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, words));
        }
    }
    Ok(())
}

/// Writes a file of a new folder.
pub(super) fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let written = || -> io::Result<()> {
        let mut file = File::create_new(path)?;
        file.write_all(bytes)?;
        file.sync_all()
    };
    written().map_err(|error| Error::io(path, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_replaced_whole_or_not_at_all() {
        let base = std::env::temp_dir().join(format!("wgrad-saved-folder-{}", std::process::id()));
        let _ = fs::remove_dir_all(&base);
        let path = base.join("models").join("1");
        let put = |text: &'static str| {
            move |folder: &Path| write(&folder.join("saved_model.pb"), text.as_bytes())
        };
        let read = || fs::read_to_string(path.join("saved_model.pb")).unwrap();
        replace(&path, put("one")).unwrap();
        replace(&path, put("two")).unwrap();
        assert_eq!(read(), "two");
        let failed = replace(&path, |folder| {
            write(&folder.join("saved_model.pb"), b"three")?;
            Err(Error::Data("no".into()))
        });
        assert!(failed.is_err() && read() == "two");
        fs::write(path.join("notes.txt"), "mine").unwrap();
        let error = replace(&path, put("four")).unwrap_err().to_string();
        assert!(error.contains("it has notes.txt, which is no part of a SavedModel"), "{error}");
        assert_eq!(read(), "two");
        // A file is no folder.
        fs::write(base.join("models").join("2"), "mine").unwrap();
        assert!(replace(&base.join("models").join("2"), put("five")).is_err());
        let left: Vec<_> = fs::read_dir(base.join("models")).unwrap().collect();
        assert_eq!(left.len(), 2, "{left:?}");
        fs::remove_dir_all(&base).unwrap();
    }
}
