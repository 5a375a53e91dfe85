//! Files whose elements are read one after another: text lines, records of one length, and what other formats need for it.
//!
//! A `format` gives a reader that works on any bytes and says where it stands; `dataset` goes through files with it, `turns`
//! through several at the same time. `input` opens and unpacks them, `list` finds them.

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
