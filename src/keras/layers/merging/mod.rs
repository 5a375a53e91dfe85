//! Layers that merge several tensors into one.

mod concatenate;
mod dot;
mod elementwise;

pub use concatenate::Concatenate;
pub use dot::{Dot, DotAxes};
pub use elementwise::{Add, Average, Maximum, Minimum, Multiply, Subtract};
