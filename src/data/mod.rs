//! Data sets: readers, the real MNIST, a generator of digits; and the batches that a model is trained on.
//!
//! The code runs on the host only, and makes tensors a batch at a time.

mod batch;
mod batches;
mod columns;
#[cfg(all(feature = "download", not(target_family = "wasm")))]
mod download;
pub mod drawn_digits;
pub mod idx;
mod images;
pub mod mnist;
mod source;

pub use batch::{Batch, IntoBatch, IntoTensors};
pub use batches::Batches;
pub use columns::{Column, IntoColumns};
pub(crate) use source::{Arrays, Begin, Kind, Pass};
pub use source::{IntoSource, Source};
