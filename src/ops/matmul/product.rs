//! The product of matrices stored in rows, either of them transposed: how a kernel reads its operands.

use super::gemm::Gemm;
use super::operands::{Columns, Rows};
use super::sum::Sum;
use crate::device::Caps;
use crate::dtype::DType;

/// `batch` products of matrices stored in rows, either of them transposed.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(test, derive(Hash, PartialEq, Eq))]
pub(crate) struct Product {
    pub(crate) batch: usize,
    pub(crate) m: usize,
    pub(crate) k: usize,
    pub(crate) n: usize,
    /// The distance in elements from one left operand to the next; 0 if all products share one.
    pub(crate) a_batch: usize,
    pub(crate) b_batch: usize,
    pub(crate) transpose_a: bool,
    pub(crate) transpose_b: bool,
}

impl Default for Product {
    fn default() -> Self {
        let (batch, size, stride) = (1, 0, 0);
        Product {
            batch,
            m: size,
            k: size,
            n: size,
            a_batch: stride,
            b_batch: stride,
            transpose_a: false,
            transpose_b: false,
        }
    }
}

impl Product {
    pub(crate) fn gemm(&self, label: &'static str, dtype: DType, caps: &Caps) -> Gemm {
        let &Product { batch, m, k, n, a_batch, b_batch, .. } = self;
        // A CPU has two texts for each tile: one if all operands and results are in vectors, and one for all other
        // cases.
        let inner = if self.transpose_a && !self.transpose_b { m } else { k };
        let vectors = [n, inner].iter().all(|size| size.is_multiple_of(4))
            && (!self.transpose_a || m.is_multiple_of(4));
        let little = Gemm::is_little([batch, m, n, k], caps);
        let singly = little || (caps.cpu && !vectors);
        let [a_m, a_k] = if self.transpose_a { [1, m] } else { [k, 1] };
        let [b_k, b_n] = if self.transpose_b { [1, k] } else { [n, 1] };
        // Either four k of a row are contiguous, so one load reads them, or four rows at one k are.
        let vector = !singly && !self.transpose_a && k % 4 == 0;
        let (row, at, load) = if vector {
            (
                "(batch * p.a_batch + m * p.a_m) / 4u",
                "row + u * (p.inner / 4u)",
                "fn a_quad(at: u32, i: u32) -> V { return V(a[at + i / 4u]); }",
            )
        } else {
            (
                "batch * p.a_batch + m * p.a_m",
                "row + u * p.inner * p.a_k",
                "fn a_load(at: u32, i: u32) -> Sum { return Sum(a[at + i * p.a_k]); }",
            )
        };
        let columns = "fn a_load(at: u32, i: u32) -> Sum { return Sum(a[(at + i * p.a_k) / 4u][at % 4u]); }\n\
            fn a_column(at: u32, i: u32) -> V { return V(a[(at + i * p.a_k) / 4u]); }";
        let columns = (!singly && self.transpose_a && m % 4 == 0).then_some(columns);
        Gemm {
            label,
            dtype,
            result: dtype,
            batch,
            m,
            n,
            singly,
            sum: Sum::Run(k),
            a: Rows {
                text: format!(
                    "alias Row = u32;\nalias At = u32;\n\
                     fn a_row(batch: u32, m: u32) -> u32 {{ return {row}; }}"
                ),
                at: format!("(row: u32, u: u32, v: u32) -> u32 {{ return {at}; }}"),
                load,
                vector,
                columns,
                skip: "at",
            },
            b: Columns { batch: b_batch, u: 0, v: 0, k: b_k, n: b_n },
            params: vec![("a_batch", a_batch), ("a_m", a_m), ("a_k", a_k)],
        }
    }
}
