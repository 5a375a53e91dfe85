//! Functions for images `[H,W,C]` and batches of images `[N,H,W,C]`: TensorFlow's `tf.image`.
//!
//! Rows count from the top and columns from the left. Each function accepts both ranks and returns the same rank.

mod color;
mod geometry;
mod patches;
pub(super) mod pixels;
mod quality;
pub(crate) mod resize;
mod sample;

pub use color::{
    ConvertImageDtypeOptions, adjust_brightness, adjust_contrast, adjust_gamma, adjust_hue,
    adjust_saturation, convert_image_dtype, convert_image_dtype_with, grayscale_to_rgb, hsv_to_rgb,
    per_image_standardization, rgb_to_grayscale, rgb_to_hsv, rgb_to_yiq, rgb_to_yuv, yiq_to_rgb,
    yuv_to_rgb,
};
pub use geometry::{
    central_crop, crop_to_bounding_box, flip_left_right, flip_up_down, pad_to_bounding_box,
    resize_with_crop_or_pad, rot90, transpose,
};
pub use patches::{ExtractPatchesOptions, extract_patches};
pub use resize::{
    ResizeMethod, ResizeOptions, resize, resize_with, resize_with_pad, resize_with_pad_with,
};

pub(crate) use resize::{Span, resize_axes};

pub use pixels::Interpolation;
pub use quality::{
    SsimOptions, image_gradients, psnr, sobel_edges, ssim, ssim_multiscale, ssim_multiscale_with,
    ssim_with, total_variation,
};
pub use sample::{
    AffineTransformOptions, CropAndResizeOptions, FillMode, affine_transform,
    affine_transform_with, crop_and_resize, crop_and_resize_with,
};

pub(super) use color::ENTRIES as COLOR;
pub(super) use geometry::ENTRIES;
pub(super) use patches::ENTRIES as PATCHES;
pub(super) use quality::ENTRIES as QUALITY;
pub(super) use resize::ENTRIES as RESIZE;
pub(super) use sample::ENTRIES as SAMPLE;

use crate::error::{Error, Result, message};
use crate::tensor::Tensor;

/// The sizes `[N, H, W, C]` of images, with N = 1 for a single one.
fn sizes(op: &str, image: &Tensor) -> Result<[usize; 4]> {
    match *image.shape() {
        [h, w, c] => Ok([1, h, w, c]),
        [n, h, w, c] => Ok([n, h, w, c]),
        _ => Err(no_image(op, image.shape())),
    }
}

fn no_image(op: &str, shape: &[usize]) -> Error {
    Error::Shape(message!(
        "{op}: the image is {shape:?}; an image has the axes [H,W,C], and a batch of them [N,H,W,C]."
    ))
}

/// The shape of `image` with another height and width.
fn with_size(image: &Tensor, height: usize, width: usize) -> Vec<usize> {
    let mut shape = image.shape().to_vec();
    let rank = shape.len();
    shape[rank - 3] = height;
    shape[rank - 2] = width;
    shape
}

/// Returns an error for an empty target.
fn check_target(op: &str, height: usize, width: usize) -> Result<()> {
    if height > 0 && width > 0 {
        return Ok(());
    }
    Err(Error::Shape(message!(
        "{op}: the target is {height} x {width}; both numbers must be above 0."
    )))
}
