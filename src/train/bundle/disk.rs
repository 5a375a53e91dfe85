//! Bundles on the disk: written so that a crash at any moment leaves the previous one intact.
//!
//! New files are written under temporary names and synced; then the data file gets its name, and the index file last, because
//! that completes the checkpoint: until then its old index, if there is one, refers to its old data. So two checkpoints with
//! the same name need data files with different names. The index contains the number of shards, which is part of those names,
//! and a reader opens only the shards that it needs: so new data next to old data are the first of two shards, and a link
//! makes them the only shard afterwards.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex};

use super::{BundleReader, BundleWriter, data_path, index_path};
use crate::error::{Error, Result, message};
use crate::files::{self, Replacement};
use crate::host_array::HostArray;

/// The file that names the newest checkpoint (`state_file.rs`).
const STATE_FILE: &str = "checkpoint";
/// Small tensors are collected into pieces of this many bytes.
const PIECE: usize = 1 << 20;

/// A bundle that is being written. If it is dropped unfinished, it leaves no files.
pub(crate) struct BundleFiles {
    prefix: PathBuf,
    shards: u32,
    data: Replacement,
    writer: BundleWriter<BufWriter<File>>,
    turn: Turn,
}

impl BundleFiles {
    /// Begins a bundle at `prefix`, in a folder that it creates if it is missing, and removes the leftovers of killed
    /// processes there.
    ///
    /// # Errors
    /// [`Error::Io`] if the file system reports an error, [`Error::Data`] if `prefix` has no name.
    pub(crate) fn begin(prefix: &Path) -> Result<Self> {
        if prefix.file_name().is_none() {
            let prefix = prefix.display();
            return Err(Error::Data(message!(
                "A checkpoint cannot be saved at \"{prefix}\", which does not end with a file name; append one, such \
                 as ckpt."
            )));
        }
        let folder = files::folder_of(prefix);
        files::make_folder(folder).map_err(|error| Error::io(folder, error))?;
        let turn = Turn::wait(prefix);
        clean(folder);
        let shards = if live_shards(prefix)? == Some(1) { 2 } else { 1 };
        let path = data_path(prefix, 0, shards);
        let begin = || {
            let mut data = Replacement::begin(&path)?;
            let file = BufWriter::with_capacity(PIECE, data.file().try_clone()?);
            Ok((data, file))
        };
        let (data, file) = begin().map_err(|error| Error::io(&path, error))?;
        let writer = BundleWriter::named(file, &path);
        Ok(BundleFiles { prefix: prefix.to_path_buf(), shards, data, writer, turn })
    }

    /// As [`BundleWriter::add`].
    pub(crate) fn add(&mut self, key: &str, array: &HostArray<'_>) -> Result<()> {
        self.writer.add(key, array)
    }

    /// Replaces the previous bundle with this one. Afterwards it survives a power cut.
    ///
    /// # Errors
    /// [`Error::Io`] if the file system reports an error; the previous bundle is then intact.
    pub(crate) fn finish(self) -> Result<()> {
        let BundleFiles { prefix, shards, mut data, mut writer, turn: _turn } = self;
        let (data_name, index_name) = (data_path(&prefix, 0, shards), index_path(&prefix));
        let folder = files::folder_of(&prefix);
        writer.flush()?;
        data.file().sync_all().map_err(|error| Error::io(&data_name, error))?;
        // The index exists before the data file has its name: if this process is killed now, the next one can see that the
        // data belong to nothing.
        let index = begin_index(&index_name, &writer.index(shards));
        let index = index.map_err(|error| Error::io(&index_name, error))?;
        data.finish().map_err(|error| Error::io(&data_name, error))?;
        // The index must not reach the disk before the name of the data file does.
        if let Err(error) = files::sync_folder(folder).and_then(|()| index.finish()) {
            let _ = fs::remove_file(&data_name);
            return Err(Error::io(&index_name, error));
        }
        let settled = files::sync_folder(folder).and_then(|()| match shards {
            1 => Ok(1),
            _ => settle(&prefix, &writer.index(1)),
        });
        let live = settled.map_err(|error| Error::io(folder, error))?;
        remove_data(&prefix, Some(live));
        Ok(())
    }
}

/// A thread's permission to write at a prefix: with two threads at once, one's index would refer to the other's data.
struct Turn(PathBuf);

/// The prefixes that this process is writing.
static WRITING: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
static DONE: Condvar = Condvar::new();

impl Turn {
    fn wait(prefix: &Path) -> Self {
        let prefix = std::path::absolute(prefix).unwrap_or_else(|_| prefix.to_path_buf());
        let writing = WRITING.lock().unwrap_or_else(|poison| poison.into_inner());
        let mut writing = DONE
            .wait_while(writing, |writing| writing.contains(&prefix))
            .unwrap_or_else(|poison| poison.into_inner());
        writing.insert(prefix.clone());
        Turn(prefix)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        WRITING.lock().unwrap_or_else(|poison| poison.into_inner()).remove(&self.0);
        DONE.notify_all();
    }
}

/// Removes the bundle at `prefix`, if there is one: its index and all its data files.
///
/// # Errors
/// [`Error::Io`] if the index cannot be removed.
pub(crate) fn remove(prefix: &Path) -> Result<()> {
    let name = index_path(prefix);
    // The temporary index shows that the data belong to nothing, in case this process is killed before it has removed them.
    match files::move_aside(&name) {
        Ok(aside) => {
            remove_data(prefix, None);
            fs::remove_file(&aside).map_err(|error| Error::io(&aside, error))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            remove_data(prefix, None);
            Ok(())
        }
        Err(error) => Err(Error::io(&name, error)),
    }
}

/// Writes and syncs an index under its temporary name.
fn begin_index(path: &Path, bytes: &[u8]) -> io::Result<Replacement> {
    let mut index = Replacement::begin(path)?;
    index.file().write_all(bytes)?;
    index.file().sync_all()?;
    Ok(index)
}

/// Renames data that are the first of two shards to the only shard, and updates the index. Returns the number of shards in
/// the index: two if the file system does not support links.
fn settle(prefix: &Path, index: &[u8]) -> io::Result<u32> {
    if files::replace_by_link(&data_path(prefix, 0, 1), &data_path(prefix, 0, 2)).is_err() {
        return Ok(2);
    }
    let folder = files::folder_of(prefix);
    files::sync_folder(folder)?;
    begin_index(&index_path(prefix), index)?.finish()?;
    files::sync_folder(folder)?;
    Ok(1)
}

/// The number of shards of the bundle at `prefix`; none if there is no readable bundle.
fn live_shards(prefix: &Path) -> Result<Option<u32>> {
    match BundleReader::open(prefix) {
        Ok(reader) => Ok(Some(reader.num_shards())),
        Err(Error::Io(error)) if error.source.kind() != io::ErrorKind::NotFound => {
            Err(Error::Io(error))
        }
        Err(_) => Ok(None),
    }
}

/// Removes the data files of `prefix`, except those of a bundle with this many shards. A file that cannot be removed stays:
/// no index refers to it.
fn remove_data(prefix: &Path, keep: Option<u32>) {
    let Some(name) = prefix.file_name().and_then(|name| name.to_str()) else { return };
    let Ok(entries) = fs::read_dir(files::folder_of(prefix)) else { return };
    for entry in entries.flatten() {
        let file = entry.file_name();
        let shards = file.to_str().and_then(data_name).filter(|(of, _)| *of == name);
        if shards.is_some_and(|(_, shards)| Some(shards) != keep) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// The prefix and the number of shards in the name of a data file.
fn data_name(file: &str) -> Option<(&str, u32)> {
    let (name, numbers) = file.rsplit_once(".data-")?;
    let (shard, shards) = numbers.split_once("-of-")?;
    let number = |text: &str| {
        let digits = text.len() >= 5 && text.bytes().all(|byte| byte.is_ascii_digit());
        if digits { text.parse::<u32>().ok() } else { None }
    };
    number(shard)?;
    Some((name, number(shards)?))
}

/// Removes from a folder the leftovers of processes that were killed while they wrote bundles and state files there.
fn clean(folder: &Path) {
    for (temporary, path) in files::leftovers(folder) {
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
        if let Some(prefix) = name.strip_suffix(".index") {
            let prefix = folder.join(prefix);
            match live_shards(&prefix) {
                // Its data file may have its final name, and the index does not.
                Ok(live) if !files::is_being_replaced(&path) => remove_data(&prefix, live),
                _ => continue,
            }
        } else if data_name(name).is_none() && name != STATE_FILE {
            continue;
        }
        let _ = fs::remove_file(temporary);
    }
}

#[cfg(test)]
#[path = "disk_tests.rs"]
mod tests;
