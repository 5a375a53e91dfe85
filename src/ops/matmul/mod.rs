//! `y[b,m,n] = sum over k of a[b,m,k] * b[b,k,n]`, either operand transposed, leading axes broadcast.
//!
//! This file has the op; the other files have the kernels that it shares with the convolutions. Each uses only those
//! above it in this list:
//!
//! - `variants.rs`: the kernels, as data, and which of them are suitable for a problem's sizes;
//! - `kernels.rs`: the WGSL text of each;
//! - `sum.rs`: the index of the sum, and how it splits among workgroups;
//! - `operands.rs`: how kernels read the operands, with the caller's functions;
//! - `gemm.rs`: a product of such operands, and how it becomes kernels;
//! - `choice.rs`: chooses the variant of a product on an adapter;
//! - `product.rs`: the product of matrices stored in rows.

mod choice;
mod gemm;
mod kernels;
mod operands;
mod product;
mod sum;
#[cfg(test)]
mod tests;
mod variants;

pub(super) use gemm::Gemm;
pub(super) use operands::{Columns, Rows};
pub(super) use product::Product;
pub(super) use sum::Sum;

use super::inventory::{ANY, Entry, OpKind, one};
use super::{Backward, Grads, Keep, NUMERIC, Operation, expect_dtype, same_dtype};
use crate::eager::dispatch;
use crate::error::{Error, Result, message};
use crate::graph::attributes::Attribute;
use crate::graph::lower::{Lowering, LoweringContext, Variants};
use crate::graph::{Op, Spec};
use crate::shape::{Shape, broadcast};
use crate::support::options::options;
use crate::tensor::{Operand, Tensor};

options! {
    /// Which operands of a matrix product to transpose.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub struct MatmulOptions {
        /// Whether to transpose the last two axes of the first operand; `false` by default.
        transpose_a: bool = false,
        /// Whether to transpose the last two axes of the second operand; `false` by default.
        transpose_b: bool = false,
    }
}

impl Tensor {
    /// The matrix product over the last two axes, `[.., M, K]` by `[.., K, N]`; the leading axes broadcast.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// let a = tf::constant([[1.0, 2.0], [3.0, 4.0]])?;
    /// let b = tf::constant([[5.0], [6.0]])?;
    /// assert_eq!(a.matmul(&b)?.to_vec::<f32>()?, [17.0, 39.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Shape`] if an operand has fewer than two axes, the inner sizes differ or the leading axes are incompatible;
    /// [`Error::DType`] if the dtypes differ or are not numeric.
    pub fn matmul(&self, other: impl Into<Operand>) -> Result<Tensor> {
        self.matmul_with(other, MatmulOptions::new())
    }

    /// Like [`Tensor::matmul`], with options: it can first transpose the last two axes of either operand.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// let (a, b) = (tf::constant([[1.0, 2.0]])?, tf::constant([[3.0, 4.0]])?);
    /// let y = a.matmul_with(&b, tf::MatmulOptions::new().transpose_b(true))?;
    /// assert_eq!(y.to_vec::<f32>()?, [11.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::matmul`].
    pub fn matmul_with(&self, other: impl Into<Operand>, options: MatmulOptions) -> Result<Tensor> {
        let MatmulOptions { transpose_a, transpose_b } = options;
        MatMul { transpose_a, transpose_b }.call(self, other.into())
    }

    /// The product of a matrix `[.., M, K]` and a vector `[.., K]`.
    ///
    /// # Errors
    /// As [`Tensor::matmul`].
    pub fn matvec(&self, vector: impl Into<Operand>) -> Result<Tensor> {
        let vector = vector.into().into_tensor_like("MatVec", self)?;
        self.matmul(vector.expand_dims(-1)?)?.squeeze(-1)
    }
}

/// Splits a shape into the axes before the last two, and those two.
fn leading(x: &Spec) -> Option<(Shape, [usize; 2])> {
    let at = x.shape.len().checked_sub(2)?;
    Some((Shape::new(&x.shape[..at]), [x.shape[at], x.shape[at + 1]]))
}

#[derive(Debug, Clone, Copy, Attribute)]
#[op("MatMul")]
pub(crate) struct MatMul {
    pub(super) transpose_a: bool,
    pub(super) transpose_b: bool,
}

impl Op for MatMul {
    fn name(&self) -> &'static str {
        "MatMul"
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Spec> {
        let (a, b) = (inputs[0], inputs[1]);
        same_dtype("MatMul", a, b)?;
        expect_dtype("MatMul", a, NUMERIC)?;
        let (Some((lead_a, mut ma)), Some((lead_b, mut mb))) = (leading(a), leading(b)) else {
            return Err(Error::Shape(message!(
                "MatMul: a is {} and b is {}; both need at least two axes. Use expand_dims, or matvec for a vector.",
                a.shape,
                b.shape
            )));
        };
        if self.transpose_a {
            ma.reverse();
        }
        if self.transpose_b {
            mb.reverse();
        }
        if ma[1] != mb[0] {
            let axis = |transposed: bool, last: bool| {
                if transposed != last { "last" } else { "second to last" }
            };
            return Err(Error::Shape(message!(
                "MatMul: a is {} and b is {}; the {} axis of a ({}) must equal the {} of b ({}). Transpose one of them, \
                 or check the units of the layer before.",
                a.shape,
                b.shape,
                axis(self.transpose_a, true),
                ma[1],
                axis(self.transpose_b, false),
                mb[0]
            )));
        }
        let mut shape = broadcast("MatMul (leading axes)", &lead_a, &lead_b)?;
        shape.push(ma[0]);
        shape.push(mb[1]);
        Ok(Spec::new(shape, a.dtype))
    }

    fn variants(&self, cx: &LoweringContext) -> Variants {
        let turned = |yes: bool, what: &'static str| if yes { what } else { "" };
        let a = turned(self.transpose_a, " a transposed,");
        let of = format!("MatMul{a}{}", turned(self.transpose_b, " b transposed,"));
        self.product(cx).gemm("matmul", cx.output.dtype, cx.caps).variants(of, cx.caps)
    }

    fn lower(&self, cx: &LoweringContext) -> Lowering {
        self.product(cx).gemm("matmul", cx.output.dtype, cx.caps).lower_at(cx)
    }
}

impl MatMul {
    fn call(self, a: &Tensor, b: Operand) -> Result<Tensor> {
        let b = b.into_tensor_like("MatMul", a)?;
        let (Some((lead_a, _)), Some((lead_b, _))) = (leading(a.spec()), leading(b.spec())) else {
            return dispatch(self, &[a, &b]);
        };
        // For each operand the kernel either steps through the batches or reads the same one repeatedly; an operand
        // that broadcasts along only some axes is copied first.
        let Ok(lead) = broadcast("MatMul", &lead_a, &lead_b) else {
            return dispatch(self, &[a, &b]);
        };
        let spread = |x: &Tensor, own: &Shape| -> Result<Tensor> {
            if *own == lead || own.elements() == 1 {
                return Ok(x.clone());
            }
            let mut sizes = lead.to_vec();
            sizes.extend_from_slice(&x.shape()[own.len()..]);
            x.broadcast_to(sizes)
        };
        dispatch(self, &[&spread(a, &lead_a)?, &spread(&b, &lead_b)?])
    }

    fn product(&self, cx: &LoweringContext) -> Product {
        let (a, b) = (cx.inputs[0], cx.inputs[1]);
        let rank = cx.output.shape.len();
        let [mut m, n] = [cx.output.shape[rank - 2], cx.output.shape[rank - 1]];
        let k = a.shape[a.shape.len() - if self.transpose_a { 2 } else { 1 }];
        let mut batch = cx.output.elements() / (m * n);
        let each = |x: &Spec, size: usize| if x.elements() == size { 0 } else { size };
        let (mut a_batch, b_batch) = (each(a, m * k), each(b, k * n));
        if b_batch == 0 && !self.transpose_a && a_batch != 0 {
            // With one right operand for all, the batch only adds rows.
            (m, batch, a_batch) = (m * batch, 1, 0);
        }
        let MatMul { transpose_a, transpose_b } = *self;
        Product { batch, m, k, n, a_batch, b_batch, transpose_a, transpose_b }
    }
}

impl Operation for MatMul {
    fn keep(&self) -> Keep {
        Keep::Inputs
    }

    fn grad(&self, back: &Backward) -> Result<Grads> {
        let (a, b, dy) = (back.x(0), back.x(1), back.dy);
        let da = || match (self.transpose_a, self.transpose_b) {
            (false, tb) => dy.matmul_with(b, MatmulOptions::new().transpose_b(!tb)),
            (true, tb) => b.matmul_with(dy, MatmulOptions::new().transpose_a(tb).transpose_b(true)),
        };
        let db = || match (self.transpose_a, self.transpose_b) {
            (ta, false) => a.matmul_with(dy, MatmulOptions::new().transpose_a(!ta)),
            (ta, true) => dy.matmul_with(a, MatmulOptions::new().transpose_a(true).transpose_b(ta)),
        };
        back.both(&da, &db)
    }
}

/// The inventory of this file.
pub(super) const ENTRIES: &[Entry] = &[
    Entry::new(OpKind::Kernel, "matmul", &["tf.linalg.matmul"], |c| {
        let options = MatmulOptions::new()
            .transpose_a(c.flag("transpose_a")?)
            .transpose_b(c.flag("transpose_b")?);
        one(c.arg("a")?.matmul_with(c.arg("b")?, options))
    })
    .forms(&["matmul_with"])
    .takes(NUMERIC)
    .cases(|cases| {
        cases.add("matmul", &[(&[5, 3, 4], ANY), (&[4, 2], ANY)], |x| x[0].matmul(&x[1]));
        // Rows, inner size and columns differ, so that a wrong transpose shows in the shape.
        let shapes: [[&'static [usize]; 4]; 3] = [
            [&[3, 4], &[4, 3], &[4, 2], &[2, 4]],
            [&[2, 1, 3, 4], &[2, 1, 4, 3], &[3, 4, 2], &[3, 2, 4]],
            [&[3, 4], &[4, 3], &[5, 4, 2], &[5, 2, 4]],
        ];
        for [a, a_transposed, b, b_transposed] in shapes {
            for (ta, tb) in [(false, false), (false, true), (true, false), (true, true)] {
                let left = if ta { a_transposed } else { a };
                let right = if tb { b_transposed } else { b };
                let name = format!("matmul_with {left:?} {right:?} {ta} {tb}");
                let options = MatmulOptions::new().transpose_a(ta).transpose_b(tb);
                cases.add(name, &[(left, ANY), (right, ANY)], move |x| {
                    x[0].matmul_with(&x[1], options)
                });
            }
        }
    }),
    Entry::new(OpKind::Kernel, "matvec", &["tf.linalg.matvec"], |c| {
        one(c.arg("a")?.matvec(c.arg("b")?))
    })
    .takes(NUMERIC)
    .cases(|cases| {
        cases.add("matvec", &[(&[5, 3, 4], ANY), (&[5, 4], ANY)], |x| x[0].matvec(&x[1]));
    }),
];
