//! [`CheckpointReader`]: the contents of a checkpoint of any program, as arrays on the host.

use std::collections::BTreeMap;
use std::fmt;
#[cfg(not(target_family = "wasm"))]
use std::path::{Path, PathBuf};

use half::{bf16, f16};
use ndarray::{ArrayD, IxDyn};

use super::bundle::{BundleReader, DataType};
use crate::error::{Error, Result, message};

/// Reads the tensors of a checkpoint without a model (as returned by `tf.train.load_checkpoint`).
///
/// The index is read on opening, a tensor on request.
///
/// ```
/// use wgrad::ndarray::ArrayD;
/// use wgrad::train::{self, DataType};
/// let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/checkpoint/module");
/// let reader = train::load_checkpoint(folder)?;
/// let name = "step/.ATTRIBUTES/VARIABLE_VALUE";
/// assert!(reader.has_tensor(name));
/// assert_eq!(reader.get_variable_to_dtype_map()[name], DataType::Int64);
/// let step: ArrayD<i64> = reader.get_tensor(name)?.try_into()?;
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
/// use wgrad::train::{CheckpointArray, load_variable};
/// let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/checkpoint/dtypes");
/// let CheckpointArray::F64(doubles) = load_variable(folder, "f64/.ATTRIBUTES/VARIABLE_VALUE")? else {
///     panic!("TensorFlow saved float64");
/// };
/// assert_eq!(doubles.shape(), [3]);
/// # Ok::<(), wgrad::Error>(())
/// ```
///
/// # Errors
/// As for [`load_checkpoint`] and [`CheckpointReader::get_tensor`].
#[cfg(not(target_family = "wasm"))]
pub fn load_variable(path: impl AsRef<Path>, name: &str) -> Result<CheckpointArray> {
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
    /// [`Error::DType`] if it is of a type that [`CheckpointArray`] does not have; [`Error::Io`] if reading fails.
    pub fn get_tensor(&self, name: &str) -> Result<CheckpointArray> {
        let Some(info) = self.bundle.info(name) else {
            // This reports that there is none.
            return self.bundle.read(name).and_then(|_| Err(self.no_array(name, "unknown")));
        };
        if info.dtype == DataType::String {
            let strings = self.bundle.read_strings(name)?;
            return Ok(CheckpointArray::String(self.shaped(name, &info.shape, strings)?));
        }
        // Not before it is known that the type is supported.
        let read = || self.bundle.read(name);
        self.numbers(name, info.dtype, &info.shape, read)
    }

    /// The shapes of all tensors by their names.
    pub fn get_variable_to_shape_map(&self) -> BTreeMap<String, Vec<usize>> {
        let infos = self.bundle.keys().filter_map(|key| Some((key, self.bundle.info(key)?)));
        infos.map(|(key, info)| (key.to_string(), info.shape.clone())).collect()
    }

    /// The types of all tensors by their names.
    pub fn get_variable_to_dtype_map(&self) -> BTreeMap<String, DataType> {
        let infos = self.bundle.keys().filter_map(|key| Some((key, self.bundle.info(key)?)));
        infos.map(|(key, info)| (key.to_string(), info.dtype)).collect()
    }

    fn shaped<T>(&self, name: &str, shape: &[usize], values: Vec<T>) -> Result<ArrayD<T>> {
        ArrayD::from_shape_vec(IxDyn(shape), values).map_err(|_| {
            Error::Data(message!(
                "The tensor \"{name}\" has the shape {shape:?}, which no array has."
            ))
        })
    }

    fn no_array(&self, name: &str, dtype: impl fmt::Display) -> Error {
        Error::DType(message!(
            "The tensor \"{name}\" is {dtype}; arrays are made of strings, bool, complex numbers, floats of 16 to 64 bits and \
             integers of 8 to 64."
        ))
    }
}

macro_rules! arrays {
    ($($variant:ident $type:ty, $data:ident, $from:expr;)*) => {
        /// The values of a tensor, in row-major order, in their saved type.
        ///
        /// `try_into` returns the array of one type, and an [`Error::DType`] if it has another type.
        #[derive(Debug, Clone, PartialEq)]
        #[non_exhaustive]
        pub enum CheckpointArray {
            $(
                #[doc = concat!("`", stringify!($type), "`.")]
                $variant(ArrayD<$type>),
            )*
            /// Strings, which may be any bytes.
            String(ArrayD<Vec<u8>>),
        }

        impl CheckpointArray {
            /// The type of the elements.
            pub fn dtype(&self) -> DataType {
                match self {
                    $(CheckpointArray::$variant(_) => DataType::$data,)*
                    CheckpointArray::String(_) => DataType::String,
                }
            }

            /// The sizes of the axes.
            pub fn shape(&self) -> &[usize] {
                match self {
                    $(CheckpointArray::$variant(array) => array.shape(),)*
                    CheckpointArray::String(array) => array.shape(),
                }
            }
        }

        impl CheckpointReader {
            fn numbers(
                &self,
                name: &str,
                dtype: DataType,
                shape: &[usize],
                read: impl FnOnce() -> Result<Vec<u8>>,
            ) -> Result<CheckpointArray> {
                Ok(match dtype {
                    $(DataType::$data => {
                        let values = values(&read()?, $from);
                        CheckpointArray::$variant(self.shaped(name, shape, values)?)
                    })*
                    other => return Err(self.no_array(name, other)),
                })
            }
        }

        $(into_array!($variant $type);)*
    };
}

macro_rules! into_array {
    ($variant:ident $type:ty) => {
        impl TryFrom<CheckpointArray> for ArrayD<$type> {
            type Error = Error;

            fn try_from(array: CheckpointArray) -> Result<Self> {
                match array {
                    CheckpointArray::$variant(array) => Ok(array),
                    other => Err(Error::DType(message!(
                        "The tensor is {}, and an array of {} was asked for.",
                        other.dtype(),
                        stringify!($type)
                    ))),
                }
            }
        }
    };
}

arrays! {
    F32 f32, Float32, f32::from_le_bytes;
    F64 f64, Float64, f64::from_le_bytes;
    F16 f16, Float16, f16::from_le_bytes;
    Bf16 bf16, Bfloat16, bf16::from_le_bytes;
    I8 i8, Int8, i8::from_le_bytes;
    I16 i16, Int16, i16::from_le_bytes;
    I32 i32, Int32, i32::from_le_bytes;
    I64 i64, Int64, i64::from_le_bytes;
    U8 u8, Uint8, u8::from_le_bytes;
    U16 u16, Uint16, u16::from_le_bytes;
    U32 u32, Uint32, u32::from_le_bytes;
    U64 u64, Uint64, u64::from_le_bytes;
    Bool bool, Bool, |[byte]: [u8; 1]| byte != 0;
    Complex64 [f32; 2], Complex64, |bytes: [u8; 8]| pair(bytes, f32::from_le_bytes);
    Complex128 [f64; 2], Complex128, |bytes: [u8; 16]| pair(bytes, f64::from_le_bytes);
}
into_array!(String Vec<u8>);

fn values<T, const SIZE: usize>(bytes: &[u8], from: impl Fn([u8; SIZE]) -> T) -> Vec<T> {
    let whole = bytes.chunks_exact(SIZE).filter_map(|bytes| bytes.try_into().ok());
    whole.map(from).collect()
}

/// The real and the imaginary part.
fn pair<T: Default + Copy, const BOTH: usize, const SIZE: usize>(
    bytes: [u8; BOTH],
    from: impl Fn([u8; SIZE]) -> T,
) -> [T; 2] {
    let parts = values(&bytes, from);
    [0, 1].map(|i| parts.get(i).copied().unwrap_or_default())
}
