//! The Cholesky factor, `x = y y^T` with `y` lower triangular, and solvers that use it.

use super::super::inventory::{ANY, Entry, OpKind, one};
use super::super::{Backward, Grads, Keep, MatmulOptions, Operation, refuse};
use super::band_part::tril;
use super::blocks::{
    above, batch, batched, block, fits, identity, in_f32, side_by_side, square, turned,
};
use super::diagonals::{diag, diag_part};
use super::rule::{Rule, of_arguments, ruled};
use super::triangular_solve::Triangle;
use crate::dtype::DType;
use crate::eager::dispatch;
use crate::error::Result;
use crate::graph::attributes::Attribute;
use crate::graph::lower::{Bind, Kernel, Lowering, LoweringContext};
use crate::graph::{Op, Spec};
use crate::tensor::Tensor;
use crate::wgsl::shader;

/// The Cholesky factor of symmetric positive definite matrices: `x = y y^T` with `y` lower triangular. Only the lower triangle
/// of `x` is read.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// let x = tf::constant([[4.0, 2.0], [2.0, 5.0]])?;
/// assert_eq!(tf::linalg::cholesky(&x)?.to_vec::<f32>()?, [2.0, 0.0, 1.0, 2.0]);
/// # Ok(())
/// # }
/// ```
///
/// Nothing is read back, so a matrix that is not positive definite is not an error: its factor is NaN from the first column
/// that cannot be computed. `y y^T` differs from `x` by at most about `N` times 6e-8 of its magnitude, whatever the condition
/// number; a matrix with a condition number above 1e7 may be treated as not positive definite.
///
/// # Errors
/// [`Error::Shape`](crate::Error::Shape) if the matrices are not square; [`Error::DType`](crate::Error::DType) if the
/// dtype is not float.
pub fn cholesky(x: &Tensor) -> Result<Tensor> {
    square("Cholesky", x)?;
    in_f32(x, |x| ruled(Cholesky, &factor(&x.stop_gradient())?, &[x]))
}

/// Solves `A y = rhs`, where `chol` is the Cholesky factor of `A`.
///
/// # Errors
/// As [`triangular_solve`](super::triangular_solve).
pub fn cholesky_solve(chol: &Tensor, rhs: &Tensor) -> Result<Tensor> {
    let n = square("CholeskySolve", chol)?;
    fits("CholeskySolve", chol, n, rhs)?;
    let lower = Triangle { lower: true, adjoint: false, unit: false };
    in_f32(chol, |chol| {
        let half = lower.rows(chol, &rhs.cast(DType::F32)?)?;
        Triangle { adjoint: true, ..lower }.rows(chol, &half)
    })
}

/// A kernel factors blocks of this many rows, each in workgroup memory.
const BLOCK: usize = 64;

fn factor(x: &Tensor) -> Result<Tensor> {
    let n = x.shape()[x.rank() - 1];
    if n <= BLOCK {
        return dispatch(Cholesky, &[x]);
    }
    // [L1 0; S L2] [L1^T S^T; 0 L2^T] = [A1 B^T; B A2]
    let half = n.div_ceil(2).next_multiple_of(BLOCK);
    let first = factor(&block(x, 0..half, 0..half)?)?;
    let b = block(x, half..n, 0..half)?;
    let s = Triangle { lower: true, adjoint: false, unit: false }.solved(&first, &turned(&b)?)?;
    let done = s.matmul_with(&s, MatmulOptions::new().transpose_a(true))?;
    let last = factor(&block(x, half..n, half..n)?.subtract(done)?)?;
    // The first part is the larger one.
    let zero = block(&first.zeros_like()?, 0..half, 0..n - half)?;
    above(&side_by_side(&first, &zero)?, &side_by_side(&turned(&s)?, &last)?)
}

#[derive(Debug, Attribute)]
#[op("Cholesky")]
pub(crate) struct Cholesky;

impl Op for Cholesky {
    fn name(&self) -> &'static str {
        "Cholesky"
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Spec> {
        Ok(inputs[0].clone())
    }

    fn lower(&self, cx: &LoweringContext) -> Lowering {
        let shape = &cx.inputs[0].shape;
        let (n, count) = (shape[shape.len() - 1], batch(shape));
        let threads = n.next_multiple_of(BLOCK / 2);
        let copies = 2 * (n * n).div_ceil(threads);
        Kernel::new("cholesky", shader!(include_str!("../../../shaders/cholesky.wgsl")))
            .constant("WG", threads as u32)
            .read(Bind::Input(0))
            .write(Bind::Output)
            .param("n", n)
            .param("count", count)
            .flops(count * n * n * n / 3)
            .workgroups(count, copies + n * (n + 1) / 2)
            .into()
    }
}

/// Never recorded: its callers pass no gradient through it.
impl Operation for Cholesky {
    fn keep(&self) -> Keep {
        Keep::Nothing
    }

    fn grad(&self, _: &Backward) -> Result<Grads> {
        refuse("Cholesky", "it is a block of a larger factor", "differentiate the whole")
    }
}

impl Rule for Cholesky {
    const KIND: &'static str = "CholeskyRule";
    const NAME: &'static str = "Cholesky";

    // dx = y^-T P y^-1, symmetrized, with P = y^T dy in the lower triangle, halved on the diagonal.
    fn grad(&self, back: &Backward) -> Result<Grads> {
        let y = back.y();
        let n = y.shape()[y.rank() - 1];
        let middle = y.matmul_with(back.dy, MatmulOptions::new().transpose_a(true))?;
        let diagonal = diag(&diag_part(&middle)?.multiply(0.5)?)?;
        let middle = tril(&middle, -1)?.add(diagonal)?;
        let inverse = Triangle { lower: true, adjoint: false, unit: false }
            .rows(y, &identity(y, [n, n])?.broadcast_to(batched(y, &[n, n]))?)?;
        let dx = inverse
            .matmul_with(&middle, MatmulOptions::new().transpose_a(true))?
            .matmul(&inverse)?;
        of_arguments([Some(dx.add(turned(&dx)?)?.multiply(0.5)?)])
    }
}

/// `x x^T + c I`: symmetric, and positive definite for a positive `c`.
pub(super) fn definite(x: &Tensor, c: f64) -> Result<Tensor> {
    let n = x.shape()[x.rank() - 2];
    let square = x.matmul_with(x, MatmulOptions::new().transpose_b(true))?;
    square.add(identity(x, [n, n])?.multiply(c)?)
}

/// The inventory of this file.
pub(in super::super) const ENTRIES: &[Entry] = &[
    Entry::new(OpKind::Kernel, "cholesky", &["tf.linalg.cholesky"], |c| {
        one(cholesky(c.arg("input")?))
    })
    .cases(|cases| {
        cases.of_shape("cholesky", &[2, 3, 3], |x| cholesky(&definite(x, 2.0)?));
        cases.of_shape("cholesky of one", &[1, 1], |x| cholesky(&definite(x, 1.0)?));
    })
    .kernels(&[|make, dtype| {
        let of = |shape: &[usize]| cholesky(&make(shape, dtype));
        Ok(vec![of(&[3, 3])?, of(&[2, 40, 40])?, of(&[2, 130, 130])?])
    }]),
    Entry::new(OpKind::Composed, "cholesky_solve", &["tf.linalg.cholesky_solve"], |c| {
        one(cholesky_solve(c.arg("chol")?, c.arg("rhs")?))
    })
    .cases(|cases| {
        cases.add("cholesky_solve", &[(&[3, 3], ANY), (&[3, 2], ANY)], |x| {
            cholesky_solve(&cholesky(&definite(&x[0], 2.0)?)?, &x[1])
        });
    }),
];
