//! Bundles on the disk: written so that a crash at any moment leaves the one before whole.
//!
//! New files are written under temporary names and synced; then the data gets its name, and the index last, as that makes
//! the checkpoint: until then its old index, if it has one, leads to its old data. Two checkpoints of one name need two
//! names of data. The index says how many shards there are, which is part of the names, and who reads opens those alone
//! that it needs: so new data beside old ones is the first of two shards, and a link makes it the first of one afterwards.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex};

use super::{BundleReader, BundleWriter, DataType, data_path, index_path};
use crate::error::{Error, Result, message};
use crate::files::{self, Replacement};

/// The file that names the newest checkpoint (`state_file.rs`).
const STATE_FILE: &str = "checkpoint";
/// What is small is gathered to pieces of so many bytes.
const PIECE: usize = 1 << 20;

/// A bundle that is being written. Dropped unfinished, it leaves nothing.
pub(crate) struct BundleFiles {
    prefix: PathBuf,
    shards: u32,
    data: Replacement,
    writer: BundleWriter<BufWriter<File>>,
    turn: Turn,
}

impl BundleFiles {
    /// Begins a bundle at `prefix`, in a folder that it makes if there is none, and removes what killed processes left there.
    ///
    /// # Errors
    /// [`Error::Io`] if the system refuses, [`Error::Data`] if `prefix` has no name.
    pub(crate) fn begin(prefix: &Path) -> Result<Self> {
        if prefix.file_name().is_none() {
            let prefix = prefix.display();
            return Err(Error::Data(message!(
                "A checkpoint cannot be saved at \"{prefix}\", which ends with no name; append one, such as ckpt."
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
    pub(crate) fn add(
        &mut self,
        key: &str,
        dtype: DataType,
        shape: &[usize],
        bytes: &[u8],
    ) -> Result<()> {
        self.writer.add(key, dtype, shape, bytes)
    }

    /// As [`BundleWriter::add_strings`].
    pub(crate) fn add_strings(
        &mut self,
        key: &str,
        shape: &[usize],
        strings: &[&[u8]],
    ) -> Result<()> {
        self.writer.add_strings(key, shape, strings)
    }

    /// Puts the bundle in place of the one before. Afterwards it outlives a power cut.
    ///
    /// # Errors
    /// [`Error::Io`] if the system refuses; the bundle before is whole then.
    pub(crate) fn finish(self) -> Result<()> {
        let BundleFiles { prefix, shards, mut data, mut writer, turn: _turn } = self;
        let (data_name, index_name) = (data_path(&prefix, 0, shards), index_path(&prefix));
        let folder = files::folder_of(&prefix);
        writer.flush()?;
        data.file().sync_all().map_err(|error| Error::io(&data_name, error))?;
        // It is there before the data have their name: if this process is killed now, it tells the next one that they
        // belong to nothing.
        let index = begin_index(&index_name, &writer.index(shards));
        let index = index.map_err(|error| Error::io(&index_name, error))?;
        data.finish().map_err(|error| Error::io(&data_name, error))?;
        // The index must not reach the disk before the name of the data does.
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

/// The turn of a thread to write at a prefix: of two at once, one's index would name the other's data.
struct Turn(PathBuf);

/// What this process writes at this time.
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

/// Removes the bundle at `prefix`, if there is one: its index, all its data files.
///
/// # Errors
/// [`Error::Io`] if the system refuses to remove the index.
pub(crate) fn remove(prefix: &Path) -> Result<()> {
    let name = index_path(prefix);
    // The index aside says that the data belong to nothing, should this process be killed before it has removed them.
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

/// Gives data that are the first of two shards the name that they have alone, and names them so in the index. Gives back how
/// many shards the index has now: two, where a file cannot have two names.
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

/// How many shards the bundle at `prefix` has; none if there is none that could be read.
fn live_shards(prefix: &Path) -> Result<Option<u32>> {
    match BundleReader::open(prefix) {
        Ok(reader) => Ok(Some(reader.num_shards())),
        Err(Error::Io(error)) if error.source.kind() != io::ErrorKind::NotFound => {
            Err(Error::Io(error))
        }
        Err(_) => Ok(None),
    }
}

/// Removes the data files of `prefix`, but for those of so many shards. What cannot be removed is left: nothing names it.
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

/// Removes from a folder what killed processes left while they wrote bundles and state files there.
fn clean(folder: &Path) {
    for (temporary, path) in files::leftovers(folder) {
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
        if let Some(prefix) = name.strip_suffix(".index") {
            let prefix = folder.join(prefix);
            match live_shards(&prefix) {
                // Its data may have their name, and it has not.
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
