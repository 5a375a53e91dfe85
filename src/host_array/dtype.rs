//! [`HostDType`]: the dtypes of arrays on the host, and the names that each file format has for them.

use std::fmt;

use crate::dtype::DType;

/// How HDF5 stores a dtype.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hdf5Class {
    Unknown,
    Signed,
    Unsigned,
    /// Read from an enumeration of bytes, as h5py writes it; written as integers.
    Bool,
    /// A float with these numbers of bits in its exponent and its mantissa.
    Float(u8, u8),
}
use Hdf5Class::{Float, Signed, Unknown, Unsigned};

/// The size in bits of a dtype whose elements have no fixed size.
const VARIES: usize = 0;

macro_rules! host_dtypes {
    ($($variant:ident $number:expr, $name:literal, $tensorflow:literal, $numpy:expr, $safetensors:expr, $hdf5:expr,
        $bits:expr, $tensor:expr;)*) => {
        /// The element type of a [`HostArray`](crate::HostArray): every type that TensorFlow stores, and those that other
        /// formats have besides. A device need not support it.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum HostDType {
            $(
                #[doc = concat!("`", $tensorflow, "`.")]
                $variant,
            )*
            /// A type that TensorFlow 2.21 does not have, with its number.
            Other(i32),
        }

        impl HostDType {
            /// Every dtype with a name.
            pub const ALL: &[HostDType] = &[$(HostDType::$variant),*];

            /// The Rust name, as error messages about arrays use it: `f32`.
            pub fn name(self) -> &'static str {
                match self {
                    $(HostDType::$variant => $name,)*
                    HostDType::Other(_) => "unknown",
                }
            }

            /// TensorFlow's name: `float32`.
            pub fn tensorflow_name(self) -> &'static str {
                match self {
                    $(HostDType::$variant => $tensorflow,)*
                    HostDType::Other(_) => "unknown",
                }
            }

            /// TensorFlow's number (`DataType` in `types.proto`); 0 if TensorFlow does not have the type.
            pub fn number(self) -> i32 {
                match self {
                    $(HostDType::$variant => $number,)*
                    HostDType::Other(number) => number,
                }
            }

            /// NumPy's name without the byte order, such as `f4`, if it has one.
            pub fn numpy_name(self) -> Option<&'static str> {
                match self {
                    $(HostDType::$variant => $numpy,)*
                    HostDType::Other(_) => None,
                }
            }

            /// The name in safetensors files, such as `F32`, if it has one.
            pub fn safetensors_name(self) -> Option<&'static str> {
                match self {
                    $(HostDType::$variant => $safetensors,)*
                    HostDType::Other(_) => None,
                }
            }

            pub(crate) fn hdf5_class(self) -> Hdf5Class {
                match self {
                    $(HostDType::$variant => $hdf5,)*
                    HostDType::Other(_) => Unknown,
                }
            }

            /// The bits of an element in files, or [`VARIES`].
            fn bits(self) -> usize {
                match self {
                    $(HostDType::$variant => $bits,)*
                    HostDType::Other(_) => VARIES,
                }
            }

            /// The dtype of tensors with such values, if there is one. It may be narrower: `F32` for `F64`, `I32` for `I64`.
            pub fn tensor_dtype(self) -> Option<DType> {
                match self {
                    $(HostDType::$variant => $tensor,)*
                    HostDType::Other(_) => None,
                }
            }
        }
    };
}

// TensorFlow's number and the names in Rust, TensorFlow, NumPy and safetensors; HDF5's class; bits; the dtype of tensors.
host_dtypes! {
    F32 1, "f32", "float32", Some("f4"), Some("F32"), Float(8, 23), 32, Some(DType::F32);
    F64 2, "f64", "float64", Some("f8"), Some("F64"), Float(11, 52), 64, Some(DType::F32);
    I32 3, "i32", "int32", Some("i4"), Some("I32"), Signed, 32, Some(DType::I32);
    U8 4, "u8", "uint8", Some("u1"), Some("U8"), Unsigned, 8, Some(DType::U8);
    I16 5, "i16", "int16", Some("i2"), Some("I16"), Signed, 16, Some(DType::I32);
    I8 6, "i8", "int8", Some("i1"), Some("I8"), Signed, 8, Some(DType::I32);
    String 7, "Vec<u8>", "string", None, None, Unknown, VARIES, None;
    Complex64 8, "[f32; 2]", "complex64", Some("c8"), None, Unknown, 64, None;
    I64 9, "i64", "int64", Some("i8"), Some("I64"), Signed, 64, Some(DType::I32);
    Bool 10, "bool", "bool", Some("b1"), Some("BOOL"), Hdf5Class::Bool, 8, Some(DType::Bool);
    Qint8 11, "qint8", "qint8", None, None, Unknown, 8, None;
    Quint8 12, "quint8", "quint8", None, None, Unknown, 8, None;
    Qint32 13, "qint32", "qint32", None, None, Unknown, 32, None;
    Bf16 14, "bf16", "bfloat16", None, Some("BF16"), Float(8, 7), 16, Some(DType::F32);
    Qint16 15, "qint16", "qint16", None, None, Unknown, 16, None;
    Quint16 16, "quint16", "quint16", None, None, Unknown, 16, None;
    U16 17, "u16", "uint16", Some("u2"), Some("U16"), Unsigned, 16, Some(DType::I32);
    Complex128 18, "[f64; 2]", "complex128", Some("c16"), None, Unknown, 128, None;
    F16 19, "f16", "float16", Some("f2"), Some("F16"), Float(5, 10), 16, Some(DType::F16);
    Resource 20, "resource", "resource", None, None, Unknown, VARIES, None;
    Variant 21, "variant", "variant", None, None, Unknown, VARIES, None;
    U32 22, "u32", "uint32", Some("u4"), Some("U32"), Unsigned, 32, Some(DType::U32);
    U64 23, "u64", "uint64", Some("u8"), Some("U64"), Unsigned, 64, Some(DType::I32);
    Float8E5m2 24, "float8_e5m2", "float8_e5m2", None, Some("F8_E5M2"), Unknown, 8, None;
    Float8E4m3fn 25, "float8_e4m3fn", "float8_e4m3fn", None, Some("F8_E4M3"), Unknown, 8, None;
    Float8E4m3fnuz 26, "float8_e4m3fnuz", "float8_e4m3fnuz", None, None, Unknown, 8, None;
    Float8E4m3b11fnuz 27, "float8_e4m3b11fnuz", "float8_e4m3b11fnuz", None, None, Unknown, 8, None;
    Float8E5m2fnuz 28, "float8_e5m2fnuz", "float8_e5m2fnuz", None, None, Unknown, 8, None;
    // TensorFlow stores each of these in a byte.
    Int4 29, "int4", "int4", None, None, Unknown, 8, None;
    Uint4 30, "uint4", "uint4", None, None, Unknown, 8, None;
    Int2 31, "int2", "int2", None, None, Unknown, 8, None;
    Uint2 32, "uint2", "uint2", None, None, Unknown, 8, None;
    Float4E2m1fn 33, "float4_e2m1fn", "float4_e2m1fn", None, None, Unknown, 8, None;
    // What TensorFlow lacks and safetensors files have.
    Float8E8m0 0, "float8_e8m0fnu", "float8_e8m0fnu", None, Some("F8_E8M0"), Unknown, 8, None;
    Float6E2m3 0, "float6_e2m3fn", "float6_e2m3fn", None, Some("F6_E2M3"), Unknown, 6, None;
    Float6E3m2 0, "float6_e3m2fn", "float6_e3m2fn", None, Some("F6_E3M2"), Unknown, 6, None;
    PackedFloat4 0, "float4_e2m1fn_x2", "float4_e2m1fn_x2", None, Some("F4"), Unknown, 4, None;
}

impl HostDType {
    /// The dtype with this number in TensorFlow.
    pub fn from_number(number: i32) -> Self {
        let known = HostDType::ALL.iter().find(|dtype| dtype.number() == number && number != 0);
        known.copied().unwrap_or(HostDType::Other(number))
    }

    /// The dtype with this name in safetensors files.
    pub fn from_safetensors_name(name: &str) -> Option<Self> {
        HostDType::ALL.iter().copied().find(|dtype| dtype.safetensors_name() == Some(name))
    }

    /// The dtype with this name in NumPy, without the byte order.
    pub fn from_numpy_name(name: &str) -> Option<Self> {
        HostDType::ALL.iter().copied().find(|dtype| dtype.numpy_name() == Some(name))
    }

    /// The bytes of an element, if it has a fixed number of whole ones.
    pub fn size(self) -> Option<usize> {
        let bits = self.bits();
        (bits != VARIES && bits.is_multiple_of(8)).then_some(bits / 8)
    }

    /// The bytes of an array of this shape; none if its elements have no fixed size, or no memory is so large. An array without
    /// elements may have large axes, but their product must be one of an array that fits into memory.
    pub(crate) fn array_bytes(self, shape: &[usize]) -> Option<usize> {
        let mut largest = shape.iter().filter(|size| **size > 0);
        let elements = largest.try_fold(1usize, |all, size| all.checked_mul(*size))?;
        let bits = (elements as u128).checked_mul(self.bits() as u128)?;
        let bytes = usize::try_from(bits / 8).ok().filter(|bytes| *bytes <= isize::MAX as usize)?;
        let exists = self.bits() != VARIES && bits % 8 == 0;
        let bytes = if shape.contains(&0) { 0 } else { bytes };
        exists.then_some(bytes)
    }

    /// The name in messages about weights: that of safetensors files, if there is one.
    pub(crate) fn file_name(self) -> &'static str {
        self.safetensors_name().unwrap_or(self.tensorflow_name())
    }

    /// Whether the elements are floats that have a Rust type.
    pub(crate) fn is_float(self) -> bool {
        matches!(self, HostDType::F16 | HostDType::Bf16 | HostDType::F32 | HostDType::F64)
    }
}

/// The dtype of a tensor's values on the host.
impl From<DType> for HostDType {
    fn from(dtype: DType) -> Self {
        match dtype {
            DType::F32 => HostDType::F32,
            DType::F16 => HostDType::F16,
            DType::I32 => HostDType::I32,
            DType::U32 => HostDType::U32,
            DType::U8 => HostDType::U8,
            DType::Bool => HostDType::Bool,
        }
    }
}

impl PartialEq<DType> for HostDType {
    fn eq(&self, other: &DType) -> bool {
        *self == HostDType::from(*other)
    }
}

/// TensorFlow's name.
impl fmt::Display for HostDType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HostDType::Other(number) => write!(f, "of TensorFlow's type number {number}"),
            known => f.write_str(known.tensorflow_name()),
        }
    }
}
