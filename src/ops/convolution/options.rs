//! The options of 1-D, 3-D and N-D convolutions, and of transposed ones.

use super::super::conv2d::Padding;
use crate::support::options::options;

options! {
    /// Stride, padding and dilation of a convolution along one axis.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub struct Conv1dOptions {
        /// The stride of the windows; 1 by default.
        stride: usize = 1,
        /// The padding; `Valid` by default.
        padding: Padding as impl Into<Padding> = Padding::Valid,
        /// The distance between the elements within a window; 1 by default.
        dilations: usize = 1,
    }
}

options! {
    /// Strides, padding and dilations of a convolution of volumes, each as (depth, rows, columns).
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub struct Conv3dOptions {
        /// The stride of the windows; 1 by default.
        strides: [usize; 3] = [1, 1, 1],
        /// The padding of the volume; `Valid` by default.
        padding: Padding as impl Into<Padding> = Padding::Valid,
        /// The distance between the elements within a window; 1 by default.
        dilations: [usize; 3] = [1, 1, 1],
    }
}

options! {
    /// Strides, padding and dilations of a convolution along one to three axes. A list of one number applies to all axes.
    #[derive(Debug, Clone, PartialEq, Eq, Hash)]
    pub struct ConvolutionOptions {
        /// The stride of the windows; 1 by default.
        strides: Vec<usize> as impl Into<Vec<usize>> = vec![1],
        /// The padding; `Valid` by default.
        padding: Padding as impl Into<Padding> = Padding::Valid,
        /// The distance between the elements within a window; 1 by default.
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
        /// The stride of the windows; 1 by default.
        strides: usize = 1,
        /// The padding of the result; `Same` by default.
        padding: Padding as impl Into<Padding> = Padding::Same,
        /// The distance between the elements within a window; 1 by default.
        dilations: usize = 1,
    }
}

options! {
    /// The convolution of images whose gradient is computed, each size as (rows, columns).
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub struct Conv2dTransposeOptions {
        /// The shape of the result, `[N,H,W,C]`; by default (`None`) the same as Keras: along each axis the size is
        /// `in * stride` for SAME, `in * stride + max(window - stride, 0)` for VALID, and `(in - 1) * stride + window` minus
        /// the padding for explicit padding.
        output_shape: Option<[usize; 4]> as [usize; 4] = None,
        /// The stride of the windows; 1 by default.
        strides: [usize; 2] = [1, 1],
        /// The padding of the result; `Same` by default.
        padding: Padding as impl Into<Padding> = Padding::Same,
        /// The distance between the elements within a window; 1 by default.
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
        /// The stride of the windows; 1 by default.
        strides: [usize; 3] = [1, 1, 1],
        /// The padding of the result; `Same` by default.
        padding: Padding as impl Into<Padding> = Padding::Same,
        /// The distance between the elements within a window; 1 by default.
        dilations: [usize; 3] = [1, 1, 1],
    }
}
