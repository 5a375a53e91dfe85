//! The WGSL loaders with which a product's kernels read the operands.
//!
//! A loader has two steps, so that the innermost loop computes little. `a_row(b, m)` and `b_column(b, n)` find a row
//! and a column; `a_at(row, u, v)` and `b_at(column, u, v)` find where a run of i begins in them. Then `a_load(at, i)`,
//! `b_load(at, i)` and similar functions read.

use super::variants::Variant;

/// The loaders of the first operand.
pub(crate) struct Rows {
    /// Declares `Row`, `At` and `a_row(b, m)`.
    pub(crate) text: String,
    /// The function `a_at` without its name: `(row: Row, u: u32, v: u32) -> At { ... }`.
    pub(crate) at: String,
    /// Declares `a_load(at, i)` over `a: array<T>`, or `a_quad(at, i)` for i to i + 3 over `a: array<vec4<T>>`.
    pub(crate) load: &'static str,
    /// Whether four i are contiguous, beginning at a multiple of four. Then i ends at a multiple of four, and `load`
    /// has `a_quad`.
    pub(crate) vector: bool,
    /// For operands in which instead four m are contiguous, beginning at a multiple of four, and the size of m is one:
    /// declares `a_load` and `a_column(at, i)`, which reads m to m + 3 from `a: array<vec4<T>>`; `at` is the position
    /// of m.
    pub(crate) columns: Option<&'static str>,
    /// The position `n` further along i than `at`. Only kernels that split a run into pieces use it.
    pub(crate) skip: &'static str,
}

/// The layout of the second operand's elements: `b[batch * b_batch + u * b_u + v * b_v + i * b_k + n * b_n]`. For a
/// run, b_k sets b_u and b_v.
#[derive(Clone, Copy)]
pub(crate) struct Columns {
    pub(crate) batch: usize,
    pub(crate) u: usize,
    pub(crate) v: usize,
    pub(crate) k: usize,
    pub(crate) n: usize,
}

impl Rows {
    /// Declares the first operand and all of its loaders. With `in_pieces`, u counts every piece of every v's run.
    pub(super) fn declaration(&self, variant: Variant, in_pieces: bool) -> String {
        // The other kernels read single rows.
        let blocks = matches!(
            variant,
            Variant::Tiled
                | Variant::Sliced
                | Variant::Gathered
                | Variant::Cooperative { .. }
                | Variant::Registers { tm: 4.., .. }
        );
        let columns = self.columns.filter(|_| blocks);
        let Rows { text, at, skip, .. } = self;
        let load = columns.unwrap_or(self.load);
        let element = if self.vector || columns.is_some() { "vec4<T>" } else { "T" };
        // Each kind of operand declares all of the functions.
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
        if variant == Variant::Gathered {
            let four = match columns {
                Some(_) => "a_column(m0, i)",
                None => "V(a_load(m0, i), a_load(m1, i), a_load(m2, i), a_load(m3, i))",
            };
            all.push_str(&format!(
                "\nfn a_four(m0: At, m1: At, m2: At, m3: At, i: u32) -> V {{ return {four}; }}"
            ));
        }
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
    /// The kernel reads the operand in vectors of four; `b_column` and `b_at` count in these.
    vectors: bool,
    /// Finds the position of column n, including its batch.
    column: &'static str,
    /// The functions that read elements.
    load: &'static str,
}

impl ColumnLoader {
    /// Declares the operand and its loaders. With `in_pieces`, u counts every piece of every v's run.
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
    /// Declares the second operand, which has `n` columns, and the loaders that the variant calls. With `whole` a kernel
    /// may read four columns at once, with `tail` runs of i may end between multiples of four.
    pub(super) fn declaration(
        &self,
        variant: Variant,
        n: usize,
        whole: bool,
        tail: bool,
        in_pieces: bool,
    ) -> String {
        let loader = match variant {
            Variant::Dots { .. } => self.line_loader(n, tail),
            _ => self.loader(whole, tail),
        };
        loader.declaration(in_pieces)
    }

    /// Declares the second operand and loaders for single columns: of four i at once, or one.
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

    /// Declares the second operand and loaders for four columns at once, four i at once, or one element.
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
