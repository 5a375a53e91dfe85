//! CSV files: [`CsvReader`] splits them into records and converts their fields to typed values.
//!
//! `splitter` finds records and fields, `fields` describes their location, `columns` and `by_name` convert them to
//! values.

mod by_name;
mod columns;
#[cfg(not(target_family = "wasm"))]
mod dataset;
mod fields;
mod reader;
mod splitter;

pub use by_name::{ByName, by_name};
pub use columns::{CsvColumn, CsvColumns, CsvValue, Required, required};
#[cfg(not(target_family = "wasm"))]
pub use dataset::CsvDataset;
pub use fields::Fields;
pub use reader::{CsvOptions, CsvReader};
