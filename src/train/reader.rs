//! [`CheckpointReader`]: the contents of a checkpoint of any program, as arrays on the host.

use std::collections::BTreeMap;
#[cfg(not(target_family = "wasm"))]
use std::path::{Path, PathBuf};

use super::bundle::BundleReader;
#[cfg(not(target_family = "wasm"))]
use crate::error::Error;
use crate::error::Result;
use crate::host_array::{HostArray, HostDType};

/// Reads the tensors of a checkpoint without a model (as returned by `tf.train.load_checkpoint`).
///
/// The index is read on opening, a tensor on request.
///
/// ```
/// use wgrad::{HostDType, train};
/// let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/checkpoint/module");
/// let reader = train::load_checkpoint(folder)?;
/// let name = "step/.ATTRIBUTES/VARIABLE_VALUE";
/// assert!(reader.has_tensor(name));
/// assert_eq!(reader.get_variable_to_dtype_map()[name], HostDType::I64);
/// let step = reader.get_tensor(name)?.to_array::<i64>()?;
/// assert_eq!(step.ndim(), 0);
/// # Ok::<(), wgrad::Error>(())
/// ```
#[derive(Debug)]
pub struct CheckpointReader {
    bundle: BundleReader<'static>,
}

/// Opens a checkpoint (`tf.train.load_checkpoint`): `path` is its prefix, such as `run/ckpt-7`, or a folder, whose newest
/// checkpoint is opened.
///
/// # Errors
/// [`Error::Io`] if a folder has no checkpoint or one cannot be read; [`Error::Data`] if its index is damaged or of another
/// format.
#[cfg(not(target_family = "wasm"))]
pub fn load_checkpoint(path: impl AsRef<Path>) -> Result<CheckpointReader> {
    let prefix = prefix_of(path.as_ref())?;
    Ok(CheckpointReader { bundle: BundleReader::open(&prefix)? })
}

/// The names and shapes of a checkpoint's tensors, in order (`tf.train.list_variables`); `path` is as for
/// [`load_checkpoint`].
///
/// ```
/// let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/checkpoint/dtypes");
/// let variables = wgrad::train::list_variables(folder)?;
/// assert!(variables.contains(&("big/.ATTRIBUTES/VARIABLE_VALUE".to_string(), vec![200, 30])));
/// # Ok::<(), wgrad::Error>(())
/// ```
///
/// # Errors
/// As for [`load_checkpoint`].
#[cfg(not(target_family = "wasm"))]
pub fn list_variables(path: impl AsRef<Path>) -> Result<Vec<(String, Vec<usize>)>> {
    Ok(load_checkpoint(path)?.get_variable_to_shape_map().into_iter().collect())
}

/// One tensor of a checkpoint (`tf.train.load_variable`); `path` is as for [`load_checkpoint`].
///
/// ```
/// let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/checkpoint/dtypes");
/// let name = "f64/.ATTRIBUTES/VARIABLE_VALUE";
/// let doubles = wgrad::train::load_variable(folder, name)?.to_array::<f64>()?;
/// assert_eq!(doubles.shape(), [3]);
/// # Ok::<(), wgrad::Error>(())
/// ```
///
/// # Errors
/// As for [`load_checkpoint`] and [`CheckpointReader::get_tensor`].
#[cfg(not(target_family = "wasm"))]
pub fn load_variable(path: impl AsRef<Path>, name: &str) -> Result<HostArray<'static>> {
    load_checkpoint(path)?.get_tensor(name)
}

/// The prefix `path`, or that of the newest checkpoint in the folder `path`.
#[cfg(not(target_family = "wasm"))]
fn prefix_of(path: &Path) -> Result<PathBuf> {
    use std::io::{Error as IoError, ErrorKind};
    let missing = |words: String| Error::io(path, IoError::new(ErrorKind::NotFound, words));
    if path.is_dir() {
        return super::latest_checkpoint(path)?.ok_or_else(|| {
            missing(
                "the folder has no file \"checkpoint\" that names a checkpoint in it".to_string(),
            )
        });
    }
    let index = super::bundle::index_path(path);
    // TensorFlow reports here that the file has a bad magic number.
    if path.extension().is_some_and(|ending| ending == "index") && path.is_file() && !index.exists()
    {
        let prefix = path.with_extension("");
        return Err(missing(format!(
            "a checkpoint is named without the endings of its files: {}",
            prefix.display()
        )));
    }
    Ok(path.to_path_buf())
}

impl CheckpointReader {
    /// A checkpoint in memory, for example in a browser: the contents of the index, and of the data files in order.
    ///
    /// # Errors
    /// [`Error::Data`] if the index is damaged or of another format.
    pub fn from_bytes(index: &[u8], data: Vec<Vec<u8>>) -> Result<Self> {
        let shards = data.into_iter().map(Into::into).collect();
        Ok(CheckpointReader { bundle: BundleReader::from_bytes(index, shards)? })
    }

    /// Whether there is a tensor of this name.
    pub fn has_tensor(&self, name: &str) -> bool {
        self.bundle.info(name).is_some()
    }

    /// The values of a tensor.
    ///
    /// # Errors
    /// [`Error::Checkpoint`] if there is none of this name; [`Error::Data`] if its bytes are damaged or incomplete;
    /// [`Error::DType`] if it has neither numbers nor strings; [`Error::Io`] if reading fails.
    pub fn get_tensor(&self, name: &str) -> Result<HostArray<'static>> {
        self.bundle.array(name)
    }

    /// The shapes of all tensors by their names.
    pub fn get_variable_to_shape_map(&self) -> BTreeMap<String, Vec<usize>> {
        let infos = self.bundle.keys().filter_map(|key| Some((key, self.bundle.info(key)?)));
        infos.map(|(key, info)| (key.to_string(), info.shape.clone())).collect()
    }

    /// The types of all tensors by their names.
    pub fn get_variable_to_dtype_map(&self) -> BTreeMap<String, HostDType> {
        let infos = self.bundle.keys().filter_map(|key| Some((key, self.bundle.info(key)?)));
        infos.map(|(key, info)| (key.to_string(), info.dtype)).collect()
    }
}
