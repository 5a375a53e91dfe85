//! Replaces a model's folder in one step.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Error, Result};
use crate::files::{make_folder, sync_folder};

/// What a SavedModel's folder may have.
const KNOWN: [&str; 6] = [
    "saved_model.pb",
    "fingerprint.pb",
    "variables",
    "assets",
    "assets.extra",
    "keras_metadata.pb",
];

/// Writes a folder next to `path` and gives it the name once it is complete. A model that was there is removed after that.
pub(super) fn replace(path: &Path, write: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let at = |error: io::Error| Error::io(path, error);
    let name = path.file_name().ok_or_else(|| {
        at(io::Error::new(io::ErrorKind::InvalidInput, "it has no name; pass the path of a folder"))
    })?;
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    check_free(path).map_err(at)?;
    make_folder(parent).map_err(at)?;
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let temporary = |word: &str| -> PathBuf {
        let mut own = std::ffi::OsString::from(".");
        own.push(name);
        own.push(format!(".{word}-{}-{number}", std::process::id()));
        parent.join(own)
    };
    let new = Remove(temporary("new"));
    fs::create_dir(&new.0).map_err(at)?;
    write(&new.0)?;
    sync_folder(&new.0).map_err(at)?;
    if !path.exists() {
        fs::rename(&new.0, path).map_err(at)?;
    } else {
        // A folder with files cannot be replaced by a rename; between these two, the model has another name.
        let old = temporary("old");
        fs::rename(path, &old).map_err(at)?;
        if let Err(error) = fs::rename(&new.0, path) {
            let _ = fs::rename(&old, path);
            return Err(at(error));
        }
        let _ = fs::remove_dir_all(&old);
    }
    std::mem::forget(new);
    sync_folder(parent).map_err(at)
}

/// Removes a folder that has not become the model.
struct Remove(PathBuf);

impl Drop for Remove {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
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
        let left: Vec<_> = fs::read_dir(base.join("models")).unwrap().collect();
        assert_eq!(left.len(), 1, "{left:?}");
        fs::remove_dir_all(&base).unwrap();
    }
}
