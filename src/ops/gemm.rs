//! The kernel family behind matmul and the convolutions: how a product is cut into tiles and parts.
//!
//! Not an op: the ops say how their operands are read (as WGSL functions) and this says the rest.

use crate::device::Caps;
use crate::dtype::{DType, Register};
use crate::graph::lower::{Bind, Kernel, Kernels, Lowering};

/// A product of `batch` times `[m,k]` by `[k,n]`, the summed index being a triple (u, v, i).
pub(super) struct Gemm {
    pub(super) label: &'static str,
    pub(super) dtype: DType,
    pub(super) batch: usize,
    pub(super) m: usize,
    pub(super) n: usize,
    pub(super) sum: Sum,
    /// Declares `Row`, `At`, `a_row(b, m)`, `a_at(row, u, v)` and `a_load(at, i)` over `a: array<T>`.
    pub(super) a: String,
    pub(super) b: Columns,
    /// Parameters that the loaders read.
    pub(super) params: Vec<(&'static str, usize)>,
}

/// What is summed over.
#[derive(Clone, Copy)]
pub(super) enum Sum {
    /// One run of this length, which may be cut anywhere.
    Run(usize),
    /// Sizes of u, v and i; cut between two u.
    Nest([usize; 3]),
}

/// How the second operand is read: `b[batch * b_batch + u * b_u + v * b_v + i * b_k + n * b_n]`. For a run b_u and
/// b_v follow from b_k.
#[derive(Clone, Copy)]
pub(super) struct Columns {
    pub(super) batch: usize,
    pub(super) u: usize,
    pub(super) v: usize,
    pub(super) k: usize,
    pub(super) n: usize,
}

/// How the sum is cut into parts.
struct Cut {
    parts: usize,
    /// Values of u in a part.
    part: usize,
    sizes: [usize; 3],
}

impl Gemm {
    pub(super) fn lower(self, caps: &Caps) -> Lowering {
        let tm = if self.m >= 8 { 8 } else { self.m.next_power_of_two().min(4) };
        let tn4 = if self.n > 4 { 2 } else { 1 };
        let tiles_m = self.m.div_ceil(8 * tm);
        let tiles_n = self.n.div_ceil(8 * 4 * tn4);
        let groups = self.batch * tiles_m * tiles_n;
        let results = self.batch * self.m * self.n;
        let cut = cut(self.sum, groups, results, caps);
        let mut b = self.b;
        if let Sum::Run(_) = self.sum {
            b.u = cut.sizes[2] * b.k;
        }

        let whole = self.n.is_multiple_of(4);
        let vector_b = whole && b.n == 1 && [b.batch, b.u, b.v, b.k].iter().all(|s| s % 4 == 0);
        let out = if cut.parts == 1 { Bind::Output } else { Bind::Temp(0) };
        let sums = match self.dtype.register() {
            Register::F32 => DType::F32,
            Register::I32 => DType::I32,
            _ => DType::U32,
        };
        let stored = if cut.parts == 1 { self.dtype } else { sums };
        let [u, v, inner] = cut.sizes;
        let mut kernel = Kernel::new(self.label, include_str!("../../shaders/gemm.wgsl"))
            .alias("T", self.dtype)
            .alias("A", sums)
            .alias("C", stored)
            .declare("alias V = vec4<A>;")
            .constant("TM", tm as u32)
            .constant("TN4", tn4 as u32)
            .declare(match sums {
                DType::F32 => "fn mad(x: A, v: V, c: V) -> V { return fma(V(x), v, c); }",
                _ => "fn mad(x: A, v: V, c: V) -> V { return V(x) * v + c; }",
            })
            .declare("@group(0) @binding(0) var<storage, read> a: array<T>;")
            .declare(&self.a)
            .declare(columns(vector_b))
            .read(Bind::Input(0))
            .read(Bind::Input(1))
            .write(out)
            .param("m", self.m)
            .param("n", self.n)
            .param("k", self.sum.len())
            .param("batch", self.batch)
            .param("tiles_m", tiles_m)
            .param("tiles_n", tiles_n)
            .param("splits", cut.parts)
            .param("part", cut.part)
            .param("u_count", u)
            .param("v_count", v)
            .param("inner", inner)
            .param("b_batch", b.batch)
            .param("b_u", b.u)
            .param("b_v", b.v)
            .param("b_k", b.k)
            .param("b_n", b.n);
        for (name, value) in self.params {
            kernel = kernel.param(name, value);
        }
        let fields: String =
            kernel.params.iter().map(|(name, _)| format!("    {name}: u32,\n")).collect();
        kernel = kernel
            .declare(format!("struct Params {{\n{fields}    row: u32,\n}}"))
            .declare("@group(0) @binding(3) var<uniform> p: Params;")
            .groups(groups * cut.parts);
        if cut.parts == 1 {
            return kernel.stores().into();
        }
        kernel = kernel.declare(store(whole));
        let add = Kernel::new("sum_parts", include_str!("../../shaders/sum_parts.wgsl"))
            .alias("T", self.dtype)
            .alias("A", sums)
            .constant("WG", 64)
            .read(Bind::Temp(0))
            .write(Bind::Output)
            .param("len", results)
            .param("parts", cut.parts)
            .groups(results.div_ceil(64));
        let temps = vec![sums.bytes(results * cut.parts)];
        Lowering::Kernels(Kernels { temps, kernels: vec![kernel, add] })
    }
}

impl Sum {
    fn len(self) -> usize {
        match self {
            Sum::Run(len) => len,
            Sum::Nest([u, v, i]) => u * v * i,
        }
    }
}

/// Cuts a sum into so many parts that enough workgroups have work, and that no part is so long that rounding
/// errors pile up, as long as the parts' results take little memory.
fn cut(sum: Sum, groups: usize, results: usize, caps: &Caps) -> Cut {
    const LONGEST: usize = 2048;
    const MOST_RESULTS: usize = 4 << 20;
    let k = sum.len();
    // A second kernel costs a processor as much as a thousand or so steps of the sum.
    let (wanted, shortest) = if caps.cpu { (4, 1024) } else { (128, 128) };
    let by_groups = (wanted / groups.max(1)).min(k / shortest).min(64);
    let by_length = k.div_ceil(LONGEST).min(MOST_RESULTS / results.max(1));
    let parts = by_groups.max(by_length).max(1);
    match sum {
        Sum::Run(_) => Cut { parts, part: 1, sizes: [parts, 1, k.div_ceil(parts).max(1)] },
        Sum::Nest(sizes) => {
            let part = (sizes[0] / parts).max(1);
            Cut { parts: sizes[0].div_ceil(part).max(1), part, sizes }
        }
    }
}

/// Declares the second operand and its loaders.
fn columns(vector: bool) -> &'static str {
    if vector {
        "@group(0) @binding(1) var<storage, read> b: array<vec4<T>>;\n\
         fn b_column(batch: u32, n: u32) -> u32 { return batch * p.b_batch + n; }\n\
         fn b_at(column: u32, u: u32, v: u32) -> u32 { return (column + u * p.b_u + v * p.b_v) / 4u; }\n\
         fn b_load(at: u32, i: u32) -> V { return V(b[at + i * (p.b_k / 4u)]); }"
    } else {
        "@group(0) @binding(1) var<storage, read> b: array<T>;\n\
         fn b_column(batch: u32, n: u32) -> u32 { return batch * p.b_batch + n * p.b_n; }\n\
         fn b_at(column: u32, u: u32, v: u32) -> u32 { return column + u * p.b_u + v * p.b_v; }\n\
         fn b_load(at: u32, i: u32) -> V {\n    \
         let x = at + i * p.b_k;\n    \
         return V(A(b[x]), A(b[x + p.b_n]), A(b[x + 2u * p.b_n]), A(b[x + 3u * p.b_n]));\n}"
    }
}

/// Declares the result and how four of its columns are written, of which `count` exist.
fn store(vector: bool) -> &'static str {
    if vector {
        "@group(0) @binding(2) var<storage, read_write> y: array<vec4<C>>;\n\
         fn c_store(at: u32, count: u32, v: V) { y[at / 4u] = vec4<C>(v); }"
    } else {
        "@group(0) @binding(2) var<storage, read_write> y: array<C>;\n\
         fn c_store(at: u32, count: u32, v: V) {\n    \
         y[at] = C(v.x);\n    \
         if (count > 1u) { y[at + 1u] = C(v.y); }\n    \
         if (count > 2u) { y[at + 2u] = C(v.z); }\n    \
         if (count > 3u) { y[at + 3u] = C(v.w); }\n}"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_sums_of_few_results_are_cut() {
        let gpu = Caps::portable();
        let run = |k, groups, results, caps: &Caps| cut(Sum::Run(k), groups, results, caps).parts;
        assert_eq!(run(39_200, 1, 800, &gpu), 64);
        assert_eq!(run(1024, 64, 1 << 18, &gpu), 2);
        assert_eq!(run(4096, 1000, 1 << 24, &gpu), 1, "too many results to keep twice");
        let cpu = Caps { cpu: true, ..gpu };
        assert_eq!(run(784, 1, 5000, &cpu), 1);
        assert_eq!(run(39_200, 1, 800, &cpu), 20);
    }

    #[test]
    fn parts_cover_the_whole_sum() {
        let caps = Caps::portable();
        for sum in [Sum::Run(39_201), Sum::Nest([50, 28, 28]), Sum::Nest([5, 5, 32]), Sum::Run(0)] {
            let cut = cut(sum, 1, 100, &caps);
            let [u, v, inner] = cut.sizes;
            assert!(cut.part * cut.parts >= u && cut.part * (cut.parts - 1) < u.max(1));
            assert!(u * v * inner >= sum.len());
        }
    }
}
