//! Layers that move and repeat elements, and compute nothing.

mod flatten;

pub use flatten::Flatten;
