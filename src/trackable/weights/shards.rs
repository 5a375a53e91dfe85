//! Weights in several files with an index, in Hugging Face's format.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde_json::json;

use super::index;
use super::options::SaveOptions;
use super::safetensors::SafetensorsFile;
use crate::error::{Error, Result, message};
use crate::files::{self, Replacement};
use crate::trackable::{NamedArray, file};

/// The name of the index for the file at `path`: `model.safetensors.index.json`.
fn index_for(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(".index.json");
    path.with_file_name(name)
}

fn is_index(path: &Path) -> bool {
    path.to_string_lossy().ends_with(".index.json")
}

impl SafetensorsFile {
    /// Opens the file at `path`, or all files in the index at `path` (`model.safetensors.index.json`). If there is no such file
    /// but an index for it, the index is opened.
    ///
    /// # Errors
    /// [`Error::Io`] if a file cannot be read, [`Error::Data`] if one is damaged or the index lists a file that does not exist.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        if is_index(path) {
            return open_index(path);
        }
        let index = index_for(path);
        match files::look(path) {
            Err(error)
                if error.kind() == io::ErrorKind::NotFound && files::look(&index).is_ok() =>
            {
                open_index(&index)
            }
            _ => SafetensorsFile::open_one(path),
        }
    }
}

fn open_index(path: &Path) -> Result<SafetensorsFile> {
    let text = files::read(path).map_err(|error| Error::io(path, error))?;
    index::read(&text, path, &mut |file| SafetensorsFile::open_one(&path.with_file_name(file)))
}

/// The number of `arrays`, from the first on, in each file.
fn cut(arrays: &[NamedArray<'_>], limit: u64) -> Vec<usize> {
    let (mut counts, mut size) = (vec![0], 0u64);
    for array in arrays {
        let bytes = array.array.bytes().len() as u64;
        let last = counts.len() - 1;
        if counts[last] > 0 && size.saturating_add(bytes) > limit {
            counts.push(1);
            size = bytes;
        } else {
            counts[last] += 1;
            size += bytes;
        }
    }
    counts
}

/// Writes the file at `path`, or several and an index next to it.
///
/// If it is interrupted, the folder has either the old weights or the new ones: parts get names that no part has had since the
/// index was written, and the index, or the single file, makes them valid. Obsolete files are removed last.
pub(super) fn save(path: &Path, arrays: &[NamedArray<'_>], options: &SaveOptions) -> Result<()> {
    let io = |path: &Path, error| Error::io(path, error);
    let counts = cut(arrays, options.max_shard_size.unwrap_or(u64::MAX));
    if is_index(path) {
        return Err(Error::Checkpoint(message!(
            "{}: save: this is the name of an index, which is written next to the files if there are several. Save \
             as NAME.safetensors.",
            path.display()
        )));
    }
    let contents = |arrays| file::to_bytes_with(arrays, &options.metadata);
    let stem = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let stem = stem.strip_suffix(".safetensors").unwrap_or(&stem);
    let at = index_for(path);
    if counts.len() == 1 {
        let bytes = contents(arrays)?;
        files::replace(path, |file| file.write_all(&bytes)).map_err(|error| io(path, error))?;
        // An index must never exist without its parts.
        remove(&at)?;
        remove_parts(path, stem, &at, &[]);
        return Ok(());
    }
    let begin = |path: &Path, bytes: &[u8]| {
        let mut replacement = Replacement::begin(path)?;
        replacement.file().write_all(bytes)?;
        Ok(replacement)
    };
    let begin = |path: &Path, bytes: &[u8]| begin(path, bytes).map_err(|error| io(path, error));
    let names = free_names(path, stem, counts.len());
    let (mut parts, mut map, mut rest) = (Vec::new(), serde_json::Map::new(), arrays);
    for (name, count) in names.iter().zip(&counts) {
        let (these, others) = rest.split_at(*count);
        rest = others;
        map.extend(these.iter().map(|array| (array.name.to_string(), json!(name))));
        parts.push(begin(&path.with_file_name(name), &contents(these)?)?);
    }
    let total: u64 = arrays.iter().map(|array| array.array.bytes().len() as u64).sum();
    let index = json!({"metadata": {"total_size": total}, "weight_map": map});
    let index = begin(&at, &serde_json::to_vec_pretty(&index).unwrap_or_default())?;
    files::finish_all(parts, index).map_err(|error| io(&at, error))?;
    // The single file would be used before the index.
    remove(path)?;
    remove_parts(path, stem, &at, &names);
    Ok(())
}

/// Removes a file, if it exists, and syncs the removal.
fn remove(path: &Path) -> Result<()> {
    match std::fs::remove_file(path) {
        Ok(()) => {
            files::sync_folder(files::folder_of(path)).map_err(|error| Error::io(path, error))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(Error::io(path, error)),
    }
}

/// The names of `count` parts: Hugging Face's, `model-00001-of-00003.safetensors`, or `model.2-00001-of-00003.safetensors` and
/// so on if parts with these names exist.
fn free_names(path: &Path, stem: &str, count: usize) -> Vec<String> {
    let taken: std::collections::HashSet<u64> =
        parts_of(path, stem).map(|(_, generation)| generation).collect();
    let generation = (1..).find(|generation| !taken.contains(generation)).unwrap_or(1);
    let name = |part: usize| match generation {
        1 => format!("{stem}-{part:05}-of-{count:05}.safetensors"),
        _ => format!("{stem}.{generation}-{part:05}-of-{count:05}.safetensors"),
    };
    (1..=count).map(name).collect()
}

/// The parts in the folder of `path` whose names begin with `stem`, with the number after it.
fn parts_of(path: &Path, stem: &str) -> impl Iterator<Item = (String, u64)> {
    let entries = std::fs::read_dir(files::folder_of(path)).into_iter().flatten().flatten();
    entries.filter_map(move |entry| {
        let name = entry.file_name().into_string().ok()?;
        let generation = generation_of(&name, stem)?;
        Some((name, generation))
    })
}

/// The number after `stem` in the name of a part.
fn generation_of(name: &str, stem: &str) -> Option<u64> {
    let rest = name.strip_prefix(stem)?.strip_suffix(".safetensors")?;
    let (generation, rest) = match rest.strip_prefix('.') {
        None => (1, rest),
        Some(numbered) => {
            let (generation, _) = numbered.split_once('-')?;
            let rest = &numbered[generation.len()..];
            (generation.parse().ok().filter(|number| *number > 1)?, rest)
        }
    };
    let (part, count) = rest.strip_prefix('-')?.split_once("-of-")?;
    let digits = |text: &str| text.len() >= 5 && text.bytes().all(|byte| byte.is_ascii_digit());
    (digits(part) && digits(count)).then_some(generation)
}

/// Removes obsolete parts. A part that cannot be removed stays: no index lists it. While another save of these weights is
/// running, its parts may have their names without an index yet: it removes the rest itself.
fn remove_parts(path: &Path, stem: &str, index: &Path, keep: &[String]) {
    if files::is_being_replaced(index) {
        return;
    }
    for (name, _) in parts_of(path, stem).filter(|(name, _)| !keep.contains(name)) {
        let _ = std::fs::remove_file(path.with_file_name(name));
    }
    // Files that killed processes began under names that no save uses again.
    for (left, of) in files::leftovers(files::folder_of(path)) {
        let name = of.file_name().and_then(|name| name.to_str());
        if name.and_then(|name| generation_of(name, stem)).is_some() {
            let _ = std::fs::remove_file(left);
        }
    }
}
