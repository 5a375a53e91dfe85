//! `.npz` files: ZIP archives with a `.npy` file for each array.

use std::collections::{BTreeMap, BTreeSet};
#[cfg(not(target_family = "wasm"))]
use std::io::Write;
use std::io::{self, Cursor, Read, Seek};
use std::path::{Path, PathBuf};

use super::array;
use crate::data::files::input::unreadable;
use crate::error::{Error, Result, message};
use crate::files::zip::{self, ZipWriter};
use crate::host_array::HostArray;

/// Reads the `.npz` file at `path`, and returns its arrays by name (`numpy.load`).
///
/// # Errors
/// [`Error::Io`] if the file cannot be read, [`Error::Data`] as for [`parse_npz`].
#[cfg(not(target_family = "wasm"))]
pub fn load_npz(path: impl AsRef<Path>) -> Result<BTreeMap<String, HostArray<'static>>> {
    let path = path.as_ref();
    let system = |error| Error::io(path, error);
    crate::files::look(path).map_err(system)?;
    let file = std::fs::File::open(path).map_err(system)?;
    arrays(io::BufReader::new(file), path)
}

/// Reads a `.npz` file that is in memory; `name` is for messages.
///
/// ```
/// use wgrad::data::npy::{parse_npz, write_npz};
/// let arrays = [("x", wgrad::ndarray::array![1.0f32, 2.0].into()), ("y", wgrad::ndarray::array![3u8].into())];
/// let bytes = write_npz(arrays, true)?;
/// let arrays = parse_npz(&bytes, "memory")?;
/// assert_eq!(arrays["x"].to_array::<f32>()?, wgrad::ndarray::array![1.0, 2.0].into_dyn());
/// # Ok::<(), wgrad::Error>(())
/// ```
///
/// # Errors
/// [`Error::Data`] if the bytes are not an archive, or contain something other than arrays that
/// [`parse`](super::parse) reads.
pub fn parse_npz(
    bytes: &[u8],
    name: impl AsRef<Path>,
) -> Result<BTreeMap<String, HostArray<'static>>> {
    arrays(Cursor::new(bytes), name.as_ref())
}

fn arrays(mut from: impl Read + Seek, name: &Path) -> Result<BTreeMap<String, HostArray<'static>>> {
    let members = zip::members(&mut from).map_err(|error| no_archive(name, error))?;
    let mut arrays = BTreeMap::new();
    for member in members {
        // For messages: the archive, and the file in it.
        let place = PathBuf::from(format!("{}[{}]", name.display(), member.name));
        let mut contents =
            zip::open(&mut from, &member).map_err(|error| no_archive(name, error))?;
        let array = array::read(&mut contents, &place)?;
        contents.check().map_err(|error| no_archive(&place, error))?;
        let called = member.name.strip_suffix(".npy").unwrap_or(&member.name);
        if arrays.insert(called.to_string(), array).is_some() {
            return Err(Error::Data(message!(
                "{}: the archive has two arrays \"{called}\". Write it again.",
                name.display()
            )));
        }
    }
    Ok(arrays)
}

fn no_archive(name: &Path, error: io::Error) -> Error {
    match unreadable(name, error) {
        Error::Data(words) => Error::Data(message!(
            "{words}, so it is not a readable .npz archive. Check that it is the right file and complete."
        )),
        error => error,
    }
}

/// Writes arrays as the `.npz` file at `path` (`numpy.savez`).
///
/// # Errors
/// [`Error::Io`] if the file cannot be written; [`Error::Data`] as for [`write_npz`].
#[cfg(not(target_family = "wasm"))]
pub fn savez<'a, N: AsRef<str>>(
    path: impl AsRef<Path>,
    arrays: impl IntoIterator<Item = (N, HostArray<'a>)>,
) -> Result<()> {
    save(path.as_ref(), &write_npz(arrays, false)?)
}

/// Writes arrays as the `.npz` file at `path`, compressed (`numpy.savez_compressed`).
///
/// # Errors
/// As [`savez`].
#[cfg(not(target_family = "wasm"))]
pub fn savez_compressed<'a, N: AsRef<str>>(
    path: impl AsRef<Path>,
    arrays: impl IntoIterator<Item = (N, HostArray<'a>)>,
) -> Result<()> {
    save(path.as_ref(), &write_npz(arrays, true)?)
}

#[cfg(not(target_family = "wasm"))]
fn save(path: &Path, bytes: &[u8]) -> Result<()> {
    let written = crate::files::replace(path, |file| file.write_all(bytes));
    written.map_err(|error| Error::io(path, error))
}

/// The bytes of a `.npz` file with these arrays, compressed or not.
///
/// # Errors
/// [`Error::Data`] if two arrays have the same name; [`Error::DType`] if NumPy does not have a dtype.
pub fn write_npz<'a, N: AsRef<str>>(
    arrays: impl IntoIterator<Item = (N, HostArray<'a>)>,
    packed: bool,
) -> Result<Vec<u8>> {
    let failed = |error: io::Error| Error::Data(message!("npz: {error}."));
    let (mut archive, mut names) = (ZipWriter::default(), BTreeSet::new());
    for (name, array) in arrays {
        let name = format!("{}.npy", name.as_ref());
        array::header(&array)
            .map_err(|error| error.reworded(|text| message!("npz: {name}: {text}")))?;
        let mut file = Vec::new();
        array::write(&array, &mut file)
            .and_then(|()| archive.add(&name, &file, packed))
            .map_err(failed)?;
        if let Some(name) = names.replace(name) {
            return Err(Error::Data(message!(
                "npz: there are two arrays for {name:?}. Each needs a name of its own."
            )));
        }
    }
    archive.finish().map_err(failed)
}
