//! [`DataType`]: the types that TensorFlow stores, with its numbers and names.

use std::fmt;

macro_rules! data_types {
    ($($number:literal $variant:ident $name:literal $size:expr;)*) => {
        /// The type of a stored tensor's elements, which the device need not support.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum DataType {
            $(
                #[doc = concat!("`", $name, "`.")]
                $variant,
            )*
            /// A type that TensorFlow 2.21 does not have.
            Other(i32),
        }

        impl DataType {
            /// The type with this number in TensorFlow (`types.proto`).
            pub(crate) fn from_number(number: i32) -> Self {
                match number {
                    $($number => DataType::$variant,)*
                    other => DataType::Other(other),
                }
            }

            /// TensorFlow's number.
            pub(crate) fn number(self) -> i32 {
                match self {
                    $(DataType::$variant => $number,)*
                    DataType::Other(number) => number,
                }
            }

            /// TensorFlow's name: `float32`.
            pub fn name(self) -> &'static str {
                match self {
                    $(DataType::$variant => $name,)*
                    DataType::Other(_) => "unknown",
                }
            }

            /// The size of an element in bytes, if it is fixed.
            pub(crate) fn size(self) -> Option<usize> {
                match self {
                    $(DataType::$variant => $size,)*
                    DataType::Other(_) => None,
                }
            }
        }
    };
}

data_types! {
    1 Float32 "float32" Some(4);
    2 Float64 "float64" Some(8);
    3 Int32 "int32" Some(4);
    4 Uint8 "uint8" Some(1);
    5 Int16 "int16" Some(2);
    6 Int8 "int8" Some(1);
    7 String "string" None;
    8 Complex64 "complex64" Some(8);
    9 Int64 "int64" Some(8);
    10 Bool "bool" Some(1);
    11 Qint8 "qint8" Some(1);
    12 Quint8 "quint8" Some(1);
    13 Qint32 "qint32" Some(4);
    14 Bfloat16 "bfloat16" Some(2);
    15 Qint16 "qint16" Some(2);
    16 Quint16 "quint16" Some(2);
    17 Uint16 "uint16" Some(2);
    18 Complex128 "complex128" Some(16);
    19 Float16 "float16" Some(2);
    20 Resource "resource" None;
    21 Variant "variant" None;
    22 Uint32 "uint32" Some(4);
    23 Uint64 "uint64" Some(8);
    24 Float8E5m2 "float8_e5m2" Some(1);
    25 Float8E4m3fn "float8_e4m3fn" Some(1);
    26 Float8E4m3fnuz "float8_e4m3fnuz" Some(1);
    27 Float8E4m3b11fnuz "float8_e4m3b11fnuz" Some(1);
    28 Float8E5m2fnuz "float8_e5m2fnuz" Some(1);
    29 Int4 "int4" Some(1);
    30 Uint4 "uint4" Some(1);
    31 Int2 "int2" Some(1);
    32 Uint2 "uint2" Some(1);
    33 Float4E2m1fn "float4_e2m1fn" Some(1);
}

impl fmt::Display for DataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DataType::Other(number) => write!(f, "of TensorFlow's type number {number}"),
            known => f.write_str(known.name()),
        }
    }
}
