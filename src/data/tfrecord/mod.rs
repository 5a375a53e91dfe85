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
