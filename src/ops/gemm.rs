//! The kernel family behind matmul and the convolutions: how a product is cut into tiles and parts.
//!
//! Not an op: the ops say how their operands are read (as WGSL functions) and this says the rest.

use crate::device::Caps;
use crate::dtype::{DType, Register};
use crate::graph::lower::{Bind, Kernel, Kernels, Lowering};

/// A product of `batch` times `[m,k]` by `[k,n]`.
pub(super) struct Gemm {
    pub(super) label: &'static str,
    pub(super) dtype: DType,
    pub(super) batch: usize,
    pub(super) m: usize,
    pub(super) n: usize,
    pub(super) k: usize,
    /// Declares `Row`, `Step`, `a_row(b, m)`, `a_step(k)` and `a_load(row, step)` over `a: array<T>`.
    pub(super) a: String,
    pub(super) b: Columns,
    /// Parameters that the loaders read.
    pub(super) params: Vec<(&'static str, usize)>,
}

/// How the second operand is read.
pub(super) enum Columns {
    /// `b[batch * b_batch + k * b_k + n * b_n]`, with these strides.
    Strided { batch: usize, k: usize, n: usize },
    /// Declares `b_index(column, k)`, the place of the element of column `n` (`column = n`) in row `k`.
    Indexed(String),
}

impl Gemm {
    pub(super) fn lower(self, caps: &Caps) -> Lowering {
        let tm = if self.m >= 8 { 8 } else { self.m.next_power_of_two().min(4) };
        let tn4 = if self.n > 4 { 2 } else { 1 };
        let tiles_m = self.m.div_ceil(8 * tm);
        let tiles_n = self.n.div_ceil(8 * 4 * tn4);
        let groups = self.batch * tiles_m * tiles_n;
        let results = self.batch * self.m * self.n;
        let parts = parts(groups, self.k, results, caps);
        let part = self.k.div_ceil(parts).max(1);

        let vector_b = self.n.is_multiple_of(4)
            && matches!(self.b, Columns::Strided { n: 1, batch, k }
            if batch % 4 == 0 && k % 4 == 0);
        let out = if parts == 1 { Bind::Output } else { Bind::Temp(0) };
        let sums = match self.dtype.register() {
            Register::F32 => DType::F32,
            Register::I32 => DType::I32,
            _ => DType::U32,
        };
        let stored = if parts == 1 { self.dtype } else { sums };
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
            .declare(&self.a)
            .declare(self.b.declare(vector_b))
            .declare(store(self.n.is_multiple_of(4)))
            .read(Bind::Input(0))
            .read(Bind::Input(1))
            .write(out)
            .param("m", self.m)
            .param("n", self.n)
            .param("k", self.k)
            .param("batch", self.batch)
            .param("tiles_m", tiles_m)
            .param("tiles_n", tiles_n)
            .param("splits", parts)
            .param("part", part);
        if let Columns::Strided { batch, k, n } = self.b {
            kernel = kernel.param("b_batch", batch).param("b_k", k).param("b_n", n);
        }
        for (name, value) in self.params {
            kernel = kernel.param(name, value);
        }
        let fields: String =
            kernel.params.iter().map(|(name, _)| format!("    {name}: u32,\n")).collect();
        kernel = kernel
            .declare(format!("struct Params {{\n{fields}    row: u32,\n}}"))
            .declare("@group(0) @binding(3) var<uniform> p: Params;")
            .groups(groups * parts);
        if parts == 1 {
            return kernel.into();
        }
        let add = Kernel::new("sum_parts", include_str!("../../shaders/sum_parts.wgsl"))
            .alias("T", self.dtype)
            .alias("A", sums)
            .constant("WG", 64)
            .read(Bind::Temp(0))
            .write(Bind::Output)
            .param("len", results)
            .param("parts", parts)
            .groups(results.div_ceil(64));
        Lowering::Kernels(Kernels {
            temps: vec![sums.bytes(results * parts)],
            kernels: vec![kernel, add],
        })
    }
}

/// Into how many parts the sums are cut: so many that enough workgroups have work, and that no part is so long
/// that rounding errors pile up, as long as the parts' results take little memory.
fn parts(groups: usize, k: usize, results: usize, caps: &Caps) -> usize {
    const LONGEST: usize = 2048;
    const MOST_RESULTS: usize = 4 << 20;
    // A second kernel costs a processor as much as a thousand or so steps of the sum.
    let (wanted, shortest) = if caps.cpu { (4, 1024) } else { (128, 128) };
    let by_groups = (wanted / groups.max(1)).min(k / shortest).min(64);
    let by_length = k.div_ceil(LONGEST).min(MOST_RESULTS / results.max(1));
    by_groups.max(by_length).max(1)
}

impl Columns {
    fn declare(&self, vector: bool) -> String {
        let element = if vector { "vec4<T>" } else { "T" };
        let mut wgsl = format!("@group(0) @binding(1) var<storage, read> b: array<{element}>;\n");
        match self {
            Columns::Strided { .. } if vector => wgsl.push_str(
                "fn b_column(batch: u32, n: u32) -> u32 { return (batch * p.b_batch + n) / 4u; }\n\
                 fn b_load(column: u32, k: u32) -> V { return V(b[column + k * (p.b_k / 4u)]); }",
            ),
            Columns::Strided { .. } => wgsl.push_str(
                "fn b_column(batch: u32, n: u32) -> u32 { return batch * p.b_batch + n * p.b_n; }\n\
                 fn b_load(column: u32, k: u32) -> V {\n    \
                 let at = column + k * p.b_k;\n    \
                 return V(A(b[at]), A(b[at + p.b_n]), A(b[at + 2u * p.b_n]), A(b[at + 3u * p.b_n]));\n}",
            ),
            Columns::Indexed(index) => {
                wgsl.push_str(index);
                wgsl.push_str(
                    "\nfn b_column(batch: u32, n: u32) -> u32 { return n; }\n\
                     fn b_load(n: u32, k: u32) -> V {\n    \
                     return V(A(b[b_index(n, k)]), A(b[b_index(n + 1u, k)]), A(b[b_index(n + 2u, k)]),\n        \
                     A(b[b_index(n + 3u, k)]));\n}",
                );
            }
        }
        wgsl
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
        assert_eq!(parts(1, 39_200, 800, &gpu), 64);
        assert_eq!(parts(64, 1024, 1 << 18, &gpu), 2);
        assert_eq!(parts(1000, 4096, 1 << 24, &gpu), 1, "too many results to keep twice");
        let cpu = Caps { cpu: true, ..gpu };
        assert_eq!(parts(1, 784, 5000, &cpu), 1);
        assert_eq!(parts(1, 39_200, 800, &cpu), 20);
        assert_eq!(parts(13, 9800, 51_200, &cpu), 5);
    }
}
