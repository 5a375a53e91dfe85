//! Conversions of an array before it is assigned to a variable: to another dtype if no value changes, and to other
//! orders of axes.
//!
//! These functions round only on request.

use std::borrow::Cow;

use half::{bf16, f16};

use crate::dtype::DType;
use crate::error::{Error, Result, message};
use crate::trackable::NamedArray;
use crate::trackable::arrays::file_name;

/// The size of an element in bytes, by the safetensors name of its dtype; none if it is unknown or smaller than a byte.
pub(crate) fn element_size(dtype: &str) -> Option<usize> {
    Some(match dtype {
        "BOOL" | "U8" | "I8" | "F8_E4M3" | "F8_E5M2" | "F8_E8M0" => 1,
        "U16" | "I16" | "F16" | "BF16" => 2,
        "U32" | "I32" | "F32" => 4,
        "U64" | "I64" | "F64" => 8,
        _ => return None,
    })
}

/// One value of any dtype that can be converted.
#[derive(Clone, Copy)]
enum Value {
    Float(f64),
    Int(i128),
}

fn reader(dtype: &str) -> Option<fn(&[u8]) -> Value> {
    macro_rules! number {
        ($type:ty, $kind:ident as $wide:ty) => {
            |bytes| {
                Value::$kind(<$wide>::from(<$type>::from_le_bytes(
                    bytes.try_into().unwrap_or_default(),
                )))
            }
        };
    }
    Some(match dtype {
        "F16" => number!(f16, Float as f64),
        "BF16" => number!(bf16, Float as f64),
        "F32" => number!(f32, Float as f64),
        "F64" => number!(f64, Float as f64),
        "I8" => number!(i8, Int as i128),
        "U8" => number!(u8, Int as i128),
        "I16" => number!(i16, Int as i128),
        "U16" => number!(u16, Int as i128),
        "I32" => number!(i32, Int as i128),
        "U32" => number!(u32, Int as i128),
        "I64" => number!(i64, Int as i128),
        "U64" => number!(u64, Int as i128),
        _ => return None,
    })
}

impl Value {
    /// The value in `dtype`: none if `dtype` cannot represent it or, with `round`, approximate it.
    fn write(self, dtype: DType, round: bool, to: &mut Vec<u8>) -> Option<()> {
        /// Whether a float was converted exactly, or approximately.
        fn kept(before: f64, after: f64, round: bool) -> bool {
            before == after || before.is_nan() || (round && after.is_finite())
        }
        match (dtype, self) {
            (DType::F32, Value::Float(x)) if kept(x, f64::from(x as f32), round) => {
                to.extend((x as f32).to_le_bytes());
            }
            (DType::F16, Value::Float(x)) if kept(x, f16::from_f64(x).to_f64(), round) => {
                to.extend(f16::from_f64(x).to_le_bytes());
            }
            (DType::F32, Value::Int(x)) if round || (x as f32) as i128 == x => {
                to.extend((x as f32).to_le_bytes());
            }
            (DType::I32, Value::Int(x)) => to.extend(i32::try_from(x).ok()?.to_le_bytes()),
            (DType::U32, Value::Int(x)) => to.extend(u32::try_from(x).ok()?.to_le_bytes()),
            (DType::U8, Value::Int(x)) => to.push(u8::try_from(x).ok()?),
            _ => return None,
        }
        Some(())
    }
}

impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Value::Float(x) => write!(f, "{x:?}"),
            Value::Int(x) => write!(f, "{x}"),
        }
    }
}

/// Checks that the size given by the shape and dtype of `array` is that of its bytes.
pub(crate) fn check_size(array: &NamedArray<'_>) -> Result<usize> {
    let NamedArray { name, shape, dtype, bytes } = array;
    let Some(size) = element_size(dtype) else {
        return Err(Error::Checkpoint(message!(
            "load: '{name}' {shape:?} has the dtype {dtype}, which is not read here. Convert it with the library that \
             wrote it, such as to F32."
        )));
    };
    let wanted = shape.iter().try_fold(size, |all, size| all.checked_mul(*size));
    match wanted == Some(bytes.len()) {
        true => Ok(size),
        false => Err(Error::Data(message!(
            "load: '{name}' {shape:?} of {dtype} needs {} bytes, and the weights give it {}. The file is damaged; take \
             another copy.",
            wanted.map_or("more than 2^64".to_string(), |wanted| wanted.to_string()),
            bytes.len()
        ))),
    }
}

/// `array` in `dtype`, if every value is preserved, or with `round` if every value can be approximated. An `f32` becomes
/// an `f16` only with `round`.
pub(crate) fn converted<'a>(
    array: NamedArray<'a>,
    dtype: DType,
    round: bool,
) -> Result<NamedArray<'a>> {
    let wanted = file_name(dtype);
    if array.dtype == wanted {
        return Ok(array);
    }
    let size = check_size(&array)?;
    let NamedArray { name, shape, dtype: found, bytes } = &array;
    let float = |name: &str| name.starts_with('F') || name == "BF16";
    let apart = dtype == DType::Bool || (float(found) && !dtype.is_float());
    let integer_half = !float(found) && dtype == DType::F16;
    let (Some(read), false) = (reader(found), apart || integer_half) else {
        return Err(Error::Checkpoint(message!(
            "load: '{name}' {shape:?} is {found} in the weights and {wanted} in the model, and none becomes the other. \
             Convert the weights, or make a model of that dtype."
        )));
    };
    if dtype == DType::F16 && found != "BF16" && !round {
        return Err(Error::Checkpoint(message!(
            "load: '{name}' {shape:?} is {found} in the weights and {wanted} in the model, which would round its values. \
             Load with LoadOptions::new().round(true), or make a model of that dtype."
        )));
    }
    let mut values = Vec::with_capacity(bytes.len() / size * dtype.size());
    for (at, bytes) in bytes.chunks_exact(size).enumerate() {
        let value = read(bytes);
        if value.write(dtype, round, &mut values).is_none() {
            let remedy = match (value, round) {
                (Value::Float(_), false) => {
                    "Load with LoadOptions::new().round(true) if its neighbour will do"
                }
                _ => "Convert the weights where they were made",
            };
            return Err(Error::Checkpoint(message!(
                "load: '{name}' {shape:?} is {found} in the weights and {wanted} in the model, which has no {value}: that \
                 is element {:?}. {remedy}.",
                place(at, shape)
            )));
        }
    }
    Ok(NamedArray {
        name: array.name,
        dtype: wanted.into(),
        shape: array.shape,
        bytes: values.into(),
    })
}

/// The indices of the element at a position in row-major order.
fn place(mut at: usize, shape: &[usize]) -> Vec<usize> {
    let mut index: Vec<usize> = shape
        .iter()
        .rev()
        .map(|size| {
            let here = at % (*size).max(1);
            at /= (*size).max(1);
            here
        })
        .collect();
    index.reverse();
    index
}

/// `array` with its axes in another order: axis `i` of the result is axis `axes[i]` of the array, as in `transpose`.
pub(super) fn permuted<'a>(array: &NamedArray<'a>, axes: &[usize]) -> Result<NamedArray<'a>> {
    let NamedArray { name, shape, .. } = array;
    let mut sorted = axes.to_vec();
    sorted.sort_unstable();
    if sorted.len() != shape.len() || sorted.iter().enumerate().any(|(at, axis)| at != *axis) {
        return Err(Error::Checkpoint(message!(
            "load: '{name}' is {shape:?} in the weights, and its axes cannot be put in the order {axes:?}. Give each of its \
             {} axes once.",
            shape.len()
        )));
    }
    let size = check_size(array)?;
    let mut strides = vec![size; shape.len()];
    for at in (1..shape.len()).rev() {
        // Only an array without elements, which is never read, wraps.
        strides[at - 1] = strides[at].wrapping_mul(shape[at]);
    }
    let sizes: Vec<usize> = axes.iter().map(|axis| shape[*axis]).collect();
    let steps: Vec<usize> = axes.iter().map(|axis| strides[*axis]).collect();
    let mut bytes = Vec::with_capacity(array.bytes.len());
    let mut index = vec![0; sizes.len()];
    let mut at = 0;
    while bytes.len() < array.bytes.len() {
        bytes.extend_from_slice(&array.bytes[at..at + size]);
        for axis in (0..sizes.len()).rev() {
            index[axis] += 1;
            at += steps[axis];
            if index[axis] < sizes[axis] {
                break;
            }
            at -= steps[axis] * sizes[axis];
            index[axis] = 0;
        }
    }
    Ok(NamedArray {
        name: array.name.clone(),
        dtype: array.dtype.clone(),
        shape: sizes,
        bytes: bytes.into(),
    })
}

/// The same elements in another shape.
pub(super) fn reshaped<'a>(mut array: NamedArray<'a>, shape: Vec<usize>) -> Result<NamedArray<'a>> {
    let count = |shape: &[usize]| shape.iter().try_fold(1usize, |all, size| all.checked_mul(*size));
    if count(&shape) != count(&array.shape) {
        return Err(Error::Checkpoint(message!(
            "load: '{}' is {:?} in the weights, which cannot be {shape:?} as the model needs it. Load weights of the same \
             layers.",
            array.name,
            array.shape
        )));
    }
    array.shape = shape;
    Ok(array)
}

/// The single element of `array`, repeated in a shape of the model.
pub(super) fn repeated<'a>(array: NamedArray<'a>, shape: &[usize]) -> Result<NamedArray<'a>> {
    check_size(&array)?;
    let bytes = array.bytes.repeat(shape.iter().product());
    Ok(NamedArray { shape: shape.to_vec(), bytes: bytes.into(), ..array })
}

/// Reorders equal pieces of `array` along its first axis.
pub(super) fn blocks<'a>(array: &NamedArray<'a>, order: &[usize]) -> Result<NamedArray<'a>> {
    let NamedArray { name, shape, dtype, bytes } = array;
    let size = bytes.len() / order.len();
    if shape.first().is_none_or(|first| first % order.len() != 0) {
        return Err(Error::Checkpoint(message!(
            "load: '{name}' is {shape:?} in the weights, and its first axis should hold {} gates of equal size. Load the \
             weights of a layer of the same kind.",
            order.len()
        )));
    }
    let mut moved = Vec::with_capacity(bytes.len());
    order.iter().for_each(|at| moved.extend_from_slice(&bytes[at * size..(at + 1) * size]));
    let (name, dtype, shape) = (name.clone(), dtype.clone(), shape.clone());
    Ok(NamedArray { name, dtype, shape, bytes: moved.into() })
}

/// The rows `from` to `to` of `array`.
pub(super) fn rows<'a>(array: &NamedArray<'a>, part: usize, of: usize) -> Result<NamedArray<'a>> {
    let NamedArray { name, shape, dtype, bytes } = array;
    let Some(first) = shape.first().filter(|first| *first % of == 0) else {
        return Err(Error::Checkpoint(message!(
            "load: '{name}' is {shape:?} in the weights, and its first axis should hold {of} equal parts. Load the weights of \
             a layer of the same kind."
        )));
    };
    let size = bytes.len() / of;
    let mut shape = shape.clone();
    shape[0] = first / of;
    let bytes = bytes[part * size..(part + 1) * size].to_vec();
    Ok(NamedArray { name: name.clone(), dtype: dtype.clone(), shape, bytes: bytes.into() })
}

/// The sum of two arrays of one shape, in `f32`.
pub(super) fn sum<'a>(a: NamedArray<'a>, b: NamedArray<'a>, round: bool) -> Result<NamedArray<'a>> {
    let (a, b) = (converted(a, DType::F32, round)?, converted(b, DType::F32, round)?);
    check_size(&a)?;
    check_size(&b)?;
    same_shape(&a, &b)?;
    let float = |bytes: &[u8]| f32::from_le_bytes(bytes.try_into().unwrap_or_default());
    let pairs = a.bytes.chunks_exact(4).zip(b.bytes.chunks_exact(4));
    let bytes: Vec<u8> = pairs.flat_map(|(a, b)| (float(a) + float(b)).to_le_bytes()).collect();
    Ok(NamedArray { name: a.name, dtype: a.dtype, shape: a.shape, bytes: bytes.into() })
}

/// Two arrays of one shape, stacked as rows.
pub(super) fn stacked<'a>(a: NamedArray<'a>, b: NamedArray<'a>) -> Result<NamedArray<'a>> {
    same_shape(&a, &b)?;
    let shape = [&[2], &a.shape[..]].concat();
    let bytes = [&a.bytes[..], &b.bytes[..]].concat();
    Ok(NamedArray { name: a.name, dtype: a.dtype, shape, bytes: Cow::Owned(bytes) })
}

fn same_shape(a: &NamedArray<'_>, b: &NamedArray<'_>) -> Result<()> {
    if a.shape == b.shape && a.dtype == b.dtype && a.bytes.len() == b.bytes.len() {
        return Ok(());
    }
    Err(Error::Checkpoint(message!(
        "load: '{}' is {:?} of {} in the weights and '{}' {:?} of {}; one variable is made of both, so they should be equal. \
         Load the weights of a layer of the same kind.",
        a.name,
        a.shape,
        a.dtype,
        b.name,
        b.shape,
        b.dtype
    )))
}

/// Whether floats of this dtype may have values that `f32` cannot represent.
pub(super) fn is_wide(dtype: &str) -> bool {
    dtype == "F64"
}
