//! Layers that bring numbers to a mean and a size.

mod layer_normalization;

pub use layer_normalization::LayerNormalization;
