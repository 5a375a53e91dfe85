//! The product used by matmul and the convolutions, and its kernels.
//!
//! This file does not define an op: the ops provide WGSL functions that read their operands, and this file does the
//! rest.

use super::super::split_k::{store_to, sum_splits};
use super::kernels::Loops;
use super::operands::{Columns, Rows};
use super::sum::{Sum, split};
use super::variants::{Problem, Variant};
use crate::device::Caps;
use crate::dtype::{DType, Register};
use crate::graph::lower::{Bind, Kernels, Lowering};

/// `batch` products of `[m,k]` by `[k,n]`; the summed index is a triple (u, v, i).
pub(crate) struct Gemm {
    pub(crate) label: &'static str,
    /// The dtype of the operands.
    pub(crate) dtype: DType,
    /// The dtype of the result.
    pub(crate) result: DType,
    pub(crate) batch: usize,
    pub(crate) m: usize,
    pub(crate) n: usize,
    /// The operands are read and the results stored one by one, whatever their layout.
    pub(crate) singly: bool,
    pub(crate) sum: Sum,
    pub(crate) a: Rows,
    pub(crate) b: Columns,
    /// Parameters that the loaders read.
    pub(crate) params: Vec<(&'static str, usize)>,
}

impl Gemm {
    /// Whether a product of these `batch, m, n` and terms per sum is so small that its kernel reads the operands one by
    /// one, whatever their layout.
    pub(crate) fn is_little(sizes: [usize; 4], caps: &Caps) -> bool {
        Problem::new(sizes, sizes[3]).is_little(caps)
    }

    pub(crate) fn lower_with(self, variant: Variant, caps: &Caps) -> Lowering {
        self.lower_to(Bind::Output, variant, caps)
    }

    /// As [`Gemm::lower_with`], but writes the result to `out`: the op's output, or the first temporary buffer. The
    /// caller puts that buffer before the returned ones.
    pub(crate) fn lower_to(self, out: Bind, variant: Variant, caps: &Caps) -> Lowering {
        let singly = self.singly || self.problem().is_little(caps);
        let [tile_m, tile_n] = variant.tile();
        let tiles_m = self.m.div_ceil(tile_m);
        let tiles_n = self.n.div_ceil(tile_n);
        let tiles = self.batch * tiles_m * tiles_n;
        let results = self.batch * self.m * self.n;
        let split = split(self.sum, tiles, results, variant, singly, caps);
        let mut b = self.b;
        if let Sum::Run(_) = self.sum {
            // Each u is one piece of the run.
            b.u = split.sizes[2] * b.k;
        }
        let whole = self.n.is_multiple_of(4);
        // Runs are split at multiples of four, so only the end of a run may be shorter.
        let tail = singly
            || (caps.cpu && self.a.columns.is_some())
            || match self.sum {
                Sum::Run(k) => k % 4 != 0,
                Sum::Nest([_, _, i]) => i % 4 != 0,
            };
        let mut params = self.params;
        if let Some([v, pieces]) = split.pieces {
            let Sum::Nest([.., run]) = self.sum else { unreachable!("runs are cut as they are") };
            params.extend([("v_own", v), ("pieces", pieces), ("run", run)]);
        }
        let in_pieces = split.pieces.is_some();
        // The kernel sums products in 32 bits.
        let sums = match self.dtype.register() {
            Register::F32 => DType::F32,
            Register::I32 => DType::I32,
            _ => DType::U32,
        };
        let stored = if split.parts == 1 { self.result } else { sums };
        let [u, v, inner] = split.sizes;
        // Small convolutions share a text, however their sums are split.
        let nest = singly && matches!(self.sum, Sum::Nest(_));
        let u_loop = nest || split.part != 1 || u == 0;
        let loops = Loops { singly, tail, cut: in_pieces, u: u_loop, v: nest || v != 1 };
        let mut kernel = variant
            .kernel(self.label, loops, caps)
            .alias("T", self.dtype)
            .alias("Sum", sums)
            .alias("Out", stored)
            .declare("alias V = vec4<Sum>;")
            .declare(match sums {
                DType::F32 => {
                    "fn mad(x: Sum, v: V, c: V) -> V { return fma(V(x), v, c); }\n\
                     fn mad_4(x: V, v: V, c: V) -> V { return fma(x, v, c); }"
                }
                _ => {
                    "fn mad(x: Sum, v: V, c: V) -> V { return V(x) * v + c; }\n\
                     fn mad_4(x: V, v: V, c: V) -> V { return x * v + c; }"
                }
            })
            .declare(self.a.declaration(variant, in_pieces))
            .declare(b.declaration(variant, self.n, whole && !singly, tail, in_pieces))
            .read(Bind::Input(0))
            .read(Bind::Input(1));
        let sizes = [
            ("m", self.m),
            ("n", self.n),
            ("k", self.sum.len()),
            ("batch", self.batch),
            ("tiles_m", tiles_m),
            ("tiles_n", tiles_n),
            ("across", variant.across()),
            ("splits", split.parts),
            ("part", split.part),
            ("u_count", u),
            ("v_count", v),
            ("inner", inner),
            ("b_batch", b.batch),
            ("b_u", b.u),
            ("b_v", b.v),
            ("b_k", b.k),
            ("b_n", b.n),
            ("sums", variant.sums()),
        ];
        for &(name, value) in sizes.iter().chain(&params) {
            kernel = kernel.param(name, value);
        }
        let fields: String =
            kernel.params.iter().map(|(name, _)| format!("    {name}: u32,\n")).collect();
        kernel = kernel
            .declare(format!("struct Params {{\n{fields}    row: u32,\n}}"))
            .declare("@group(0) @binding(3) var<uniform> p: Params;")
            .flops(2 * self.batch * self.m * self.n * self.sum.len())
            .workgroups(tiles * split.parts, split.iterations)
            .singly(singly);
        if split.parts == 1 {
            return store_to(out, kernel, whole).into();
        }
        // The caller's temporary buffer is first, if it has one.
        let sums_at = Bind::Temp(usize::from(out != Bind::Output));
        let kernel = store_to(sums_at, kernel, whole);
        let add = sum_splits([sums_at, out], sums, self.result, [results, split.parts], caps);
        let temps = vec![sums.bytes(results * split.parts)];
        Lowering::Kernels(Kernels { temps, kernels: vec![kernel, add] })
    }
}
