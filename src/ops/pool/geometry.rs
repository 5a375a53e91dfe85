//! The windows of a pooling: their options and their number.

use super::super::conv2d::{FARTHEST, Padding, windows};
use crate::error::{Error, Result, message};
use crate::graph::attributes::Attribute;
use crate::shape::Shape;
use crate::support::options::options;

options! {
    /// The placement of a pooling's windows, each size as (rows, columns).
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub struct Pool2dOptions {
        /// The stride of the windows; the window size by default (`None`), so that windows are adjacent.
        strides: Option<[usize; 2]> as [usize; 2] = None,
        /// The padding of the image; `Valid` by default.
        padding: Padding as impl Into<Padding> = Padding::Valid,
    }
}

/// The windows of a pooling, each size as (rows, columns).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Attribute)]
pub(in crate::ops) struct Windows {
    pub(super) window: [usize; 2],
    pub(super) strides: [usize; 2],
    pub(super) padding: Padding,
}

impl Windows {
    pub(super) fn new(window: [usize; 2], options: Pool2dOptions) -> Self {
        let Pool2dOptions { strides, padding } = options;
        Windows { window, strides: strides.unwrap_or(window), padding }
    }
}

/// The shape of the windows `[N,OH,OW,C]` and the leading padding.
pub(super) fn geometry(
    op: &str,
    image: &Shape,
    options: Windows,
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
    options.padding.check(op, 2, c)?;
    let beneath = options.padding.of_axes_from(1);
    for (edges, size) in [(options.padding.first_edges(), kh), (beneath.first_edges(), kw)] {
        if edges.is_some_and(|(low, high)| low.max(high) >= size) {
            return Err(Error::Shape(message!(
                "{op}: the padding {:?} is not smaller than the window {:?}, which would lie in the padding only; \
                 use less padding.",
                edges.unwrap_or_default(),
                options.window
            )));
        }
    }
    let (oh, top) = windows(h, kh, sh, 1, options.padding);
    let (ow, left) = windows(w, kw, sw, 1, beneath);
    Ok(([n, oh, ow, c], [top, left]))
}
