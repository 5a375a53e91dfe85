//! Images as PNG files, for TensorBoard's image plugin.

use png::{BitDepth, ColorType};

use crate::error::{Error, Result, message};

/// A byte for a value from 0 to 1, as TensorFlow's `convert_image_dtype` rounds; values outside are clipped, NaN is 0.
pub(super) fn byte(value: f32) -> u8 {
    (value * 255.5) as u8
}

/// A PNG file of `height` rows of `width` pixels with `channels` bytes each.
pub(super) fn png(height: usize, width: usize, channels: usize, pixels: &[u8]) -> Result<Vec<u8>> {
    let failed = |what: &str| {
        let words = message!("image: the picture [{height}, {width}, {channels}]: {what}.");
        Error::Shape(words)
    };
    let color = match channels {
        1 => ColorType::Grayscale,
        2 => ColorType::GrayscaleAlpha,
        3 => ColorType::Rgb,
        4 => ColorType::Rgba,
        _ => return Err(failed("a PNG has 1 to 4 channels")),
    };
    let (Ok(rows), Ok(columns)) = (u32::try_from(height), u32::try_from(width)) else {
        return Err(failed("a PNG has fewer than 2^32 rows and columns"));
    };
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, columns, rows);
    encoder.set_color(color);
    encoder.set_depth(BitDepth::Eight);
    let write = |mut writer: png::Writer<_>| {
        writer.write_image_data(pixels)?;
        writer.finish()
    };
    encoder.write_header().and_then(write).map_err(|error| failed(&error.to_string()))?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    #[test]
    fn floats_become_bytes_as_in_tensorflow() {
        // tf.image.convert_image_dtype(x, tf.uint8, saturate=True).
        let found = [-1.0, 0.0, 0.25, 0.5, 0.999, 1.0, 7.0, f32::NAN].map(super::byte);
        assert_eq!(found, [0, 0, 63, 127, 255, 255, 255, 0]);
    }
}
