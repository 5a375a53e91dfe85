//! Pictures of digits side by side, as a PNG file.

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

use super::say::Result;

/// Writes images `[N,28,28,1]` with values from 0 to 1 in rows of `columns`. It reads the tensor, and so waits for it.
pub fn write_digits(path: &Path, images: &wgrad::Tensor, columns: usize) -> Result<()> {
    const SIDE: usize = 28;
    let pixels = images.to_vec::<f32>()?;
    let count = pixels.len() / (SIDE * SIDE);
    let (width, height) = (columns * SIDE, count.div_ceil(columns) * SIDE);
    let mut grey = vec![0u8; width * height];
    for (at, value) in pixels.iter().enumerate() {
        let (image, row, column) = (at / (SIDE * SIDE), at / SIDE % SIDE, at % SIDE);
        let (y, x) = (image / columns * SIDE + row, image % columns * SIDE + column);
        grey[y * width + x] = (value.clamp(0.0, 1.0) * 255.0).round() as u8;
    }
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let file = BufWriter::new(File::create(path)?);
    let mut encoder = png::Encoder::new(file, width as u32, height as u32);
    encoder.set_color(png::ColorType::Grayscale);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.write_header()?.write_image_data(&grey)?;
    Ok(())
}
