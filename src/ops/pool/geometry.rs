//! The windows of a pooling: their options, and how many there are.

use super::super::conv2d::{FARTHEST, Padding, windows};
use crate::error::{Error, Result, message};
use crate::shape::Shape;

/// The windows of a pooling, each size as (rows, columns).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Pool2dOptions {
    /// The window.
    pub window: [usize; 2],
    /// Steps between windows.
    pub strides: [usize; 2],
    /// How far windows may leave the image.
    pub padding: Padding,
}

impl Default for Pool2dOptions {
    /// Halves the image: windows of 2 x 2, one beside the other.
    fn default() -> Self {
        Pool2dOptions { window: [2, 2], strides: [2, 2], padding: Padding::Valid }
    }
}

/// The shape of the windows `[N,OH,OW,C]` and the leading padding.
pub(super) fn geometry(
    op: &str,
    image: &Shape,
    options: Pool2dOptions,
) -> Result<([usize; 4], [usize; 2])> {
    let &[n, h, w, c] = &image[..] else {
        return Err(Error::Shape(message!(
            "{op}: the images are {image}; they need the four axes [N,H,W,C]. Use expand_dims or reshape."
        )));
    };
    let ([kh, kw], [sh, sw]) = (options.window, options.strides);
    if [kh, kw, sh, sw].iter().any(|n| !(1..=FARTHEST).contains(n)) {
        return Err(Error::Shape(message!(
            "{op}: the window {:?} and the strides {:?} must all be in 1 to {FARTHEST}.",
            options.window,
            options.strides
        )));
    }
    let (oh, top) = windows(h, kh, sh, 1, options.padding);
    let (ow, left) = windows(w, kw, sw, 1, options.padding);
    Ok(([n, oh, ow, c], [top, left]))
}
