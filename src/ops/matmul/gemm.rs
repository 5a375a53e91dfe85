//! The kernel family behind matmul and the convolutions: how a product is cut into tiles and parts.
//!
//! Not an op: the ops say how their operands are read (as WGSL functions) and this says the rest.

use super::super::split_k::{store_to, sum_splits};
use super::variants::Variant;
use crate::device::Caps;
use crate::dtype::{DType, Register};
use crate::graph::lower::{Bind, Kernels, Lowering};

/// A product of `batch` times `[m,k]` by `[k,n]`, the summed index being a triple (u, v, i).
pub(crate) struct Gemm {
    pub(crate) label: &'static str,
    /// Of the operands.
    pub(crate) dtype: DType,
    /// Of the result.
    pub(crate) result: DType,
    pub(crate) batch: usize,
    pub(crate) m: usize,
    pub(crate) n: usize,
    pub(crate) sum: Sum,
    pub(crate) a: Rows,
    pub(crate) b: Columns,
    /// Parameters that the loaders read.
    pub(crate) params: Vec<(&'static str, usize)>,
}

/// How the first operand is read.
pub(crate) struct Rows {
    /// Declares `Row`, `At` and `a_row(b, m)`.
    pub(crate) text: String,
    /// The function `a_at` without its name: `(row: Row, u: u32, v: u32) -> At { ... }`.
    pub(crate) at: String,
    /// Declares `a_load(at, i)` over `a: array<T>`, or `a_quad(at, i)` for i to i + 3 over `a: array<vec4<T>>`.
    pub(crate) load: &'static str,
    /// Whether four i lie together at a multiple of four. Then i ends at a multiple of four, and `load` has `a_quad`.
    pub(crate) vector: bool,
    /// Where instead four m lie together at a multiple of four, and m ends at one: declares `a_load` and
    /// `a_column(at, i)` for m to m + 3 over `a: array<vec4<T>>`, `at` being the place of m.
    pub(crate) columns: Option<&'static str>,
    /// The place `n` further along i than `at`, where runs of i are cut into pieces; of a run nobody asks.
    pub(crate) skip: &'static str,
}

/// What is summed over.
#[derive(Clone, Copy)]
pub(crate) enum Sum {
    /// One run of this length, which may be cut anywhere.
    Run(usize),
    /// Sizes of u, v and i; cut between two u.
    Nest([usize; 3]),
}

/// How the second operand is read: `b[batch * b_batch + u * b_u + v * b_v + i * b_k + n * b_n]`. For a run b_u and
/// b_v follow from b_k.
#[derive(Clone, Copy)]
pub(crate) struct Columns {
    pub(crate) batch: usize,
    pub(crate) u: usize,
    pub(crate) v: usize,
    pub(crate) k: usize,
    pub(crate) n: usize,
}

/// How the sum is cut into parts.
struct Cut {
    parts: usize,
    /// Values of u in a part.
    part: usize,
    sizes: [usize; 3],
    /// Where no thread can go through all that belongs to one u: how many v that has, and into how many pieces its runs are
    /// cut. All of them then have a u of their own.
    pieces: Option<[usize; 2]>,
    /// What the loops of a thread make.
    iterations: usize,
}

impl Gemm {
    pub(crate) fn lower_with(self, variant: Variant, caps: &Caps) -> Lowering {
        self.lower_to(Bind::Output, variant, caps)
    }

    /// As [`Gemm::lower_with`], with the result in `out`: the op's output, or the first temporary buffer, which the
    /// caller puts before those that are returned.
    pub(crate) fn lower_to(self, out: Bind, variant: Variant, caps: &Caps) -> Lowering {
        let [tile_m, tile_n] = variant.tile();
        let tiles_m = self.m.div_ceil(tile_m);
        let tiles_n = self.n.div_ceil(tile_n);
        let groups = self.batch * tiles_m * tiles_n;
        let results = self.batch * self.m * self.n;
        let cut = cut(self.sum, groups, results, variant, caps);
        let mut b = self.b;
        if let Sum::Run(_) = self.sum {
            b.u = cut.sizes[2] * b.k;
        }

        let whole = self.n.is_multiple_of(4);
        // Runs are cut at multiples of four, so only their end may be ragged.
        let tail = match self.sum {
            Sum::Run(k) => k % 4 != 0,
            Sum::Nest([_, _, i]) => i % 4 != 0,
        };
        let columns = match variant {
            Variant::Dots { .. } => b.line_loader(self.n, tail),
            _ => b.loader(whole, tail),
        };
        let mut params = self.params;
        if let Some([v, pieces]) = cut.pieces {
            let Sum::Nest([.., run]) = self.sum else { unreachable!("runs are cut as they are") };
            params.extend([("v_own", v), ("pieces", pieces), ("run", run)]);
        }
        let in_pieces = cut.pieces.is_some();
        let sums_at = Bind::Temp(usize::from(out != Bind::Output));
        let sums = match self.dtype.register() {
            Register::F32 => DType::F32,
            Register::I32 => DType::I32,
            _ => DType::U32,
        };
        let stored = if cut.parts == 1 { self.result } else { sums };
        let [u, v, inner] = cut.sizes;
        let mut kernel = variant
            .kernel(self.label, tail, in_pieces, caps)
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
            .declare(columns.declaration(in_pieces))
            .read(Bind::Input(0))
            .read(Bind::Input(1));
        let sizes = [
            ("m", self.m),
            ("n", self.n),
            ("k", self.sum.len()),
            ("batch", self.batch),
            ("tiles_m", tiles_m),
            ("tiles_n", tiles_n),
            ("splits", cut.parts),
            ("part", cut.part),
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
            .workgroups(groups * cut.parts, cut.iterations);
        if cut.parts == 1 {
            return store_to(out, kernel, whole).into();
        }
        let kernel = store_to(sums_at, kernel, whole);
        let add = sum_splits([sums_at, out], sums, self.result, results, cut.parts);
        let temps = vec![sums.bytes(results * cut.parts)];
        Lowering::Kernels(Kernels { temps, kernels: vec![kernel, add] })
    }
}

impl Sum {
    pub(crate) fn len(self) -> usize {
        match self {
            Sum::Run(len) => len,
            Sum::Nest([u, v, i]) => u * v * i,
        }
    }
}

/// Cuts a sum into so many parts that enough workgroups have work, that no part is so long that rounding
/// errors pile up, as long as the parts' results take little memory, and that no thread's loops are too long.
fn cut(sum: Sum, groups: usize, results: usize, variant: Variant, caps: &Caps) -> Cut {
    const LONGEST: usize = 2048;
    const MOST_RESULTS: usize = 4 << 20;
    let k = sum.len();
    // A second kernel costs a processor as much as a thousand or so steps of the sum.
    let (wanted, shortest) = if caps.cpu { (4, 1024) } else { (128, 128) };
    let by_groups = (wanted / groups.max(1)).min(k / shortest).min(64);
    let by_length = k.div_ceil(LONGEST).min(MOST_RESULTS / results.max(1));
    // The second kernel goes through the parts.
    let parts = by_groups.max(by_length).clamp(1, caps.loop_piece());
    let longest = variant.longest_run(caps);
    let of = |sizes: [usize; 3], part: usize, run: usize, pieces| Cut {
        parts: sizes[0].div_ceil(part).max(1),
        part,
        sizes,
        pieces,
        iterations: part * (1 + sizes[1] * (1 + variant.iterations(run))) + Variant::AROUND,
    };
    let [u, v, run] = match sum {
        Sum::Run(_) => {
            // Where vectors are read, they must not be torn.
            let inner = k.div_ceil(parts).next_multiple_of(4).clamp(4, longest);
            return of([k.div_ceil(inner).max(1), 1, inner], 1, inner, None);
        }
        Sum::Nest(sizes) => sizes,
    };
    let room = caps.loop_iterations.saturating_sub(Variant::AROUND);
    // Values of u that a thread can go through where each has `v` runs of this length.
    let most = |v: usize, run: usize| room / (1 + v * (1 + variant.iterations(run)));
    let part = (u / parts).max(1).min(most(v, run));
    if part > 0 {
        return of([u, v, run], part, run, None);
    }
    let pieces = run.div_ceil(longest);
    let piece = run.div_ceil(pieces).next_multiple_of(64);
    let pieces = run.div_ceil(piece);
    let all = u * v * pieces;
    let longest = run.min(piece);
    let part = (all / parts).clamp(1, most(1, longest).max(1));
    of([all, 1, piece], part, longest, Some([v, pieces]))
}

impl Rows {
    /// Declares the first operand and all of its loaders. With `in_pieces` u also says which v it is, and which piece of the
    /// run.
    fn declaration(&self, variant: Variant, in_pieces: bool) -> String {
        // The other kernels read rows by themselves.
        let blocks = matches!(
            variant,
            Variant::Tiled | Variant::Cooperative { .. } | Variant::Registers { tm: 4.., .. }
        );
        let columns = self.columns.filter(|_| blocks);
        let Rows { text, at, skip, .. } = self;
        let load = columns.unwrap_or(self.load);
        let element = if self.vector || columns.is_some() { "vec4<T>" } else { "T" };
        // Every loader has all of the functions.
        let quad = if self.vector {
            "fn a_load(at: At, i: u32) -> Sum { return a_quad(at, i - i % 4u)[i % 4u]; }"
        } else {
            "fn a_quad(at: At, i: u32) -> V {\n    \
             return V(a_load(at, i), a_load(at, i + 1u), a_load(at, i + 2u), a_load(at, i + 3u));\n}"
        };
        let block = if columns.is_some() {
            "return array<V, 4>(a_column(m0, i), a_column(m0, i + 1u), a_column(m0, i + 2u), a_column(m0, i + 3u));"
        } else {
            "let x = a_quad(m0, i);\n    let y = a_quad(m1, i);\n    \
             let z = a_quad(m2, i);\n    let w = a_quad(m3, i);\n    \
             return array<V, 4>(V(x.x, y.x, z.x, w.x), V(x.y, y.y, z.y, w.y), V(x.z, y.z, z.z, w.z), \
             V(x.w, y.w, z.w, w.w));"
        };
        let name = if in_pieces { "a_whole" } else { "a_at" };
        let mut all = format!(
            "@group(0) @binding(0) var<storage, read> a: array<{element}>;\n{text}\n\
             fn {name}{at}\n{load}\n{quad}\n\
             fn a_block(m0: At, m1: At, m2: At, m3: At, i: u32) -> array<V, 4> {{\n    {block}\n}}"
        );
        if in_pieces {
            all.push_str(&format!(
                "\nfn a_skip(at: At, n: u32) -> At {{ return {skip}; }}\n\
                 fn a_at(row: Row, u: u32, v: u32) -> At {{\n    \
                 let run = u / p.pieces;\n    \
                 return a_skip(a_whole(row, run / p.v_own, run % p.v_own), u % p.pieces * p.inner);\n}}"
            ));
        }
        all
    }
}

/// The loaders of the second operand.
struct ColumnLoader {
    /// The operand is read by vectors of four, in which `b_column` and `b_at` count.
    vectors: bool,
    /// The place of column n, with its batch.
    column: &'static str,
    /// Those that read elements.
    load: &'static str,
}

impl ColumnLoader {
    /// Declares the operand and its loaders. With `in_pieces` u also says which v it is, and which piece of the run.
    fn declaration(&self, in_pieces: bool) -> String {
        let ColumnLoader { vectors, column, load } = self;
        let (element, at, step) = match vectors {
            true => ("vec4<T>", "column + u * (p.b_u / 4u) + v * (p.b_v / 4u)", "/ 4u"),
            false => ("T", "column + u * p.b_u + v * p.b_v", ""),
        };
        let name = if in_pieces { "b_whole" } else { "b_at" };
        let mut all = format!(
            "@group(0) @binding(1) var<storage, read> b: array<{element}>;\n\
             fn b_column(batch: u32, n: u32) -> u32 {{ return {column}; }}\n\
             fn {name}(column: u32, u: u32, v: u32) -> u32 {{ return {at}; }}\n\
             {load}"
        );
        if in_pieces {
            all.push_str(&format!(
                "\nfn b_at(column: u32, u: u32, v: u32) -> u32 {{\n    \
                 let run = u / p.pieces;\n    \
                 return b_whole(column, run / p.v_own, run % p.v_own) + (u % p.pieces * p.inner * p.b_k) {step};\n}}"
            ));
        }
        all
    }
}

impl Columns {
    /// Declares the second operand and its loaders for single columns: four i at once, or one.
    fn line_loader(&self, n: usize, tail: bool) -> ColumnLoader {
        let aligned = [self.batch, self.u, self.v].iter().all(|s| s.is_multiple_of(4));
        if self.k == 1 && !tail && aligned && (n == 1 || self.n.is_multiple_of(4)) {
            ColumnLoader {
                vectors: true,
                column: "(batch * p.b_batch + n * p.b_n) / 4u",
                load: "fn b_one(at: u32, i: u32) -> Sum { return Sum(b[at + i / 4u][i % 4u]); }\n\
             fn b_line(at: u32, i: u32) -> V { return V(b[at + i / 4u]); }",
            }
        } else {
            ColumnLoader {
                vectors: false,
                column: "batch * p.b_batch + n * p.b_n",
                load: "fn b_one(at: u32, i: u32) -> Sum { return Sum(b[at + i * p.b_k]); }\n\
             fn b_line(at: u32, i: u32) -> V {\n    \
             return V(b_one(at, i), b_one(at, i + 1u), b_one(at, i + 2u), b_one(at, i + 3u));\n}",
            }
        }
    }

    /// Declares the second operand and its loaders: four columns at once, four i at once, or one by one.
    fn loader(&self, whole: bool, tail: bool) -> ColumnLoader {
        let aligned = |strides: &[usize]| strides.iter().all(|s| s % 4 == 0);
        if whole && self.n == 1 && aligned(&[self.batch, self.u, self.v, self.k]) {
            ColumnLoader {
                vectors: true,
                column: "(batch * p.b_batch + n) / 4u",
                load: "fn b_load(at: u32, i: u32) -> V { return V(b[at + i * (p.b_k / 4u)]); }\n\
             fn b_quad(at: u32, i: u32) -> array<V, 4> {\n    \
             let step = p.b_k / 4u;\n    \
             let x = at + i * step;\n    \
             return array<V, 4>(V(b[x]), V(b[x + step]), V(b[x + 2u * step]), V(b[x + 3u * step]));\n}",
            }
        } else if !tail && self.k == 1 && aligned(&[self.batch, self.u, self.v, self.n]) {
            ColumnLoader {
                vectors: true,
                column: "(batch * p.b_batch + n * p.b_n) / 4u",
                load: "fn b_load(at: u32, i: u32) -> V { return b_quad(at, i - i % 4u)[i % 4u]; }\n\
             fn b_quad(at: u32, i: u32) -> array<V, 4> {\n    \
             let step = p.b_n / 4u;\n    \
             let at_i = at + i / 4u;\n    \
             let x = V(b[at_i]);\n    let y = V(b[at_i + step]);\n    \
             let z = V(b[at_i + 2u * step]);\n    let w = V(b[at_i + 3u * step]);\n    \
             return array<V, 4>(V(x.x, y.x, z.x, w.x), V(x.y, y.y, z.y, w.y), V(x.z, y.z, z.z, w.z), \
             V(x.w, y.w, z.w, w.w));\n}",
            }
        } else {
            ColumnLoader {
                vectors: false,
                column: "batch * p.b_batch + n * p.b_n",
                load: "fn b_load(at: u32, i: u32) -> V {\n    \
             let x = at + i * p.b_k;\n    \
             return V(Sum(b[x]), Sum(b[x + p.b_n]), Sum(b[x + 2u * p.b_n]), Sum(b[x + 3u * p.b_n]));\n}\n\
             fn b_quad(at: u32, i: u32) -> array<V, 4> {\n    \
             return array<V, 4>(b_load(at, i), b_load(at, i + 1u), b_load(at, i + 2u), b_load(at, i + 3u));\n}",
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::variants::PLAIN;
    use super::*;

    #[test]
    fn long_sums_of_few_results_are_cut() {
        let gpu = Caps::portable();
        let run =
            |k, groups, results, caps: &Caps| cut(Sum::Run(k), groups, results, PLAIN, caps).parts;
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
            for bound in [256, caps.loop_iterations] {
                let caps = Caps { loop_iterations: bound, ..caps.clone() };
                let cut = cut(sum, 1, 100, PLAIN, &caps);
                let [u, v, inner] = cut.sizes;
                assert!(cut.part * cut.parts >= u && cut.part * (cut.parts - 1) < u.max(1));
                assert!(u * v * inner >= sum.len());
                assert!(cut.iterations <= bound, "{}", cut.iterations);
            }
        }
    }

    #[test]
    fn sums_that_one_thread_cannot_make_are_cut_anywhere() {
        let caps = Caps::portable();
        let nest = |sizes| {
            let cut = cut(Sum::Nest(sizes), 1, 100, PLAIN, &caps);
            assert!(cut.iterations <= caps.loop_iterations, "{}", cut.iterations);
            (cut.sizes, cut.pieces)
        };
        // One image of many rows, and one of one long row.
        assert_eq!(nest([1, 600, 600]), ([600, 1, 640], Some([600, 1])));
        let (sizes, pieces) = nest([2, 1, 600_000]);
        assert_eq!(pieces, Some([1, 5]));
        assert_eq!(sizes, [10, 1, 120_000]);
    }
}
