//! [`read()`]: the values of an event file, or of all in a folder.

use std::fs::{self, File};
use std::io::BufReader;
use std::path::{Path, PathBuf};

use super::event::Event;
use super::reader::EventReader;
use crate::error::{Error, Result, message};
use crate::files;

/// Reads an event file, or all event files in a folder and the folders in it: each folder is a run.
///
/// Events are ordered by file name, and in a file as they were written.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::summary;
/// # let folder = std::env::temp_dir().join(format!("wgrad-read-{}", std::process::id()));
/// # let writer = summary::create_file_writer(folder.join("train"))?;
/// # let default = writer.as_default();
/// # summary::scalar("loss", 0.5, 3)?;
/// # drop(default);
/// # writer.close()?;
/// for event in summary::read(&folder)? {
///     if let Some(value) = event.scalar() {
///         println!("{} {} {} {value}", event.run, event.tag, event.step); // train loss 3 0.5
///     }
/// }
/// # std::fs::remove_dir_all(folder).expect("it was written");
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::Io`] if `path` does not exist or cannot be read, [`Error::Data`] if the folder has no event file, and as
/// [`EventReader`].
pub fn read(path: impl AsRef<Path>) -> Result<Vec<Event>> {
    let path = path.as_ref();
    let found = fs::metadata(path).map_err(|error| Error::io(path, error))?;
    let mut all = Vec::new();
    if !found.is_dir() {
        events(path, ".", &mut all)?;
        return Ok(all);
    }
    let mut paths = Vec::new();
    walk(path, &mut paths)?;
    if paths.is_empty() {
        return Err(Error::Data(message!(
            "summary::read: {} has no event file. Their names contain \"tfevents\".",
            path.display()
        )));
    }
    for file in paths {
        let run = file.parent().and_then(|folder| folder.strip_prefix(path).ok());
        let run: Vec<_> = run.into_iter().flatten().map(|part| part.to_string_lossy()).collect();
        let run = if run.is_empty() { ".".to_string() } else { run.join("/") };
        events(&file, &run, &mut all)?;
    }
    Ok(all)
}

fn events(path: &Path, run: &str, all: &mut Vec<Event>) -> Result<()> {
    files::look(path).map_err(|error| Error::io(path, error))?;
    let file = File::open(path).map_err(|error| Error::io(path, error))?;
    for event in EventReader::of_run(BufReader::new(file), path, run) {
        all.push(event?);
    }
    Ok(())
}

/// The event files in `folder` and the folders in it, by name. Links to folders are not followed, because they may form
/// a loop.
fn walk(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let entries = fs::read_dir(folder).and_then(Iterator::collect::<std::io::Result<Vec<_>>>);
    let mut entries = entries.map_err(|error| Error::io(folder, error))?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        let kind = entry.file_type().map_err(|error| Error::io(&path, error))?;
        if kind.is_dir() {
            walk(&path, files)?;
        } else if entry.file_name().to_string_lossy().contains("tfevents") {
            files.push(path);
        }
    }
    Ok(())
}
