//! Where elements come from.

mod generator;
mod range;
mod slices;

pub use range::range;
pub use slices::TensorSlices;
