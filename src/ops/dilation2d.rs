//! Grayscale dilation of images: `y[n,i,j,c] = max over k, l of x[n, i sh + k dh, j sw + l dw, c] + w[k,l,c]`.

use super::conv2d::{Conv2dOptions, FARTHEST, Padding, windows};
use super::inventory::{ANY, Entry, OpKind, Values, one};
use super::{Backward, FLOATS, Grads, Keep, Operation, expect_dtype, no_grads, same_dtype};
use crate::dtype::DType;
use crate::eager::dispatch;
use crate::error::{Error, Result, message};
use crate::graph::attributes::Attribute;
use crate::graph::lower::{Bind, Kernel, Lowering, LoweringContext};
use crate::graph::{Op, Spec};
use crate::tensor::Tensor;
use crate::wgsl::shader;

/// How many iterations the loops over a filter may have: every adapter runs as many (`Caps::loop_iterations`).
const MOST: usize = 32_768;

impl Tensor {
    /// The largest sum of a pixel and its tap in each window of images `[N,H,W,C]`, for filters `[KH,KW,C]`. NaN is never
    /// the largest; a window without any number, or outside the image, gives the lowest number of the dtype. The gradient
    /// goes to the first of the largest sums, in row-major order.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad::{self as tf, Conv2dOptions, Tensor};
    /// let x = Tensor::from_slice(&[1.0, 5.0, 2.0], [1, 1, 3, 1])?;
    /// let filters = Tensor::from_slice(&[0.0, 10.0], [1, 2, 1])?;
    /// let y = x.dilation2d(&filters, Conv2dOptions::new())?;
    /// assert_eq!(y.to_vec::<f32>()?, [15.0, 12.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Shape`] if the ranks are not 4 and 3, the channels differ or a size is 0, or the filters have more than about 2^15 taps; [`Error::DType`] if the dtypes
    /// differ or are not float.
    pub fn dilation2d(&self, filters: &Tensor, options: Conv2dOptions) -> Result<Tensor> {
        dispatch(Dilation2d { options, find: Find::Sum }, &[self, filters])
    }
}

/// What is stored for a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Attribute)]
enum Find {
    /// The largest sum.
    Sum,
    /// The flat index of its position in the images, as `i32`; -1 if there is none.
    Place,
    /// The flat index of its tap in the filters.
    Tap,
}

#[derive(Debug, Attribute)]
#[op("Dilation2D")]
pub(crate) struct Dilation2d {
    options: Conv2dOptions,
    find: Find,
}

impl Dilation2d {
    /// The windows along both axes, and the number of rows and columns by which the first reaches out of the image.
    fn windows(&self, x: &Spec, w: &Spec) -> Result<[(usize, usize); 2]> {
        let (&[_, h, width, c], &[kh, kw, channels]) = (&x.shape[..], &w.shape[..]) else {
            return Err(Error::Shape(message!(
                "Dilation2D: the images are {} and the filters {}; images need the four axes [N,H,W,C] and filters \
                 [KH,KW,C]. Use expand_dims or reshape.",
                x.shape,
                w.shape
            )));
        };
        if c != channels {
            return Err(Error::Shape(message!(
                "Dilation2D: the images {} have {c} channels and the filters {} {channels}; both need the same.",
                x.shape,
                w.shape
            )));
        }
        let Conv2dOptions { strides: [sh, sw], dilations: [dh, dw], padding } = self.options;
        padding.check("Dilation2D", 2, c)?;
        if kh.saturating_mul(1 + kw) > MOST {
            return Err(Error::Shape(message!(
                "Dilation2D: the filters {} have too many taps; rows times one more than the columns may be at most {MOST}.",
                w.shape
            )));
        }
        let spans = [sh, sw, kh.saturating_mul(dh), kw.saturating_mul(dw)];
        if spans.iter().any(|n| !(1..=FARTHEST).contains(n)) {
            return Err(Error::Shape(message!(
                "Dilation2D: strides {:?}, dilations {:?} and the filter's size ({kh}, {kw}) must all be at least 1, \
                 and neither a stride nor a dilated filter may span more than {FARTHEST} positions.",
                [sh, sw],
                [dh, dw]
            )));
        }
        Ok([windows(h, kh, sh, dh, padding), windows(width, kw, sw, dw, padding.of_axes_from(1))])
    }
}

impl Op for Dilation2d {
    fn name(&self) -> &'static str {
        "Dilation2D"
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Spec> {
        let (x, w) = (inputs[0], inputs[1]);
        expect_dtype("Dilation2D", x, FLOATS)?;
        same_dtype("Dilation2D", x, w)?;
        let [(oh, _), (ow, _)] = self.windows(x, w)?;
        let dtype = if self.find == Find::Sum { x.dtype } else { DType::I32 };
        Ok(Spec::new([x.shape[0], oh, ow, x.shape[3]], dtype))
    }

    fn lower(&self, cx: &LoweringContext) -> Lowering {
        let (x, w, out) = (cx.inputs[0], cx.inputs[1], cx.output);
        let [(_, top), (_, left)] = super::inferred(self.windows(x, w));
        let Conv2dOptions { strides: [sh, sw], dilations: [dh, dw], .. } = self.options;
        let (total, [kh, kw]) = (out.elements(), [w.shape[0], w.shape[1]]);
        let result = if self.find == Find::Sum { "best" } else { "place" };
        Kernel::new("dilation2d", shader!(include_str!("../../shaders/dilation2d.wgsl")))
            .alias("T", x.dtype)
            .alias("Out", out.dtype)
            .constant("WG", 64)
            .declare(format!("const PLACE = {};", self.find == Find::Place))
            .declare(format!("fn result(best: f32, place: i32) -> Out {{ return Out({result}); }}"))
            // In full, as Tint refuses a number that is rounded to this one.
            .declare(format!("const LOWEST = -{:?}f;", f64::from(x.dtype.largest())))
            .read(Bind::Input(0))
            .read(Bind::Input(1))
            .write(Bind::Output)
            .param("total", total)
            .param("h", x.shape[1])
            .param("w", x.shape[2])
            .param("c", x.shape[3])
            .param("oh", out.shape[1])
            .param("ow", out.shape[2])
            .param("kh", kh)
            .param("kw", kw)
            .param("sh", sh)
            .param("sw", sw)
            .param("dh", dh)
            .param("dw", dw)
            .param("top", top)
            .param("left", left)
            .workgroups(total.div_ceil(64), kh * (1 + kw))
            .into()
    }
}

impl Operation for Dilation2d {
    fn keep(&self) -> Keep {
        match self.find {
            Find::Sum => Keep::Inputs,
            _ => Keep::NoGradient("Dilation2D: an index"),
        }
    }

    // A window's gradient goes to one pixel and to one tap.
    fn grad(&self, back: &Backward) -> Result<Grads> {
        if self.find != Find::Sum {
            return no_grads(back);
        }
        let to = |i: usize, find: Find| {
            let options = self.options;
            let ids = dispatch(Dilation2d { options, find }, &[back.x(0), back.x(1)])?;
            let shape = back.spec(i).shape.clone();
            back.dy.unsorted_segment_sum(&ids, shape.elements())?.reshape_to(shape)
        };
        back.both(&|| to(0, Find::Place), &|| to(1, Find::Tap))
    }
}

/// The inventory of this file.
pub(super) const ENTRIES: &[Entry] =
    &[Entry::new(OpKind::Kernel, "dilation2d", &["tf.nn.dilation2d"], |c| {
        one(c.arg("input")?.dilation2d(c.arg("filters")?, Conv2dOptions::from_args(c)?))
    })
    .cases(|cases| {
        for (padding, strides, dilations) in [
            (Padding::Valid, [1, 1], [1, 1]),
            (Padding::Same, [2, 1], [1, 1]),
            (Padding::Same, [1, 1], [2, 2]),
        ] {
            let options =
                Conv2dOptions::new().padding(padding).strides(strides).dilations(dilations);
            let name =
                format!("dilation2d {padding:?} strides {strides:?} dilations {dilations:?}");
            cases.add(
                name,
                &[(&[2, 4, 5, 2], Values::Distinct(0.0)), (&[2, 3, 2], ANY)],
                // Far below the distances of the images' numbers.
                move |x| x[0].dilation2d(&x[1].multiply(0.02)?, options),
            );
        }
    })
    .kernels(&[|make, dtype| {
        let (x, w) = (make(&[2, 7, 6, 3], dtype), make(&[3, 2, 3], dtype));
        let options = Conv2dOptions::new().padding(Padding::Same).dilations([2, 1]);
        let same = x.dilation2d(&w, options)?;
        let find = |find| dispatch(Dilation2d { options, find }, &[&x, &w]);
        Ok(vec![same, find(Find::Place)?, find(Find::Tap)?])
    }])];
