//! Regularization layers.

mod activity_regularization;
mod alpha_dropout;
mod dropout;
mod gaussian;
mod spatial_dropout;

pub use activity_regularization::ActivityRegularization;
pub use alpha_dropout::AlphaDropout;
pub use dropout::Dropout;
pub use gaussian::{GaussianDropout, GaussianNoise};
pub use spatial_dropout::{SpatialDropout1D, SpatialDropout2D, SpatialDropout3D};
