//! Convolutions by groups of channels: the groups are separate products in one batch, and a second kernel concatenates
//! their results.

use super::super::matmul::Gemm;
use crate::graph::lower::{Bind, Kernel, Kernels, Lowering, LoweringContext};
use crate::wgsl::shader;

/// Lowers a product of `groups` batches to the result in which the last axis has the columns of all groups.
pub(super) fn lower(gemm: Gemm, cx: &LoweringContext) -> Lowering {
    if gemm.batch == 1 {
        return gemm.lower_at(cx);
    }
    let (groups, rows, each) = (gemm.batch, gemm.m, gemm.n);
    let (apart, dtype, variant) = (Bind::Temp(0), gemm.result, gemm.variant_at(cx));
    let Lowering::Kernels(Kernels { mut temps, mut kernels }) =
        gemm.lower_to(apart, variant, cx.caps)
    else {
        unreachable!("a product becomes kernels");
    };

    let total = groups * rows * each;
    temps.insert(0, dtype.bytes(total));
    kernels.push(
        Kernel::new("conv2d_join_groups", shader!(include_str!("../../../shaders/join_groups.wgsl")))
            .alias("T", dtype)
            .constant("WG", 64)
            .declare("alias V = vec4<f32>;")
            .declare(if each.is_multiple_of(4) {
                "@group(0) @binding(0) var<storage, read> x: array<vec4<T>>;\n\
                 fn four(e: u32) -> V { return V(x[place(e) / 4u]); }"
            } else {
                "@group(0) @binding(0) var<storage, read> x: array<T>;\n\
                 fn load(e: u32) -> f32 { return f32(x[place(min(e, p.total - 1u))]); }\n\
                 fn four(e: u32) -> V { return V(load(e), load(e + 1u), load(e + 2u), load(e + 3u)); }"
            })
            .stores()
            .read(apart)
            .write(Bind::Output)
            .param("total", total)
            .param("rows", rows)
            .param("each", each)
            .param("all", groups * each)
            .workgroups(total.div_ceil(4 * 64), 0),
    );
    Lowering::Kernels(Kernels { temps, kernels })
}
