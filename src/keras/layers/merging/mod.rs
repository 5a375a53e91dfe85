//! Layers that make one tensor of several.

mod concatenate;
mod dot;
mod elementwise;

pub use concatenate::Concatenate;
pub use dot::{Dot, DotAxes};
pub use elementwise::{Add, Average, Maximum, Minimum, Multiply, Subtract};
