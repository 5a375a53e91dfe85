//! The kernels of pooling and its gradients: how they distribute the iteration over windows among threads.
//!
//! This file does not define an op: the ops provide the WGSL that visits each position.

use super::super::inferred;
use super::super::split_k::{split_length, store_to, sum_splits};
use super::geometry::{Windows, geometry};
use crate::dtype::DType;
use crate::graph::Spec;
use crate::graph::lower::{Bind, Kernel, Kernels, Lowering, LoweringContext};
use crate::shape::Shape;
use crate::wgsl::{expand, shader};

/// The data shared by the kernels of a pooling or of its gradient.
pub(super) struct Form<'a> {
    label: &'static str,
    image: &'a Shape,
    options: Windows,
    output: &'a Spec,
    /// The number of parts into which the loop over a window, or over the windows that cover a position, is split.
    pub(super) parts: usize,
    /// The steps of the loop.
    steps: usize,
}

impl<'a> Form<'a> {
    /// A form in which each element visits at most `rows` by `columns` positions, split if that is too long for a
    /// thread.
    pub(super) fn new(
        label: &'static str,
        image: &'a Shape,
        options: Windows,
        cx: &LoweringContext<'a>,
        [rows, columns]: [usize; 2],
    ) -> Self {
        let (whole, turns) = (rows * columns, rows * (1 + columns));
        let form = Form { label, image, options, output: cx.output, parts: 1, steps: turns };
        if form.lanes() * turns <= cx.caps.loop_iterations {
            return Form { steps: form.lanes() * turns, ..form };
        }
        let steps = split_length(whole, cx.output.elements(), cx.caps);
        Form { parts: whole.div_ceil(steps), steps, ..form }
    }

    /// How many elements a thread computes separately: one vector if four channels of a position are contiguous,
    /// otherwise four.
    fn lanes(&self) -> usize {
        if self.image[3].is_multiple_of(4) { 1 } else { 4 }
    }

    /// The kernel with this `body` and these named inputs, which computes the op's results, or their parts.
    pub(super) fn kernel(
        &self,
        body: &str,
        inputs: &[(&str, DType, Bind)],
        parts: Option<DType>,
    ) -> Kernel {
        let &Form { label, image, options, output, .. } = self;
        let ([_, oh, ow, c], [top, left]) = inferred(geometry(label, image, options));
        let stored = parts.unwrap_or(output.dtype);
        let (vector, results, cut) = (self.lanes() == 1, output.elements(), self.parts > 1);
        let total = results * if parts.is_some() { self.parts } else { 1 };
        let single = cut && !vector;
        let mut kernel = Kernel::new(label, "")
            .alias("Out", stored)
            .constant("WG", 64)
            .declare(if stored == DType::I32 {
                "alias V = vec4<i32>;"
            } else {
                "alias V = vec4<f32>;"
            })
            .declare(if vector {
                "const LANES = vec4<u32>(0u, 1u, 2u, 3u);\n\
                 fn four(e: u32) -> V { return pool(e); }"
            } else {
                "const LANES = vec4<u32>(0u);\n\
                 fn four(e: u32) -> V {\n    \
                 let last = p.total - 1u;\n    \
                 return V(pool(e).x, pool(min(e + 1u, last)).x, pool(min(e + 2u, last)).x, pool(min(e + 3u, last)).x);\n}"
            });
        for (i, &(name, dtype, bind)) in inputs.iter().enumerate() {
            let stored = if dtype == DType::I32 { "i32" } else { "f32" };
            let element = format!("T{i}");
            kernel = kernel.alias(&element, dtype).read(bind).declare(if vector {
                format!(
                    "@group(0) @binding({i}) var<storage, read> {name}: array<vec4<{element}>>;\n\
                     fn load_{name}(at: u32) -> vec4<{stored}> {{ return vec4<{stored}>({name}[at / 4u]); }}"
                )
            } else {
                format!(
                    "@group(0) @binding({i}) var<storage, read> {name}: array<{element}>;\n\
                     fn load_{name}(at: u32) -> vec4<{stored}> {{ return vec4<{stored}>({stored}({name}[at])); }}"
                )
            });
        }
        let out = if parts.is_some() { Bind::Temp(0) } else { Bind::Output };
        kernel = store_to(out, kernel, vector)
            .declare(format!("@group(0) @binding({}) var<uniform> p: Params;", inputs.len() + 1))
            .declare(body)
            .declare(expand(
                shader!(include_str!("../../../shaders/pool.wgsl")),
                &[],
                &[("SINGLE", single), ("PARTS", cut)],
            ))
            .param("total", total)
            .param("h", image[1])
            .param("w", image[2])
            .param("c", c)
            .param("oh", oh)
            .param("ow", ow)
            .param("kh", options.window[0])
            .param("kw", options.window[1])
            .param("sh", options.strides[0])
            .param("sw", options.strides[1])
            .param("top", top)
            .param("left", left);
        if cut {
            let params = [("results", results), ("part", self.steps), ("parts", self.parts)];
            for (name, value) in params {
                kernel = kernel.param(name, value);
            }
        }
        let threads = if single { total } else { total.div_ceil(4) };
        kernel.workgroups(threads.div_ceil(64), self.steps.max(self.parts))
    }

    /// The kernel of `body` if the loop is not split. Otherwise a kernel that computes its parts, and the kernel of
    /// `join`, which combines them.
    pub(super) fn lower(
        &self,
        body: &str,
        inputs: &[(&str, DType, Bind)],
        partial: DType,
        join: impl FnOnce(&Self) -> Kernel,
    ) -> Lowering {
        if self.parts == 1 {
            return self.kernel(body, inputs, None).into();
        }
        let kernels = vec![self.kernel(body, inputs, Some(partial)), join(self)];
        let temps = vec![partial.bytes(self.output.elements() * self.parts)];
        Lowering::Kernels(Kernels { temps, kernels })
    }

    /// The WGSL function that iterates over `rows` and `columns`: all of them, or those of the thread's part.
    pub(super) fn over(&self, begin: &str, first: &str, visit: &str, finish: &str) -> String {
        let (head, loops, end) = match self.parts {
            1 => (
                "fn pool(e: u32) -> V {",
                "for (var i = rows.x; i < rows.y; i++) {\n    \
                 for (var j = columns.x; j < columns.y; j++) {",
                "}\n    }",
            ),
            _ => (
                "fn pool(of_part: u32) -> V {\n    \
                 let e = of_part % p.results;\n    \
                 let step = of_part / p.results * p.part;",
                "let width = max(columns.x, columns.y) - columns.x;\n    \
                 let steps = (max(rows.x, rows.y) - rows.x) * width;\n    \
                 for (var k = step; k < min(step + p.part, steps); k++) {\n    \
                 let i = rows.x + k / width;\n    \
                 let j = columns.x + k % width;",
                "}",
            ),
        };
        format!(
            "{head}\n    {begin}\n    {first}\n    {loops}\n    {visit}\n    {end}\n    {finish}\n}}"
        )
    }

    /// The WGSL function that iterates over the parts of element e.
    pub(super) fn over_parts(&self, begin: &str, visit: &str, finish: &str) -> String {
        format!(
            "fn pool(e: u32) -> V {{\n    {WINDOW}\n    {begin}\n    \
             for (var k = 0u; k < p.parts; k++) {{\n    \
             let at = k * p.results + e;\n    {visit}\n    }}\n    {finish}\n}}"
        )
    }
}

/// The window of output element e.
pub(super) const WINDOW: &str = "let c = e % p.c;\n    \
     let window = e / p.c;\n    \
     let rows = reach((window / p.ow) % p.oh, p.sh, p.top, p.kh, p.h);\n    \
     let columns = reach(window % p.ow, p.sw, p.left, p.kw, p.w);\n    \
     let image = window / (p.ow * p.oh) * p.h * p.w * p.c + c;";

/// The windows that contain element e of the image.
const HOLDERS: &str = "let c = e % p.c;\n    \
     let pixel = e / p.c;\n    \
     let rows = holders((pixel / p.w) % p.h, p.sh, p.top, p.kh, p.oh);\n    \
     let columns = holders(pixel % p.w, p.sw, p.left, p.kw, p.ow);\n    \
     let image = pixel / (p.w * p.h) * p.oh * p.ow * p.c + c;";

pub(super) const MEAN: &str = "return sum / f32((rows.y - rows.x) * (columns.y - columns.x));";

/// Sums `term` over the windows that contain element e of the image.
pub(super) fn sum_over_holders(
    label: &'static str,
    image: &Shape,
    options: Windows,
    cx: &LoweringContext,
    inputs: &[(&str, DType, Bind)],
    term: &str,
) -> Lowering {
    let (windows, [kh, kw], [sh, sw]) = (&cx.inputs[0].shape, options.window, options.strides);
    let sizes = [kh.div_ceil(sh).min(windows[1]), kw.div_ceil(sw).min(windows[2])];
    let form = Form::new(label, image, options, cx, sizes);
    let visit = format!("let at = image + (i * p.ow + j) * p.c;\n    {term}");
    let body = form.over(HOLDERS, "var sum = V(0.0);", &visit, "return sum;");
    form.lower(&body, inputs, DType::F32, |form| {
        let (results, dtype) = (cx.output.elements(), cx.output.dtype);
        sum_splits([Bind::Temp(0), Bind::Output], DType::F32, dtype, [results, form.parts], cx.caps)
    })
}
