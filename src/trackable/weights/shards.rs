//! Weights in several files beside an index, as Hugging Face writes them.

use std::fs::File;
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
    /// Opens the file at `path`, or all files that the index at `path` names (`model.safetensors.index.json`). If there is no
    /// such file but an index for it, the index is opened.
    ///
    /// # Errors
    /// [`Error::Io`] if a file cannot be read, [`Error::Data`] if one is damaged or the index names what is not there.
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

/// How many of `arrays`, from the first on, go into each file.
fn cut(arrays: &[NamedArray<'_>], limit: u64) -> Vec<usize> {
    let (mut counts, mut size) = (vec![0], 0u64);
    for array in arrays {
        let bytes = array.bytes.len() as u64;
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

/// Writes the file at `path`, or several and an index beside it.
pub(super) fn save(path: &Path, arrays: &[NamedArray<'_>], options: &SaveOptions) -> Result<()> {
    let io = |path: &Path, error| Error::io(path, error);
    let counts = cut(arrays, options.max_shard_size.unwrap_or(u64::MAX));
    if is_index(path) {
        return Err(Error::Checkpoint(message!(
            "{}: save: this is the name of an index, which is written beside the files if they are several. Save as \
             NAME.safetensors.",
            path.display()
        )));
    }
    let contents = |arrays| file::to_bytes_with(arrays, &options.metadata);
    let write =
        |file: &mut File, bytes: &[u8]| file.write_all(bytes).and_then(|()| file.sync_all());
    if counts.len() == 1 {
        let bytes = contents(arrays)?;
        return files::replace_durably(path, |file| file.write_all(&bytes))
            .map_err(|error| io(path, error));
    }
    let stem = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let stem = stem.strip_suffix(".safetensors").unwrap_or(&stem).to_string();
    let (mut parts, mut map, mut rest) = (Vec::new(), serde_json::Map::new(), arrays);
    for (at, count) in counts.iter().enumerate() {
        let name = format!("{stem}-{:05}-of-{:05}.safetensors", at + 1, counts.len());
        let (these, others) = rest.split_at(*count);
        rest = others;
        for array in these {
            map.insert(array.name.to_string(), json!(name));
        }
        let part = path.with_file_name(&name);
        let bytes = contents(these)?;
        let mut replacement = Replacement::begin(&part).map_err(|error| io(&part, error))?;
        write(replacement.file(), &bytes).map_err(|error| io(&part, error))?;
        parts.push((part, replacement));
    }
    let total: u64 = arrays.iter().map(|array| array.bytes.len() as u64).sum();
    let index = json!({"metadata": {"total_size": total}, "weight_map": map});
    let at = index_for(path);
    let text = serde_json::to_vec_pretty(&index).unwrap_or_default();
    let mut written = Replacement::begin(&at).map_err(|error| io(&at, error))?;
    write(written.file(), &text).map_err(|error| io(&at, error))?;
    // All is written. An index of the files that are replaced now would lead to some of both.
    for old in [&at, path] {
        match std::fs::remove_file(old) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(io(old, error)),
            _ => {}
        }
    }
    for (part, replacement) in parts {
        replacement.finish().map_err(|error| io(&part, error))?;
    }
    written.finish().map_err(|error| io(&at, error))
}
