//! The array that a `TensorProto` describes.

use super::proto::TensorProto;
use crate::files::protobuf::{MOST_AXES, TensorShapeProto};
use crate::host_array::{HostArray, HostDType};

/// The most bytes of an array that a few numbers describe: a value may be repeated to fill the shape.
const MOST_REPEATED: usize = 1 << 30;

/// The sizes of a shape whose sizes are all known; or what is wrong with it.
pub(super) fn sizes(shape: Option<&TensorShapeProto>) -> Result<Vec<usize>, String> {
    let Some(shape) = shape else { return Ok(Vec::new()) };
    if shape.unknown_rank || shape.dim.len() > MOST_AXES {
        return Err("has a shape of unknown rank, or of too many axes".to_string());
    }
    let size = |size: i64| usize::try_from(size).map_err(|_| format!("has an axis of {size}"));
    shape.dim.iter().map(|dim| size(dim.size)).collect()
}

/// The sizes of a shape, in which -1 is an unknown one; `None` if the rank is unknown, too.
pub(crate) fn open_sizes(shape: Option<&TensorShapeProto>) -> Option<Vec<Option<usize>>> {
    let shape = shape.filter(|shape| !shape.unknown_rank)?;
    Some(shape.dim.iter().map(|dim| usize::try_from(dim.size).ok()).collect())
}

/// The array, or what is wrong with the message, as the end of a sentence.
pub(super) fn array(mut proto: TensorProto) -> Result<HostArray<'static>, String> {
    let dtype = HostDType::from_number(proto.dtype);
    let shape = sizes(proto.tensor_shape.as_ref())?;
    let count = shape.iter().try_fold(1usize, |all, size| all.checked_mul(*size));
    let count = count.ok_or_else(|| format!("has the shape {shape:?}, which no array has"))?;
    if dtype == HostDType::String {
        let strings = repeated(&proto.string_val, count, 24)?;
        return HostArray::from_strings(shape, strings).map_err(|error| format!("({error})"));
    }
    let size = dtype.size().ok_or_else(|| format!("is {dtype}, which is not supported"))?;
    let bytes = if !proto.tensor_content.is_empty() || count == 0 {
        std::mem::take(&mut proto.tensor_content)
    } else {
        fields(&proto, dtype, count)?
    };
    if count.checked_mul(size) != Some(bytes.len()) {
        return Err(format!("has {} bytes for the shape {shape:?} of {dtype}", bytes.len()));
    }
    HostArray::new(dtype, shape, bytes).map_err(|error| format!("({error})"))
}

/// The elements' bytes from the field of the dtype.
fn fields(proto: &TensorProto, dtype: HostDType, count: usize) -> Result<Vec<u8>, String> {
    macro_rules! bytes {
        ($values:expr, $type:ty) => {
            bytes_of(&$values, count, |value| (*value as $type).to_le_bytes())
        };
    }
    match dtype {
        HostDType::F32 => bytes!(proto.float_val, f32),
        HostDType::F64 => bytes!(proto.double_val, f64),
        HostDType::I32 => bytes!(proto.int_val, i32),
        HostDType::I16 => bytes!(proto.int_val, i16),
        HostDType::I8 => bytes!(proto.int_val, i8),
        HostDType::U16 => bytes!(proto.int_val, u16),
        HostDType::U8 => bytes!(proto.int_val, u8),
        HostDType::F16 | HostDType::Bf16 => bytes!(proto.half_val, u16),
        HostDType::I64 => bytes!(proto.int64_val, i64),
        HostDType::U32 => bytes!(proto.uint32_val, u32),
        HostDType::U64 => bytes!(proto.uint64_val, u64),
        HostDType::Bool => bytes_of(&proto.bool_val, count, |value| [u8::from(*value)]),
        _ => Err(format!("is {dtype}, which is not supported")),
    }
}

fn bytes_of<T: Clone + Default, const N: usize>(
    values: &[T],
    count: usize,
    bytes: impl Fn(&T) -> [u8; N],
) -> Result<Vec<u8>, String> {
    Ok(repeated(values, count, N)?.iter().flat_map(bytes).collect())
}

/// `count` values of `size` bytes: the last one is repeated, as TensorFlow does; without any, all have the default.
fn repeated<T: Clone + Default>(values: &[T], count: usize, size: usize) -> Result<Vec<T>, String> {
    if values.len() > count {
        return Err(format!("has {} values for {count} elements", values.len()));
    }
    if values.len() < count && count.saturating_mul(size) > MOST_REPEATED {
        return Err(format!(
            "repeats a value for {count} elements, which is more than a model has"
        ));
    }
    let mut all = values.to_vec();
    all.resize(count, values.last().cloned().unwrap_or_default());
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::protobuf::Dim;

    fn of(dtype: HostDType, shape: &[i64]) -> TensorProto {
        let dim = shape.iter().map(|&size| Dim { size }).collect();
        let shape = TensorShapeProto { dim, unknown_rank: false };
        TensorProto { dtype: dtype.number(), tensor_shape: Some(shape), ..TensorProto::default() }
    }

    #[test]
    fn values_come_from_bytes_or_from_the_dtypes_field() {
        let bytes = TensorProto {
            tensor_content: vec![1, 0, 0, 0, 2, 0, 0, 0],
            ..of(HostDType::I32, &[2])
        };
        assert_eq!(
            array(bytes).unwrap().to_array::<i32>().unwrap().into_raw_vec_and_offset().0,
            [1, 2]
        );
        let repeated = TensorProto { float_val: vec![1.0, 2.5], ..of(HostDType::F32, &[4]) };
        let values = array(repeated).unwrap().to_array::<f32>().unwrap();
        assert_eq!(values.into_raw_vec_and_offset().0, [1.0, 2.5, 2.5, 2.5]);
        let half = TensorProto { half_val: vec![0x3c00], ..of(HostDType::F16, &[]) };
        assert_eq!(array(half).unwrap().to_f64().unwrap().first(), Some(&1.0));
        let none = array(of(HostDType::I64, &[3])).unwrap();
        assert_eq!(none.bytes(), [0; 24]);
        let text = TensorProto { string_val: vec![b"a".to_vec()], ..of(HostDType::String, &[2]) };
        assert_eq!(array(text).unwrap().strings().unwrap(), [b"a", b"a"]);
    }

    #[test]
    fn wrong_numbers_of_values_are_refused() {
        for (proto, words) in [
            (of(HostDType::F32, &[1 << 40]), "more than a model has"),
            (of(HostDType::F32, &[1 << 40, 1 << 40]), "which no array has"),
            (of(HostDType::F32, &[-1]), "has an axis of -1"),
            (of(HostDType::Variant, &[1]), "is variant"),
            (TensorProto { float_val: vec![0.0; 3], ..of(HostDType::F32, &[2]) }, "3 values for 2"),
            (TensorProto { tensor_content: vec![0; 7], ..of(HostDType::F32, &[2]) }, "7 bytes"),
        ] {
            let why = array(proto).unwrap_err();
            assert!(why.contains(words), "{why}");
        }
    }
}
