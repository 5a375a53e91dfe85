//! Weights on the host by their variables' names, and files of them in the safetensors format.
//!
//! What a file holds is decided here; how its bytes are laid out is the crate `safetensors`' affair. Optimizers'
//! slots are not part of it, but of a [`Checkpoint`](super::Checkpoint).

use std::borrow::Cow;

use super::{Layer, Sequential};
use crate::dtype::DType;
use crate::error::{Error, Result, message};
use crate::tensor::Tensor;
use crate::variable::Variable;

/// A variable's value on the host, as weight files hold it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedArray<'a> {
    /// The variable's name, such as `dense/kernel`.
    pub name: Cow<'a, str>,
    /// The dtype by safetensors' names: `F32`, `F16`, `I32`, `U32`, `U8`, `BOOL`.
    pub dtype: Cow<'a, str>,
    /// The sizes of the axes, outermost first.
    pub shape: Vec<usize>,
    /// The elements in row-major order, little-endian; one byte for a truth value.
    pub bytes: Cow<'a, [u8]>,
}

impl Sequential {
    /// The values of all variables under their names, those of one moment however long reading takes. What a weight
    /// file is made of; see [`Sequential::set_named_arrays`].
    ///
    /// # Errors
    /// [`Error::Checkpoint`] if two variables share a name or the layers have not been sized; [`Error::Device`] if
    /// the device is lost.
    pub async fn named_arrays_async(&self) -> Result<Vec<NamedArray<'static>>> {
        arrays_of(self.name(), &self.variables()).await
    }

    /// Gives the variables the values that stand under their names, on
    /// [`Device::current`](crate::Device::current).
    ///
    /// # Errors
    /// [`Error::Checkpoint`] if a name is missing or unknown, or a shape or dtype is not the variable's; the
    /// variables are then as they were. [`Error::Device`] if there is no memory.
    pub fn set_named_arrays(&self, arrays: &[NamedArray<'_>]) -> Result<()> {
        set_arrays(self.name(), &self.variables(), arrays)
    }
}

/// The values of `variables`, which belong to `model`.
pub(super) async fn arrays_of(
    model: &str,
    variables: &[Variable],
) -> Result<Vec<NamedArray<'static>>> {
    check_names("save", model, variables)?;
    let now: Vec<Tensor> = variables.iter().map(Variable::peek).collect();
    let bytes = Tensor::all_bytes_async(&now.iter().collect::<Vec<_>>()).await?;
    let array = |(variable, mut bytes): (&Variable, Vec<u8>)| {
        if variable.dtype() == DType::Bool {
            bytes = bytes.chunks_exact(4).map(|word| u8::from(word != [0; 4])).collect();
        }
        NamedArray {
            name: variable.name().to_string().into(),
            dtype: file_name(variable.dtype()).into(),
            shape: variable.shape().to_vec(),
            bytes: bytes.into(),
        }
    };
    Ok(variables.iter().zip(bytes).map(array).collect())
}

/// Gives `variables`, which belong to `model`, the values of their names, or leaves all as they are.
pub(super) fn set_arrays(
    model: &str,
    variables: &[Variable],
    arrays: &[NamedArray<'_>],
) -> Result<()> {
    check_names("load", model, variables)?;
    let known = |name: &str| variables.iter().any(|variable| variable.name() == name);
    if let Some(array) = arrays.iter().find(|array| !known(&array.name)) {
        return Err(Error::Checkpoint(message!(
            "load: the weights hold '{}' {:?}, and the model '{model}' has no such variable; it has {}. Give the layers \
             the names that they had when the weights were saved.",
            array.name,
            array.shape,
            list(variables.iter().map(Variable::name))
        )));
    }
    let find = |variable: &Variable| {
        let found = arrays.iter().find(|array| array.name == variable.name());
        found.ok_or_else(|| {
            Error::Checkpoint(message!(
                "load: the weights lack '{}' {:?}; they hold {}. Load weights that a model with the same layers \
                 has saved.",
                variable.name(),
                variable.shape(),
                list(arrays.iter().map(|array| &*array.name))
            ))
        })
    };
    // Nothing is assigned before all has been looked at.
    let values: Vec<Tensor> =
        variables.iter().map(|variable| value(variable, find(variable)?)).collect::<Result<_>>()?;
    variables.iter().zip(&values).try_for_each(|(variable, value)| variable.assign(value))
}

/// The array as a tensor that the variable can hold.
fn value(variable: &Variable, array: &NamedArray<'_>) -> Result<Tensor> {
    let (name, dtype) = (variable.name(), variable.dtype());
    if array.shape != variable.shape() {
        return Err(Error::Checkpoint(message!(
            "load: '{name}' is {:?} in the weights and {:?} in the model. Load weights that a model with the same \
             layers has saved.",
            array.shape,
            variable.shape()
        )));
    }
    if array.dtype != file_name(dtype) {
        return Err(Error::Checkpoint(message!(
            "load: '{name}' is {} in the weights and {} in the model. Convert the weights, or make a model of that \
             dtype.",
            array.dtype,
            file_name(dtype)
        )));
    }
    let elements = variable.spec().elements();
    let size = if dtype == DType::Bool { 1 } else { dtype.size() };
    if array.bytes.len() != elements * size {
        return Err(Error::Data(message!(
            "load: '{name}' {:?} of {} needs {} bytes, and the weights give it {}. The file is damaged; take \
             another copy.",
            array.shape,
            array.dtype,
            elements * size,
            array.bytes.len()
        )));
    }
    if dtype == DType::Bool {
        let values: Vec<bool> = array.bytes.iter().map(|byte| *byte != 0).collect();
        return Tensor::from_slice(&values, variable.shape());
    }
    Tensor::from_bytes(&array.bytes, variable.shape(), dtype)
}

/// Names tell the variables apart, and there are some.
fn check_names(call: &str, model: &str, variables: &[Variable]) -> Result<()> {
    if variables.is_empty() {
        return Err(Error::Checkpoint(message!(
            "{call}: the model '{model}' has no variables. Its layers have not been sized yet: call the model once, or \
             use build."
        )));
    }
    let twice = variables.iter().enumerate().find(|(at, variable)| {
        variables[..*at].iter().any(|other| other.name() == variable.name())
    });
    match twice {
        None => Ok(()),
        Some((_, variable)) => Err(Error::Checkpoint(message!(
            "{call}: two variables of the model '{model}' are called '{}'. Give one of their layers another name.",
            variable.name()
        ))),
    }
}

/// A few names for a message.
fn list<'a>(names: impl ExactSizeIterator<Item = &'a str>) -> String {
    let more = names.len().saturating_sub(6);
    let shown: Vec<String> = names.take(6).map(|name| format!("'{name}'")).collect();
    match (shown.is_empty(), more) {
        (true, _) => "nothing".to_string(),
        (_, 0) => shown.join(", "),
        _ => format!("{} and {more} more", shown.join(", ")),
    }
}

/// What safetensors calls a dtype.
fn file_name(dtype: DType) -> &'static str {
    match dtype {
        DType::F32 => "F32",
        DType::F16 => "F16",
        DType::I32 => "I32",
        DType::U32 => "U32",
        DType::U8 => "U8",
        DType::Bool => "BOOL",
    }
}

#[cfg(feature = "safetensors")]
pub(super) mod file {
    #[cfg(not(target_family = "wasm"))]
    use std::{fs::File, io::Write, path::Path};

    use safetensors::tensor::TensorView;
    use safetensors::{Dtype, SafeTensorError, SafeTensors};

    use super::{NamedArray, Sequential};
    use crate::error::{Error, Result, message};
    #[cfg(not(target_family = "wasm"))]
    use crate::files;

    impl Sequential {
        /// The weights as the contents of a safetensors file, with the variables' names.
        ///
        /// # Errors
        /// As [`Sequential::named_arrays_async`].
        pub async fn to_safetensors_async(&self) -> Result<Vec<u8>> {
            to_bytes(&self.named_arrays_async().await?)
        }

        /// Gives the variables the weights that the contents of a safetensors file hold under their names.
        ///
        /// # Errors
        /// [`Error::Data`] if they are no such contents or are damaged; else as [`Sequential::set_named_arrays`].
        pub fn load_safetensors(&self, bytes: &[u8]) -> Result<()> {
            self.set_named_arrays(&from_bytes(&parse(bytes)?))
        }

        /// Writes the weights to a safetensors file, with the variables' names. Blocks.
        ///
        /// What was at `path` is replaced once the new file is complete, and stays if that fails. What an earlier process
        /// has left beside it that was killed meanwhile (`NAME.….tmp`) is removed.
        ///
        /// ```
        /// # fn main() -> wgrad::Result<()> {
        /// use wgrad as tf;
        /// use tf::keras::{Layer, Sequential, layers::Dense};
        /// let model = || -> tf::Result<Sequential> {
        ///     let model = Sequential::new().add(Dense::new(3));
        ///     model.build([1, 2])?;
        ///     Ok(model)
        /// };
        /// let (trained, other) = (model()?, model()?);
        /// let path = std::env::temp_dir().join(format!("wgrad-doc-{}.safetensors", std::process::id()));
        /// trained.save_weights(&path)?;
        /// other.load_weights(&path)?;
        /// assert_eq!(other.get_weights()?, trained.get_weights()?);
        /// # std::fs::remove_file(path).expect("it was written");
        /// # Ok(())
        /// # }
        /// ```
        ///
        /// # Errors
        /// As [`Sequential::named_arrays_async`]; [`Error::Io`] if the file cannot be written, or `path` is a folder, a
        /// pipe or a device.
        #[cfg(not(target_family = "wasm"))]
        pub fn save_weights(&self, path: impl AsRef<Path>) -> Result<()> {
            let bytes = pollster::block_on(self.to_safetensors_async())?;
            save(path.as_ref(), &bytes)
        }

        /// Gives the variables the weights that a safetensors file holds under their names.
        ///
        /// # Errors
        /// [`Error::Io`] if the file cannot be read, or is a folder, a pipe or a device; else as [`Sequential::load_safetensors`].
        #[cfg(not(target_family = "wasm"))]
        pub fn load_weights(&self, path: impl AsRef<Path>) -> Result<()> {
            load(path.as_ref(), |bytes| self.load_safetensors(bytes))
        }
    }

    /// The contents of a file with `arrays`.
    pub(in crate::keras) fn to_bytes(arrays: &[NamedArray<'_>]) -> Result<Vec<u8>> {
        let failed = |error: SafeTensorError| {
            Error::Checkpoint(message!("save: the weights cannot be written: {error}."))
        };
        let views: Vec<(&str, TensorView<'_>)> = arrays
            .iter()
            .map(|array| {
                let view = TensorView::new(dtype(&array.dtype), array.shape.clone(), &array.bytes);
                Ok((&*array.name, view.map_err(failed)?))
            })
            .collect::<Result<_>>()?;
        safetensors::serialize(views, None).map_err(failed)
    }

    /// What a file holds.
    pub(in crate::keras) fn from_bytes<'a>(file: &'a SafeTensors<'_>) -> Vec<NamedArray<'a>> {
        let arrays = file.iter().map(|(name, view)| NamedArray {
            name: name.into(),
            dtype: view.dtype().to_string().into(),
            shape: view.shape().to_vec(),
            bytes: view.data().into(),
        });
        arrays.collect()
    }

    /// Puts a file at `path`.
    #[cfg(not(target_family = "wasm"))]
    pub(in crate::keras) fn save(path: &Path, bytes: &[u8]) -> Result<()> {
        let write = |file: &mut File| {
            file.write_all(bytes)?;
            // On the disk before the old file goes, so that a power cut leaves one of the two.
            file.sync_all()
        };
        files::replace(path, write).map_err(|error| Error::io(path, error))
    }

    /// Hands over the contents of the file at `path`, which errors then name.
    #[cfg(not(target_family = "wasm"))]
    pub(in crate::keras) fn load(
        path: &Path,
        take: impl FnOnce(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let bytes = files::read(path).map_err(|error| Error::io(path, error))?;
        take(&bytes).map_err(|error| match error {
            Error::Data(text) => Error::Data(message!("{}: {text}", path.display())),
            Error::Checkpoint(text) => Error::Checkpoint(message!("{}: {text}", path.display())),
            other => other,
        })
    }

    pub(in crate::keras) fn parse(bytes: &[u8]) -> Result<SafeTensors<'_>> {
        let damaged = |what: String| {
            Error::Data(message!(
                "load: {what}. It is damaged or no safetensors file; take another copy."
            ))
        };
        let length = bytes.first_chunk().map(|length| u64::from_le_bytes(*length));
        let left = bytes.len().saturating_sub(8);
        match length {
            None => {
                let count = bytes.len();
                return Err(damaged(format!(
                    "the file has {count} bytes and its header alone has 8"
                )));
            }
            Some(length) if length > left as u64 => {
                return Err(damaged(format!(
                    "the file says that its header has {length} bytes, and {left} are left"
                )));
            }
            Some(_) => {}
        }
        SafeTensors::deserialize(bytes).map_err(|error| match error {
            SafeTensorError::InvalidOffset(name) => {
                damaged(format!("the place of '{name}' is not where the tensor before it ends"))
            }
            SafeTensorError::MetadataIncompleteBuffer => {
                let length = length.unwrap_or(0);
                let data = left as u64 - length.min(left as u64);
                damaged(format!(
                    "the tensors that the header names do not fill the {data} bytes behind it"
                ))
            }
            other => damaged(format!("its header cannot be read: {other}")),
        })
    }

    fn dtype(name: &str) -> Dtype {
        match name {
            "F16" => Dtype::F16,
            "I32" => Dtype::I32,
            "U32" => Dtype::U32,
            "U8" => Dtype::U8,
            "BOOL" => Dtype::BOOL,
            "U64" => Dtype::U64,
            _ => Dtype::F32,
        }
    }
}
