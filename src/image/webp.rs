//! Decodes WebP by the crate `image-webp`.

use std::io::Cursor;

use image_webp::{DecodingError, WebPDecoder};

use super::pixels::{DecodeOptions, Pixels, broken, check_size};
use crate::error::{Error, Result};

/// All frames, or the first: RGB, or RGBA if the file has an alpha channel or, as in TensorFlow, is an animation.
pub(super) fn decode(
    op: &str,
    bytes: &[u8],
    all_frames: bool,
    options: &DecodeOptions,
) -> Result<Pixels> {
    check_parts(op, bytes.get(12..).unwrap_or_default(), options)?;
    let refuse = |error| refused(op, bytes, error);
    let mut decoder = WebPDecoder::new(Cursor::new(bytes)).map_err(refuse)?;
    let (width, height) = decoder.dimensions();
    let [width, height] = [width as usize, height as usize];
    let animated = decoder.is_animated();
    let frames = if animated && all_frames { decoder.num_frames().max(1) as usize } else { 1 };
    check_size(op, [frames, height, width, 4], options)?;
    decoder.set_memory_limit(options.max_pixels.saturating_mul(4));
    let channels = if decoder.has_alpha() { 4 } else { 3 };
    let mut frame = vec![0; height * width * channels];
    if !animated {
        decoder.read_image(&mut frame).map_err(refuse)?;
        return Ok(Pixels::still(height, width, channels, frame));
    }
    // Memory grows by frames that are there, each of the canvas's size.
    let mut data = Vec::new();
    for done in 0..frames {
        decoder.read_frame(&mut frame).map_err(refuse)?;
        let size = height * width * 4;
        if data.capacity() < (done + 1) * size {
            data.reserve_exact(size * done.max(1).min(frames - done));
        }
        match channels {
            4 => data.extend_from_slice(&frame),
            _ => data.extend(frame.chunks_exact(3).flat_map(|rgb| [rgb[0], rgb[1], rgb[2], 255])),
        }
    }
    Ok(Pixels { frames, height, width, channels: 4, data })
}

/// Looks at the sizes that each part claims: the decoder allocates by some of them before it compares them with others.
fn check_parts(op: &str, mut bytes: &[u8], options: &DecodeOptions) -> Result<()> {
    while let Some((header, rest)) = bytes.split_at_checked(8) {
        let size = number(header, 4, 4);
        let part = &rest[..size.min(rest.len())];
        let size_of = |height: usize, width: usize| check_size(op, [1, height, width, 4], options);
        match &header[..4] {
            b"VP8 " if part.len() >= 10 => {
                size_of(number(part, 8, 2) & 0x3fff, number(part, 6, 2) & 0x3fff)?;
            }
            b"VP8L" if part.len() >= 5 => {
                let sizes = number(part, 1, 4);
                size_of(((sizes >> 14) & 0x3fff) + 1, (sizes & 0x3fff) + 1)?;
            }
            b"ANMF" if part.len() >= 16 => {
                size_of(number(part, 9, 3) + 1, number(part, 6, 3) + 1)?;
                check_parts(op, &part[16..], options)?;
            }
            _ => {}
        }
        // A part of odd length has a byte behind it.
        bytes = rest.get(size.saturating_add(size % 2)..).unwrap_or_default();
    }
    Ok(())
}

/// The number of `count` bytes from `at` on, which are there, lowest first.
fn number(bytes: &[u8], at: usize, count: usize) -> usize {
    bytes[at..at + count].iter().rev().fold(0, |number, byte| (number << 8) | usize::from(*byte))
}

fn refused(op: &str, bytes: &[u8], error: DecodingError) -> Error {
    match error {
        DecodingError::IoError(_) => {
            broken(op, &format!("the WebP ends after {} bytes, before its image does", bytes.len()))
        }
        error => broken(op, error.to_string().trim_end_matches('.')),
    }
}
