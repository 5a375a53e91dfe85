//! Files whose elements are read one after another: text lines, records of fixed length, and the parts that other formats
//! need.
//!
//! A `format` makes a reader that works on any bytes and reports its position; `dataset` reads files with it one after another,
//! `turns` several at the same time. `input` opens and decompresses them, `list` finds them.

#[cfg(not(target_family = "wasm"))]
mod dataset;
mod fixed_length;
#[cfg(not(target_family = "wasm"))]
pub(crate) mod format;
pub(crate) mod input;
#[cfg(not(target_family = "wasm"))]
mod list;
mod text_line;
#[cfg(not(target_family = "wasm"))]
mod turns;

pub use fixed_length::{FixedLengthRecordOptions, FixedLengthRecordReader};
pub use input::CompressionType;
pub use text_line::TextLineReader;
#[cfg(not(target_family = "wasm"))]
pub use {
    dataset::{FileDataset, IntoFiles},
    fixed_length::FixedLengthRecordDataset,
    list::ListFilesOptions,
    text_line::TextLineDataset,
};
