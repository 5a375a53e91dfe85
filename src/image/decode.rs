//! From the bytes of a file to pixels: TensorFlow's `decode_jpeg`, `decode_png` and so on, and the detection of a file's
//! format.

use ndarray::{Array3, Array4};

use super::pixels::{DecodeOptions, Pixels, check_channels, guarded};
use super::{bmp, gif, jpeg, png, webp};
use crate::error::{Error, Result, message};

/// The formats, by the first bytes of their files.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Format {
    Jpeg,
    Png,
    Gif,
    Bmp,
    WebP,
}

impl std::fmt::Display for Format {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Format::Jpeg => "JPEG",
            Format::Png => "PNG",
            Format::Gif => "GIF",
            Format::Bmp => "BMP",
            Format::WebP => "WebP",
        })
    }
}

impl Format {
    fn detect(op: &str, bytes: &[u8]) -> Result<Self> {
        match bytes {
            [0xff, 0xd8, 0xff, ..] => Ok(Format::Jpeg),
            [0x89, b'P', b'N', b'G', ..] => Ok(Format::Png),
            [b'G', b'I', b'F', b'8', ..] => Ok(Format::Gif),
            [b'B', b'M', ..] => Ok(Format::Bmp),
            [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Ok(Format::WebP),
            [] => Err(Error::Data(message!(
                "{op}: the file is empty. Fetch it again, or leave it out."
            ))),
            _ => {
                let start: Vec<String> =
                    bytes.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
                Err(Error::Data(message!(
                    "{op}: the file begins with {} and so is not a JPEG, PNG, GIF, BMP or WebP. Check that it is an \
                     image and that the download is not an error page.",
                    start.join(" ")
                )))
            }
        }
    }

    fn decode(
        self,
        op: &str,
        bytes: &[u8],
        channels: usize,
        all_frames: bool,
        options: &DecodeOptions,
    ) -> Result<Pixels> {
        let pixels = guarded(op, || match self {
            Format::Jpeg => jpeg::decode(op, bytes, channels, options),
            Format::Png => png::decode(op, bytes, channels, options),
            Format::Gif => gif::decode(op, bytes, all_frames, options),
            Format::Bmp => bmp::decode(op, bytes, options),
            Format::WebP => webp::decode(op, bytes, all_frames, options),
        })?;
        Ok(pixels.with_channels(channels))
    }
}

/// The first frame of a file in one of the formats `allowed`.
fn still(
    op: &str,
    bytes: &[u8],
    channels: usize,
    options: &DecodeOptions,
    allowed: &[Format],
) -> Result<Array3<u8>> {
    check_channels(op, channels)?;
    let format = Format::detect(op, bytes)?;
    if !allowed.contains(&format) {
        return Err(Error::Data(message!(
            "{op}: the file is a {format}; decode_image decodes it."
        )));
    }
    format.decode(op, bytes, channels, false, options)?.into_image(op)
}

const ALL: &[Format] = &[Format::Jpeg, Format::Png, Format::Gif, Format::Bmp, Format::WebP];

/// Decodes an image in any of the formats, detected by its first bytes, to `[H,W,C]`: TensorFlow's `decode_image` with
/// `expand_animations=False`, which returns the first frame of an animation.
///
/// `channels` is 1 for grey, 3 for RGB, 4 for RGBA, or 0 for the channels of the file: 1 or 3 in a JPEG, 1 to 4 in a PNG, 3 in
/// a GIF, 3 or 4 in a BMP (1 if its colours are grey) and in a WebP. Every conversion is supported, while TensorFlow rejects
/// some. As in TensorFlow, the orientation in a photograph's EXIF data is not applied, 16-bit samples are reduced to their
/// upper half, and colour profiles are ignored.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::image::{decode_image, encode_png};
/// let file = encode_png(&wgrad::ndarray::arr3(&[[[255u8, 0, 0], [0, 0, 255]]]))?;
/// assert_eq!(decode_image(&file, 0)?.shape(), [1, 2, 3]);
/// assert_eq!(decode_image(&file, 1)?, wgrad::ndarray::arr3(&[[[76], [29]]]));
/// let error = decode_image(&file[..40], 3).unwrap_err();
/// assert!(error.to_string().starts_with("decode_image: the image is broken"));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::Data`] if the bytes are not an image, if the image is corrupt, or if it has more pixels than [`DecodeOptions`]
/// allow; [`Error::Shape`] for any other number of channels.
pub fn decode_image(contents: &[u8], channels: usize) -> Result<Array3<u8>> {
    decode_image_with(contents, channels, DecodeOptions::new())
}

/// As [`decode_image`], with options.
///
/// # Errors
/// As [`decode_image`].
pub fn decode_image_with(
    contents: &[u8],
    channels: usize,
    options: DecodeOptions,
) -> Result<Array3<u8>> {
    still("decode_image", contents, channels, &options, ALL)
}

/// Decodes all frames of an image in any of the formats to `[N,H,W,C]`: TensorFlow's `decode_image` with
/// `expand_animations=True`. An image that is not an animation has one frame.
///
/// # Errors
/// As [`decode_image`].
pub fn decode_frames(contents: &[u8], channels: usize) -> Result<Array4<u8>> {
    decode_frames_with(contents, channels, DecodeOptions::new())
}

/// As [`decode_frames`], with options.
///
/// # Errors
/// As [`decode_image`].
pub fn decode_frames_with(
    contents: &[u8],
    channels: usize,
    options: DecodeOptions,
) -> Result<Array4<u8>> {
    let op = "decode_frames";
    check_channels(op, channels)?;
    Format::detect(op, contents)?.decode(op, contents, channels, true, &options)?.into_frames(op)
}

/// Decodes a JPEG to `[H,W,C]`; as in TensorFlow, it also accepts a PNG, or the only frame of a GIF.
///
/// The pixels are those of TensorFlow with `dct_method="INTEGER_ACCURATE"`, to the bit. `channels` is as in [`decode_image`].
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::image::{decode_jpeg, encode_jpeg};
/// let grey = wgrad::ndarray::Array3::from_elem((16, 24, 1), 128u8);
/// let file = encode_jpeg(&grey)?;
/// assert_eq!(decode_jpeg(&file, 0)?, grey);
/// assert_eq!(decode_jpeg(&file, 3)?.shape(), [16, 24, 3]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// As [`decode_image`]. A truncated file is an error, too: see [`DecodeOptions::try_recover_truncated`].
pub fn decode_jpeg(contents: &[u8], channels: usize) -> Result<Array3<u8>> {
    decode_jpeg_with(contents, channels, DecodeOptions::new())
}

/// As [`decode_jpeg`], with options.
///
/// # Errors
/// As [`decode_jpeg`].
pub fn decode_jpeg_with(
    contents: &[u8],
    channels: usize,
    options: DecodeOptions,
) -> Result<Array3<u8>> {
    let allowed = [Format::Jpeg, Format::Png, Format::Gif];
    one_frame("decode_jpeg", contents, channels, &options, &allowed)
}

/// Decodes a PNG to `[H,W,C]`; as in TensorFlow, it also accepts a JPEG, or the only frame of a GIF. `channels` is as in
/// [`decode_image`].
///
/// # Errors
/// As [`decode_image`].
pub fn decode_png(contents: &[u8], channels: usize) -> Result<Array3<u8>> {
    decode_png_with(contents, channels, DecodeOptions::new())
}

/// As [`decode_png`], with options.
///
/// # Errors
/// As [`decode_image`].
pub fn decode_png_with(
    contents: &[u8],
    channels: usize,
    options: DecodeOptions,
) -> Result<Array3<u8>> {
    let allowed = [Format::Png, Format::Jpeg, Format::Gif];
    one_frame("decode_png", contents, channels, &options, &allowed)
}

/// As [`still`], but rejects an animation.
fn one_frame(
    op: &str,
    bytes: &[u8],
    channels: usize,
    options: &DecodeOptions,
    allowed: &[Format],
) -> Result<Array3<u8>> {
    if matches!(Format::detect(op, bytes), Ok(Format::Gif)) {
        check_channels(op, channels)?;
        let pixels = Format::Gif.decode(op, bytes, channels, true, options)?;
        if pixels.frames > 1 {
            return Err(Error::Data(message!(
                "{op}: the file is an animation of {} frames. decode_gif gives all of them, decode_image the first.",
                pixels.frames
            )));
        }
        return pixels.into_image(op);
    }
    still(op, bytes, channels, options, allowed)
}

/// Decodes a BMP to `[H,W,C]`. `channels` is as in [`decode_image`].
///
/// With 8 bits each, the colours of a palette become RGB, or grey if all of them are grey; TensorFlow treats their indices as
/// grey. The function also reads pixels of 24 and 32 bits, but not compressed files or other depths.
///
/// # Errors
/// As [`decode_image`].
pub fn decode_bmp(contents: &[u8], channels: usize) -> Result<Array3<u8>> {
    decode_bmp_with(contents, channels, DecodeOptions::new())
}

/// As [`decode_bmp`], with options.
///
/// # Errors
/// As [`decode_image`].
pub fn decode_bmp_with(
    contents: &[u8],
    channels: usize,
    options: DecodeOptions,
) -> Result<Array3<u8>> {
    still("decode_bmp", contents, channels, &options, &[Format::Bmp])
}

/// Decodes a GIF to `[N,H,W,3]`, with all frames as they are displayed; as in TensorFlow, it also accepts a JPEG or PNG, which
/// is one frame.
///
/// Where a frame covers only a part, or has transparent pixels, the previous frame shows; before the first frame, all is black.
///
/// # Errors
/// As [`decode_image`].
pub fn decode_gif(contents: &[u8]) -> Result<Array4<u8>> {
    decode_gif_with(contents, DecodeOptions::new())
}

/// As [`decode_gif`], with options.
///
/// # Errors
/// As [`decode_image`].
pub fn decode_gif_with(contents: &[u8], options: DecodeOptions) -> Result<Array4<u8>> {
    let op = "decode_gif";
    let format = Format::detect(op, contents)?;
    if !matches!(format, Format::Gif | Format::Jpeg | Format::Png) {
        return Err(Error::Data(message!(
            "{op}: the file is a {format}; decode_frames decodes it."
        )));
    }
    format.decode(op, contents, 3, true, &options)?.into_frames(op)
}

/// Decodes a WebP to `[H,W,C]`; of an animation, the first frame. `channels` is as in [`decode_image`].
///
/// # Errors
/// As [`decode_image`].
pub fn decode_webp(contents: &[u8], channels: usize) -> Result<Array3<u8>> {
    decode_webp_with(contents, channels, DecodeOptions::new())
}

/// As [`decode_webp`], with options.
///
/// # Errors
/// As [`decode_image`].
pub fn decode_webp_with(
    contents: &[u8],
    channels: usize,
    options: DecodeOptions,
) -> Result<Array3<u8>> {
    still("decode_webp", contents, channels, &options, &[Format::WebP])
}

/// Whether a file begins like a JPEG.
///
/// ```
/// assert!(wgrad::image::is_jpeg(&[0xff, 0xd8, 0xff, 0xe0]));
/// assert!(!wgrad::image::is_jpeg(b"GIF89a"));
/// ```
pub fn is_jpeg(contents: &[u8]) -> bool {
    Format::detect("is_jpeg", contents).is_ok_and(|format| format == Format::Jpeg)
}
