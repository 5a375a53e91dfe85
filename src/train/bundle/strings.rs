//! The encoding of strings in a bundle: their lengths, a checksum of these, then the bytes one after another.
//!
//! The checksums cover each length as four bytes, or as eight if it needs them, whatever its size in the file
//! (`WriteStringTensor` in TensorFlow's `tensor_bundle.cc`).

use crc32c::crc32c_append;
use prost::encoding::{decode_varint, encode_varint};

use crate::files::checksum::mask;

/// The beginning of a tensor of strings, before their bytes, and the masked checksum of everything.
pub(super) fn encode(strings: &[Vec<u8>]) -> (Vec<u8>, u32) {
    let mut head = Vec::new();
    let mut crc = 0;
    for string in strings {
        encode_varint(string.len() as u64, &mut head);
        crc = add_length(crc, string.len() as u64);
    }
    let lengths = mask(crc).to_le_bytes();
    head.extend_from_slice(&lengths);
    crc = crc32c_append(crc, &lengths);
    let crc = strings.iter().fold(crc, |crc, string| crc32c_append(crc, string));
    (head, mask(crc))
}

/// The strings of a tensor with `count` elements and the checksum `wanted`, or the reason why the bytes are invalid.
pub(super) fn decode(bytes: &[u8], count: usize, wanted: u32) -> Result<Vec<Vec<u8>>, String> {
    let mut rest = bytes;
    // A length needs at least one byte, so a corrupt file costs no memory.
    if count > bytes.len() {
        return Err(format!("should have {count} strings and has only {} bytes", bytes.len()));
    }
    let mut lengths = Vec::with_capacity(count);
    let (mut crc, mut sum) = (0, 0u64);
    for i in 0..count {
        let length = decode_varint(&mut rest)
            .map_err(|_| format!("has bytes that give no length for string {i} of {count}"))?;
        crc = add_length(crc, length);
        sum = sum.saturating_add(length);
        lengths.push(length);
    }
    let Some((found, mut rest)) = rest.split_at_checked(4) else {
        return Err("ends within the checksum of the lengths".to_string());
    };
    if mask(crc).to_le_bytes() != found {
        let found = u32::from_le_bytes([found[0], found[1], found[2], found[3]]);
        return Err(format!(
            "has strings whose lengths have the checksum {:#010x}, and the file says {found:#010x}",
            mask(crc)
        ));
    }
    if sum != rest.len() as u64 {
        return Err(format!("has strings of {sum} bytes together, and {} are there", rest.len()));
    }
    let crc = mask(crc32c_append(crc32c_append(crc, found), rest));
    if crc != wanted {
        return Err(format!("has the checksum {crc:#010x}, and the index says {wanted:#010x}"));
    }
    let take = |length| {
        // The sum of the lengths is that of the bytes.
        let (string, behind) = rest.split_at(length as usize);
        rest = behind;
        string.to_vec()
    };
    Ok(lengths.into_iter().map(take).collect())
}

fn add_length(crc: u32, length: u64) -> u32 {
    match u32::try_from(length) {
        Ok(length) => crc32c_append(crc, &length.to_le_bytes()),
        Err(_) => crc32c_append(crc, &length.to_le_bytes()),
    }
}
