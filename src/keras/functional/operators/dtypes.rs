//! The dtypes in which Keras computes, and those in which the device computes instead.

use serde_json::Value;

use crate::dtype::DType;
use crate::error::Result;
use crate::keras::python_json;
use crate::tensor::{Operand, Tensor};

/// A number in a file.
#[derive(Debug, Clone, Copy)]
pub(super) enum Number {
    Int(i64),
    Float(f64),
}

impl Number {
    pub(super) fn parse(value: &Value) -> Option<Self> {
        let float = || python_json::float(value).map(Number::Float);
        value.as_i64().map(Number::Int).or_else(float)
    }

    /// `x` as an operand next to the number, and the dtype of the result.
    pub(super) fn joining(self, x: Tensor) -> Result<(Tensor, DType)> {
        let dtype = match (self, x.dtype()) {
            (Number::Float(_), dtype) if !dtype.is_float() => DType::F32,
            (Number::Int(_), DType::Bool) => DType::I32,
            (_, dtype) => dtype,
        };
        Ok((wide(&x.cast(dtype)?)?, dtype))
    }
}

/// The two sides of an operator, in the dtype in which the device computes.
pub(super) struct Sides {
    pub(super) a: Tensor,
    pub(super) b: Operand,
    /// Keras's dtype of both. The device computes with bytes and booleans as integers.
    pub(super) dtype: DType,
}

/// `x` in a dtype that the device computes in.
pub(super) fn wide(x: &Tensor) -> Result<Tensor> {
    match x.dtype() {
        DType::U8 | DType::Bool => x.cast(DType::I32),
        _ => Ok(x.clone()),
    }
}

/// Converts the result of a computation in [`wide`] numbers to Keras's dtype. Numbers too large for a byte wrap around,
/// as all integers do.
pub(super) fn narrow(y: Tensor, dtype: DType) -> Result<Tensor> {
    if y.dtype() == DType::Bool { Ok(y) } else { cast(&y, dtype) }
}

/// `x` in the dtype that a file names: -1.0 is the byte 255, as on TensorFlow.
pub(super) fn cast(x: &Tensor, dtype: DType) -> Result<Tensor> {
    match dtype {
        DType::U8 if x.dtype().is_float() => x.cast(DType::I32)?.cast(dtype),
        _ => x.cast(dtype),
    }
}

/// The type of the numbers in a JSON value: 0 booleans, 1 integers, 2 floats.
pub(super) fn rank_of_numbers(value: &Value) -> usize {
    match value {
        Value::Array(list) => list.iter().map(rank_of_numbers).max().unwrap_or(2),
        value if python_json::is_float(value) => 2,
        value => usize::from(!value.is_boolean()),
    }
}

/// The dtype in which Keras computes with both.
pub(super) fn joint_dtype(a: DType, b: DType) -> DType {
    match (a, b) {
        (a, b) if a == b => a,
        (DType::Bool, other) | (other, DType::Bool) => other,
        (DType::F16, DType::F32) | (DType::F32, DType::F16) => DType::F32,
        (a, b) if a.is_float() || b.is_float() => {
            if a.is_float() {
                a
            } else {
                b
            }
        }
        (DType::U8, other) | (other, DType::U8) => other,
        _ => DType::I32,
    }
}

pub(super) fn joint_list(list: Vec<Tensor>) -> Result<Vec<Tensor>> {
    let Some(dtype) = list.iter().map(Tensor::dtype).reduce(joint_dtype) else { return Ok(list) };
    list.into_iter().map(|x| if x.dtype() == dtype { Ok(x) } else { x.cast(dtype) }).collect()
}

/// The operand of a mean or a root: integers become floats, as in Keras.
pub(super) fn floats(x: &Tensor) -> Result<Tensor> {
    if x.dtype().is_float() { Ok(x.clone()) } else { x.cast(DType::F32) }
}

pub(super) fn floated(b: Operand) -> Result<Operand> {
    match b {
        Operand::Tensor(b) => floats(&b).map(Operand::from),
        number => Ok(number),
    }
}

/// Applies `f`, to bytes as to wider integers.
pub(super) fn of_bytes(x: &Tensor, f: fn(&Tensor) -> Result<Tensor>) -> Result<Tensor> {
    match x.dtype() {
        DType::U8 => narrow(f(&wide(x)?)?, DType::U8),
        _ => f(x),
    }
}

/// The operand of a sum or a product: booleans and bytes become integers, as in Keras.
pub(super) fn counting(x: &Tensor) -> Result<Tensor> {
    match x.dtype() {
        DType::Bool => x.cast(DType::I32),
        DType::U8 => x.cast(DType::U32),
        _ => Ok(x.clone()),
    }
}
