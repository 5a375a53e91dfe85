//! Element types: how a device stores each, its type in a register, and how a scalar combines with it.
//!
//! As in TensorFlow, tensors are not promoted: two dtypes in one call are an error. Only a plain Rust number adopts the
//! dtype of the other operand.

use std::fmt;

use crate::error::{Error, Result, message};

/// The element type of a tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum DType {
    /// 32-bit float, the default.
    F32,
    /// 16-bit float, if the adapter supports it; kernels compute and sum in `f32`.
    F16,
    /// 32-bit signed integer.
    I32,
    /// 32-bit unsigned integer.
    U32,
    /// Bytes (pixels), for storage; cast them before doing arithmetic.
    U8,
    /// True or false; a device stores each element as a `u32`.
    Bool,
}

/// The type of an element while a kernel computes with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Register {
    F32,
    I32,
    U32,
    Bool,
}

impl DType {
    /// Every dtype, for tests and tables.
    pub const ALL: [DType; 6] =
        [DType::F32, DType::F16, DType::I32, DType::U32, DType::U8, DType::Bool];

    /// The Rust name, as error messages use it: `f32`.
    pub fn name(self) -> &'static str {
        match self {
            DType::F32 => "f32",
            DType::F16 => "f16",
            DType::I32 => "i32",
            DType::U32 => "u32",
            DType::U8 => "u8",
            DType::Bool => "bool",
        }
    }

    /// TensorFlow's name, as a printed tensor shows it: `float32`.
    pub fn tensorflow_name(self) -> &'static str {
        match self {
            DType::F32 => "float32",
            DType::F16 => "float16",
            DType::I32 => "int32",
            DType::U32 => "uint32",
            DType::U8 => "uint8",
            DType::Bool => "bool",
        }
    }

    /// True for `f32` and `f16`: the dtypes that have gradients.
    pub fn is_float(self) -> bool {
        matches!(self, DType::F32 | DType::F16)
    }

    /// The largest number of a float dtype.
    pub(crate) fn largest(self) -> f32 {
        if self == DType::F16 { 65504.0 } else { f32::MAX }
    }

    /// True for `i32`, `u32` and `u8`.
    pub fn is_int(self) -> bool {
        matches!(self, DType::I32 | DType::U32 | DType::U8)
    }

    /// Bytes of one element in a device buffer (`bool` occupies four).
    pub fn size(self) -> usize {
        match self {
            DType::F32 | DType::I32 | DType::U32 | DType::Bool => 4,
            DType::F16 => 2,
            DType::U8 => 1,
        }
    }

    /// The bytes of a buffer of `elements`: whole vectors of four elements, and at least 16 bytes.
    pub(crate) fn bytes(self, elements: usize) -> u64 {
        let bytes = (elements as u64).saturating_mul(self.size() as u64);
        bytes.checked_next_multiple_of(16).unwrap_or(u64::MAX).max(16)
    }

    pub(crate) fn register(self) -> Register {
        match self {
            DType::F32 | DType::F16 => Register::F32,
            DType::I32 => Register::I32,
            DType::U32 | DType::U8 => Register::U32,
            DType::Bool => Register::Bool,
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Register {
    /// The WGSL scalar type.
    pub(crate) fn scalar(self) -> &'static str {
        match self {
            Register::F32 => "f32",
            Register::I32 => "i32",
            Register::U32 => "u32",
            Register::Bool => "bool",
        }
    }
}

/// A plain number as an operand next to a tensor. It adopts the tensor's dtype if its value fits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Scalar {
    /// A floating-point number; combines with float tensors only.
    Float(f64),
    /// An integer; combines with every numeric tensor.
    Int(i64),
    /// An integer outside the range of `Int`; combines with float tensors only.
    Unsigned(u64),
    /// A truth value; combines with `bool` tensors only.
    Bool(bool),
}

impl Default for Scalar {
    /// The whole number 0.
    fn default() -> Self {
        Scalar::Int(0)
    }
}

impl Scalar {
    /// The number's dtype if no tensor determines it.
    pub(crate) fn default_dtype(self) -> DType {
        match self {
            Scalar::Float(_) => DType::F32,
            Scalar::Int(_) | Scalar::Unsigned(_) => DType::I32,
            Scalar::Bool(_) => DType::Bool,
        }
    }

    /// The bits of the value in the register of `dtype`.
    pub(crate) fn bits(self, op: &str, dtype: DType) -> Result<u32> {
        let refused = |what: &str| {
            Err(Error::DType(message!(
                "{op}: the scalar {self} cannot join a tensor of dtype {dtype}: {what}."
            )))
        };
        match (self, dtype) {
            (Scalar::Float(v), DType::F32 | DType::F16) => Ok((v as f32).to_bits()),
            (Scalar::Int(v), DType::F32 | DType::F16) => Ok((v as f32).to_bits()),
            (Scalar::Unsigned(v), DType::F32 | DType::F16) => Ok((v as f32).to_bits()),
            (Scalar::Bool(v), DType::Bool) => Ok(u32::from(v)),
            (Scalar::Int(_) | Scalar::Unsigned(_), DType::I32 | DType::U32 | DType::U8) => {
                let (low, high) = match dtype {
                    DType::I32 => (i64::from(i32::MIN), i64::from(i32::MAX)),
                    DType::U32 => (0, i64::from(u32::MAX)),
                    _ => (0, 255),
                };
                match self {
                    // A negative number keeps its bits.
                    Scalar::Int(v) if (low..=high).contains(&v) => Ok(v as u32),
                    _ => refused(&format!(
                        "it is outside {low} to {high}; cast the tensor to f32 first"
                    )),
                }
            }
            (Scalar::Float(_), _) => refused("cast the tensor to f32 first"),
            _ => refused("cast the tensor first"),
        }
    }
}

/// The shortest text that reads as the same number.
#[cfg(not(target_family = "wasm"))]
pub(crate) fn float_text(value: f64) -> String {
    value.to_string()
}

/// As [`float_text`], for a number that was rounded to 32 bits.
#[cfg(not(target_family = "wasm"))]
pub(crate) fn f32_text(value: f32) -> String {
    value.to_string()
}

/// The number with this many digits after the decimal point.
#[cfg(not(target_family = "wasm"))]
pub(crate) fn rounded_text(value: f64, digits: u8) -> String {
    format!("{value:.0$}", usize::from(digits))
}

/// A browser formats numbers itself, which saves a page Rust's 20 kB of code for it.
#[cfg(target_family = "wasm")]
pub(crate) fn float_text(value: f64) -> String {
    let text = js_sys::Number::from(value).to_string_with_radix(10);
    text.map(String::from).unwrap_or_default()
}

/// As [`float_text`], for a number that was rounded to 32 bits.
#[cfg(target_family = "wasm")]
pub(crate) fn f32_text(value: f32) -> String {
    let wide = f64::from(value);
    let read = (6..9).map(|digits| {
        let text = js_sys::Number::from(wide).to_precision(digits);
        js_sys::Number::parse_float(&text.map(String::from).unwrap_or_default())
    });
    let shortest = read.into_iter().find(|&read| read as f32 == value);
    float_text(shortest.unwrap_or(wide))
}

/// The number with this many digits after the decimal point.
#[cfg(target_family = "wasm")]
pub(crate) fn rounded_text(value: f64, digits: u8) -> String {
    let text = js_sys::Number::from(value).to_fixed(digits);
    text.map(String::from).unwrap_or_default()
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scalar::Float(v) if cfg!(target_family = "wasm") => f.write_str(&float_text(*v)),
            Scalar::Float(v) => write!(f, "{v:?}"),
            Scalar::Int(v) => write!(f, "{v}"),
            Scalar::Unsigned(v) => write!(f, "{v}"),
            Scalar::Bool(v) => write!(f, "{v}"),
        }
    }
}

macro_rules! scalar_from {
    ($($t:ty => $variant:ident as $wide:ty),*) => {$(
        impl From<$t> for Scalar {
            fn from(value: $t) -> Self {
                Scalar::$variant(value as $wide)
            }
        }
    )*};
}
// For example: `impl From<f32> for Scalar { fn from(value: f32) -> Self { Scalar::Float(value as f64) } }`.
scalar_from!(f32 => Float as f64, f64 => Float as f64, i32 => Int as i64, u32 => Int as i64,
             i64 => Int as i64, u8 => Int as i64, bool => Bool as bool);

impl From<u64> for Scalar {
    fn from(value: u64) -> Self {
        i64::try_from(value).map_or(Scalar::Unsigned(value), Scalar::Int)
    }
}

impl From<usize> for Scalar {
    fn from(value: usize) -> Self {
        Scalar::from(value as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_hold_whole_vectors() {
        assert_eq!(DType::F32.bytes(0), 16);
        assert_eq!(DType::F32.bytes(5), 32);
        assert_eq!(DType::U8.bytes(17), 32);
        assert_eq!(DType::F16.bytes(8), 16);
    }

    #[test]
    fn scalars_take_a_dtype_only_if_they_fit() {
        assert_eq!(Scalar::from(2).bits("AddV2", DType::F32).ok(), Some(2f32.to_bits()));
        assert_eq!(Scalar::from(-1).bits("AddV2", DType::I32).ok(), Some(u32::MAX));
        let error = Scalar::from(0.5).bits("AddV2", DType::I32).unwrap_err().to_string();
        assert_eq!(
            error,
            "AddV2: the scalar 0.5 cannot join a tensor of dtype i32: cast the tensor to f32 first."
        );
        assert!(Scalar::from(300).bits("AddV2", DType::U8).is_err());
        for (scalar, dtype, text) in [
            (
                Scalar::from(u64::MAX),
                DType::I32,
                "18446744073709551615 cannot join a tensor of dtype i32: it is outside -2147483648 to 2147483647",
            ),
            (
                Scalar::from(1u64 << 63),
                DType::U32,
                "9223372036854775808 cannot join a tensor of dtype u32: it is outside 0 to 4294967295",
            ),
            (
                Scalar::from(256),
                DType::U8,
                "256 cannot join a tensor of dtype u8: it is outside 0 to 255",
            ),
        ] {
            let error = scalar.bits("AddV2", dtype).unwrap_err().to_string();
            assert_eq!(error, format!("AddV2: the scalar {text}; cast the tensor to f32 first."));
        }
        let largest = Scalar::from(u64::MAX).bits("AddV2", DType::F32).ok();
        assert_eq!(largest, Some(18446744073709551615f32.to_bits()));
        assert_eq!(Scalar::from(u64::MAX >> 1), Scalar::Int(i64::MAX));
        assert_eq!(Scalar::from(i64::from(i32::MIN)).bits("AddV2", DType::I32).ok(), Some(1 << 31));
        assert!(Scalar::from(-1).bits("AddV2", DType::U32).is_err());
    }
}
