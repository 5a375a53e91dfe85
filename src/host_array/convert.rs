//! Converts the numbers of an array to another dtype: without changing any, or rounding each.

use std::fmt;

use half::{bf16, f16};
use ndarray::ArrayD;

use super::HostArray;
use super::dtype::HostDType;
use crate::dtype::DType;

/// A number of any dtype.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Number {
    Float(f64),
    Int(i128),
}

/// Why an array cannot be converted.
#[derive(Debug)]
pub(crate) enum Misfit {
    /// Neither dtype becomes the other.
    Apart,
    /// The dtype would round the values, which was not asked for.
    Rounds,
    /// The dtype lacks this value, which has these indices.
    Value(Vec<usize>, Number),
}

type Read = fn(&[u8]) -> Number;

/// Reads an element, if it is a number or a Boolean.
fn reader(dtype: HostDType) -> Option<Read> {
    macro_rules! number {
        ($type:ty, $kind:ident as $wide:ty) => {
            |bytes| {
                Number::$kind(<$wide>::from(<$type>::from_le_bytes(
                    bytes.try_into().unwrap_or_default(),
                )))
            }
        };
    }
    Some(match dtype {
        HostDType::F16 => number!(f16, Float as f64),
        HostDType::Bf16 => number!(bf16, Float as f64),
        HostDType::F32 => number!(f32, Float as f64),
        HostDType::F64 => number!(f64, Float as f64),
        HostDType::I8 => number!(i8, Int as i128),
        HostDType::U8 | HostDType::Bool => number!(u8, Int as i128),
        HostDType::I16 => number!(i16, Int as i128),
        HostDType::U16 => number!(u16, Int as i128),
        HostDType::I32 => number!(i32, Int as i128),
        HostDType::U32 => number!(u32, Int as i128),
        HostDType::I64 => number!(i64, Int as i128),
        HostDType::U64 => number!(u64, Int as i128),
        _ => return None,
    })
}

impl Number {
    /// Writes the number in `dtype`: none if `dtype` cannot represent it or, with `round`, approximate it.
    fn write(self, dtype: DType, round: bool, to: &mut Vec<u8>) -> Option<()> {
        /// Whether a float was converted exactly, or approximately.
        fn kept(before: f64, after: f64, round: bool) -> bool {
            before == after || before.is_nan() || (round && after.is_finite())
        }
        match (dtype, self) {
            (DType::F32, Number::Float(x)) if kept(x, f64::from(x as f32), round) => {
                to.extend((x as f32).to_le_bytes());
            }
            (DType::F16, Number::Float(x)) if kept(x, f16::from_f64(x).to_f64(), round) => {
                to.extend(f16::from_f64(x).to_le_bytes());
            }
            (DType::F32, Number::Int(x)) if round || (x as f32) as i128 == x => {
                to.extend((x as f32).to_le_bytes());
            }
            (DType::I32, Number::Int(x)) => to.extend(i32::try_from(x).ok()?.to_le_bytes()),
            (DType::U32, Number::Int(x)) => to.extend(u32::try_from(x).ok()?.to_le_bytes()),
            (DType::U8, Number::Int(x)) => to.push(u8::try_from(x).ok()?),
            _ => return None,
        }
        Some(())
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Number::Float(x) => write!(f, "{x:?}"),
            Number::Int(x) => write!(f, "{x}"),
        }
    }
}

impl HostArray<'_> {
    /// The elements; none if they are not numbers or Booleans.
    pub(crate) fn numbers(&self) -> Option<impl Iterator<Item = Number>> {
        let (read, size) = (reader(self.dtype)?, self.dtype.size()?);
        Some(self.bytes().chunks_exact(size).map(read))
    }

    /// The values as `f64`, true as 1; none if they are complex numbers, strings or floats without a Rust type.
    pub fn to_f64(&self) -> Option<ArrayD<f64>> {
        let wide = |number| match number {
            Number::Float(x) => x,
            Number::Int(x) => x as f64,
        };
        self.shaped(self.numbers()?.map(wide).collect()).ok()
    }

    /// The array in another dtype, if every value is preserved, or with `round` if every value can be approximated. An `f32`
    /// becomes an `f16` only with `round`.
    pub(crate) fn converted(
        &self,
        dtype: DType,
        round: bool,
    ) -> Result<HostArray<'static>, Misfit> {
        let (found, float) = (self.dtype, self.dtype.is_float());
        if found == dtype {
            return Ok(self.clone().into_owned());
        }
        let apart = dtype == DType::Bool || found == HostDType::Bool || float && !dtype.is_float();
        let integer_half = !float && dtype == DType::F16;
        let (Some(numbers), false) = (self.numbers(), apart || integer_half) else {
            return Err(Misfit::Apart);
        };
        if dtype == DType::F16 && found != HostDType::Bf16 && !round {
            return Err(Misfit::Rounds);
        }
        let mut values = Vec::with_capacity(self.len() * dtype.size());
        for (at, number) in numbers.enumerate() {
            if number.write(dtype, round, &mut values).is_none() {
                return Err(Misfit::Value(place(at, &self.shape), number));
            }
        }
        Ok(HostArray::of_bytes(dtype.into(), self.shape.clone(), values))
    }
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
