//! [`Part`]: a file that is downloaded in several attempts, by one process or by several after each other.
//!
//! While a process writes it, the part has a temporary name with the process's number, as in `files`, so that no two processes
//! write the same file. After a failed attempt it is called `NAME.KEY.part`, where the key identifies the contents that are
//! wanted; the next process takes it by renaming it. What a killed process leaves is taken in the same way.

use std::fs::{self, File};
use std::io::{self, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use crate::files;

/// In the place of a key in the name of a part that another attempt cannot continue.
const NO_KEY: &str = "-";

/// A file that is not complete.
pub(super) struct Part {
    /// The file's name when it is complete.
    path: PathBuf,
    temporary: PathBuf,
    file: File,
    bytes: u64,
    key: Option<String>,
    /// What becomes of it if it is dropped.
    keep: bool,
}

impl Part {
    /// Begins a file. With a key, another attempt can continue it.
    pub(super) fn begin(path: &Path, key: Option<String>) -> io::Result<Self> {
        let name = named(path, key.as_deref().unwrap_or(NO_KEY));
        if key.is_none() {
            // Nobody can continue what killed processes left.
            let left = files::leftovers(files::folder_of(path)).into_iter();
            left.filter(|(_, of)| *of == name).for_each(|(file, _)| drop(fs::remove_file(file)));
        }
        let temporary = files::temporary_for(&name);
        let file = File::create_new(&temporary)?;
        let keep = key.is_some();
        Ok(Part { path: path.to_path_buf(), temporary, file, bytes: 0, key, keep })
    }

    /// Takes the longest part of the file at `path` that nobody is writing.
    pub(super) fn take(path: &Path) -> Option<Self> {
        let mut found = parts(path);
        found.sort_by_key(|(file, _)| std::cmp::Reverse(fs::metadata(file).map_or(0, |m| m.len())));
        found.into_iter().find_map(|(file, key)| {
            let temporary = files::temporary_for(&named(path, &key));
            // Another process may have been faster.
            fs::rename(&file, &temporary).ok()?;
            let mut file = File::options().write(true).open(&temporary).ok()?;
            let bytes = file.seek(SeekFrom::End(0)).ok()?;
            let path = path.to_path_buf();
            Some(Part { path, temporary, file, bytes, key: Some(key), keep: true })
        })
    }

    pub(super) fn file(&mut self) -> &mut File {
        &mut self.file
    }

    /// Where it is written.
    pub(super) fn temporary(&self) -> &Path {
        &self.temporary
    }

    /// How many bytes it had when it was taken.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn key(&self) -> Option<&str> {
        self.key.as_deref()
    }

    /// Removes it.
    pub(super) fn discard(mut self) {
        self.keep = false;
    }

    /// Gives the file its name, and removes its other parts.
    pub(super) fn finish(mut self) -> io::Result<()> {
        self.file.sync_all()?;
        fs::rename(&self.temporary, &self.path)?;
        // Nothing has the temporary name now.
        self.keep = false;
        for (other, _) in parts(&self.path) {
            let _ = fs::remove_file(other);
        }
        files::sync_folder(files::folder_of(&self.path))
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        let written = fs::metadata(&self.temporary).is_ok_and(|found| found.len() > 0);
        let _ = match &self.key {
            Some(key) if self.keep && written => {
                fs::rename(&self.temporary, named(&self.path, key))
            }
            _ => fs::remove_file(&self.temporary),
        };
    }
}

/// The name of a part: `NAME.KEY.part`.
fn named(path: &Path, key: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(format!(".{key}.part"));
    path.with_file_name(name)
}

/// The key in the name of a part of `path`.
fn key_of(path: &Path, part: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    let key = part.file_name()?.to_str()?.strip_prefix(name)?;
    let key = key.strip_prefix('.')?.strip_suffix(".part")?;
    let digits = key.len() == 16 && key.bytes().all(|byte| byte.is_ascii_hexdigit());
    digits.then(|| key.to_string())
}

/// The parts of the file at `path` that nobody is writing, and their keys.
fn parts(path: &Path) -> Vec<(PathBuf, String)> {
    let folder = files::folder_of(path);
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let own = entries.map(|entry| (entry.path(), entry.path()));
    own.chain(files::leftovers(folder))
        .filter_map(|(file, of)| {
            let key = key_of(path, &of)?;
            fs::symlink_metadata(&file).is_ok_and(|found| found.is_file()).then_some((file, key))
        })
        .collect()
}
