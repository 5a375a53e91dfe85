//! The kernels of the depthwise convolution and its gradients: how they distribute sums over threads.
//!
//! This file does not define an op: the ops provide the terms of the sums as WGSL functions.

use super::super::conv2d::Geometry;
use super::super::split_k::{split_length, store_to, sum_splits};
use crate::device::Caps;
use crate::dtype::DType;
use crate::graph::lower::{Bind, Kernel, Kernels, Lowering};
use crate::wgsl::{expand, shader};

/// How the threads of a kernel divide the channels among themselves.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Lanes {
    /// One filter per channel, and four channels per thread.
    Channels,
    /// Four filters of one channel per thread.
    Filters,
    /// Four separate elements.
    Single,
}

impl Lanes {
    pub(super) fn new(g: &Geometry) -> Self {
        match (g.image[3], g.filter[3]) {
            (c, 1) if c % 4 == 0 => Lanes::Channels,
            (_, m) if m % 4 == 0 => Lanes::Filters,
            _ => Lanes::Single,
        }
    }
}

/// The WGSL that loads from a binding: single elements, or four.
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

/// The points in which the three kernels differ.
pub(super) struct Form<'a> {
    pub(super) label: &'static str,
    /// The function `element(e)`, which computes the results from e on.
    pub(super) body: &'a str,
    /// Whether `element` returns four results, or one.
    pub(super) four: bool,
    /// The inputs from which the kernel loads four elements at once.
    pub(super) quads: [bool; 2],
    pub(super) cut: Cut,
    pub(super) results: usize,
}

/// How the sums are split into parts.
#[derive(Clone, Copy)]
pub(super) struct Cut {
    pub(super) parts: usize,
    /// The length of a part: in steps if `steps`, else in rows of the filter's gradient.
    pub(super) part: usize,
    /// Whether the sums are so long that they may be split at any step; threads then do not compute four separate
    /// elements.
    pub(super) steps: bool,
    /// How many iterations the loops of a thread make.
    pub(super) iterations: usize,
}

impl Cut {
    /// Splits `whole` steps, for which nested loops make `turns` iterations if one thread does them all.
    pub(super) fn new(
        lanes: Lanes,
        whole: usize,
        turns: usize,
        results: usize,
        caps: &Caps,
    ) -> Self {
        let turns = if lanes == Lanes::Single { 4 * turns } else { turns };
        if turns <= caps.loop_iterations {
            return Cut { parts: 1, part: 0, steps: false, iterations: turns };
        }
        let part = split_length(whole, results, caps);
        // This includes the loops that compute products without overflow.
        let iterations = part + 64;
        Cut { parts: whole.div_ceil(part).max(1), part, steps: true, iterations }
    }
}

/// The beginning of a body that may be split.
pub(super) const OF_PART: &str = "fn element(of_part: u32) -> X {\n    \
    let e = of_part % p.results;\n    \
    let step = of_part / p.results * p.part;\n    \
    var sum = X(0);\n    ";

impl Form<'_> {
    /// The kernels that compute the results: one, or one for parts of the sums and one that sums the parts.
    pub(super) fn lower(&self, g: &Geometry, dtype: DType, caps: &Caps) -> Lowering {
        let (kernel, &Form { four, results, cut: Cut { parts, .. }, .. }) =
            (kernel(self, g, dtype), self);
        if parts == 1 {
            return kernel.stores().write(Bind::Output).into();
        }
        let sums = store_to(Bind::Temp(0), kernel.alias("Out", DType::F32), four);
        let add =
            sum_splits([Bind::Temp(0), Bind::Output], DType::F32, dtype, [results, parts], caps);
        let temps = vec![DType::F32.bytes(results * parts)];
        Lowering::Kernels(Kernels { temps, kernels: vec![sums, add] })
    }
}

fn kernel(form: &Form, g: &Geometry, dtype: DType) -> Kernel {
    let &Form { label, body, four, quads, cut, results } = form;
    let total = results * cut.parts;
    let single = cut.steps && !four;
    let ([_, h, w, c], [kh, kw, _, m], [n, oh, ow, cm]) = (g.image, g.filter, g.out);
    let ([sh, sw], [dh, dw]) = (g.options.strides, g.options.dilations);
    let common = [divisor(sh, dh), divisor(sw, dw)];
    let mut kernel = Kernel::new(label, "")
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
        .declare(expand(
            shader!(include_str!("../../../shaders/depthwise_conv2d.wgsl")),
            &[],
            &[("CUT", cut.steps), ("SINGLE", single)],
        ))
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
        .param("part", cut.part);
    if cut.steps {
        kernel = kernel
            .param("results", results)
            .param("inverse_h", inverse(sh / common[0], dh / common[0]))
            .param("inverse_w", inverse(sw / common[1], dw / common[1]));
    }
    let threads = if single { total } else { total.div_ceil(4) };
    kernel.flops(2 * n * oh * ow * cm * kh * kw).workgroups(threads.div_ceil(64), cut.iterations)
}

/// The inverse of `a` modulo `n`; `a` and `n` have no common divisor.
fn inverse(a: usize, n: usize) -> usize {
    // Euclid's extended algorithm: each remainder is its factor times `a`, modulo `n`.
    let (mut rests, mut factors) = ((n as i64, (a % n) as i64), (0i64, 1));
    while rests.1 > 1 {
        let times = rests.0 / rests.1;
        rests = (rests.1, rests.0 - times * rests.1);
        factors = (factors.1, factors.0 - times * factors.1);
    }
    factors.1.rem_euclid(n as i64) as usize
}

pub(super) fn divisor(a: usize, b: usize) -> usize {
    if b == 0 { a } else { divisor(b, a % b) }
}
