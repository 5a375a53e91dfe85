//! Pools: many numbers become one.

mod windows;

pub use windows::{AveragePooling2D, MaxPooling2D};
