//! Writes and reads the contents of files of arrays, in the safetensors format.
//!
//! The crate `safetensors` encodes the bytes; `arrays` defines their meaning.

use std::borrow::Cow;
use std::collections::BTreeMap;

use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensorError, SafeTensors};

use super::NamedArray;
use crate::error::{Error, Result, message};
use crate::host_array::{HostArray, HostDType};

/// The contents of a file with `arrays`.
pub(crate) fn to_bytes(arrays: &[NamedArray<'_>]) -> Result<Vec<u8>> {
    to_bytes_with(arrays, &BTreeMap::new())
}

/// The contents of a file with `arrays` and texts.
pub(crate) fn to_bytes_with(
    arrays: &[NamedArray<'_>],
    metadata: &BTreeMap<String, String>,
) -> Result<Vec<u8>> {
    let failed = |error: SafeTensorError| {
        Error::Checkpoint(message!("save: the weights cannot be written: {error}."))
    };
    let views: Vec<(&str, TensorView<'_>)> = arrays
        .iter()
        .map(|array| {
            let NamedArray { name, array } = array;
            let dtype = dtype(array.dtype()).ok_or_else(|| {
                Error::Checkpoint(message!(
                    "save: '{name}' is {}, which safetensors files do not have.",
                    array.dtype()
                ))
            })?;
            let view = TensorView::new(dtype, array.shape().to_vec(), array.bytes());
            Ok((&**name, view.map_err(failed)?))
        })
        .collect::<Result<_>>()?;
    let texts = metadata.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
    let texts = Some(texts).filter(|_| !metadata.is_empty());
    safetensors::serialize(views, texts).map_err(failed)
}

/// The arrays in a file.
pub(crate) fn from_bytes<'a>(file: &'a SafeTensors<'_>) -> Result<Vec<NamedArray<'a>>> {
    let array = |(name, view): (&'a str, TensorView<'a>)| {
        named(name, host_dtype(view.dtype()), view.shape(), view.data().into())
    };
    file.iter().map(array).collect()
}

/// The array of a tensor in a file.
pub(crate) fn named<'a>(
    name: &'a str,
    dtype: HostDType,
    shape: &[usize],
    bytes: Cow<'a, [u8]>,
) -> Result<NamedArray<'a>> {
    let array = HostArray::new(dtype, shape, bytes);
    let array = array.map_err(|error| match error {
        Error::Shape(text) => {
            Error::Data(message!("load: '{name}': {text} The file is damaged; take another copy."))
        }
        other => other,
    })?;
    Ok(NamedArray::new(name, array))
}

pub(crate) fn parse(bytes: &[u8]) -> Result<SafeTensors<'_>> {
    let damaged = |what: String| {
        Error::Data(message!(
            "load: {what}. It is damaged or not a safetensors file; take another copy."
        ))
    };
    let length = bytes.first_chunk().map(|length| u64::from_le_bytes(*length));
    let left = bytes.len().saturating_sub(8);
    match length {
        None => {
            let count = bytes.len();
            return Err(damaged(format!("the file has {count} bytes and its header alone has 8")));
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
            damaged(format!("the data of '{name}' do not begin where the tensor before it ends"))
        }
        SafeTensorError::MetadataIncompleteBuffer => {
            let length = length.unwrap_or(0);
            let data = left as u64 - length.min(left as u64);
            damaged(format!(
                "the tensors that the header names do not fill the {data} bytes after it"
            ))
        }
        other => damaged(format!("its header cannot be read: {other}")),
    })
}

/// The dtype of arrays for one of the library, by its name in the format.
pub(crate) fn host_dtype(dtype: Dtype) -> HostDType {
    HostDType::from_safetensors_name(&dtype.to_string()).unwrap_or(HostDType::Other(0))
}

/// The library's dtype, by its name in the format.
fn dtype(dtype: HostDType) -> Option<Dtype> {
    let name = serde_json::Value::from(dtype.safetensors_name()?);
    serde_json::from_value(name).ok()
}
