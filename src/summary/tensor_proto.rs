//! Reads the values of a tensor in an event file.

use super::proto::TensorProto;
use crate::files::protobuf::MOST_AXES;
use crate::host_array::{HostArray, HostDType};

/// The values of a message that has `bytes` bytes in the file; returns an error if they do not match its shape.
pub(super) fn array(proto: &TensorProto, bytes: usize) -> Result<HostArray<'static>, String> {
    let mut shape = Vec::new();
    let dims = proto.shape.as_ref().map_or(&[][..], |shape| &shape.dim[..]);
    let unknown = proto.shape.as_ref().is_some_and(|shape| shape.unknown_rank);
    if unknown || dims.len() > MOST_AXES {
        return Err("has no known shape".to_string());
    }
    for dim in dims {
        let size = usize::try_from(dim.size).ok().filter(|size| *size <= i64::MAX as usize);
        shape.push(size.ok_or_else(|| format!("has an axis of {}", dim.size))?);
    }
    let product = |count: usize, size: &usize| count.checked_mul(*size);
    let count = shape.iter().try_fold(1usize, product);
    // One value may represent many, which must not use unlimited memory.
    let most = 64 + 16 * bytes;
    let count = count
        .filter(|count| *count <= most)
        .ok_or_else(|| format!("of shape {shape:?} does not fit into its {bytes} bytes"))?;
    let dtype = HostDType::from_number(proto.dtype);
    if dtype == HostDType::String {
        return HostArray::from_strings(&shape, proto.string_val.clone()).map_err(|_| {
            let have = proto.string_val.len();
            format!("of shape {shape:?} has {have} strings and not {count}")
        });
    }
    let (Some(listed), Some(size)) = (listed(proto, dtype), dtype.size()) else {
        return Err(format!("has TensorFlow's dtype {}, which wgrad does not read", proto.dtype));
    };
    let (wanted, content) = (count.saturating_mul(size), &proto.content);
    let values = if !content.is_empty() {
        if content.len() != wanted {
            let have = content.len();
            return Err(format!("of shape {shape:?} has {have} bytes and not {wanted}"));
        }
        content.clone()
    } else {
        if listed.len() > wanted {
            let have = listed.len() / size;
            return Err(format!("of shape {shape:?} has {have} values and not {count}"));
        }
        // The last value represents all that follow; without any, they are 0.
        let last = match listed.len().checked_sub(size) {
            Some(at) => listed[at..].to_vec(),
            None => vec![0; size],
        };
        let missing = (wanted - listed.len()) / size;
        [listed, last.repeat(missing)].concat()
    };
    HostArray::new(dtype, &shape, values)
        .map_err(|error| format!("of shape {shape:?} is refused: {error}"))
}

/// The bytes of the values that are listed one by one; none if the dtype is not read.
fn listed(proto: &TensorProto, dtype: HostDType) -> Option<Vec<u8>> {
    fn bytes<T: Copy, const SIZE: usize>(values: &[T], to: impl Fn(T) -> [u8; SIZE]) -> Vec<u8> {
        values.iter().flat_map(|value| to(*value)).collect()
    }
    Some(match dtype {
        HostDType::F32 => bytes(&proto.float_val, f32::to_le_bytes),
        HostDType::F64 => bytes(&proto.double_val, f64::to_le_bytes),
        HostDType::I64 => bytes(&proto.int64_val, i64::to_le_bytes),
        HostDType::U64 => bytes(&proto.uint64_val, u64::to_le_bytes),
        HostDType::U32 => bytes(&proto.uint32_val, u32::to_le_bytes),
        HostDType::I32 => bytes(&proto.int_val, i32::to_le_bytes),
        HostDType::I16 | HostDType::U16 => {
            bytes(&proto.int_val, |value| (value as u16).to_le_bytes())
        }
        HostDType::I8 | HostDType::U8 => bytes(&proto.int_val, |value| [value as u8]),
        HostDType::F16 | HostDType::Bf16 => {
            bytes(&proto.half_val, |bits| (bits as u16).to_le_bytes())
        }
        HostDType::Bool => bytes(&proto.bool_val, |value| [u8::from(value)]),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use half::bf16;
    use ndarray::array;

    use super::*;
    use crate::files::protobuf::{Dim, TensorShapeProto};

    fn shaped(dtype: HostDType, shape: &[usize]) -> TensorProto {
        let shape = Some(TensorShapeProto::new(shape));
        TensorProto { dtype: dtype.number(), shape, ..TensorProto::default() }
    }

    #[test]
    fn values_are_bytes_or_listed_one_by_one() {
        let read = |proto: &TensorProto| array(proto, 100).unwrap();
        let content = vec![1, 0, 255, 255];
        let proto = TensorProto { content, ..shaped(HostDType::I16, &[2]) };
        assert_eq!(read(&proto), array![1i16, -1].into());
        // The last value stands for the rest.
        let proto = TensorProto { int_val: vec![7, -1], ..shaped(HostDType::I8, &[2, 2]) };
        assert_eq!(read(&proto), array![[7i8, -1], [-1, -1]].into());
        assert_eq!(read(&shaped(HostDType::F64, &[3])), array![0f64, 0.0, 0.0].into());
        let half_val = vec![i32::from(bf16::ONE.to_bits())];
        let proto = TensorProto { half_val, ..shaped(HostDType::Bf16, &[2]) };
        assert_eq!(read(&proto), array![bf16::ONE, bf16::ONE].into());
        let proto = TensorProto { bool_val: vec![true], ..shaped(HostDType::Bool, &[1]) };
        assert_eq!(read(&proto), array![true].into());
        let string_val = vec![b"a".to_vec(), Vec::new()];
        let proto = TensorProto { string_val, ..shaped(HostDType::String, &[2]) };
        assert_eq!(read(&proto), array![b"a".to_vec(), Vec::new()].into());
    }

    #[test]
    fn what_does_not_fit_the_shape_is_refused() {
        let refused = |proto: &TensorProto| array(proto, 100).unwrap_err();
        let content = TensorProto { content: vec![0; 7], ..shaped(HostDType::F32, &[2]) };
        assert_eq!(refused(&content), "of shape [2] has 7 bytes and not 8");
        let listed = TensorProto { float_val: vec![0.0; 3], ..shaped(HostDType::F32, &[2]) };
        assert_eq!(refused(&listed), "of shape [2] has 3 values and not 2");
        assert_eq!(
            refused(&shaped(HostDType::String, &[1])),
            "of shape [1] has 0 strings and not 1"
        );
        assert!(refused(&shaped(HostDType::U8, &[1 << 40])).contains("does not fit"));
        assert!(refused(&shaped(HostDType::U8, &[1 << 40, 1 << 40])).contains("does not fit"));
        assert!(refused(&shaped(HostDType::Resource, &[1])).contains("dtype 20"));
        let mut proto = shaped(HostDType::U8, &[]);
        proto.shape = Some(TensorShapeProto { dim: vec![Dim { size: -2 }], unknown_rank: false });
        assert_eq!(refused(&proto), "has an axis of -2");
    }
}
