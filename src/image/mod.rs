//! Images: TensorFlow's `tf.image`, and the functions of `tf.io` that decode and encode image files.
//!
//! Functions of tensors accept images `[H,W,C]` and batches of them `[N,H,W,C]`, and run on the device. With the feature
//! `image-files`, `decode_image` and the related functions convert the bytes of a file to an array `[H,W,C]` on the host, which
//! [`resize_array`] resizes for a batch:
//!
//! ```
//! # #[cfg(feature = "image-files")]
//! # fn main() -> wgrad::Result<()> {
//! use wgrad::ndarray::Array3;
//! use wgrad as tf;
//! let drawn = Array3::from_shape_fn((4, 6, 3), |(row, column, _)| (40 * row + column) as u8);
//! let file = tf::image::encode_png(&drawn)?;
//! let image = tf::image::decode_image(&file, 3)?;
//! assert_eq!(image, drawn);
//! let small = tf::image::resize_array(&image, [2, 3])?;
//! assert_eq!(small[[0, 0, 0]], 20.5);
//! # Ok(())
//! # }
//! # #[cfg(not(feature = "image-files"))]
//! # fn main() {}
//! ```

#[cfg(feature = "image-files")]
mod bmp;
#[cfg(feature = "image-files")]
mod decode;
#[cfg(feature = "image-files")]
mod encode;
#[cfg(feature = "image-files")]
mod gif;
#[cfg(feature = "image-files")]
mod jpeg;
#[cfg(feature = "image-files")]
mod pixels;
#[cfg(feature = "image-files")]
mod png;
mod resize_array;
#[cfg(feature = "image-files")]
mod webp;

pub use crate::ops::image::*;
#[cfg(feature = "image-files")]
pub use decode::{
    decode_bmp, decode_bmp_with, decode_frames, decode_frames_with, decode_gif, decode_gif_with,
    decode_image, decode_image_with, decode_jpeg, decode_jpeg_with, decode_png, decode_png_with,
    decode_webp, decode_webp_with, is_jpeg,
};
#[cfg(feature = "image-files")]
pub use encode::{
    EncodeJpegOptions, EncodePngOptions, encode_jpeg, encode_jpeg_with, encode_png, encode_png_with,
};
#[cfg(feature = "image-files")]
pub use pixels::{DctMethod, DecodeOptions};
pub use resize_array::{Pixel, resize_array, resize_array_with};
