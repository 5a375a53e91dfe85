//! The common parts of all formats: limits, decoded pixels, and their conversion to the requested number of channels.

use ndarray::{Array3, Array4};

use crate::error::{Error, Result, message};
use crate::support::options::options;

/// The inverse DCT of a JPEG decoder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum DctMethod {
    /// As exact as integers permit, TensorFlow's `INTEGER_ACCURATE`.
    #[default]
    IntegerAccurate,
    /// TensorFlow's `INTEGER_FAST`, its default: pixels differ by a few levels, and it is hardly faster.
    IntegerFast,
}

options! {
    /// The limits of a decoder, and how it treats truncated files.
    #[derive(Debug, Clone, Copy, PartialEq)]
    pub struct DecodeOptions {
        /// The maximum number of pixels of an image: 2^28. The decoder reads the number from the header, and rejects a
        /// decompression bomb before it allocates memory.
        max_pixels: usize = 1 << 28,
        /// The maximum number of pixels of all frames of an animation together, if that is less: 2^26. A frame of a few bytes
        /// fills the whole canvas, so that a small file could request any number of pixels.
        max_animation_pixels: usize = 1 << 26,
        /// The factor by which a JPEG is reduced while it is decoded, which is faster than resizing it: 1, 2, 4 or 8.
        ratio: usize = 1,
        /// The inverse DCT of a JPEG; default: exact.
        dct_method: DctMethod = DctMethod::IntegerAccurate,
        /// Whether a truncated JPEG returns its existing pixels, with grey for the others; default: `false`.
        try_recover_truncated: bool = false,
    }
}

/// Decoded frames of one size, each `[H,W,C]`, one after another.
#[derive(Debug)]
pub(super) struct Pixels {
    pub(super) frames: usize,
    pub(super) height: usize,
    pub(super) width: usize,
    pub(super) channels: usize,
    pub(super) data: Vec<u8>,
}

impl Pixels {
    /// An image of a single frame.
    pub(super) fn still(height: usize, width: usize, channels: usize, data: Vec<u8>) -> Self {
        Pixels { frames: 1, height, width, channels, data }
    }

    /// The same frames with another number of channels; 0 keeps their own.
    pub(super) fn with_channels(self, channels: usize) -> Self {
        if channels == 0 || channels == self.channels {
            return self;
        }
        let data = match (self.channels, channels) {
            (1, 3) => each(&self.data, |&[grey]: &[u8; 1]| [grey; 3]),
            (1, 4) => each(&self.data, |&[grey]: &[u8; 1]| [grey, grey, grey, 255]),
            (2, 1) => each(&self.data, |&[grey, _]: &[u8; 2]| [grey]),
            (2, 3) => each(&self.data, |&[grey, _]: &[u8; 2]| [grey; 3]),
            (2, _) => each(&self.data, |&[grey, alpha]: &[u8; 2]| [grey, grey, grey, alpha]),
            (3, 1) => each(&self.data, |rgb: &[u8; 3]| [grey(rgb)]),
            (3, _) => each(&self.data, |&[r, g, b]: &[u8; 3]| [r, g, b, 255]),
            (_, 1) => each(&self.data, |&[r, g, b, _]: &[u8; 4]| [grey(&[r, g, b])]),
            _ => each(&self.data, |&[r, g, b, _]: &[u8; 4]| [r, g, b]),
        };
        Pixels { channels, data, ..self }
    }

    /// The first frame.
    pub(super) fn into_image(mut self, op: &str) -> Result<Array3<u8>> {
        let shape = [self.height, self.width, self.channels];
        self.data.truncate(shape.iter().product());
        Array3::from_shape_vec(shape, self.data).map_err(|_| disagrees(op))
    }

    /// All frames.
    pub(super) fn into_frames(self, op: &str) -> Result<Array4<u8>> {
        let shape = [self.frames, self.height, self.width, self.channels];
        Array4::from_shape_vec(shape, self.data).map_err(|_| disagrees(op))
    }
}

fn disagrees(op: &str) -> Error {
    broken(op, "the number of its pixels is not what its header says")
}

/// Converts each pixel of `N` values to one of `M`.
fn each<const N: usize, const M: usize>(
    data: &[u8],
    change: impl Fn(&[u8; N]) -> [u8; M],
) -> Vec<u8> {
    let mut changed = Vec::with_capacity(data.len() / N * M);
    for pixel in data.chunks_exact(N) {
        if let Ok(pixel) = pixel.try_into() {
            changed.extend_from_slice(&change(pixel));
        }
    }
    changed
}

/// Luma as libpng computes it with the weights 0.299, 0.587 and 0.114, in parts of 2^15.
fn grey([r, g, b]: &[u8; 3]) -> u8 {
    if r == g && g == b {
        return *r;
    }
    const RED: u32 = 29_900 * 32_768 / 100_000;
    const GREEN: u32 = 58_700 * 32_768 / 100_000;
    const BLUE: u32 = 32_768 - RED - GREEN;
    ((RED * u32::from(*r) + GREEN * u32::from(*g) + BLUE * u32::from(*b)) >> 15) as u8
}

/// Rejects numbers of channels that no image has.
pub(super) fn check_channels(op: &str, channels: usize) -> Result<()> {
    if matches!(channels, 0 | 1 | 3 | 4) {
        return Ok(());
    }
    Err(Error::Shape(message!(
        "{op}: channels is {channels}; it must be 1 (grey), 3 (RGB), 4 (RGBA) or 0, which takes the number in the file."
    )))
}

/// Rejects a header with more pixels than the options allow, or with none; otherwise returns the number of values.
pub(super) fn check_size(
    op: &str,
    [frames, height, width, channels]: [usize; 4],
    options: &DecodeOptions,
) -> Result<usize> {
    if height == 0 || width == 0 {
        return Err(broken(op, &format!("its header says {height} x {width} pixels")));
    }
    let pixels = frames.checked_mul(height).and_then(|n| n.checked_mul(width));
    let most = match frames {
        1 => options.max_pixels,
        _ => options.max_pixels.min(options.max_animation_pixels),
    };
    let values = pixels.filter(|&n| n <= most).and_then(|n| n.checked_mul(channels));
    values.filter(|&n| n < isize::MAX as usize).ok_or_else(|| {
        let animation = if frames > 1 { format!("{frames} frames of ") } else { String::new() };
        Error::Data(message!(
            "{op}: the header says {animation}{height} x {width} pixels, and at most {most} are decoded. If the file is right, \
             raise DecodeOptions::{}.",
            if most < options.max_pixels { "max_animation_pixels" } else { "max_pixels" }
        ))
    })
}

/// The error for an image that its decoder rejects.
pub(super) fn broken(op: &str, what: &str) -> Error {
    Error::Data(message!("{op}: the image is broken: {what}. Replace the file, or leave it out."))
}

/// Runs a third-party decoder. It is tested with corrupt files, and yet it might panic where it should return an error.
pub(super) fn guarded<T>(op: &str, decode: impl FnOnce() -> Result<T>) -> Result<T> {
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(decode));
    caught.unwrap_or_else(|_| Err(broken(op, "the decoder gave up on it")))
}
