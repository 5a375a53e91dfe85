//! Decodes JPEG with `libjpeg-turbo-rs`, which produces the same pixels as libjpeg-turbo, the decoder of TensorFlow.

use libjpeg_turbo_rs::common::types::{ColorSpace, DctMethod as Dct, DecodeLimits, FrameHeader};
use libjpeg_turbo_rs::{Decoder, JpegError, PixelFormat, ScalingFactor};

use super::pixels::{DctMethod, DecodeOptions, Pixels, broken, check_size};
use crate::error::{Error, Result, message};

/// More scans than any encoder writes; each reads the whole image again.
const MOST_SCANS: usize = 500;

/// Grey if `channels` is 1 or the file is grey, else RGB.
pub(super) fn decode(
    op: &str,
    bytes: &[u8],
    channels: usize,
    options: &DecodeOptions,
) -> Result<Pixels> {
    let limits = DecodeLimits {
        max_pixels: options.max_pixels as u64,
        max_scans: MOST_SCANS,
        ..DecodeLimits::default()
    };
    let refuse = |error| refused(op, bytes, error);
    let mut decoder = Decoder::new_with_limits(bytes, limits).map_err(refuse)?;
    let frame = decoder.header();
    let size = [1, usize::from(frame.height), usize::from(frame.width), 3];
    let pixels = check_size(op, size, options)? / 3;
    check_frame(op, frame)?;
    // A block of 8 x 8 pixels has at least a bit, unless it is arithmetically coded; this allows eight times as much.
    if !decoder.is_arithmetic() && pixels / 4096 > bytes.len() {
        let [_, height, width, _] = size;
        let count = bytes.len();
        let what = format!("{count} bytes cannot hold the {height} x {width} pixels of its header");
        return Err(broken(op, &what));
    }
    if !matches!(options.ratio, 1 | 2 | 4 | 8) {
        return Err(Error::Shape(message!(
            "{op}: ratio is {}; a JPEG is shrunk by 1, 2, 4 or 8.",
            options.ratio
        )));
    }
    if !options.try_recover_truncated && !has_end(bytes) {
        return Err(refuse(JpegError::UnexpectedEof));
    }
    let color = decoder.jpeg_color_space();
    let has_luma = matches!(color, ColorSpace::Grayscale | ColorSpace::YCbCr);
    let grey = frame.components.len() == 1 || channels == 1 && has_luma;
    decoder.set_output_format(if grey { PixelFormat::Grayscale } else { PixelFormat::Rgb });
    decoder.set_scale(ScalingFactor::new(1, options.ratio as u32));
    decoder.set_dct_method(match options.dct_method {
        DctMethod::IntegerAccurate => Dct::IsLow,
        DctMethod::IntegerFast => Dct::IsFast,
    });
    decoder.set_lenient(options.try_recover_truncated);
    let image = decoder.decode_image().map_err(refuse)?;
    let (height, width) = (image.height, image.width);
    if channels == 1 && color == ColorSpace::Rgb {
        let data = image.data.chunks_exact(3).map(luma).collect();
        return Ok(Pixels::still(height, width, 1, data));
    }
    Ok(Pixels::still(height, width, if grey { 1 } else { 3 }, image.data))
}

/// Luma as libjpeg computes it, in parts of 2^16.
fn luma(rgb: &[u8]) -> u8 {
    let weights = [19_595, 38_470, 7_471];
    let sum: u32 = rgb.iter().zip(weights).map(|(&value, weight)| weight * u32::from(value)).sum();
    ((sum + (1 << 15)) >> 16) as u8
}

/// Whether the end marker follows the pixels, as libjpeg requires. The thumbnail in a header has its own.
fn has_end(bytes: &[u8]) -> bool {
    let mut scan = 2;
    while let Some(&[0xff, marker, high, low]) = bytes.get(scan..scan + 4) {
        if marker == 0xda {
            break;
        }
        scan += 2 + usize::from(u16::from_be_bytes([high, low]));
    }
    let pixels = bytes.get(scan..).unwrap_or_default();
    pixels.windows(2).rev().any(|pair| pair == [0xff, 0xd9])
}

/// Rejects features that the decoder does not support, or not well.
fn check_frame(op: &str, frame: &FrameHeader) -> Result<()> {
    if frame.precision != 8 {
        let what = format!("it has {} bits per sample, and only 8 are decoded", frame.precision);
        return Err(broken(op, &what));
    }
    let sampling: Vec<[u8; 2]> = frame
        .components
        .iter()
        .map(|part| [part.horizontal_sampling, part.vertical_sampling])
        .collect();
    let whole = |whole: &[u8; 2], part: &[u8; 2]| {
        (0..2).all(|axis| part[axis] > 0 && whole[axis].is_multiple_of(part[axis]))
    };
    let fits = match sampling.as_slice() {
        [_] | [_, _, _] => true,
        [a, b, c, d] => a == d && b == c && whole(a, b),
        _ => false,
    };
    if fits {
        return Ok(());
    }
    Err(broken(op, &format!("its components are sampled as {sampling:?}, which no encoder writes")))
}

fn refused(op: &str, bytes: &[u8], error: JpegError) -> Error {
    match error {
        JpegError::UnexpectedEof => Error::Data(message!(
            "{op}: the JPEG ends after {} bytes, before its image does. Fetch the file again, leave it out, or let \
             DecodeOptions::try_recover_truncated fill what is missing with grey.",
            bytes.len()
        )),
        error => broken(op, &error.to_string()),
    }
}
