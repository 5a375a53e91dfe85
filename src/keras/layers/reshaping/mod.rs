//! Layers that move, repeat, add or remove elements without computing anything.

mod cropping;
mod flatten;
mod permute;
mod repeat_vector;
mod reshape;
mod up_sampling;
mod zero_padding;

pub use cropping::{Cropping1D, Cropping2D, Cropping3D};
pub use flatten::Flatten;
pub use permute::Permute;
pub use repeat_vector::RepeatVector;
pub use reshape::Reshape;
pub use up_sampling::{UpSampling1D, UpSampling2D, UpSampling3D};
pub use zero_padding::{ZeroPadding1D, ZeroPadding2D, ZeroPadding3D};
