//! Convolution of every channel of images with filters of its own, and its two gradients.
//!
//! y[n,i,j,c*M+m] = sum over u,v of x[n, i*sh + u*dh - top, j*sw + v*dw - left, c] * w[u,v,c,m]
//! Images are `[N,H,W,C]`, filters `[KH,KW,C,M]`. Nothing is summed over channels, so none of the three is a product of
//! matrices.

use std::hash::{Hash, Hasher};

use super::conv2d::{Conv2dOptions, Geometry};
use super::parts::{stored_in, sum_parts};
use super::{Backward, FLOATS, Grads, Keep, Operation, agreed, expect_dtype, same_dtype};
use crate::dtype::DType;
use crate::eager::dispatch;
use crate::error::{Error, Result, message};
use crate::graph::lower::{Bind, Kernel, Kernels, Lowering, Site};
use crate::graph::{Op, Spec};
use crate::shape::Shape;
use crate::tensor::{Operand, Tensor};
use crate::wgsl::shader;

impl Tensor {
    /// Convolves each channel of images `[N,H,W,C]` with its own M of the `filters` `[KH,KW,C,M]` to `[N,OH,OW,C*M]`:
    /// result `c * M + m` is channel c by filter m of that channel.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad::{Conv2dOptions, Tensor};
    /// // One image of 2 x 2 places with two channels; the first is doubled and summed, the second summed.
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
        let filters = filters.into().beside(FORWARD, self)?;
        dispatch(DepthwiseConv2d { options }, &[self, &filters])
    }
}

const FORWARD: &str = "DepthwiseConv2dNative";

/// The sizes of the op of this name; the result has the filters' last two axes as one.
fn geometry(op: &str, image: &Shape, filter: &Shape, options: Conv2dOptions) -> Result<Geometry> {
    let mut g = Geometry::new(op, image, filter, options)?;
    g.out[3] = g.image[3].checked_mul(g.filter[3]).ok_or_else(|| {
        Error::Shape(message!(
            "{op}: the filters {filter} give more channels than there are numbers."
        ))
    })?;
    Ok(g)
}

/// How the threads of a kernel share the channels.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lanes {
    /// One filter to a channel, and four channels to a thread.
    Channels,
    /// Four filters of one channel to a thread.
    Filters,
    /// Four elements, each by itself.
    Single,
}

impl Lanes {
    fn new(g: &Geometry) -> Self {
        match (g.image[3], g.filter[3]) {
            (c, 1) if c % 4 == 0 => Lanes::Channels,
            (_, m) if m % 4 == 0 => Lanes::Filters,
            _ => Lanes::Single,
        }
    }
}

/// The loader of a binding, of single elements or of four.
fn loader(binding: usize, name: &str, quads: bool) -> String {
    let (stored, read) = if quads {
        ("vec4<T>", format!("V({name}[at / 4u])"))
    } else {
        ("T", format!("f32({name}[at])"))
    };
    let given = if quads { "V" } else { "f32" };
    format!(
        "@group(0) @binding({binding}) var<storage, read> {name}: array<{stored}>;\n\
         fn load_{name}(at: u32) -> {given} {{ return {read}; }}"
    )
}

/// What the three kernels differ in.
struct Form<'a> {
    label: &'static str,
    /// The function `element(e)`, which sums up the results from e on.
    body: &'a str,
    /// Whether that gives four results, or one.
    four: bool,
    /// Of which of the inputs four elements are loaded at once.
    quads: [bool; 2],
    /// Rows of a part of the sum.
    part: usize,
    total: usize,
}

fn kernel(form: &Form, g: &Geometry, dtype: DType) -> Kernel {
    let &Form { label, body, four, quads, part, total } = form;
    let ([_, h, w, c], [kh, kw, _, m], [n, oh, ow, cm]) = (g.image, g.filter, g.out);
    let ([sh, sw], [dh, dw]) = (g.options.strides, g.options.dilations);
    let common = [divisor(sh, dh), divisor(sw, dw)];
    Kernel::new(label, shader!(include_str!("../../shaders/depthwise_conv2d.wgsl")))
        .alias("T", dtype)
        .constant("WG", 64)
        .declare("alias V = vec4<f32>;")
        .declare("@group(0) @binding(3) var<uniform> p: Params;")
        .declare(loader(0, "x", quads[0]))
        .declare(loader(1, "w", quads[1]))
        .declare(if four {
            "alias X = V;\nfn four(e: u32) -> V { return element(e); }"
        } else {
            "alias X = f32;\n\
             fn four(e: u32) -> V {\n    \
             let last = p.total - 1u;\n    \
             return V(element(e), element(min(e + 1u, last)), element(min(e + 2u, last)), \
             element(min(e + 3u, last)));\n}"
        })
        .declare(body)
        .read(Bind::Input(0))
        .read(Bind::Input(1))
        .param("total", total)
        .param("h", h)
        .param("w", w)
        .param("c", c)
        .param("kh", kh)
        .param("kw", kw)
        .param("m", m)
        .param("oh", oh)
        .param("ow", ow)
        .param("cm", cm)
        .param("sh", sh)
        .param("sw", sw)
        .param("dh", dh)
        .param("dw", dw)
        .param("top", g.top)
        .param("left", g.left)
        .param("next_h", dh / common[0])
        .param("next_w", dw / common[1])
        .param("back_h", sh / common[0])
        .param("back_w", sw / common[1])
        .param("rows", n * oh)
        .param("part", part)
        .flops(2 * n * oh * ow * cm * kh * kw)
        .groups(total.div_ceil(4 * 64))
}

fn divisor(a: usize, b: usize) -> usize {
    if b == 0 { a } else { divisor(b, a % b) }
}

#[derive(Debug, Hash)]
struct DepthwiseConv2d {
    options: Conv2dOptions,
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

    fn attributes(&self, mut state: &mut dyn Hasher) {
        self.hash(&mut state);
    }

    fn lower(&self, site: &Site) -> Lowering {
        let g =
            agreed(geometry(FORWARD, &site.inputs[0].shape, &site.inputs[1].shape, self.options));
        let lanes = Lanes::new(&g);
        let body = "fn element(e: u32) -> X {\n    \
            let channel = e % p.cm;\n    \
            let window = e / p.cm;\n    \
            let y = (window / p.ow) % p.oh * p.sh;\n    \
            let x = window % p.ow * p.sw;\n    \
            let rows = inside(y, p.dh, p.top, p.kh, p.h);\n    \
            let columns = inside(x, p.dw, p.left, p.kw, p.w);\n    \
            let image = window / (p.ow * p.oh) * p.h;\n    \
            var sum = X(0);\n    \
            for (var u = rows.x; u < rows.y; u++) {\n        \
            let line = image + y + u * p.dh - p.top;\n        \
            var at = (line * p.w + x + columns.x * p.dw - p.left) * p.c + channel / p.m;\n        \
            var filter_at = (u * p.kw + columns.x) * p.cm + channel;\n        \
            for (var v = columns.x; v < columns.y; v++) {\n            \
            sum = fma(X(load_x(at)), load_w(filter_at), sum);\n            \
            at += p.dw * p.c;\n            \
            filter_at += p.cm;\n        \
            }\n    }\n    \
            return sum;\n}";
        let four = lanes != Lanes::Single;
        let form = Form {
            label: "depthwise_conv2d",
            body,
            four,
            quads: [lanes == Lanes::Channels, four],
            part: 0,
            total: site.output.elements(),
        };
        kernel(&form, &g, site.output.dtype).stores().write(Bind::Output).into()
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
/// divisions leave no rest.
#[derive(Debug, Hash)]
struct InputGradient {
    image: Shape,
    options: Conv2dOptions,
}

impl Op for InputGradient {
    fn name(&self) -> &'static str {
        "DepthwiseConv2dNativeBackpropInput"
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Spec> {
        Ok(Spec::new(self.image.clone(), inputs[0].dtype))
    }

    fn attributes(&self, mut state: &mut dyn Hasher) {
        self.hash(&mut state);
    }

    fn lower(&self, site: &Site) -> Lowering {
        let g = agreed(geometry(self.name(), &self.image, &site.inputs[1].shape, self.options));
        // The loop is over windows, from the first on; the filter's elements go down by as many as it says.
        let body = "fn element(e: u32) -> X {\n    \
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
        let four = Lanes::new(&g) == Lanes::Channels;
        let form = Form {
            label: "depthwise_conv2d_input_gradient",
            body,
            four,
            quads: [four; 2],
            part: 0,
            total: site.output.elements(),
        };
        kernel(&form, &g, site.output.dtype).stores().write(Bind::Output).into()
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
#[derive(Debug, Hash)]
struct FilterGradient {
    filter: Shape,
    options: Conv2dOptions,
}

impl Op for FilterGradient {
    fn name(&self) -> &'static str {
        "DepthwiseConv2dNativeBackpropFilter"
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Spec> {
        Ok(Spec::new(self.filter.clone(), inputs[0].dtype))
    }

    fn attributes(&self, mut state: &mut dyn Hasher) {
        self.hash(&mut state);
    }

    fn lower(&self, site: &Site) -> Lowering {
        let g = agreed(geometry(self.name(), &site.inputs[0].shape, &self.filter, self.options));
        let lanes = Lanes::new(&g);
        let four = lanes != Lanes::Single;
        let body = "fn element(e: u32) -> X {\n    \
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
        // The sum is long and the results are few: it is cut into parts, by rows of the result.
        let results = site.output.elements();
        let (rows, ow) = (g.out[0] * g.out[1], g.out[2]);
        let (shortest, most) = if site.caps.cpu { (1024, 64) } else { (128, 256) };
        let by_memory = (4 << 20) / results.max(1);
        let wanted = (rows * ow / shortest).min(most).min(by_memory).max(1);
        let part = rows.div_ceil(wanted).max(1);
        let parts = rows.div_ceil(part).max(1);
        let form = Form {
            label: "depthwise_conv2d_filter_gradient",
            body,
            four,
            quads: [lanes == Lanes::Channels, four],
            part,
            total: results * parts,
        };
        let (dtype, total) = (site.output.dtype, form.total);
        let sums = kernel(&form, &g, dtype);
        if parts == 1 {
            return sums.stores().write(Bind::Output).into();
        }
        let sums = stored_in(Bind::Temp(0), sums.alias("Out", DType::F32), four);
        let add = sum_parts([Bind::Temp(0), Bind::Output], DType::F32, dtype, results, parts);
        let temps = vec![DType::F32.bytes(total)];
        Lowering::Kernels(Kernels { temps, kernels: vec![sums, add] })
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::super::conv2d::Padding;
    use super::*;
    use crate::tape::GradientTape;

    fn numbers(count: usize, step: usize) -> Vec<f32> {
        (0..count).map(|i| ((i * step) % 13) as f32 / 8.0 - 0.75).collect()
    }

    fn near(what: &str, got: &Tensor, want: &[f64]) {
        let got = got.to_vec::<f32>().unwrap();
        assert_eq!(got.len(), want.len(), "{what}");
        for (i, (got, want)) in got.iter().zip(want).enumerate() {
            let error = (f64::from(*got) - want).abs();
            assert!(error <= 1e-5 + 1e-5 * want.abs(), "{what} [{i}]: {got}, not {want}");
        }
    }

    /// Compares the result and both gradients with sums in `f64`, written as the definition says.
    fn check(image: [usize; 4], filter: [usize; 4], options: Conv2dOptions) {
        let what = format!("{image:?} {filter:?} {options:?}");
        let g = geometry(FORWARD, &image.into(), &filter.into(), options).unwrap();
        let ([n, h, w, c], [kh, kw, _, m], [_, oh, ow, cm]) = (g.image, g.filter, g.out);
        let (x, f) = (numbers(n * h * w * c, 7), numbers(kh * kw * cm, 5));
        let dy = numbers(n * oh * ow * cm, 3);
        let mut y = vec![0.0; dy.len()];
        let (mut dx, mut df) = (vec![0.0; x.len()], vec![0.0; f.len()]);
        let place = |i: usize, k: usize, axis: usize, lead: usize, size: usize| {
            let at = i * options.strides[axis] + k * options.dilations[axis];
            at.checked_sub(lead).filter(|at| *at < size)
        };
        for (e, y) in y.iter_mut().enumerate() {
            let (channel, j, i) = (e % cm, e / cm % ow, e / cm / ow % oh);
            for (u, v) in (0..kh * kw).map(|k| (k / kw, k % kw)) {
                let (line, column) = (place(i, u, 0, g.top, h), place(j, v, 1, g.left, w));
                let (Some(line), Some(column)) = (line, column) else { continue };
                let at = ((e / cm / ow / oh * h + line) * w + column) * c + channel / m;
                let filter_at = (u * kw + v) * cm + channel;
                *y += f64::from(x[at]) * f64::from(f[filter_at]);
                dx[at] += f64::from(dy[e]) * f64::from(f[filter_at]);
                df[filter_at] += f64::from(dy[e]) * f64::from(x[at]);
            }
        }
        let x = Tensor::from_slice(&x, image).unwrap();
        let f = Tensor::from_slice(&f, filter).unwrap();
        let dy = Tensor::from_slice(&dy, g.out).unwrap();
        let tape = GradientTape::new();
        tape.watch(&x).unwrap();
        tape.watch(&f).unwrap();
        let got = x.depthwise_conv2d(&f, options).unwrap();
        near(&format!("y {what}"), &got, &y);
        let grads = tape.gradient_from(&got, Some(&[&dy]), [&x, &f]).unwrap();
        for (name, got, want) in [("dx", &grads[0], &dx), ("dw", &grads[1], &df)] {
            near(&format!("{name} {what}"), got.as_ref().unwrap(), want);
        }
    }

    #[test]
    fn results_and_gradients_are_the_sums_of_the_definition() {
        for padding in [Padding::Same, Padding::Valid] {
            for (strides, dilations) in
                [([1, 1], [1, 1]), ([2, 3], [1, 1]), ([1, 1], [3, 2]), ([2, 4], [3, 6])]
            {
                let options = Conv2dOptions { strides, padding, dilations };
                check([2, 9, 11, 8], [3, 2, 8, 1], options);
                check([2, 9, 11, 3], [2, 3, 3, 4], options);
                check([1, 9, 11, 3], [3, 2, 3, 3], options);
            }
        }
    }

    #[test]
    fn long_sums_of_the_filters_gradient_are_cut() {
        for (c, m) in [(4, 1), (1, 4), (3, 1)] {
            check([3, 61, 70, c], [3, 3, c, m], Conv2dOptions::default());
        }
    }

    #[test]
    fn nothing_in_gives_nothing_or_zeros() {
        let same = Conv2dOptions { padding: Padding::Same, ..Default::default() };
        check([0, 5, 5, 4], [3, 3, 4, 1], same);
        check([1, 2, 2, 3], [3, 3, 3, 2], Conv2dOptions::default());
        check([1, 3, 3, 2], [2, 2, 2, 0], same);
        check([1, 3, 3, 0], [2, 2, 0, 1], same);
    }

    #[test]
    fn channels_must_agree() {
        let op = DepthwiseConv2d { options: Conv2dOptions::default() };
        let spec = |sizes: [usize; 4]| Spec::new(sizes, DType::F32);
        let error = op.infer(&[&spec([1, 5, 5, 3]), &spec([3, 3, 2, 1])]).unwrap_err().to_string();
        assert!(
            error.starts_with("DepthwiseConv2dNative: the images [1, 5, 5, 3] have 3 channels"),
            "{error}"
        );
    }
}
