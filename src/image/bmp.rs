//! Decodes BMP: uncompressed pixels of 8, 24 and 32 bits, in either row order.

use super::pixels::{DecodeOptions, Pixels, broken, check_size};
use crate::error::{Error, Result};

/// The bytes of the file's header and of the shortest one after it.
const HEADERS: usize = 14 + 40;
/// The channel masks of 32-bit pixels in files with masks: blue first, as in files without.
const MASKS: [u32; 3] = [0x00ff_0000, 0x0000_ff00, 0x0000_00ff];

/// 4 channels for 32 bits, 3 for 24, 3 for a palette or 1 if it is grey.
pub(super) fn decode(op: &str, bytes: &[u8], options: &DecodeOptions) -> Result<Pixels> {
    let header = Header::read(op, bytes)?;
    let Header { width, height, .. } = header;
    let depth = usize::from(header.bits / 8);
    let channels = if depth == 4 { 4 } else { 3 };
    let values = check_size(op, [1, height, width, channels], options)?;
    // Rows are padded to multiples of 4 bytes. Nothing overflows: both are below 2^31 and their product is below the
    // options' limit.
    let stride = (width * depth).div_ceil(4) * 4;
    let needed = stride.checked_mul(height - 1).and_then(|n| n.checked_add(width * depth));
    let end = needed.and_then(|n| n.checked_add(header.start));
    let Some(pixels) = end.and_then(|end| bytes.get(header.start..end)) else {
        return Err(short(op, bytes));
    };
    let palette = if depth == 1 { header.palette(op, bytes)? } else { Vec::new() };
    let grey = depth == 1 && palette.iter().all(|[r, g, b]| r == g && g == b);
    let mut data = Vec::with_capacity(values);
    for row in 0..height {
        let from = if header.top_down { row } else { height - 1 - row };
        let row = &pixels[from * stride..from * stride + width * depth];
        match depth {
            1 => {
                for &color in row {
                    let Some(rgb) = palette.get(usize::from(color)) else {
                        let colors = palette.len();
                        let what = format!("a pixel has colour {color} of a palette of {colors}");
                        return Err(broken(op, &what));
                    };
                    data.extend_from_slice(if grey { &rgb[..1] } else { rgb });
                }
            }
            3 => row.chunks_exact(3).for_each(|p| data.extend_from_slice(&[p[2], p[1], p[0]])),
            _ => {
                row.chunks_exact(4).for_each(|p| data.extend_from_slice(&[p[2], p[1], p[0], p[3]]))
            }
        }
    }
    Ok(Pixels::still(height, width, if grey { 1 } else { channels }, data))
}

struct Header {
    /// The offset of the pixels.
    start: usize,
    /// The size of the second header, after which a palette begins.
    size: usize,
    width: usize,
    height: usize,
    top_down: bool,
    bits: u16,
    colors: usize,
}

impl Header {
    fn read(op: &str, bytes: &[u8]) -> Result<Self> {
        let word = |at: usize| {
            let word = bytes.get(at..at + 4).and_then(|word| word.try_into().ok());
            word.map(u32::from_le_bytes).ok_or_else(|| short(op, bytes))
        };
        if bytes.len() < HEADERS {
            return Err(short(op, bytes));
        }
        let signed = |at: usize| word(at).map(|word| word as i32);
        let (width, height) = (signed(18)?, signed(22)?);
        let (bits, packing) = ((word(26)? >> 16) as u16, word(30)?);
        let plain = match (bits, packing) {
            (8 | 24 | 32, 0) => true,
            // The masks follow the header, or are its next part.
            (32, 3) => (0..3).all(|i| word(HEADERS + 4 * i).is_ok_and(|mask| mask == MASKS[i])),
            _ => false,
        };
        if !plain {
            let what = format!(
                "it has {bits} bits per pixel and compression {packing}, and only pixels of 8, 24 and 32 bits without compression \
                 are decoded"
            );
            return Err(broken(op, &what));
        }
        if width <= 0 || height == 0 {
            return Err(broken(op, &format!("its header says {height} x {width} pixels")));
        }
        Ok(Header {
            start: word(10)? as usize,
            size: word(14)? as usize,
            width: width as usize,
            height: height.unsigned_abs() as usize,
            top_down: height < 0,
            bits,
            colors: word(46)? as usize,
        })
    }

    /// The colours, each as RGB.
    fn palette(&self, op: &str, bytes: &[u8]) -> Result<Vec<[u8; 3]>> {
        let count = if self.colors == 0 { 256 } else { self.colors.min(256) };
        let start = self.size.checked_add(14);
        let colors = start.and_then(|start| bytes.get(start..start.checked_add(4 * count)?));
        let colors = colors.ok_or_else(|| short(op, bytes))?;
        Ok(colors.chunks_exact(4).map(|color| [color[2], color[1], color[0]]).collect())
    }
}

fn short(op: &str, bytes: &[u8]) -> Error {
    broken(op, &format!("the BMP ends after {} bytes, before its image does", bytes.len()))
}
