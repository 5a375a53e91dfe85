//! The sizes of a convolution: windows along an axis, padding, and checks of their consistency.

use super::super::inventory::{Answer, Args, Stop};
use crate::error::{Error, Result, message};
use crate::graph::attributes::{Attribute, Value, Visitor};
use crate::shape::Shape;
use crate::support::options::options;

/// The padding of a convolution or pooling.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Attribute)]
pub enum Padding {
    /// No padding: `ceil((in - window + 1) / stride)` results along an axis.
    #[default]
    Valid,
    /// Padding for `ceil(in / stride)` results; if it is odd, the additional element is added at the end.
    Same,
    /// This much padding before and after each axis: `[(1, 2), (0, 0)].into()`.
    Explicit(Edges),
}

/// The size of the padding (before, after) for each spatial axis, of which there are one to three.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Edges {
    pairs: [(usize, usize); 3],
    axes: usize,
}

impl Edges {
    pub(crate) fn pairs(&self) -> &[(usize, usize)] {
        &self.pairs[..self.axes]
    }
}

/// A pair for each axis.
impl Attribute for Edges {
    fn visit(&self, name: &'static str, visitor: &mut dyn Visitor) {
        visitor.list(name, self.axes);
        self.pairs().iter().for_each(|pair| pair.visit("", visitor));
    }

    fn read(value: &Value) -> std::result::Result<Self, String> {
        let given = Vec::<(usize, usize)>::read(value)?;
        let mut pairs = [(0, 0); 3];
        let own = pairs.get_mut(..given.len()).filter(|own| !own.is_empty());
        own.ok_or_else(|| format!("{value} is not a padding of one to three axes"))?
            .copy_from_slice(&given);
        Ok(Edges { pairs, axes: given.len() })
    }
}

macro_rules! explicit {
    ($($axes:literal)*) => {$(
        impl From<[(usize, usize); $axes]> for Padding {
            fn from(given: [(usize, usize); $axes]) -> Self {
                let mut pairs = [(0, 0); 3];
                pairs[..$axes].copy_from_slice(&given);
                Padding::Explicit(Edges { pairs, axes: $axes })
            }
        }
    )*};
}
// `[(1, 2), (0, 0)]` becomes a padding of images.
explicit!(1 2 3);

impl Padding {
    /// The padding of the axes from `first` on; there is at least one.
    pub(crate) fn of_axes_from(self, first: usize) -> Self {
        match self {
            Padding::Explicit(Edges { mut pairs, axes }) => {
                pairs.rotate_left(first);
                Padding::Explicit(Edges { pairs, axes: axes - first })
            }
            word => word,
        }
    }

    /// The same padding, preceded by an axis without padding.
    pub(crate) fn under_axis(self) -> Self {
        match self {
            Padding::Explicit(Edges { pairs: [a, b, _], axes }) => {
                Padding::Explicit(Edges { pairs: [(0, 0), a, b], axes: axes + 1 })
            }
            word => word,
        }
    }

    /// The padding before and after the first axis, if the padding is explicit.
    pub(crate) fn first_edges(self) -> Option<(usize, usize)> {
        if let Padding::Explicit(edges) = self { Some(edges.pairs[0]) } else { None }
    }

    /// Returns an error for an explicit padding whose number of axes is not `axes`, or one that kernels cannot count in
    /// 32 bits.
    pub(crate) fn check(self, op: &str, axes: usize, channels: usize) -> Result<()> {
        let Padding::Explicit(edges) = self else { return Ok(()) };
        if edges.axes != axes {
            return Err(Error::Shape(message!(
                "{op}: the padding {:?} has {} pairs and the input {axes} axes of space; give one pair for each of them, \
                 and none for batch and channels.",
                edges.pairs(),
                edges.axes
            )));
        }
        let most = FARTHEST / 2 / channels.max(1);
        if edges.pairs().iter().any(|(low, high)| *low.max(high) > most) {
            return Err(Error::Shape(message!(
                "{op}: the padding {:?} is too wide; with {channels} channels it may have at most {most} positions.",
                edges.pairs()
            )));
        }
        Ok(())
    }
}

options! {
    /// Strides, padding and dilations of a convolution, each as (rows, columns).
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Attribute)]
    pub struct Conv2dOptions {
        /// The stride of the windows; 1 by default.
        strides: [usize; 2] = [1, 1],
        /// The padding of the image; `Valid` by default.
        padding: Padding as impl Into<Padding> = Padding::Valid,
        /// The distance between the elements within a window; 1 by default.
        dilations: [usize; 2] = [1, 1],
    }
}

impl Conv2dOptions {
    /// The key under which measurements of `op` with these options are stored; `result` is the shape that a gradient
    /// must have.
    pub(super) fn measured_as(&self, op: &str, result: Option<&Shape>) -> String {
        let Conv2dOptions { strides, padding, dilations } = self;
        let padding = match padding {
            Padding::Valid => "valid".to_string(),
            Padding::Same => "same".to_string(),
            Padding::Explicit(edges) => format!("{:?}", edges.pairs()),
        };
        let of = format!("{op} strides {strides:?}, {padding}, dilations {dilations:?}");
        result.map_or(of.clone(), |shape| format!("{of}, of {shape}"))
    }
}

/// Output size and leading padding along one axis; an explicit padding applies its first pair.
pub(crate) fn windows(
    size: usize,
    window: usize,
    stride: usize,
    dilation: usize,
    padding: Padding,
) -> (usize, usize) {
    let span = window.saturating_sub(1) * dilation + 1;
    match padding {
        Padding::Explicit(Edges { pairs: [(low, high), ..], .. }) => {
            ((size + low + high + 1).saturating_sub(span).div_ceil(stride), low)
        }
        Padding::Valid => ((size + 1).saturating_sub(span).div_ceil(stride), 0),
        Padding::Same => {
            let out = size.div_ceil(stride);
            let total = (out.saturating_sub(1) * stride + span).saturating_sub(size);
            (out, total / 2)
        }
    }
}

/// A kernel stores a position in an image in 32 bits, and differences of positions in 32 signed bits.
pub(crate) const FARTHEST: usize = i32::MAX as usize / 2;

/// All sizes of a convolution.
pub(crate) struct Geometry {
    pub(crate) image: [usize; 4],
    pub(crate) filter: [usize; 4],
    pub(crate) out: [usize; 4],
    pub(crate) top: usize,
    pub(crate) left: usize,
    pub(crate) options: Conv2dOptions,
    /// The number of groups of channels, each of which is convolved separately.
    pub(crate) groups: usize,
}

impl Geometry {
    /// The sizes of a convolution without groups.
    pub(crate) fn new(
        op: &str,
        image: &Shape,
        filter: &Shape,
        options: Conv2dOptions,
    ) -> Result<Self> {
        if let (&[_, _, _, c], &[_, _, fc, _]) = (&image[..], &filter[..]) {
            if c != fc {
                return Err(Error::Shape(message!(
                    "{op}: the images {image} have {c} channels and the filters {filter} expect {fc}; the last axis of the \
                     images must equal the third of the filters."
                )));
            }
        }
        Geometry::grouped(op, image, filter, options)
    }

    /// The sizes of a convolution whose number of groups is the number of image channels divided by that of filter
    /// channels.
    pub(crate) fn grouped(
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
        let groups = if c == fc { 1 } else { c.checked_div(fc).unwrap_or(0) };
        if groups * fc != c {
            return Err(Error::Shape(message!(
                "{op}: the images {image} have {c} channels and the filters {filter} expect {fc}; the last axis of the \
                 images must equal the third of the filters, or be a multiple of it."
            )));
        }
        if groups == 0 || !o.is_multiple_of(groups) {
            return Err(Error::Shape(message!(
                "{op}: the {c} channels of the images {image} are {groups} groups of {fc}, which cannot share the {o} \
                 filters of {filter}; the number of filters must be a multiple of the number of groups."
            )));
        }
        options.padding.check(op, 2, c)?;
        let [sh, sw] = options.strides;
        let [dh, dw] = options.dilations;
        let reach = |size: usize, dilation: usize| size.saturating_mul(dilation);
        if [sh, sw, dh, dw, kh, kw].contains(&0)
            || [sh, sw, reach(kh, dh), reach(kw, dw)].iter().any(|n| *n > FARTHEST)
        {
            return Err(Error::Shape(message!(
                "{op}: strides {:?}, dilations {:?} and the filter's size ({kh}, {kw}) must all be at least 1, and \
                 neither a stride nor a dilated filter may span more than {FARTHEST} positions.",
                options.strides,
                options.dilations
            )));
        }
        let (oh, top) = windows(h, kh, sh, dh, options.padding);
        let (ow, left) = windows(w, kw, sw, dw, options.padding.of_axes_from(1));
        Ok(Geometry {
            image: [n, h, w, c],
            filter: [kh, kw, fc, o],
            out: [n, oh, ow, o],
            top,
            left,
            options,
            groups,
        })
    }

    /// True if every window is one position and every position has one: the convolution is then a matrix product of
    /// positions and filter.
    pub(crate) fn is_product(&self) -> bool {
        let same = self.out[1..3] == self.image[1..3] && [self.top, self.left] == [0, 0];
        self.filter[..2] == [1, 1] && self.options.strides == [1, 1] && same && self.groups == 1
    }

    /// The distance between the elements of two groups, each of which has `each` in a row.
    pub(crate) fn group_stride(&self, each: usize) -> usize {
        if self.groups > 1 { each } else { 0 }
    }

    pub(crate) fn params(&self) -> Vec<(&'static str, usize)> {
        let ([_, h, w, c], [kh, kw, cg, o], [_, oh, ow, _]) = (self.image, self.filter, self.out);
        let ([sh, sw], [dh, dw]) = (self.options.strides, self.options.dilations);
        let mut params = vec![
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
        ];
        if self.groups > 1 {
            params.extend([("cg", cg), ("og", o / self.groups)]);
        }
        params
    }
}

impl Padding {
    /// The padding of a call by name: a word, or TensorFlow's list of a pair for each axis, including batch and
    /// channels.
    pub(crate) fn from_args(c: &Args) -> Answer<Padding> {
        let word = c.attribute("padding", |value| match value {
            Value::Text(word) if word == "SAME" => Some(Some(Padding::Same)),
            Value::Text(word) if word == "VALID" => Some(Some(Padding::Valid)),
            Value::List(_) => Some(None),
            _ => None,
        })?;
        if let Some(Some(word)) = word {
            return Ok(word);
        }
        match c.need("padding", c.pairs("padding")?)?[..] {
            [(0, 0), w, (0, 0)] => Ok([w].into()),
            [(0, 0), h, w, (0, 0)] => Ok([h, w].into()),
            [(0, 0), d, h, w, (0, 0)] => Ok([d, h, w].into()),
            _ => Err(Stop::Lacks("padding".into())),
        }
    }
}

impl Conv2dOptions {
    /// The options of a call by name.
    pub(crate) fn from_args(c: &Args) -> Answer<Conv2dOptions> {
        Ok(Conv2dOptions::new()
            .strides(c.two("strides")?.unwrap_or([1, 1]))
            .padding(Padding::from_args(c)?)
            .dilations(c.two("dilations")?.unwrap_or([1, 1])))
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
        assert_eq!(windows(5, 3, 2, 1, [(1, 4)].into()), (4, 1));
    }
}
