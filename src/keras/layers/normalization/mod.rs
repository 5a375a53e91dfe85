//! Normalization layers.

mod batch_normalization;
mod group_normalization;
mod layer_normalization;
mod rms_normalization;
mod spectral_normalization;
mod unit_normalization;

pub use batch_normalization::BatchNormalization;
pub use group_normalization::GroupNormalization;
pub use layer_normalization::LayerNormalization;
pub use rms_normalization::RmsNormalization;
pub use spectral_normalization::SpectralNormalization;
pub use unit_normalization::UnitNormalization;
