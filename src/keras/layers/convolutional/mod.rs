//! Convolutions: the same small kernels everywhere.

mod conv2d;

pub use conv2d::Conv2D;
