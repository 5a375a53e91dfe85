//! Convolves every channel of images with its own filters, and computes the two gradients.
//!
//! y[n,i,j,c*M+m] = sum over u,v of x[n, i*sh + u*dh - top, j*sw + v*dw - left, c] * w[u,v,c,m]
//! Images are `[N,H,W,C]`, filters `[KH,KW,C,M]`. No sum runs over channels, so none of the three is a matrix product.

mod kernels;

use super::Padding;
use super::conv2d::{Conv2dOptions, Geometry};
use super::inventory::{ANY, Entry, Input, OpKind, one};
use super::{Backward, FLOATS, Grads, Keep, Operation, expect_dtype, inferred, same_dtype};
use crate::eager::dispatch;
use crate::error::{Error, Result, message};
use crate::graph::attributes::Attribute;
use crate::graph::lower::{Lowering, LoweringContext};
use crate::graph::{Op, Spec};
use crate::shape::Shape;
use crate::tensor::{Operand, Tensor};
use kernels::{Cut, Form, Lanes, OF_PART, divisor};

impl Tensor {
    /// Convolves each channel of images `[N,H,W,C]` with its own M `filters` `[KH,KW,C,M]`; the result has the shape
    /// `[N,OH,OW,C*M]`: output channel `c * M + m` is channel c convolved with its filter m.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad::{Conv2dOptions, Tensor};
    /// // One image of 2 x 2 pixels with two channels; the first is doubled and summed, the second summed.
    /// let image = Tensor::from_slice(&[1.0, 10.0, 2.0, 20.0, 3.0, 30.0, 4.0, 40.0], [1, 2, 2, 2])?;
    /// let filter = Tensor::from_slice(&[2.0, 1.0, 2.0, 1.0, 2.0, 1.0, 2.0, 1.0], [2, 2, 2, 1])?;
    /// let y = image.depthwise_conv2d(&filter, Conv2dOptions::default())?;
    /// assert_eq!(y.shape(), [1, 1, 1, 2]);
    /// assert_eq!(y.to_vec::<f32>()?, [20.0, 100.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::conv2d`].
    pub fn depthwise_conv2d(
        &self,
        filters: impl Into<Operand>,
        options: Conv2dOptions,
    ) -> Result<Tensor> {
        let filters = filters.into().into_tensor_like(FORWARD, self)?;
        dispatch(DepthwiseConv2d { options }, &[self, &filters])
    }
}

const FORWARD: &str = "DepthwiseConv2dNative";

/// The sizes of the op called `op`. Its result has the filters' last two axes as one.
fn geometry(op: &str, image: &Shape, filter: &Shape, options: Conv2dOptions) -> Result<Geometry> {
    let mut g = Geometry::new(op, image, filter, options)?;
    g.out[3] = g.image[3].checked_mul(g.filter[3]).ok_or_else(|| {
        Error::Shape(message!("{op}: the filters {filter} give too many channels."))
    })?;
    Ok(g)
}

#[derive(Debug, Attribute)]
#[op("DepthwiseConv2D")]
pub(crate) struct DepthwiseConv2d {
    pub(super) options: Conv2dOptions,
}

impl Op for DepthwiseConv2d {
    fn name(&self) -> &'static str {
        FORWARD
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Spec> {
        same_dtype(FORWARD, inputs[0], inputs[1])?;
        expect_dtype(FORWARD, inputs[0], FLOATS)?;
        let g = geometry(FORWARD, &inputs[0].shape, &inputs[1].shape, self.options)?;
        Ok(Spec::new(g.out, inputs[0].dtype))
    }

    fn lower(&self, cx: &LoweringContext) -> Lowering {
        let g = inferred(geometry(FORWARD, &cx.inputs[0].shape, &cx.inputs[1].shape, self.options));
        let lanes = Lanes::new(&g);
        let results = cx.output.elements();
        let [rows, columns] = [g.filter[0].min(g.image[1]), g.filter[1].min(g.image[2])];
        let cut = Cut::new(lanes, rows * columns, rows * (1 + columns), results, cx.caps);
        let window = "let channel = e % p.cm;\n    \
            let window = e / p.cm;\n    \
            let y = (window / p.ow) % p.oh * p.sh;\n    \
            let x = window % p.ow * p.sw;\n    \
            let rows = inside(y, p.dh, p.top, p.kh, p.h);\n    \
            let columns = inside(x, p.dw, p.left, p.kw, p.w);\n    \
            let image = window / (p.ow * p.oh) * p.h;\n    ";
        let (begin, walk) = if cut.steps {
            (
                OF_PART,
                "let width = max(columns.x, columns.y) - columns.x;\n    \
            let steps = (max(rows.x, rows.y) - rows.x) * width;\n    \
            for (var k = step; k < min(step + p.part, steps); k++) {\n        \
            let u = rows.x + k / width;\n        \
            let v = columns.x + k % width;\n        \
            let line = image + y + u * p.dh - p.top;\n        \
            let at = (line * p.w + x + v * p.dw - p.left) * p.c + channel / p.m;\n        \
            sum = fma(X(load_x(at)), load_w((u * p.kw + v) * p.cm + channel), sum);\n    \
            }\n    \
            return sum;\n}",
            )
        } else {
            (
                "fn element(e: u32) -> X {\n    ",
                "var sum = X(0);\n    \
            for (var u = rows.x; u < rows.y; u++) {\n        \
            let line = image + y + u * p.dh - p.top;\n        \
            var at = (line * p.w + x + columns.x * p.dw - p.left) * p.c + channel / p.m;\n        \
            var filter_at = (u * p.kw + columns.x) * p.cm + channel;\n        \
            for (var v = columns.x; v < columns.y; v++) {\n            \
            sum = fma(X(load_x(at)), load_w(filter_at), sum);\n            \
            at += p.dw * p.c;\n            \
            filter_at += p.cm;\n        \
            }\n    }\n    \
            return sum;\n}",
            )
        };
        let four = lanes != Lanes::Single;
        let form = Form {
            label: "depthwise_conv2d",
            body: &[begin, window, walk].concat(),
            four,
            quads: [lanes == Lanes::Channels, four],
            cut,
            results,
        };
        form.lower(&g, cx.output.dtype, cx.caps)
    }
}

impl Operation for DepthwiseConv2d {
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

/// dx[n,y,x,c] = sum over u,v,m of dy[n, (y + top - u*dh) / sh, (x + left - v*dw) / sw, c*M+m] * w[u,v,c,m], where the
/// divisions leave no remainder.
#[derive(Debug, Attribute)]
#[op("DepthwiseConv2DBackpropInput")]
pub(crate) struct InputGradient {
    pub(super) image: Shape,
    pub(super) options: Conv2dOptions,
}

impl Op for InputGradient {
    fn name(&self) -> &'static str {
        "DepthwiseConv2dNativeBackpropInput"
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Spec> {
        Ok(Spec::new(self.image.clone(), inputs[0].dtype))
    }

    fn lower(&self, cx: &LoweringContext) -> Lowering {
        let g = inferred(geometry(self.name(), &self.image, &cx.inputs[1].shape, self.options));
        let lanes = if Lanes::new(&g) == Lanes::Channels { Lanes::Channels } else { Lanes::Single };
        let next = |axis: usize| {
            let [stride, dilation] = [g.options.strides[axis], g.options.dilations[axis]];
            dilation / divisor(stride, dilation)
        };
        // Each window that covers a position uses another element of the filter, and these elements are equally far
        // apart.
        let most = |axis: usize| g.filter[axis].min(g.out[1 + axis].div_ceil(next(axis)));
        let (rows, columns, m) = (most(0), most(1), g.filter[3]);
        let first = next(0).min(g.out[1]) + next(1).min(g.out[2]);
        let turns = first + rows * (1 + columns * (1 + m));
        let results = cx.output.elements();
        let cut = Cut::new(lanes, rows * columns * m, turns, results, cx.caps);
        // The loop goes through the windows upwards and through the filter's elements downwards, by the steps that the
        // host computes.
        let whole = "fn element(e: u32) -> X {\n    \
            let channel = e % p.c * p.m;\n    \
            let place = e / p.c;\n    \
            let rows = takers((place / p.w) % p.h, p.sh, p.dh, p.top, p.kh, p.oh, p.next_h);\n    \
            let columns = takers(place % p.w, p.sw, p.dw, p.left, p.kw, p.ow, p.next_w);\n    \
            let image = place / (p.w * p.h) * p.oh;\n    \
            var sum = X(0);\n    \
            var u = rows.z;\n    \
            for (var i = rows.x; i < rows.y; i += p.next_h) {\n        \
            var at = ((image + i) * p.ow + columns.x) * p.cm + channel;\n        \
            var filter_at = (u * p.kw + columns.z) * p.cm + channel;\n        \
            for (var j = columns.x; j < columns.y; j += p.next_w) {\n            \
            for (var m = 0u; m < p.m; m++) {\n                \
            sum = fma(load_x(at + m), load_w(filter_at + m), sum);\n            \
            }\n            \
            at += p.next_w * p.cm;\n            \
            filter_at -= p.back_w * p.cm;\n        \
            }\n        \
            u -= p.back_h;\n    \
            }\n    \
            return sum;\n}";
        let steps = "let channel = e % p.c * p.m;\n    \
            let place = e / p.c;\n    \
            let rows = takers((place / p.w) % p.h, p.sh, p.dh, p.top, p.kh, p.oh, p.next_h, p.inverse_h);\n    \
            let columns = takers(place % p.w, p.sw, p.dw, p.left, p.kw, p.ow, p.next_w, p.inverse_w);\n    \
            let image = place / (p.w * p.h) * p.oh;\n    \
            let width = (columns.y - columns.x + p.next_w - 1u) / p.next_w;\n    \
            let height = (rows.y - rows.x + p.next_h - 1u) / p.next_h;\n    \
            for (var k = step; k < min(step + p.part, height * width * p.m); k++) {\n        \
            let down = k / (width * p.m);\n        \
            let right = k / p.m % width;\n        \
            let i = image + rows.x + down * p.next_h;\n        \
            let j = columns.x + right * p.next_w;\n        \
            let u = rows.z - down * p.back_h;\n        \
            let v = columns.z - right * p.back_w;\n        \
            let m = channel + k % p.m;\n        \
            sum = fma(load_x((i * p.ow + j) * p.cm + m), load_w((u * p.kw + v) * p.cm + m), sum);\n    \
            }\n    \
            return sum;\n}";
        let four = lanes == Lanes::Channels;
        let form = Form {
            label: "depthwise_conv2d_input_gradient",
            body: &if cut.steps { [OF_PART, steps].concat() } else { whole.to_string() },
            four,
            quads: [four; 2],
            cut,
            results,
        };
        form.lower(&g, cx.output.dtype, cx.caps)
    }
}

impl Operation for InputGradient {
    fn keep(&self) -> Keep {
        Keep::Inputs
    }

    // The op is linear in dy and in w, as the convolution is in x and w.
    fn grad(&self, back: &Backward) -> Result<Grads> {
        let (filter, options) = (&back.spec(1).shape, self.options);
        back.both(&|| back.dy.depthwise_conv2d(back.x(1), options), &|| {
            dispatch(FilterGradient { filter: filter.clone(), options }, &[back.dy, back.x(0)])
        })
    }
}

/// dw[u,v,c,m] = sum over n,i,j of x[n, i*sh + u*dh - top, j*sw + v*dw - left, c] * dy[n,i,j,c*M+m].
#[derive(Debug, Attribute)]
#[op("DepthwiseConv2DBackpropFilter")]
pub(crate) struct FilterGradient {
    pub(super) filter: Shape,
    pub(super) options: Conv2dOptions,
}

impl Op for FilterGradient {
    fn name(&self) -> &'static str {
        "DepthwiseConv2dNativeBackpropFilter"
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Spec> {
        Ok(Spec::new(self.filter.clone(), inputs[0].dtype))
    }

    fn lower(&self, cx: &LoweringContext) -> Lowering {
        let g = inferred(geometry(self.name(), &cx.inputs[0].shape, &self.filter, self.options));
        let lanes = Lanes::new(&g);
        let four = lanes != Lanes::Single;
        let whole = "fn element(e: u32) -> X {\n    \
            let filters = p.kh * p.kw * p.cm;\n    \
            let channel = e % p.cm;\n    \
            let x = (e / p.cm) % p.kw * p.dw;\n    \
            let y = (e % filters) / (p.kw * p.cm) * p.dh;\n    \
            let columns = inside(x, p.sw, p.left, p.ow, p.w);\n    \
            let first = e / filters * p.part;\n    \
            var sum = X(0);\n    \
            for (var r = first; r < min(first + p.part, p.rows); r++) {\n        \
            let image = r / p.oh;\n        \
            // Above the image this wraps to a large number.\n        \
            let line = y + (r - image * p.oh) * p.sh - p.top;\n        \
            let end = select(columns.x, columns.y, line < p.h);\n        \
            var at = ((image * p.h + line) * p.w + x + columns.x * p.sw - p.left) * p.c + channel / p.m;\n        \
            var result_at = (r * p.ow + columns.x) * p.cm + channel;\n        \
            for (var j = columns.x; j < end; j++) {\n            \
            sum = fma(X(load_x(at)), load_w(result_at), sum);\n            \
            at += p.sw * p.c;\n            \
            result_at += p.cm;\n        \
            }\n    }\n    \
            return sum;\n}";
        let steps = "let channel = e % p.cm;\n    \
            let x = (e / p.cm) % p.kw * p.dw;\n    \
            let y = e / (p.kw * p.cm) * p.dh;\n    \
            for (var k = step; k < min(step + p.part, p.rows * p.ow); k++) {\n        \
            let r = k / p.ow;\n        \
            let image = r / p.oh;\n        \
            // Outside of the image these wrap to large numbers.\n        \
            let line = y + (r - image * p.oh) * p.sh - p.top;\n        \
            let column = x + (k - r * p.ow) * p.sw - p.left;\n        \
            if (line < p.h && column < p.w) {\n            \
            let at = ((image * p.h + line) * p.w + column) * p.c + channel / p.m;\n            \
            sum = fma(X(load_x(at)), load_w(k * p.cm + channel), sum);\n        \
            }\n    }\n    \
            return sum;\n}";
        // The sum is long and the results are few: this splits the sum into parts, by rows of the result.
        let results = cx.output.elements();
        let (rows, ow) = (g.out[0] * g.out[1], g.out[2]);
        let (shortest, most) = if cx.caps.cpu { (1024, 64) } else { (128, 256) };
        let by_memory = (4 << 20) / results.max(1);
        let wanted = (rows * ow / shortest).min(most).min(by_memory).max(1);
        let each = if four { 1 + ow } else { 4 * (1 + ow) };
        let longest = cx.caps.loop_iterations / each;
        let part = rows.div_ceil(wanted).max(1).min(longest.max(1));
        let cut = match longest {
            // Even one row of the result is too long for a thread.
            0 => Cut::new(lanes, rows * ow, usize::MAX / 4, results, cx.caps),
            _ => Cut {
                parts: rows.div_ceil(part).max(1),
                part,
                steps: false,
                iterations: part * each,
            },
        };
        let form = Form {
            label: "depthwise_conv2d_filter_gradient",
            body: &if cut.steps { [OF_PART, steps].concat() } else { whole.to_string() },
            four,
            quads: [lanes == Lanes::Channels, four],
            cut,
            results,
        };
        form.lower(&g, cx.output.dtype, cx.caps)
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
            &|| back.x(0).depthwise_conv2d(back.dy, options),
        )
    }
}

/// The inventory of this file.
pub(super) const ENTRIES: &[Entry] =
    &[Entry::new(OpKind::Kernel, "depthwise_conv2d", &["tf.nn.depthwise_conv2d"], |c| {
        one(c.x()?.depthwise_conv2d(c.arg("w")?, Conv2dOptions::from_args(c)?))
    })
    .cases(|cases| {
        for (padding, strides, dilations) in [
            (Padding::Same, [1, 1], [1, 1]),
            (Padding::Valid, [1, 1], [1, 1]),
            (Padding::Same, [2, 2], [1, 1]),
            (Padding::Valid, [2, 1], [1, 1]),
            (Padding::Same, [1, 1], [2, 2]),
            (Padding::Valid, [1, 1], [1, 2]),
            (Padding::Same, [3, 2], [1, 1]),
            (Padding::Same, [2, 3], [2, 2]),
            (Padding::Valid, [1, 2], [2, 3]),
        ] {
            let options =
                Conv2dOptions::new().padding(padding).strides(strides).dilations(dilations);
            // Four channels per thread, four filters of one channel per thread, and neither.
            let shapes: [[&'static [usize]; 2]; 3] = [
                [&[1, 4, 5, 4], &[2, 2, 4, 1]],
                [&[1, 4, 5, 1], &[2, 2, 1, 4]],
                [&[2, 4, 5, 3], &[3, 2, 3, 2]],
            ];
            for [image, filter] in shapes {
                let how = format!("{padding:?} strides {strides:?} dilations {dilations:?}");
                let name = format!("depthwise_conv2d {image:?} {filter:?} {how}");
                let inputs: [Input; 2] = [(image, ANY), (filter, ANY)];
                cases.add(name, &inputs, move |x| x[0].depthwise_conv2d(&x[1], options));
            }
        }
    })];

#[cfg(test)]
mod tests;
