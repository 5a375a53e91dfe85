//! Decodes WebP with the crate `image-webp`.

use std::io::Cursor;

use image_webp::{DecodingError, WebPDecoder};

use super::pixels::{DecodeOptions, Pixels, broken, check_size};
use crate::error::{Error, Result};

/// All frames, or the first: RGB, or RGBA if the file has an alpha channel or is an animation, as in TensorFlow.
pub(super) fn decode(
    op: &str,
    bytes: &[u8],
    all_frames: bool,
    options: &DecodeOptions,
) -> Result<Pixels> {
    check_parts(op, bytes, options)?;
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
    // Memory grows with the frames that exist, each of the canvas's size.
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

/// A chunk of the file: its name, where its contents begin, and their length as stated.
struct Part<'a> {
    name: &'a [u8],
    begin: usize,
    size: usize,
}

/// The chunks between these bytes. The stated length of the last one may exceed the end.
fn parts(bytes: &[u8], begin: usize, end: usize) -> impl Iterator<Item = Part<'_>> {
    let (mut at, end) = (begin, end.min(bytes.len()));
    std::iter::from_fn(move || {
        let header = bytes.get(at..at.saturating_add(8)).filter(|_| at.saturating_add(8) <= end)?;
        let part = Part { name: &header[..4], begin: at + 8, size: number(header, 4, 4) };
        // A chunk of odd length is followed by a padding byte.
        at = part.begin.saturating_add(part.size).saturating_add(part.size % 2);
        Some(part)
    })
}

impl Part<'_> {
    /// Its first bytes, as far as they exist: the decoder reads them before it checks where a chunk ends.
    fn contents<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        bytes.get(self.begin..).unwrap_or_default()
    }

    /// The height and width of an image, from its own header.
    fn image_size(&self, bytes: &[u8]) -> Option<[usize; 2]> {
        let contents = self.contents(bytes);
        match self.name {
            b"VP8 " if contents.len() >= 10 => {
                Some([number(contents, 8, 2) & 0x3fff, number(contents, 6, 2) & 0x3fff])
            }
            b"VP8L" if contents.len() >= 5 => {
                let sizes = number(contents, 1, 4);
                Some([((sizes >> 14) & 0x3fff) + 1, (sizes & 0x3fff) + 1])
            }
            _ => None,
        }
    }
}

/// Checks the sizes in each chunk: the decoder allocates an image, and decodes all of it, before it compares its size with
/// that of the frame and of the canvas.
fn check_parts(op: &str, bytes: &[u8], options: &DecodeOptions) -> Result<()> {
    let size_of = |[height, width]: [usize; 2]| check_size(op, [1, height, width, 4], options);
    let mut canvas = None;
    for (at, part) in parts(bytes, 12, bytes.len()).enumerate() {
        let contents = part.contents(bytes);
        if let Some(size) = part.image_size(bytes) {
            size_of(size)?;
            fits(op, size, canvas, "the canvas")?;
        } else if part.name == b"VP8X" && at == 0 && contents.len() >= 10 {
            let size = [number(contents, 7, 3) + 1, number(contents, 4, 3) + 1];
            size_of(size)?;
            canvas = Some(size);
        } else if part.name == b"ANMF" && contents.len() >= 16 {
            let frame = [number(contents, 9, 3) + 1, number(contents, 6, 3) + 1];
            size_of(frame)?;
            let [height, width] = canvas.unwrap_or(frame);
            if frame[0] > height || frame[1] > width {
                let [own_height, own_width] = frame;
                let what = format!(
                    "a frame has {own_height} x {own_width} pixels, and the canvas {height} x {width}"
                );
                return Err(broken(op, &what));
            }
            let end = part.begin.saturating_add(part.size);
            for image in parts(bytes, part.begin + 16, end) {
                if let Some(size) = image.image_size(bytes) {
                    fits(op, size, Some(frame), "its frame")?;
                }
            }
            // The decoder looks for the next frame without the padding byte after this one.
            if part.size % 2 == 1 && bytes.get(end..).is_some_and(|rest| rest.starts_with(b"ANMF"))
            {
                let what = format!("a frame of {} bytes has no padding byte after it", part.size);
                return Err(broken(op, &what));
            }
        }
    }
    Ok(())
}

/// Rejects an image whose size differs from that of its frame or canvas.
fn fits(op: &str, size: [usize; 2], room: Option<[usize; 2]>, of: &str) -> Result<()> {
    let ([height, width], Some(room)) = (size, room.filter(|room| *room != size)) else {
        return Ok(());
    };
    let what = format!(
        "an image of {height} x {width} pixels is to fill {of} of {} x {}",
        room[0], room[1]
    );
    Err(broken(op, &what))
}

/// The number in the `count` bytes from `at` on, which must exist, lowest byte first.
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
