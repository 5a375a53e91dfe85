//! Decodes GIF with the crate `gif`, and draws each frame over the previous one, as TensorFlow does.

use gif::{ColorOutput, DecodeOptions as GifOptions, Decoder, DecodingError, Frame, MemoryLimit};

use super::pixels::{DecodeOptions, Pixels, broken, check_size};
use crate::error::{Error, Result};

/// All frames, or the first.
pub(super) fn decode(
    op: &str,
    bytes: &[u8],
    all_frames: bool,
    options: &DecodeOptions,
) -> Result<Pixels> {
    let mut rules = GifOptions::new();
    rules.set_color_output(ColorOutput::Indexed);
    let most = options.max_pixels.clamp(1, usize::MAX / 2) as u64;
    if let Some(most) = std::num::NonZeroU64::new(most) {
        rules.set_memory_limit(MemoryLimit::Bytes(most));
    }
    let mut decoder = rules.read_info(bytes).map_err(|error| refused(op, bytes, 0, error))?;
    let (height, width) = (usize::from(decoder.height()), usize::from(decoder.width()));
    let size = check_size(op, [1, height, width, 3], options)?;
    let mut data = Vec::new();
    let mut frames = 0;
    while let Some(frame) = next(op, bytes, &mut decoder, frames)? {
        check_size(op, [frames + 1, height, width, 3], options)?;
        let palette = frame.palette.clone();
        let palette = palette.as_deref().or(decoder.global_palette()).ok_or_else(|| {
            broken(op, &format!("frame {frames} has no palette, and the GIF has none"))
        })?;
        match frames {
            0 => data.resize(size, 0),
            _ => data.extend_from_within((frames - 1) * size..),
        }
        draw(op, &mut data[frames * size..], [height, width], &frame, palette)?;
        frames += 1;
        if !all_frames {
            break;
        }
    }
    if frames == 0 {
        return Err(broken(op, "the GIF has no frame"));
    }
    Ok(Pixels { frames, height, width, channels: 3, data })
}

fn next(
    op: &str,
    bytes: &[u8],
    decoder: &mut Decoder<&[u8]>,
    frames: usize,
) -> Result<Option<Frame<'static>>> {
    let frame = decoder.read_next_frame().map_err(|error| refused(op, bytes, frames, error))?;
    Ok(frame.cloned())
}

/// Draws a frame onto the previous one. Transparent pixels, and those outside the canvas, change nothing.
fn draw(
    op: &str,
    canvas: &mut [u8],
    [height, width]: [usize; 2],
    frame: &Frame<'_>,
    palette: &[u8],
) -> Result<()> {
    let (left, top) = (usize::from(frame.left), usize::from(frame.top));
    let across = usize::from(frame.width);
    let rows = frame.buffer.chunks_exact(across.max(1)).enumerate();
    for (row, places) in rows.map(|(row, places)| (top + row, places)) {
        for (column, &color) in places.iter().enumerate() {
            let column = left + column;
            if row >= height || column >= width || Some(color) == frame.transparent {
                continue;
            }
            let at = 3 * usize::from(color);
            let Some(rgb) = palette.get(at..at + 3) else {
                let colors = palette.len() / 3;
                let what = format!("a pixel has colour {color} of a palette of {colors}");
                return Err(broken(op, &what));
            };
            let at = 3 * (row * width + column);
            canvas[at..at + 3].copy_from_slice(rgb);
        }
    }
    Ok(())
}

fn refused(op: &str, bytes: &[u8], frame: usize, error: DecodingError) -> Error {
    let what = error.to_string();
    let count = bytes.len();
    broken(
        op,
        &format!("frame {frame} of the GIF of {count} bytes: {}", what.trim_end_matches('.')),
    )
}
