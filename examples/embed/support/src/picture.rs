//! Pictures of frames: read from a texture, compared and saved.

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

use wgrad::interop::wgpu;

use crate::Result;

/// Red, green and blue of each pixel, row by row from the top.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    pub width: usize,
    pub height: usize,
    pub pixels: Vec<[u8; 3]>,
}

impl Picture {
    /// From four bytes for each pixel: red, green, blue and alpha, or with `bgra` the other way round.
    ///
    /// # Errors
    /// If there are not four bytes for each pixel.
    pub fn from_bytes(width: usize, height: usize, bytes: &[u8], bgra: bool) -> Result<Self> {
        if bytes.len() != width * height * 4 {
            return Err(format!(
                "a picture of {width} x {height} pixels has {} bytes, not {}",
                width * height * 4,
                bytes.len()
            )
            .into());
        }
        let colour = |p: &[u8]| if bgra { [p[2], p[1], p[0]] } else { [p[0], p[1], p[2]] };
        Ok(Picture { width, height, pixels: bytes.chunks_exact(4).map(colour).collect() })
    }

    /// Reads a texture that has `COPY_SRC`, and waits for it. An example needs this once; a program that needs it in every frame
    /// would read while the next frames are drawn.
    ///
    /// # Errors
    /// If the texture's elements do not have four bytes, or if the device is lost.
    pub fn of_texture(
        device: &wgpu::Device,
        queue: &wgpu::Queue,
        texture: &wgpu::Texture,
    ) -> Result<Self> {
        use wgpu::TextureFormat::{Bgra8Unorm, Bgra8UnormSrgb, Rgba8Unorm, Rgba8UnormSrgb};
        let bgra = match texture.format() {
            Bgra8Unorm | Bgra8UnormSrgb => true,
            Rgba8Unorm | Rgba8UnormSrgb => false,
            other => {
                return Err(format!("cannot save a picture from a texture of {other:?}").into());
            }
        };
        let (width, height) = (texture.width(), texture.height());
        // Rows of a copy begin at multiples of 256 bytes.
        let row = (width * 4).next_multiple_of(wgpu::COPY_BYTES_PER_ROW_ALIGNMENT);
        let staging = device.create_buffer(&wgpu::BufferDescriptor {
            label: Some("picture"),
            size: u64::from(row) * u64::from(height),
            usage: wgpu::BufferUsages::COPY_DST | wgpu::BufferUsages::MAP_READ,
            mapped_at_creation: false,
        });
        let mut encoder = device.create_command_encoder(&Default::default());
        let layout = wgpu::TexelCopyBufferLayout {
            offset: 0,
            bytes_per_row: Some(row),
            rows_per_image: None,
        };
        let target = wgpu::TexelCopyBufferInfo { buffer: &staging, layout };
        encoder.copy_texture_to_buffer(texture.as_image_copy(), target, texture.size());
        queue.submit([encoder.finish()]);
        staging.map_async(wgpu::MapMode::Read, .., |_| {});
        device.poll(wgpu::PollType::wait_indefinitely())?;
        let bytes = staging.get_mapped_range(..)?;
        let rows = bytes.chunks_exact(row as usize);
        let tight: Vec<u8> = rows.flat_map(|row| &row[..width as usize * 4]).copied().collect();
        Self::from_bytes(width as usize, height as usize, &tight, bgra)
    }

    /// The pixel in column `x` of row `y`, if there is one.
    pub fn at(&self, x: usize, y: usize) -> Option<[u8; 3]> {
        (x < self.width).then(|| self.pixels.get(y * self.width + x).copied()).flatten()
    }

    /// Whether all pixels are nearly alike, as in a window in which nothing was drawn.
    pub fn is_blank(&self) -> bool {
        let Some(&first) = self.pixels.first() else { return true };
        self.pixels.iter().filter(|&&pixel| differ(pixel, first, 8)).count() * 100
            < self.pixels.len()
    }

    /// Writes a PNG file, and its folder if there is none.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn save(&self, path: &Path) -> Result<()> {
        let context = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(|error| context(&error))?;
        }
        let file = File::create(path).map_err(|error| context(&error))?;
        let mut encoder =
            png::Encoder::new(BufWriter::new(file), self.width as u32, self.height as u32);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        let mut writer = encoder.write_header().map_err(|error| context(&error))?;
        writer.write_image_data(self.pixels.as_flattened()).map_err(|error| context(&error))?;
        // Dropping it would hide an error.
        writer.finish().map_err(|error| context(&error))?;
        Ok(())
    }
}

/// Whether a channel of two colours differs by more than `tolerance`.
pub fn differ(a: [u8; 3], b: [u8; 3], tolerance: u8) -> bool {
    a.iter().zip(b).any(|(&a, b)| a.abs_diff(b) > tolerance)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn bytes_become_pixels_in_either_order() {
        let bytes = [1, 2, 3, 255, 4, 5, 6, 255];
        let rgba = Picture::from_bytes(2, 1, &bytes, false).unwrap();
        assert_eq!(rgba.pixels, [[1, 2, 3], [4, 5, 6]]);
        assert_eq!(Picture::from_bytes(1, 2, &bytes, true).unwrap().pixels, [[3, 2, 1], [6, 5, 4]]);
        let error = Picture::from_bytes(2, 2, &bytes, false).unwrap_err();
        assert_eq!(error.to_string(), "a picture of 2 x 2 pixels has 16 bytes, not 8");
        assert_eq!((rgba.at(1, 0), rgba.at(2, 0), rgba.at(0, 1)), (Some([4, 5, 6]), None, None));
    }

    #[test]
    fn a_picture_is_blank_if_hardly_a_pixel_differs() {
        let mut picture = Picture { width: 20, height: 10, pixels: vec![[9, 9, 9]; 200] };
        assert!(picture.is_blank());
        picture.pixels[7] = [200, 0, 0];
        assert!(picture.is_blank());
        picture.pixels[8] = [9, 9, 18];
        assert!(!picture.is_blank());
        assert!(Picture { width: 0, height: 0, pixels: Vec::new() }.is_blank());
    }

    #[test]
    fn a_saved_picture_has_its_pixels() {
        let folder = std::env::temp_dir().join(format!("wgrad-picture-{}", std::process::id()));
        let path = folder.join("made/a.png");
        let picture = Picture { width: 2, height: 1, pixels: vec![[1, 2, 3], [250, 0, 9]] };
        picture.save(&path).unwrap();
        let decoder = png::Decoder::new(std::io::BufReader::new(File::open(&path).unwrap()));
        let mut reader = decoder.read_info().unwrap();
        let mut bytes = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut bytes).unwrap();
        assert_eq!((info.width, info.height, &bytes[..]), (2, 1, &[1, 2, 3, 250, 0, 9][..]));
        std::fs::remove_dir_all(&folder).unwrap();
        let error = picture.save(Path::new("/dev/null/a.png")).unwrap_err().to_string();
        assert!(error.starts_with("/dev/null/a.png: "), "{error}");
    }
}
