//! [`ModelFiles`]: the files of a model, in a folder or in memory.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use crate::error::{Error, Result, message};
#[cfg(not(target_family = "wasm"))]
use crate::files;

/// The files of a model, by their paths in its folder, with `/` between the parts.
#[derive(Debug)]
pub(super) enum ModelFiles {
    #[cfg_attr(target_family = "wasm", allow(dead_code))]
    Folder(PathBuf),
    Memory(BTreeMap<String, Cow<'static, [u8]>>),
}

impl ModelFiles {
    /// No files.
    pub(super) fn none() -> Self {
        ModelFiles::Memory(BTreeMap::new())
    }

    /// Files in memory. If `main` is in a folder there, only the files of that folder are taken, without its name.
    pub(super) fn memory<N: Into<String>, B: Into<Cow<'static, [u8]>>>(
        files: impl IntoIterator<Item = (N, B)>,
        main: &str,
    ) -> Self {
        let name = |name: N| name.into().replace('\\', "/");
        let all: BTreeMap<String, Cow<'static, [u8]>> =
            files.into_iter().map(|(file, bytes)| (name(file), bytes.into())).collect();
        let inside = |name: &&String| name.strip_suffix(main).is_some_and(|at| at.ends_with('/'));
        let folder = match all.contains_key(main) {
            true => None,
            false => all.keys().filter(inside).min_by_key(|name| name.len()),
        };
        let Some(folder) = folder.map(|name| name[..name.len() - main.len()].to_string()) else {
            return ModelFiles::Memory(all);
        };
        let own = all.into_iter();
        let own = own.filter_map(|(name, bytes)| Some((name.strip_prefix(&folder)?.into(), bytes)));
        ModelFiles::Memory(own.collect())
    }

    /// What messages call a file.
    pub(super) fn title(&self, name: &str) -> String {
        match self {
            ModelFiles::Folder(folder) => folder.join(name).display().to_string(),
            ModelFiles::Memory(_) => name.to_string(),
        }
    }

    /// The contents of a file.
    ///
    /// # Errors
    /// [`Error::Io`] if it cannot be read, [`Error::Data`] if it is not among those in memory.
    pub(super) fn read(&self, name: &str) -> Result<Cow<'_, [u8]>> {
        match self {
            ModelFiles::Folder(folder) => read_file(&folder.join(name)),
            ModelFiles::Memory(files) => {
                let bytes = files.get(name).ok_or_else(|| missing(files, name))?;
                Ok(Cow::Borrowed(bytes))
            }
        }
    }

    /// The number of bytes of a file.
    ///
    /// # Errors
    /// As [`read`](ModelFiles::read).
    pub(super) fn size(&self, name: &str) -> Result<u64> {
        match self {
            ModelFiles::Folder(folder) => size_of(&folder.join(name)),
            ModelFiles::Memory(files) => {
                files.get(name).map(|bytes| bytes.len() as u64).ok_or_else(|| missing(files, name))
            }
        }
    }

    /// `length` bytes of a file, from `offset` on.
    ///
    /// # Errors
    /// As [`read`](ModelFiles::read), and if the file has fewer.
    pub(super) fn part(&self, name: &str, offset: u64, length: usize) -> Result<Vec<u8>> {
        match self {
            ModelFiles::Folder(folder) => read_part(&folder.join(name), offset, length),
            ModelFiles::Memory(files) => {
                let bytes = files.get(name).ok_or_else(|| missing(files, name))?;
                let start = usize::try_from(offset).unwrap_or(usize::MAX);
                let part = bytes.get(start..).and_then(|rest| rest.get(..length));
                part.map(<[u8]>::to_vec).ok_or_else(|| {
                    Error::Data(message!(
                        "the file \"{name}\" ends after {} bytes. It is damaged.",
                        bytes.len()
                    ))
                })
            }
        }
    }

    /// Takes files out of memory whose names fulfil a condition, sorted by name; none from a folder.
    pub(super) fn take(
        &mut self,
        wanted: impl Fn(&str) -> bool,
    ) -> Vec<(String, Cow<'static, [u8]>)> {
        let ModelFiles::Memory(files) = self else { return Vec::new() };
        let names: Vec<String> = files.keys().filter(|name| wanted(name)).cloned().collect();
        names.into_iter().filter_map(|name| files.remove_entry(&name)).collect()
    }
}

/// Whether a path from a file stays in the folder of that file.
pub(super) fn stays_inside(path: &str) -> bool {
    let inside = Path::new(path).components().all(|part| matches!(part, Component::Normal(_)));
    inside && !path.is_empty()
}

fn missing(files: &BTreeMap<String, Cow<'static, [u8]>>, name: &str) -> Error {
    let listed: Vec<&str> = files.keys().take(10).map(String::as_str).collect();
    let more = if files.len() > listed.len() { ", .." } else { "" };
    let there = match listed.is_empty() {
        true => "there are none".to_string(),
        false => format!("there are {}{more}", listed.join(", ")),
    };
    Error::Data(message!("the file \"{name}\" is missing: {there}. Pass all files of the model."))
}

#[cfg(not(target_family = "wasm"))]
fn read_file(path: &Path) -> Result<Cow<'static, [u8]>> {
    files::read(path).map(Cow::Owned).map_err(|error| Error::io(path, error))
}

#[cfg(not(target_family = "wasm"))]
fn size_of(path: &Path) -> Result<u64> {
    files::look(path).map(|file| file.len()).map_err(|error| Error::io(path, error))
}

#[cfg(not(target_family = "wasm"))]
fn read_part(path: &Path, offset: u64, length: usize) -> Result<Vec<u8>> {
    use std::io::{Read, Seek, SeekFrom};
    let read = || -> std::io::Result<Vec<u8>> {
        let mut file = std::fs::File::open(path)?;
        file.seek(SeekFrom::Start(offset))?;
        let mut bytes = vec![0; length];
        file.read_exact(&mut bytes)?;
        Ok(bytes)
    };
    read().map_err(|error| Error::io(path, error))
}

#[cfg(target_family = "wasm")]
fn read_file(path: &Path) -> Result<Cow<'static, [u8]>> {
    unreachable!("no folder is made on wasm: {}", path.display())
}

#[cfg(target_family = "wasm")]
fn size_of(path: &Path) -> Result<u64> {
    unreachable!("no folder is made on wasm: {}", path.display())
}

#[cfg(target_family = "wasm")]
fn read_part(path: &Path, _: u64, _: usize) -> Result<Vec<u8>> {
    unreachable!("no folder is made on wasm: {}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(names: &[&str]) -> ModelFiles {
        let files = names.iter().map(|name| (*name, name.as_bytes().to_vec()));
        ModelFiles::memory(files, "model.pb")
    }

    #[test]
    fn the_folder_of_the_main_file_is_the_models() {
        let plain = files(&["model.pb", "variables/index"]);
        assert_eq!(&*plain.read("variables/index").unwrap(), b"variables/index");
        let below = files(&["mine\\model.pb", "mine\\variables\\index", "other/x"]);
        assert!(below.read("x").is_err() && below.read("other/x").is_err());
        assert_eq!(&*below.read("variables/index").unwrap(), b"mine\\variables\\index");
        // The name is that of a file, not the end of one.
        assert!(files(&["mymodel.pb"]).read("model.pb").is_err());
        let error = below.read("nothing").unwrap_err().to_string();
        assert!(
            error.contains("\"nothing\" is missing: there are model.pb, variables/index"),
            "{error}"
        );
    }

    #[test]
    fn parts_end_with_the_file() {
        let memory = files(&["model.pb"]);
        assert_eq!(memory.part("model.pb", 2, 3).unwrap(), b"del");
        assert_eq!(memory.part("model.pb", 8, 0).unwrap(), b"");
        for (offset, length) in [(2, 7), (u64::MAX, 7), (0, usize::MAX)] {
            let error = memory.part("model.pb", offset, length).unwrap_err().to_string();
            assert!(error.contains("ends after 8 bytes"), "{error}");
        }
    }

    #[test]
    fn paths_stay_in_the_folder() {
        assert!(stays_inside("a/b.bin") && stays_inside("b"));
        for path in ["", "../a", "/a", "a/../../b", "."] {
            assert!(!stays_inside(path), "{path}");
        }
    }
}
