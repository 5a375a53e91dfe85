//! Pictures next to each other in a PNG file.

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

use super::say::Result;

/// Writes images `[N,H,W,1]` or `[N,H,W,3]` with values from 0 to 1 in rows of `columns`. It reads the tensor, and so waits for
/// it.
pub fn write_images(path: &Path, images: &wgrad::Tensor, columns: usize) -> Result<()> {
    let &[count, rows, across, channels] = images.shape() else {
        return Err("pictures are [N,H,W,C]".into());
    };
    let pixels = images.to_vec::<f32>()?;
    let (width, height) = (columns * across, count.div_ceil(columns) * rows);
    let mut canvas = vec![0u8; width * height * channels];
    for (at, value) in pixels.iter().enumerate() {
        let (place, channel) = (at / channels, at % channels);
        let (image, row, column) = (place / (rows * across), place / across % rows, place % across);
        let (y, x) = (image / columns * rows + row, image % columns * across + column);
        canvas[(y * width + x) * channels + channel] =
            (value.clamp(0.0, 1.0) * 255.0).round() as u8;
    }
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let file = BufWriter::new(File::create(path)?);
    let mut encoder = png::Encoder::new(file, width as u32, height as u32);
    encoder.set_color(if channels == 1 { png::ColorType::Grayscale } else { png::ColorType::Rgb });
    encoder.set_depth(png::BitDepth::Eight);
    encoder.write_header()?.write_image_data(&canvas)?;
    Ok(())
}
