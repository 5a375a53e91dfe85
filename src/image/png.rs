//! Decodes PNG with the crate `png`, to 8 bits per sample.

use std::io::Cursor;

use png::{
    ColorType, DecodeOptions as PngOptions, Decoder, DecodingError, Limits, Transformations,
};

use super::pixels::{DecodeOptions, Pixels, broken, check_size};
use crate::error::{Error, Result};

/// The most bytes that one compressed byte can expand to: deflate has a match of 258 bytes in two
/// bits.
const DEFLATE: usize = 1032;

/// The channels of the file; a palette counts as its colours' channels.
pub(super) fn decode(
    op: &str,
    bytes: &[u8],
    channels: usize,
    options: &DecodeOptions,
) -> Result<Pixels> {
    let mut rules = PngOptions::default();
    rules.set_ignore_text_chunk(true);
    rules.set_ignore_iccp_chunk(true);
    let mut decoder = Decoder::new_with_options(Cursor::new(bytes), rules);
    let refuse = |error| refused(op, bytes, error);
    let header = decoder.read_header_info().map_err(refuse)?;
    let size = [1, header.height as usize, header.width as usize, 4];
    // A colour that is marked as transparent makes an alpha channel, if one is requested.
    let own = match header.color_type {
        ColorType::Grayscale => 1,
        ColorType::Rgb => 3,
        _ => 0,
    };
    let values = check_size(op, size, options)?;
    // The smallest pixel has one bit, so at least this many bytes are needed to compress all of
    // them.
    if values / 4 / 8 / DEFLATE > bytes.len() {
        let (size, count) = (header.size(), bytes.len());
        let what =
            format!("{count} bytes cannot hold the {} x {} pixels of its header", size.1, size.0);
        return Err(broken(op, &what));
    }
    // Memory for rows and for the compression window, in addition to the image that is allocated
    // here.
    decoder.set_limits(Limits { bytes: values.saturating_mul(4).saturating_add(1 << 20) });
    decoder.set_transformations(Transformations::EXPAND | Transformations::STRIP_16);
    let mut reader = decoder.read_info().map_err(refuse)?;
    let [_, height, width, _] = size;
    let (color, _) = reader.output_color_type();
    let found = match color {
        ColorType::Grayscale => 1,
        ColorType::GrayscaleAlpha => 2,
        ColorType::Rgb | ColorType::Indexed => 3,
        ColorType::Rgba => 4,
    };
    let mut data = vec![0; height * width * found];
    reader.next_frame(&mut data).map_err(refuse)?;
    // A file that is truncated after the pixels is rejected, too.
    reader.finish().map_err(refuse)?;
    let pixels = Pixels::still(height, width, found, data);
    Ok(if channels == 0 { pixels.with_channels(own) } else { pixels })
}

fn refused(op: &str, bytes: &[u8], error: DecodingError) -> Error {
    match error {
        DecodingError::IoError(_) => {
            broken(op, &format!("the PNG ends after {} bytes, before its image does", bytes.len()))
        }
        error => {
            let words = error.to_string();
            // The following are fields of a struct.
            let what = words.split(" while decoding ChunkType").next().unwrap_or_default();
            broken(op, what.trim_end_matches('.'))
        }
    }
}
