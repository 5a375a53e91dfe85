//! The types of elements, by their safetensors names.

use super::bytes::{Broken, Cursor};

/// The storage format of elements.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Type {
    /// Numbers: the safetensors name, and whether the highest byte is first.
    Number { name: &'static str, big_endian: bool, size: usize },
    /// Opaque bytes, which Keras uses for `bfloat16`.
    Opaque { size: usize },
    /// A string of this many bytes.
    Text { size: usize },
    /// A string in the global heap.
    TextElsewhere,
    /// Another type, with its description.
    Other { class: u8, size: usize },
}

impl Type {
    /// Reads a datatype message.
    pub(super) fn parse(message: &[u8]) -> Result<Self, Broken> {
        let mut from = Cursor::new(message, "a datatype");
        let class_and_version = from.number(1)? as u8;
        let bits = from.number(3)?;
        let size = from.number(4)? as usize;
        let class = class_and_version & 15;
        let big_endian = bits & 1 == 1;
        let other = Type::Other { class, size };
        Ok(match class {
            0 => {
                let (offset, precision) = (from.number(2)?, from.number(2)?);
                let name = match (size, bits & 8 != 0) {
                    (1, true) => "I8",
                    (2, true) => "I16",
                    (4, true) => "I32",
                    (8, true) => "I64",
                    (1, false) => "U8",
                    (2, false) => "U16",
                    (4, false) => "U32",
                    (8, false) => "U64",
                    _ => return Ok(other),
                };
                match offset == 0 && precision == 8 * size as u64 {
                    true => Type::Number { name, big_endian, size },
                    false => other,
                }
            }
            1 => {
                let (offset, precision) = (from.number(2)?, from.number(2)?);
                let (_, exponent, _, mantissa) =
                    (from.number(1)?, from.number(1)?, from.number(1)?, from.number(1)?);
                let bias = from.number(4)?;
                let name = match (size, exponent, mantissa, bias) {
                    (2, 5, 10, 15) => "F16",
                    (2, 8, 7, 127) => "BF16",
                    (4, 8, 23, 127) => "F32",
                    (8, 11, 52, 1023) => "F64",
                    _ => return Ok(other),
                };
                // Bit 6 indicates VAX byte order.
                match offset == 0 && precision == 8 * size as u64 && bits & 64 == 0 {
                    true => Type::Number { name, big_endian, size },
                    false => other,
                }
            }
            3 => Type::Text { size },
            5 => Type::Opaque { size },
            // h5py stores Booleans as an enumeration of bytes.
            8 if size == 1 => Type::Number { name: "BOOL", big_endian: false, size },
            9 if bits & 15 == 1 => Type::TextElsewhere,
            _ => other,
        })
    }

    pub(super) fn shown(self) -> String {
        match self {
            Type::Number { name, .. } => name.to_string(),
            Type::Opaque { size } => format!("opaque elements of {size} bytes"),
            Type::Text { size } => format!("texts of {size} bytes"),
            Type::TextElsewhere => "texts".to_string(),
            Type::Other { class, size } => format!("elements of {size} bytes of class {class}"),
        }
    }
}

/// A datatype message for the safetensors type `name`, and the size of an element.
pub(super) fn message(name: &str) -> Option<(Vec<u8>, usize)> {
    let float = |size: u8, exponent: [u8; 4], bias: u32| {
        // Class 1, version 1; the highest bit of the mantissa is implied, the sign is the highest
        // bit.
        let mut message = vec![0x11, 0x20, 8 * size - 1, 0, size, 0, 0, 0, 0, 0, 8 * size, 0];
        message.extend(exponent);
        message.extend(bias.to_le_bytes());
        (message, usize::from(size))
    };
    let integer = |size: u8, signed: bool| {
        let sign = if signed { 8 } else { 0 };
        (vec![0x10, sign, 0, 0, size, 0, 0, 0, 0, 0, 8 * size, 0], usize::from(size))
    };
    Some(match name {
        "F16" => float(2, [10, 5, 0, 10], 15),
        "F32" => float(4, [23, 8, 0, 23], 127),
        "F64" => float(8, [52, 11, 0, 52], 1023),
        "I8" => integer(1, true),
        "I16" => integer(2, true),
        "I32" => integer(4, true),
        "I64" => integer(8, true),
        "U8" | "BOOL" => integer(1, false),
        "U16" => integer(2, false),
        "U32" => integer(4, false),
        "U64" => integer(8, false),
        _ => return None,
    })
}
