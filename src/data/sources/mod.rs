//! The sources of elements.

mod generator;
mod random;
mod range;
mod slices;

pub use random::{RandomOptions, random};
pub use range::range;
pub use slices::TensorSlices;
