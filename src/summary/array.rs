//! [`Array`]: the values of a tensor in an event file.

use half::{bf16, f16};
use ndarray::{ArrayD, IxDyn};

use super::proto::{TensorProto, dtype};

/// A tensor as an event file stores it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Array {
    /// Also of `float16` and `bfloat16`.
    F32(ArrayD<f32>),
    /// `float64`.
    F64(ArrayD<f64>),
    /// All integers except `uint64`.
    I64(ArrayD<i64>),
    /// `uint64`.
    U64(ArrayD<u64>),
    /// `bool`.
    Bool(ArrayD<bool>),
    /// `string`: any bytes.
    Bytes(ArrayD<Vec<u8>>),
}

impl Array {
    /// The sizes of the axes.
    pub fn shape(&self) -> &[usize] {
        match self {
            Array::F32(array) => array.shape(),
            Array::F64(array) => array.shape(),
            Array::I64(array) => array.shape(),
            Array::U64(array) => array.shape(),
            Array::Bool(array) => array.shape(),
            Array::Bytes(array) => array.shape(),
        }
    }

    /// The values as `f64`; `None` for strings.
    pub fn to_f64(&self) -> Option<ArrayD<f64>> {
        Some(match self {
            Array::F32(array) => array.mapv(f64::from),
            Array::F64(array) => array.clone(),
            Array::I64(array) => array.mapv(|value| value as f64),
            Array::U64(array) => array.mapv(|value| value as f64),
            Array::Bool(array) => array.mapv(|value| f64::from(u8::from(value))),
            Array::Bytes(_) => return None,
        })
    }

    /// The strings; `None` for numbers.
    pub(super) fn strings(&self) -> Option<&ArrayD<Vec<u8>>> {
        match self {
            Array::Bytes(array) => Some(array),
            _ => None,
        }
    }

    /// The values of a message that has `bytes` bytes in the file; returns an error if they do not
    /// match its shape.
    pub(super) fn from_proto(proto: &TensorProto, bytes: usize) -> Result<Self, String> {
        let mut shape = Vec::new();
        // TensorFlow has at most 254 axes.
        let dims = proto.shape.as_ref().map_or(&[][..], |shape| &shape.dim[..]);
        if proto.shape.as_ref().is_some_and(|shape| shape.unknown_rank) || dims.len() > 254 {
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
        let read = Read { proto, shape: &shape, count };
        match proto.dtype {
            dtype::FLOAT => {
                read.values(4, |b| f32::from_le_bytes(four(b)), &proto.float_val).map(Array::F32)
            }
            dtype::HALF => {
                let values =
                    proto.half_val.iter().map(|bits| f16::from_bits(*bits as u16).to_f32());
                read.values(
                    2,
                    |b| f16::from_le_bytes([b[0], b[1]]).to_f32(),
                    &values.collect::<Vec<_>>(),
                )
                .map(Array::F32)
            }
            dtype::BFLOAT16 => {
                let values =
                    proto.half_val.iter().map(|bits| bf16::from_bits(*bits as u16).to_f32());
                read.values(
                    2,
                    |b| bf16::from_le_bytes([b[0], b[1]]).to_f32(),
                    &values.collect::<Vec<_>>(),
                )
                .map(Array::F32)
            }
            dtype::DOUBLE => {
                read.values(8, |b| f64::from_le_bytes(eight(b)), &proto.double_val).map(Array::F64)
            }
            dtype::INT64 => {
                read.values(8, |b| i64::from_le_bytes(eight(b)), &proto.int64_val).map(Array::I64)
            }
            dtype::UINT64 => {
                read.values(8, |b| u64::from_le_bytes(eight(b)), &proto.uint64_val).map(Array::U64)
            }
            dtype::UINT32 => {
                let values: Vec<i64> =
                    proto.uint32_val.iter().map(|value| i64::from(*value)).collect();
                read.values(4, |b| i64::from(u32::from_le_bytes(four(b))), &values).map(Array::I64)
            }
            dtype::BOOL => read.values(1, |b| b[0] != 0, &proto.bool_val).map(Array::Bool),
            dtype::INT32 | dtype::INT16 | dtype::INT8 | dtype::UINT16 | dtype::UINT8 => {
                let values: Vec<i64> =
                    proto.int_val.iter().map(|value| i64::from(*value)).collect();
                let (size, from): (usize, fn(&[u8]) -> i64) = match proto.dtype {
                    dtype::INT32 => (4, |b| i64::from(i32::from_le_bytes(four(b)))),
                    dtype::INT16 => (2, |b| i64::from(i16::from_le_bytes([b[0], b[1]]))),
                    dtype::UINT16 => (2, |b| i64::from(u16::from_le_bytes([b[0], b[1]]))),
                    dtype::INT8 => (1, |b| i64::from(b[0] as i8)),
                    _ => (1, |b| i64::from(b[0])),
                };
                read.values(size, from, &values).map(Array::I64)
            }
            dtype::STRING => match proto.string_val.len() == count {
                true => read.shaped(proto.string_val.clone()).map(Array::Bytes),
                false => {
                    let have = proto.string_val.len();
                    Err(format!("of shape {shape:?} has {have} strings and not {count}"))
                }
            },
            other => Err(format!("has TensorFlow's dtype {other}, which wgrad does not read")),
        }
    }
}

struct Read<'a> {
    proto: &'a TensorProto,
    shape: &'a [usize],
    count: usize,
}

impl Read<'_> {
    fn shaped<T>(&self, values: Vec<T>) -> Result<ArrayD<T>, String> {
        ArrayD::from_shape_vec(IxDyn(self.shape), values)
            .map_err(|error| format!("of shape {:?} is refused: {error}", self.shape))
    }

    /// The values by their bytes, or one by one.
    fn values<T: Copy + Default>(
        &self,
        size: usize,
        from: impl Fn(&[u8]) -> T,
        listed: &[T],
    ) -> Result<ArrayD<T>, String> {
        let (content, count) = (&self.proto.content, self.count);
        if !content.is_empty() {
            if content.len() != count.saturating_mul(size) {
                let have = content.len();
                return Err(format!(
                    "of shape {:?} has {have} bytes and not {}",
                    self.shape,
                    count.saturating_mul(size)
                ));
            }
            return self.shaped(content.chunks_exact(size).map(from).collect());
        }
        if listed.len() > count {
            return Err(format!(
                "of shape {:?} has {} values and not {count}",
                self.shape,
                listed.len()
            ));
        }
        let mut values = listed.to_vec();
        // The last value represents all that follow; without any, they are 0.
        values.resize(count, listed.last().copied().unwrap_or_default());
        self.shaped(values)
    }
}

fn four(bytes: &[u8]) -> [u8; 4] {
    [bytes[0], bytes[1], bytes[2], bytes[3]]
}

fn eight(bytes: &[u8]) -> [u8; 8] {
    let mut all = [0; 8];
    all.copy_from_slice(&bytes[..8]);
    all
}
