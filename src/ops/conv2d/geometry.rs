//! The sizes of a convolution: windows along an axis, padding, and the checks that they fit together.

use super::super::inventory::{Answer, Args, Value};
use crate::error::{Error, Result, message};
use crate::options::options;
use crate::shape::Shape;

/// How far a window may reach beyond the image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Padding {
    /// Not at all: `ceil((in - window + 1) / stride)` results along an axis.
    #[default]
    Valid,
    /// So far that there are `ceil(in / stride)` results; the odd place is added at the end.
    Same,
}

options! {
    /// Strides, padding and dilations of a convolution, each as (rows, columns).
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub struct Conv2dOptions {
        /// Steps between windows; 1.
        strides: [usize; 2] = [1, 1],
        /// How far windows may reach beyond the image; not at all.
        padding: Padding = Padding::Valid,
        /// Distance between the elements that a window takes; 1.
        dilations: [usize; 2] = [1, 1],
    }
}

impl Conv2dOptions {
    /// The key under which measurements of `op` with these options are kept; `result` is the shape that a gradient must
    /// have.
    pub(super) fn measured_as(&self, op: &str, result: Option<&Shape>) -> String {
        let Conv2dOptions { strides, padding, dilations } = self;
        let padding = match padding {
            Padding::Valid => "valid",
            Padding::Same => "same",
        };
        let of = format!("{op} strides {strides:?}, {padding}, dilations {dilations:?}");
        result.map_or(of.clone(), |shape| format!("{of}, of {shape}"))
    }
}

/// Output size and leading padding along one axis.
pub(crate) fn windows(
    size: usize,
    window: usize,
    stride: usize,
    dilation: usize,
    padding: Padding,
) -> (usize, usize) {
    let span = window.saturating_sub(1) * dilation + 1;
    match padding {
        Padding::Valid => ((size + 1).saturating_sub(span).div_ceil(stride), 0),
        Padding::Same => {
            let out = size.div_ceil(stride);
            let total = (out.saturating_sub(1) * stride + span).saturating_sub(size);
            (out, total / 2)
        }
    }
}

/// A kernel holds a place in an image in 32 bits, and differences of places in 32 bits with a sign.
pub(crate) const FARTHEST: usize = i32::MAX as usize / 2;

/// All sizes of a convolution.
pub(crate) struct Geometry {
    pub(crate) image: [usize; 4],
    pub(crate) filter: [usize; 4],
    pub(crate) out: [usize; 4],
    pub(crate) top: usize,
    pub(crate) left: usize,
    pub(crate) options: Conv2dOptions,
}

impl Geometry {
    pub(crate) fn new(
        op: &str,
        image: &Shape,
        filter: &Shape,
        options: Conv2dOptions,
    ) -> Result<Self> {
        let (&[n, h, w, c], &[kh, kw, fc, o]) = (&image[..], &filter[..]) else {
            return Err(Error::Shape(message!(
                "{op}: the images are {image} and the filters {filter}; images need the four axes [N,H,W,C] and filters \
                 [KH,KW,C,O]. Use expand_dims or reshape."
            )));
        };
        if c != fc {
            return Err(Error::Shape(message!(
                "{op}: the images {image} have {c} channels and the filters {filter} expect {fc}; the last axis of the \
                 images must equal the third of the filters."
            )));
        }
        let [sh, sw] = options.strides;
        let [dh, dw] = options.dilations;
        let reach = |size: usize, dilation: usize| size.saturating_mul(dilation);
        if [sh, sw, dh, dw, kh, kw].contains(&0)
            || [sh, sw, reach(kh, dh), reach(kw, dw)].iter().any(|n| *n > FARTHEST)
        {
            return Err(Error::Shape(message!(
                "{op}: strides {:?}, dilations {:?} and the filter's size ({kh}, {kw}) must all be at least 1, and neither a \
                 stride nor a dilated filter may span more than {FARTHEST} places.",
                options.strides,
                options.dilations
            )));
        }
        let (oh, top) = windows(h, kh, sh, dh, options.padding);
        let (ow, left) = windows(w, kw, sw, dw, options.padding);
        Ok(Geometry {
            image: [n, h, w, c],
            filter: [kh, kw, c, o],
            out: [n, oh, ow, o],
            top,
            left,
            options,
        })
    }

    /// True if every window is one place and every place has one: the convolution is then the product of places and
    /// filter.
    pub(crate) fn is_product(&self) -> bool {
        self.filter[..2] == [1, 1] && self.options.strides == [1, 1]
    }

    pub(crate) fn params(&self) -> Vec<(&'static str, usize)> {
        let ([_, h, w, c], [kh, kw, _, o], [_, oh, ow, _]) = (self.image, self.filter, self.out);
        let ([sh, sw], [dh, dw]) = (self.options.strides, self.options.dilations);
        vec![
            ("h", h),
            ("w", w),
            ("c", c),
            ("kh", kh),
            ("kw", kw),
            ("o", o),
            ("oh", oh),
            ("ow", ow),
            ("sh", sh),
            ("sw", sw),
            ("dh", dh),
            ("dw", dw),
            ("top", self.top),
            ("left", self.left),
        ]
    }
}

impl Padding {
    /// The padding of a call by name. Explicit paddings are applied before.
    pub(crate) fn of(c: &Args) -> Answer<Padding> {
        let padding = c.attribute("padding", |value| match value {
            Value::Text(word) if word == "SAME" => Some(Padding::Same),
            Value::Text(word) if word == "VALID" => Some(Padding::Valid),
            Value::List(_) => Some(Padding::Valid),
            _ => None,
        })?;
        c.need("padding", padding)
    }
}

impl Conv2dOptions {
    /// The options of a call by name.
    pub(crate) fn of(c: &Args) -> Answer<Conv2dOptions> {
        Ok(Conv2dOptions::new()
            .strides(c.two("strides")?.unwrap_or([1, 1]))
            .padding(Padding::of(c)?)
            .dilations(c.two("dilations")?.unwrap_or([1, 1])))
    }
}

/// The explicit paddings of a call by name, where it gives no word.
pub(super) fn explicit_padding(c: &Args) -> Answer<Option<Vec<(usize, usize)>>> {
    match c.attribute("padding", |value| Some(matches!(value, Value::List(_))))? {
        Some(true) => c.pairs("padding"),
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_counted_as_tensorflow_does() {
        assert_eq!(windows(28, 5, 1, 1, Padding::Same), (28, 2));
        assert_eq!(windows(28, 5, 1, 1, Padding::Valid), (24, 0));
        assert_eq!(windows(5, 2, 2, 1, Padding::Same), (3, 0));
        assert_eq!(windows(7, 3, 2, 2, Padding::Valid), (2, 0));
        assert_eq!(windows(2, 3, 1, 1, Padding::Valid), (0, 0));
    }
}
