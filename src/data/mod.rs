//! Data sets: readers, the real MNIST, and a generator of digits.
//!
//! The code runs on the host only, and makes tensors a batch at a time.

mod batches;
#[cfg(all(feature = "download", not(target_family = "wasm")))]
mod download;
pub mod drawn_digits;
pub mod idx;
mod images;
pub mod mnist;

pub use batches::Batches;
