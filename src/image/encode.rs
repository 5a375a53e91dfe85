//! From pixels to the bytes of a file: TensorFlow's `encode_jpeg` and `encode_png`.

use libjpeg_turbo_rs::{Encoder, PixelFormat, Subsampling};
use ndarray::ArrayView3;
use png::{BitDepth, ColorType, DeflateCompression};

use crate::error::{Error, Result, message};
use crate::support::options::options;

options! {
    /// Options of [`encode_jpeg_with`].
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct EncodeJpegOptions {
        /// The quality, 0 to 100; default: 95.
        quality: u8 = 95,
        /// Whether a slow connection shows a coarse image first; default: `false`.
        progressive: bool = false,
        /// Whether a second pass makes the file smaller; default: `false`.
        optimize_size: bool = false,
        /// Whether two by two pixels share their colours; default: `true`.
        chroma_downsampling: bool = true,
    }
}

options! {
    /// Options of [`encode_png_with`].
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct EncodePngOptions {
        /// The compression level, from 0, uncompressed, to 9, the smallest; -1 chooses a medium one.
        compression: i32 = -1,
    }
}

/// Encodes an image `[H,W,1]` or `[H,W,3]` as a JPEG of quality 95; the bytes are those of TensorFlow.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// let white = wgrad::ndarray::Array3::from_elem((8, 8, 3), 255u8);
/// let file = wgrad::image::encode_jpeg(&white)?;
/// assert_eq!(wgrad::image::decode_jpeg(&file, 3)?, white);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::Shape`] for another number of channels, and for an image without pixels or with more than 65,500 in a row or a
/// column.
pub fn encode_jpeg<'a>(image: impl Into<ArrayView3<'a, u8>>) -> Result<Vec<u8>> {
    encode_jpeg_with(image, EncodeJpegOptions::new())
}

/// As [`encode_jpeg`], with options.
///
/// # Errors
/// As [`encode_jpeg`]; [`Error::Shape`] also for a quality beyond 100.
pub fn encode_jpeg_with<'a>(
    image: impl Into<ArrayView3<'a, u8>>,
    options: EncodeJpegOptions,
) -> Result<Vec<u8>> {
    let image = image.into();
    let (height, width, channels) = image.dim();
    let format = match channels {
        1 => PixelFormat::Grayscale,
        3 => PixelFormat::Rgb,
        _ => return Err(refused("encode_jpeg", &image, "a JPEG has 1 or 3 channels")),
    };
    // libjpeg's limit.
    const MOST: usize = 65_500;
    if height.max(width) > MOST || height.min(width) == 0 {
        let rule = "a JPEG has 1 to 65500 rows and columns";
        return Err(refused("encode_jpeg", &image, rule));
    }
    if options.quality > 100 {
        let quality = options.quality;
        return Err(Error::Shape(message!(
            "encode_jpeg: quality is {quality}; it must be at most 100."
        )));
    }
    let sampling = match options.chroma_downsampling && channels == 3 {
        true => Subsampling::S420,
        false => Subsampling::S444,
    };
    let pixels = image.as_standard_layout();
    let pixels = pixels.as_slice().unwrap_or_default();
    Encoder::new(pixels, width, height, format)
        .quality(options.quality)
        .subsampling(sampling)
        .progressive(options.progressive)
        .optimize_huffman(options.optimize_size)
        // As TensorFlow: 300 dots per inch.
        .density(1, 300, 300)
        .encode()
        .map_err(|error| refused("encode_jpeg", &image, &error.to_string()))
}

/// Encodes an image `[H,W,C]` of 1 (grey), 2 (grey and alpha), 3 (RGB) or 4 channels (RGBA) as a PNG.
///
/// # Errors
/// [`Error::Shape`] for another number of channels, and for an image without pixels.
pub fn encode_png<'a>(image: impl Into<ArrayView3<'a, u8>>) -> Result<Vec<u8>> {
    encode_png_with(image, EncodePngOptions::new())
}

/// As [`encode_png`], with options.
///
/// # Errors
/// As [`encode_png`]; [`Error::Shape`] also for a compression level outside -1 to 9.
pub fn encode_png_with<'a>(
    image: impl Into<ArrayView3<'a, u8>>,
    options: EncodePngOptions,
) -> Result<Vec<u8>> {
    let image = image.into();
    let (height, width, channels) = image.dim();
    let color = match channels {
        1 => ColorType::Grayscale,
        2 => ColorType::GrayscaleAlpha,
        3 => ColorType::Rgb,
        4 => ColorType::Rgba,
        _ => return Err(refused("encode_png", &image, "a PNG has 1 to 4 channels")),
    };
    let (Ok(rows @ 1..), Ok(columns @ 1..)) = (u32::try_from(height), u32::try_from(width)) else {
        return Err(refused("encode_png", &image, "a PNG has 1 to 2^32 - 1 rows and columns"));
    };
    let compression = match options.compression {
        -1 => None,
        0 => Some(DeflateCompression::NoCompression),
        level @ 1..=9 => Some(DeflateCompression::Level(level as u8)),
        level => {
            return Err(Error::Shape(message!(
                "encode_png: compression is {level}; it is -1, or 0 to 9."
            )));
        }
    };
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, columns, rows);
    encoder.set_color(color);
    encoder.set_depth(BitDepth::Eight);
    if let Some(compression) = compression {
        encoder.set_deflate_compression(compression);
    }
    let pixels = image.as_standard_layout();
    let pixels = pixels.as_slice().unwrap_or_default();
    let mut writer = encoder.write_header().map_err(|error| unwritten(&image, error))?;
    writer.write_image_data(pixels).map_err(|error| unwritten(&image, error))?;
    writer.finish().map_err(|error| unwritten(&image, error))?;
    Ok(file)
}

fn unwritten(image: &ArrayView3<'_, u8>, error: png::EncodingError) -> Error {
    refused("encode_png", image, &error.to_string())
}

fn refused(op: &str, image: &ArrayView3<'_, u8>, rule: &str) -> Error {
    Error::Shape(message!("{op}: the image is {:?}; {rule}.", image.shape()))
}
