//! Convolution layers. [`convolution`] contains the code they share.

mod conv;
mod conv_transpose;
mod convolution;
mod depthwise;
mod separable;

pub use conv::{Conv1D, Conv2D, Conv3D, SignalPadding};
pub use conv_transpose::{Conv1DTranspose, Conv2DTranspose, Conv3DTranspose};
pub use depthwise::{DepthwiseConv1D, DepthwiseConv2D};
pub use separable::{SeparableConv1D, SeparableConv2D};
