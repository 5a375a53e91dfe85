//! The index of several safetensors files, which maps tensors to files.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use super::safetensors::SafetensorsFile;
use crate::error::{Error, Result, message};

impl SafetensorsFile {
    /// Reads several files that the contents of an index list; `read` returns the contents of the file with a name.
    ///
    /// # Errors
    /// [`Error::Data`] if the index or a file is damaged, or a file lacks one of its tensors; the errors of `read`.
    pub fn from_index(index: &[u8], mut read: impl FnMut(&str) -> Result<Vec<u8>>) -> Result<Self> {
        self::read(index, Path::new("the index"), &mut |file| {
            SafetensorsFile::from_bytes(read(file)?)
        })
    }
}

/// The names of the files in the index `text`, whose name in messages is `path`, sorted.
#[cfg_attr(not(feature = "download"), allow(dead_code))]
pub(crate) fn files(text: &[u8], path: &Path) -> Result<Vec<String>> {
    Ok(Index::parse(text, path)?.of_file.into_keys().collect())
}

/// The contents of an index.
struct Index {
    /// Each file's tensors.
    of_file: BTreeMap<String, Vec<String>>,
    metadata: BTreeMap<String, String>,
}

impl Index {
    fn parse(text: &[u8], path: &Path) -> Result<Self> {
        let shown = path.display();
        let wrong = |what: &str| {
            Error::Data(message!(
                "{shown}: load: {what}. It is damaged or not an index of safetensors files; take another copy."
            ))
        };
        let index: Value = serde_json::from_slice(text)
            .map_err(|error| wrong(&format!("it is not valid JSON: {error}")))?;
        let map = index.get("weight_map").and_then(Value::as_object);
        let map = map.ok_or_else(|| wrong("it has no 'weight_map' of names and files"))?;
        let mut of_file: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (name, file) in map {
            let file = file
                .as_str()
                .ok_or_else(|| wrong(&format!("the file of '{name}' is not a string")))?;
            // The files are next to the index, and nowhere else.
            let elsewhere = file.contains(['/', '\\', ':', '\0']);
            if elsewhere || matches!(file, "" | "." | "..") {
                return Err(wrong(&format!(
                    "the file of '{name}' is {file:?}, which is not a plain file name"
                )));
            }
            of_file.entry(file.to_string()).or_default().push(name.clone());
        }
        let mut metadata = BTreeMap::new();
        for (key, value) in index.get("metadata").and_then(Value::as_object).into_iter().flatten() {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_string);
            metadata.insert(key.clone(), text);
        }
        Ok(Index { of_file, metadata })
    }
}

/// The files in the index `text`, opened by `open`, as one.
pub(super) fn read(
    text: &[u8],
    path: &Path,
    open: &mut dyn FnMut(&str) -> Result<SafetensorsFile>,
) -> Result<SafetensorsFile> {
    let Index { of_file, metadata } = Index::parse(text, path)?;
    let parts = of_file.into_iter().map(|(file, names)| Ok((open(&file)?, names)));
    let parts = parts.collect::<Result<Vec<_>>>()?;
    SafetensorsFile::joined(path.to_path_buf(), parts, metadata)
}
