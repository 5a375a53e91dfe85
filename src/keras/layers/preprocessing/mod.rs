//! Layers that prepare images and numbers for a model.

mod rescaling;

pub use rescaling::Rescaling;
