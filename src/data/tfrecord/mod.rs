//! TFRecord files: records of any bytes, each with its length and two checksums.
//!
//! A record is its length (8 bytes, little endian), the masked CRC32C of these 8 bytes, the bytes, and their masked CRC32C.
//! [`TfRecordWriter`] writes them, [`TfRecordReader`] reads one file, [`TfRecordDataset`] any number.

#[cfg(not(target_family = "wasm"))]
mod dataset;
mod reader;
mod writer;

#[cfg(not(target_family = "wasm"))]
pub use dataset::TfRecordDataset;
pub use reader::TfRecordReader;
pub use writer::{TfRecordOptions, TfRecordWriter};

/// TensorFlow masks its checksums, as checksums of data that contain their own checksum tell little.
fn masked_crc32c(bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes).rotate_right(15).wrapping_add(0xa282_ead8)
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
