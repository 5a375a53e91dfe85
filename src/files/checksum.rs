//! The masked checksum of TensorFlow's files: records, checkpoints, events.

/// The CRC32C of `bytes`, masked: a CRC of data that itself contains CRCs is unreliable.
pub(crate) fn masked_crc32c(bytes: &[u8]) -> u32 {
    mask(crc32c::crc32c(bytes))
}

/// The masked form of a CRC32C.
pub(crate) fn mask(crc: u32) -> u32 {
    crc.rotate_right(15).wrapping_add(0xa282_ead8)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_checksum_is_that_of_tensorflow() {
        // CRC32C's check value is 0xe3069283, and the mask is ((crc >> 15) | (crc << 17)) + 0xa282ead8.
        assert_eq!(crc32c::crc32c(b"123456789"), 3_808_858_755);
        assert_eq!(super::masked_crc32c(b"123456789"), 3_347_755_237);
    }
}
