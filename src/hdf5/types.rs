//! The types of elements.

use super::bytes::{Broken, Cursor};
use crate::host_array::{Hdf5Class, HostDType};

/// The storage format of elements.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Type {
    /// Numbers, and whether the highest byte is first.
    Number { dtype: HostDType, big_endian: bool },
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
        let number = |class: Hdf5Class, plain: bool| {
            let same = |dtype: &&HostDType| {
                dtype.hdf5_class() == class && dtype.size() == Some(size) && plain
            };
            let found = HostDType::ALL.iter().find(same);
            found.map_or(other, |dtype| Type::Number { dtype: *dtype, big_endian })
        };
        Ok(match class {
            0 => {
                let whole = is_whole(&mut from, size)?;
                let class = if bits & 8 != 0 { Hdf5Class::Signed } else { Hdf5Class::Unsigned };
                number(class, whole)
            }
            1 => {
                let whole = is_whole(&mut from, size)?;
                let (_, exponent, _, mantissa) =
                    (from.number(1)?, from.number(1)?, from.number(1)?, from.number(1)?);
                let standard = from.number(4)? == bias(exponent as u8);
                // Bit 6 indicates VAX byte order.
                let class = Hdf5Class::Float(exponent as u8, mantissa as u8);
                number(class, whole && standard && bits & 64 == 0)
            }
            3 => Type::Text { size },
            5 => Type::Opaque { size },
            // h5py stores Booleans as an enumeration of bytes.
            8 if size == 1 => Type::Number { dtype: HostDType::Bool, big_endian: false },
            9 if bits & 15 == 1 => Type::TextElsewhere,
            _ => other,
        })
    }

    pub(super) fn shown(self) -> String {
        match self {
            Type::Number { dtype, .. } => dtype.file_name().to_string(),
            Type::Opaque { size } => format!("opaque elements of {size} bytes"),
            Type::Text { size } => format!("texts of {size} bytes"),
            Type::TextElsewhere => "texts".to_string(),
            Type::Other { class, size } => format!("elements of {size} bytes of class {class}"),
        }
    }
}

/// Whether the elements have no padding: the offset and the number of their bits come next.
fn is_whole(from: &mut Cursor<'_>, size: usize) -> Result<bool, Broken> {
    let (offset, precision) = (from.number(2)?, from.number(2)?);
    Ok(offset == 0 && precision == 8 * size as u64)
}

/// The bias of an exponent of so many bits.
fn bias(exponent: u8) -> u64 {
    1u64.checked_shl(u32::from(exponent).wrapping_sub(1)).map_or(0, |half| half - 1)
}

/// A datatype message, if the format has the type.
pub(super) fn message(dtype: HostDType) -> Option<Vec<u8>> {
    let size = dtype.size()? as u8;
    let integer = |sign: u8| vec![0x10, sign, 0, 0, size, 0, 0, 0, 0, 0, 8 * size, 0];
    Some(match dtype.hdf5_class() {
        Hdf5Class::Signed => integer(8),
        Hdf5Class::Unsigned | Hdf5Class::Bool => integer(0),
        // Only opaque bytes have this type in Keras's files.
        _ if dtype == HostDType::Bf16 => return None,
        Hdf5Class::Float(exponent, mantissa) => {
            // Class 1, version 1; the highest bit of the mantissa is implied, the sign is the highest bit.
            let mut message = vec![0x11, 0x20, 8 * size - 1, 0, size, 0, 0, 0, 0, 0, 8 * size, 0];
            message.extend([mantissa, exponent, 0, mantissa]);
            message.extend((bias(exponent) as u32).to_le_bytes());
            message
        }
        Hdf5Class::Unknown => return None,
    })
}
