//! The array that an ONNX tensor describes, whose bytes may be in another file.

use super::proto::TensorProto;
use crate::error::{Error, Result, message};
use crate::host_array::{HostArray, HostDType};
use crate::saved_model::model_files::{ModelFiles, stays_inside};

/// The dtype with this number in ONNX.
pub(super) fn dtype(number: i32) -> HostDType {
    match number {
        1 => HostDType::F32,
        2 => HostDType::U8,
        3 => HostDType::I8,
        4 => HostDType::U16,
        5 => HostDType::I16,
        6 => HostDType::I32,
        7 => HostDType::I64,
        8 => HostDType::String,
        9 => HostDType::Bool,
        10 => HostDType::F16,
        11 => HostDType::F64,
        12 => HostDType::U32,
        13 => HostDType::U64,
        14 => HostDType::Complex64,
        15 => HostDType::Complex128,
        16 => HostDType::Bf16,
        other => HostDType::Other(other),
    }
}

/// The array of a tensor. `files` are the other files of the model.
///
/// # Errors
/// [`Error::Data`] if the tensor is damaged, [`Error::Io`] if another file cannot be read.
pub(super) fn array(mut proto: TensorProto, files: &ModelFiles) -> Result<HostArray<'static>> {
    let name = proto.name.clone();
    let broken = |what: String| Error::Data(message!("the tensor \"{name}\" {what}."));
    let dtype = dtype(proto.data_type);
    let shape = proto.dims.iter().map(|size| usize::try_from(*size));
    let shape: Vec<usize> = shape
        .collect::<Result<_, _>>()
        .map_err(|_| broken(format!("has the sizes {:?}", proto.dims)))?;
    if dtype == HostDType::String {
        return HostArray::from_strings(shape, proto.string_data);
    }
    let wanted = dtype.array_bytes(&shape).ok_or_else(|| {
        broken(format!("has the sizes {shape:?} of {dtype}, which is not supported"))
    })?;
    let bytes = if proto.data_location == 1 {
        external(&proto, files, wanted)?
    } else if !proto.raw_data.is_empty() {
        std::mem::take(&mut proto.raw_data)
    } else {
        fields(&proto, dtype)
            .ok_or_else(|| broken(format!("is {dtype}, which is not supported")))?
    };
    if bytes.len() != wanted {
        return Err(broken(format!(
            "has {} bytes, and its sizes {shape:?} of {dtype} need {wanted}",
            bytes.len()
        )));
    }
    HostArray::new(dtype, shape, bytes)
}

/// The elements' bytes from the field of the dtype.
fn fields(proto: &TensorProto, dtype: HostDType) -> Option<Vec<u8>> {
    macro_rules! bytes {
        ($values:expr, $type:ty) => {
            $values.iter().flat_map(|value| (*value as $type).to_le_bytes()).collect()
        };
    }
    Some(match dtype {
        HostDType::F32 => bytes!(proto.float_data, f32),
        HostDType::F64 => bytes!(proto.double_data, f64),
        HostDType::I64 => bytes!(proto.int64_data, i64),
        HostDType::I32 => bytes!(proto.int32_data, i32),
        HostDType::I16 => bytes!(proto.int32_data, i16),
        HostDType::I8 => bytes!(proto.int32_data, i8),
        HostDType::U8 | HostDType::Bool => bytes!(proto.int32_data, u8),
        // Floats of 16 bits as their bits.
        HostDType::U16 | HostDType::F16 | HostDType::Bf16 => bytes!(proto.int32_data, u16),
        HostDType::U32 => bytes!(proto.uint64_data, u32),
        HostDType::U64 => bytes!(proto.uint64_data, u64),
        _ => return None,
    })
}

/// The bytes in another file of the model's folder.
fn external(proto: &TensorProto, files: &ModelFiles, wanted: usize) -> Result<Vec<u8>> {
    let broken = |what: String| Error::Data(message!("the tensor \"{}\" {what}.", proto.name));
    let entry = |key: &str| {
        let entry = proto.external_data.iter().find(|entry| entry.key == key);
        entry.map(|entry| &entry.value[..])
    };
    let number = |key: &str, default: u64| match entry(key) {
        Some(text) => text.parse::<u64>().map_err(|_| broken(format!("has the {key} \"{text}\""))),
        None => Ok(default),
    };
    let location = entry("location").unwrap_or("");
    if !stays_inside(location) {
        return Err(broken(format!(
            "is in the file \"{location}\", which is outside the model's folder"
        )));
    }
    let (offset, length) = (number("offset", 0)?, number("length", wanted as u64)?);
    let size = files.size(location)?;
    let end = offset.checked_add(length).filter(|end| *end <= size);
    if end.is_none() || length != wanted as u64 {
        return Err(broken(format!(
            "should have {wanted} bytes, and {length} from byte {offset} on are named of {}, which has {size}",
            files.title(location)
        )));
    }
    files.part(location, offset, wanted)
}
