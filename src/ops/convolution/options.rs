//! The options of convolutions other than of images, and of transposed ones.

use super::super::conv2d::Padding;
use crate::options::options;

options! {
    /// Stride, padding and dilation of a convolution along one axis.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub struct Conv1dOptions {
        /// Steps between windows; 1.
        stride: usize = 1,
        /// How far windows may reach beyond the ends; not at all.
        padding: Padding as impl Into<Padding> = Padding::Valid,
        /// Distance between the elements that a window takes; 1.
        dilations: usize = 1,
    }
}

options! {
    /// Strides, padding and dilations of a convolution of volumes, each as (depth, rows, columns).
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub struct Conv3dOptions {
        /// Steps between windows; 1.
        strides: [usize; 3] = [1, 1, 1],
        /// How far windows may reach beyond the volume; not at all.
        padding: Padding as impl Into<Padding> = Padding::Valid,
        /// Distance between the elements that a window takes; 1.
        dilations: [usize; 3] = [1, 1, 1],
    }
}

options! {
    /// Strides, padding and dilations of a convolution along one to three axes. A list of one number is for all of them.
    #[derive(Debug, Clone, PartialEq, Eq, Hash)]
    pub struct ConvolutionOptions {
        /// Steps between windows; 1.
        strides: Vec<usize> as impl Into<Vec<usize>> = vec![1],
        /// How far windows may reach beyond the ends; not at all.
        padding: Padding as impl Into<Padding> = Padding::Valid,
        /// Distance between the elements that a window takes; 1.
        dilations: Vec<usize> as impl Into<Vec<usize>> = vec![1],
    }
}

options! {
    /// The convolution along one axis whose gradient is computed.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub struct Conv1dTransposeOptions {
        /// The shape of the result, `[N,W,C]`; by default (`None`) as for [`Conv2dTransposeOptions`].
        ///
        /// [`Conv2dTransposeOptions`]: crate::Conv2dTransposeOptions
        output_shape: Option<[usize; 3]> as [usize; 3] = None,
        /// Steps between windows; 1.
        strides: usize = 1,
        /// How far windows reach beyond the result: SAME.
        padding: Padding as impl Into<Padding> = Padding::Same,
        /// Distance between the elements that a window takes; 1.
        dilations: usize = 1,
    }
}

options! {
    /// The convolution of images whose gradient is computed, each size as (rows, columns).
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub struct Conv2dTransposeOptions {
        /// The shape of the result, `[N,H,W,C]`; by default (`None`) the one that Keras takes: along each axis
        /// `in * stride` places for SAME, `in * stride + max(window - stride, 0)` for VALID, and
        /// `(in - 1) * stride + window` less the padding for an explicit one.
        output_shape: Option<[usize; 4]> as [usize; 4] = None,
        /// Steps between windows; 1.
        strides: [usize; 2] = [1, 1],
        /// How far windows reach beyond the result: SAME.
        padding: Padding as impl Into<Padding> = Padding::Same,
        /// Distance between the elements that a window takes; 1.
        dilations: [usize; 2] = [1, 1],
    }
}

options! {
    /// The convolution of volumes whose gradient is computed, each size as (depth, rows, columns).
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub struct Conv3dTransposeOptions {
        /// The shape of the result, `[N,D,H,W,C]`; by default (`None`) as for [`Conv2dTransposeOptions`].
        ///
        /// [`Conv2dTransposeOptions`]: crate::Conv2dTransposeOptions
        output_shape: Option<[usize; 5]> as [usize; 5] = None,
        /// Steps between windows; 1.
        strides: [usize; 3] = [1, 1, 1],
        /// How far windows reach beyond the result: SAME.
        padding: Padding as impl Into<Padding> = Padding::Same,
        /// Distance between the elements that a window takes; 1.
        dilations: [usize; 3] = [1, 1, 1],
    }
}
