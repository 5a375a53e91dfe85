//! The input gradient of a convolution in two steps: one product computes the contributions of every window, then a
//! kernel sums them for each position. This avoids multiplying zeros if there are gaps between windows, and narrow
//! products if there are few channels.

use super::super::matmul::{Gemm, Product};
use super::geometry::Geometry;
use crate::device::Caps;
use crate::dtype::DType;
use crate::graph::lower::{Bind, Kernel, Kernels, Lowering, LoweringContext};
use crate::wgsl::shader;

/// The most elements of all patches together.
pub(super) const MOST: usize = 16 << 20;

/// The product of the windows' gradients and the filter, `[N*OH*OW, KH*KW*C]`.
pub(super) fn product(given: &Product, dtype: DType, caps: &Caps) -> Gemm {
    let mut gemm = given.gemm("conv2d_patches", dtype, caps);
    // The second step sums these results, so they are not rounded.
    gemm.result = DType::F32;
    gemm
}

/// How many iterations a thread makes to sum the patches of four positions: the windows that cover each of them.
pub(super) fn iterations(g: &Geometry) -> usize {
    let ([kh, kw, ..], [_, oh, ow, _], [sh, sw]) = (g.filter, g.out, g.options.strides);
    let (rows, columns) = (kh.div_ceil(sh).min(oh), kw.div_ceil(sw).min(ow));
    let each = rows * (1 + columns);
    if g.image[3].is_multiple_of(4) { each } else { 4 * each }
}

/// Lowers the two steps; `gemm` is from [`product`].
pub(super) fn input_gradient(g: &Geometry, gemm: Gemm, cx: &LoweringContext) -> Lowering {
    let bytes = DType::F32.bytes(gemm.m * gemm.n);
    let (patches, variant) = (Bind::Temp(0), gemm.variant_at(cx));
    let lowered = gemm.lower_to(patches, variant, cx.caps);
    let Lowering::Kernels(Kernels { mut temps, mut kernels }) = lowered else {
        unreachable!("a product becomes kernels");
    };
    temps.insert(0, bytes);
    let ([_, h, w, c], [kh, kw, ..], [_, oh, ow, _]) = (g.image, g.filter, g.out);
    let total = cx.output.elements();
    let add = Kernel::new("conv2d_add_patches", shader!(include_str!("../../../shaders/add_patches.wgsl")))
        .alias("Out", cx.output.dtype)
        .constant("WG", 64)
        .declare("alias V = vec4<f32>;")
        .declare(if c % 4 == 0 {
            "alias X = V;\n\
             @group(0) @binding(0) var<storage, read> x: array<V>;\n\
             fn load(at: u32) -> X { return x[at / 4u]; }\n\
             fn four(e: u32) -> V { return place(e); }"
        } else {
            "alias X = f32;\n\
             @group(0) @binding(0) var<storage, read> x: array<f32>;\n\
             fn load(at: u32) -> X { return x[at]; }\n\
             fn four(e: u32) -> V {\n    \
             let last = p.total - 1u;\n    \
             return V(place(e), place(min(e + 1u, last)), place(min(e + 2u, last)), place(min(e + 3u, last)));\n}"
        })
        .stores()
        .read(patches)
        .write(Bind::Output)
        .param("total", total)
        .param("h", h)
        .param("w", w)
        .param("c", c)
        .param("oh", oh)
        .param("ow", ow)
        .param("kh", kh)
        .param("kw", kw)
        .param("sh", g.options.strides[0])
        .param("sw", g.options.strides[1])
        .param("top", g.top)
        .param("left", g.left)
        .workgroups(total.div_ceil(4 * 64), iterations(g));
    kernels.push(add);
    Lowering::Kernels(Kernels { temps, kernels })
}
