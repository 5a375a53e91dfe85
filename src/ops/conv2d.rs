//! Convolution of images with filters, and its two gradients, as products of gathered patches.
//!
//! y[n,i,j,o] = sum over u,v,c of x[n, i*sh + u*dh - top, j*sw + v*dw - left, c] * w[u,v,c,o]
//! (a cross-correlation, as in TensorFlow). Images are `[N,H,W,C]`, filters `[KH,KW,C,O]`.

use std::hash::{Hash, Hasher};

use super::gemm::{Columns, Gemm, Rows, Sum};
use super::matmul::Product;
use super::patches;
use super::windows::{windows_of_images, windows_over_places};
use super::{Backward, FLOATS, Grads, Keep, Operation, agreed, expect_dtype, same_dtype};
use crate::eager::dispatch;
use crate::error::{Error, Result, message};
use crate::graph::lower::{Lowering, Site, Variants};
use crate::graph::{Op, Spec};
use crate::shape::Shape;
use crate::tensor::{Operand, Tensor};

/// How far a window may leave the image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Padding {
    /// Not at all: `ceil((in - window + 1) / stride)` results along an axis.
    #[default]
    Valid,
    /// So far that there are `ceil(in / stride)` results; the odd place is added at the end.
    Same,
}

/// Strides, padding and dilations of a convolution, each as (rows, columns).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Conv2dOptions {
    /// Steps between windows.
    pub strides: [usize; 2],
    /// How far windows may leave the image.
    pub padding: Padding,
    /// Distance between the elements that a window takes.
    pub dilations: [usize; 2],
}

impl Default for Conv2dOptions {
    fn default() -> Self {
        Conv2dOptions { strides: [1, 1], padding: Padding::Valid, dilations: [1, 1] }
    }
}

impl Tensor {
    /// Convolves images `[N,H,W,C]` with `filters` `[KH,KW,C,O]` to `[N,OH,OW,O]`.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad::{Conv2dOptions, Padding, Tensor};
    /// let image = Tensor::ones([1, 3, 3, 1])?;
    /// let filter = Tensor::ones([2, 2, 1, 1])?;
    /// let same = Conv2dOptions { padding: Padding::Same, ..Default::default() };
    /// let y = image.conv2d(&filter, same)?;
    /// assert_eq!(y.to_vec::<f32>()?, [4.0, 4.0, 2.0, 4.0, 4.0, 2.0, 2.0, 2.0, 1.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Shape`] if a rank is not 4, the channels differ, or a stride or dilation is 0;
    /// [`Error::DType`] if the dtypes differ or are not float.
    pub fn conv2d(&self, filters: impl Into<Operand>, options: Conv2dOptions) -> Result<Tensor> {
        let filters = filters.into().beside("Conv2D", self)?;
        dispatch(Conv2d { options }, &[self, &filters])
    }
}

/// Output size and leading padding along one axis.
pub(super) fn windows(
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

/// Places in an image have 32 bits in a kernel, and differences of them a sign.
pub(super) const FARTHEST: usize = i32::MAX as usize / 2;

/// All sizes of a convolution.
pub(super) struct Geometry {
    pub(super) image: [usize; 4],
    pub(super) filter: [usize; 4],
    pub(super) out: [usize; 4],
    pub(super) top: usize,
    pub(super) left: usize,
    pub(super) options: Conv2dOptions,
}

impl Geometry {
    pub(super) fn new(
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

    /// True if every window is one place and every place has one: the product of all places with the filter.
    fn is_product(&self) -> bool {
        self.filter[..2] == [1, 1] && self.options.strides == [1, 1]
    }

    fn params(&self) -> Vec<(&'static str, usize)> {
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

#[derive(Debug, Hash)]
struct Conv2d {
    options: Conv2dOptions,
}

impl Op for Conv2d {
    fn name(&self) -> &'static str {
        "Conv2D"
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Spec> {
        same_dtype("Conv2D", inputs[0], inputs[1])?;
        expect_dtype("Conv2D", inputs[0], FLOATS)?;
        let g = Geometry::new("Conv2D", &inputs[0].shape, &inputs[1].shape, self.options)?;
        Ok(Spec::new(g.out, inputs[0].dtype))
    }

    fn attributes(&self, mut state: &mut dyn Hasher) {
        self.hash(&mut state);
    }

    fn variants(&self, site: &Site) -> Variants {
        self.product(site).variants(site.caps)
    }

    fn lower(&self, site: &Site) -> Lowering {
        self.product(site).lower_at(site)
    }
}

impl Conv2d {
    fn product(&self, site: &Site) -> Gemm {
        let g = agreed(Geometry::new(
            "Conv2D",
            &site.inputs[0].shape,
            &site.inputs[1].shape,
            self.options,
        ));
        let ([_, _, _, c], [kh, kw, _, o], [n, oh, ow, _]) = (g.image, g.filter, g.out);
        if g.is_product() {
            let size = Product { m: n * oh * ow, k: c, n: o, ..Product::default() };
            return size.gemm("conv2d", site.output.dtype);
        }
        let by_row = c % 4 != 0 && self.options.dilations[1] == 1;
        let (sum, v) = if by_row { ([kh, 1, kw * c], 0) } else { ([kh, kw, c], c * o) };
        Gemm {
            label: "conv2d",
            dtype: site.output.dtype,
            result: site.output.dtype,
            batch: 1,
            m: n * oh * ow,
            n: o,
            sum: Sum::Nest(sum),
            a: windows_of_images(c, by_row),
            b: Columns { batch: 0, u: kw * c * o, v, k: o, n: 1 },
            params: g.params(),
        }
    }
}

impl Operation for Conv2d {
    fn keep(&self) -> Keep {
        Keep::Inputs
    }

    fn grad(&self, back: &Backward) -> Result<Grads> {
        let options = self.options;
        let (x, w) = (&back.spec(0).shape, &back.spec(1).shape);
        back.both(
            &|| dispatch(InputGradient { image: x.clone(), options }, &[back.dy, back.x(1)]),
            &|| dispatch(FilterGradient { filter: w.clone(), options }, &[back.x(0), back.dy]),
        )
    }
}

/// dx[n,y,x,c] = sum over u,v,o of dy[n, (y + top - u*dh) / sh, (x + left - v*dw) / sw, o] * w[u,v,c,o], where the
/// divisions leave no rest.
#[derive(Debug, Hash)]
struct InputGradient {
    image: Shape,
    options: Conv2dOptions,
}

impl Op for InputGradient {
    fn name(&self) -> &'static str {
        "Conv2DBackpropInput"
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Spec> {
        Ok(Spec::new(self.image.clone(), inputs[0].dtype))
    }

    fn attributes(&self, mut state: &mut dyn Hasher) {
        self.hash(&mut state);
    }

    fn variants(&self, site: &Site) -> Variants {
        let (first, other) = self.ways(site);
        let mut variants = first.gemm.variants(site.caps);
        // Of the other way what the table prefers.
        if let Some(Way { gemm, .. }) = other {
            let more = gemm.variants(site.caps);
            let name = |name: &String| format!("{OTHER_WAY}{name}");
            variants.half.extend(more.half.iter().map(name));
            variants.names.extend(more.names.first().map(name));
            variants.doubts.extend(more.doubts);
            variants.terms = variants.terms.max(more.terms);
        }
        variants
    }

    fn lower(&self, site: &Site) -> Lowering {
        let (first, other) = self.ways(site);
        let named = site.variant.and_then(|name| name.strip_prefix(OTHER_WAY));
        match (other, named) {
            (Some(other), Some(_)) => other.lower(&Site { variant: named, ..*site }),
            _ => first.lower(site),
        }
    }
}

/// How the input's gradient is computed: as one product, or as one whose results are patches that are yet to be added up.
struct Way {
    patches: Option<Geometry>,
    gemm: Gemm,
}

/// Begins the names of variants that take another way than the table.
const OTHER_WAY: &str = "other way, ";

impl Way {
    fn lower(self, site: &Site) -> Lowering {
        match self.patches {
            Some(geometry) => patches::input_gradient(&geometry, self.gemm, site),
            None => self.gemm.lower_at(site),
        }
    }
}

impl InputGradient {
    /// The way that the table takes, and the other one where there is one.
    fn ways(&self, site: &Site) -> (Way, Option<Way>) {
        let g =
            agreed(Geometry::new(self.name(), &self.image, &site.inputs[1].shape, self.options));
        let ([n, h, w, c], [kh, kw, _, o], [_, oh, ow, _]) = (g.image, g.filter, g.out);
        let dtype = site.output.dtype;
        let label = "conv2d_input_gradient";
        let by_o =
            |m: usize, n: usize| Product { m, k: o, n, transpose_b: true, ..Product::default() };
        if g.is_product() {
            return (Way { patches: None, gemm: by_o(n * h * w, c).gemm(label, dtype) }, None);
        }
        let direct = Gemm {
            label,
            dtype,
            result: dtype,
            batch: 1,
            m: n * h * w,
            n: c,
            sum: Sum::Nest([kh, kw, o]),
            a: windows_over_places(o % 4 == 0, self.options.strides == [1, 1]),
            b: Columns { batch: 0, u: kw * c * o, v: c * o, k: 1, n: o },
            params: g.params(),
        };
        let direct = Way { patches: None, gemm: direct };
        let given = by_o(n * oh * ow, kh * kw * c);
        if self.options.dilations != [1, 1]
            || given.m * given.n > patches::MOST
            || patches::iterations(&g) > site.caps.loop_iterations
        {
            return (direct, None);
        }
        let patches = Way { patches: Some(g), gemm: patches::product(&given, dtype) };
        if c < 8 || self.options.strides != [1, 1] {
            (patches, Some(direct))
        } else {
            (direct, Some(patches))
        }
    }
}

impl Operation for InputGradient {
    fn keep(&self) -> Keep {
        Keep::Inputs
    }

    // The op is linear in dy and in w, as the convolution is in x and w.
    fn grad(&self, back: &Backward) -> Result<Grads> {
        let (filter, options) = (&back.spec(1).shape, self.options);
        back.both(&|| back.dy.conv2d(back.x(1), options), &|| {
            dispatch(FilterGradient { filter: filter.clone(), options }, &[back.dy, back.x(0)])
        })
    }
}

/// dw[u,v,c,o] = sum over n,i,j of x[n, i*sh + u*dh - top, j*sw + v*dw - left, c] * dy[n,i,j,o].
#[derive(Debug, Hash)]
struct FilterGradient {
    filter: Shape,
    options: Conv2dOptions,
}

impl Op for FilterGradient {
    fn name(&self) -> &'static str {
        "Conv2DBackpropFilter"
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Spec> {
        Ok(Spec::new(self.filter.clone(), inputs[0].dtype))
    }

    fn attributes(&self, mut state: &mut dyn Hasher) {
        self.hash(&mut state);
    }

    fn variants(&self, site: &Site) -> Variants {
        self.product(site).variants(site.caps)
    }

    fn lower(&self, site: &Site) -> Lowering {
        self.product(site).lower_at(site)
    }
}

impl FilterGradient {
    fn product(&self, site: &Site) -> Gemm {
        let g =
            agreed(Geometry::new(self.name(), &site.inputs[0].shape, &self.filter, self.options));
        let ([kh, kw, c, o], [n, oh, ow, _]) = (g.filter, g.out);
        if g.is_product() {
            let size =
                Product { m: c, k: n * oh * ow, n: o, transpose_a: true, ..Product::default() };
            return size.gemm("conv2d_filter_gradient", site.output.dtype);
        }
        // Row: the place in the window and the channel. u: the image, v: the result's row, i: its column.
        // Above and left of the image the sums wrap to large numbers.
        let a = "struct Row { y: u32, x: u32, c: u32 }\n\
            struct At { line: u32, x: u32, inside: bool }\n\
            fn a_row(batch: u32, m: u32) -> Row {\n    \
            return Row(m / (p.c * p.kw) * p.dh - p.top, (m / p.c) % p.kw * p.dw - p.left, m % p.c);\n}\n\
            fn a_at(row: Row, u: u32, v: u32) -> At {\n    \
            let y = row.y + v * p.sh;\n    \
            return At((u * p.h + y) * p.w * p.c + row.c, row.x, y < p.h);\n}";
        let load = "fn a_load(at: At, i: u32) -> Sum {\n    \
            let x = at.x + i * p.sw;\n    \
            let inside = at.inside && x < p.w;\n    \
            return select(Sum(0), Sum(a[select(0u, at.line + x * p.c, inside)]), inside);\n}";
        let columns = "fn a_load(at: At, i: u32) -> Sum { return a_column(at, i)[at.line % 4u]; }\n\
            fn a_column(at: At, i: u32) -> V {\n    \
            let x = at.x + i * p.sw;\n    \
            let inside = at.inside && x < p.w;\n    \
            return select(V(Sum(0)), V(a[select(0u, at.line + x * p.c, inside) / 4u]), inside);\n}";
        let columns = (c % 4 == 0).then_some(columns);
        Gemm {
            label: "conv2d_filter_gradient",
            dtype: site.output.dtype,
            result: site.output.dtype,
            batch: 1,
            m: kh * kw * c,
            n: o,
            sum: Sum::Nest([n, oh, ow]),
            a: Rows {
                text: a.to_string(),
                load,
                vector: false,
                columns,
                skip: "At(at.line, at.x + n * p.sw, at.inside)",
            },
            b: Columns { batch: 0, u: oh * ow * o, v: ow * o, k: o, n: 1 },
            params: g.params(),
        }
    }
}

impl Operation for FilterGradient {
    fn keep(&self) -> Keep {
        Keep::Inputs
    }

    fn grad(&self, back: &Backward) -> Result<Grads> {
        let (image, options) = (&back.spec(0).shape, self.options);
        back.both(
            &|| dispatch(InputGradient { image: image.clone(), options }, &[back.x(1), back.dy]),
            &|| back.x(0).conv2d(back.dy, options),
        )
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

    #[test]
    fn channels_must_agree() {
        let op = Conv2d { options: Conv2dOptions::default() };
        let spec = |sizes: [usize; 4]| Spec::new(sizes, crate::DType::F32);
        let error = op.infer(&[&spec([1, 5, 5, 3]), &spec([3, 3, 2, 4])]).unwrap_err().to_string();
        assert!(error.starts_with("Conv2D: the images [1, 5, 5, 3] have 3 channels"), "{error}");
    }
}
