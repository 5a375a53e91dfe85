//! Linear systems, inverses and determinants of square matrices, from their LU factors.

use super::super::inventory::{ANY, Answer, Args, Entry, OpKind, one};
use super::super::{Backward, Grads, MatmulOptions};
use super::blocks::{batched, fits, identity, in_f32, lead, square, turned};
use super::diagonals::diag_part;
use super::lu::{factors, firm, lu_solve, sign_of};
use super::rule::{Rule, of_arguments, ruled};
use crate::dtype::DType;
use crate::error::Result;
use crate::graph::attributes::Attribute;
use crate::support::options::options;
use crate::tensor::Tensor;

options! {
    /// Whether to solve with the transposed matrix.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub struct SolveOptions {
        /// Whether to transpose the matrix first; `false` by default.
        adjoint: bool = false,
    }
}

options! {
    /// Whether to invert the transposed matrix.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub struct InvOptions {
        /// Whether to transpose the matrix first; `false` by default.
        adjoint: bool = false,
    }
}

/// Solves `A y = rhs` for square matrices `[.., N, N]` and right-hand sides `[.., N, K]`; leading axes broadcast.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// let a = tf::constant([[0.0, 2.0], [4.0, 0.0]])?;
/// let y = tf::linalg::solve(&a, &tf::constant([[6.0], [8.0]])?)?;
/// assert_eq!(y.to_vec::<f32>()?, [2.0, 3.0]);
/// # Ok(())
/// # }
/// ```
///
/// A singular matrix is not an error, because nothing is read back: the result is infinity or NaN. The relative error
/// is about 6e-8 times the condition number.
///
/// # Errors
/// [`Error::Shape`](crate::Error::Shape) if the matrices are not square or `rhs` has a different number of rows;
/// [`Error::DType`](crate::Error::DType) if the dtypes differ or are not float.
pub fn solve(matrix: &Tensor, rhs: &Tensor) -> Result<Tensor> {
    solve_with(matrix, rhs, SolveOptions::new())
}

/// Like [`solve`], optionally with the transposed matrix.
///
/// # Errors
/// As [`solve`].
pub fn solve_with(matrix: &Tensor, rhs: &Tensor, options: SolveOptions) -> Result<Tensor> {
    let n = square("MatrixSolve", matrix)?;
    fits("MatrixSolve", matrix, n, rhs)?;
    let rule = Solve { adjoint: options.adjoint };
    in_f32(matrix, |matrix| rule.rows(matrix, &rhs.cast(DType::F32)?))
}

#[derive(Debug, Clone, Copy, Attribute)]
pub(crate) struct Solve {
    adjoint: bool,
}

impl Solve {
    fn rows(self, a: &Tensor, b: &Tensor) -> Result<Tensor> {
        let (own, rhs) = (a.stop_gradient(), b.stop_gradient());
        let own = if self.adjoint { turned(&own)? } else { own };
        let found = factors(&own)?;
        let y = lu_solve(&found.packed, &found.order, &rhs)?;
        ruled(self, &y, &[a, b])
    }
}

impl Rule for Solve {
    const KIND: &'static str = "SolveRule";
    const NAME: &'static str = "MatrixSolve";

    // db = A^-T dy; dA = -db y^T, or its transpose.
    fn grad(&self, back: &Backward) -> Result<Grads> {
        let y = back.y();
        let db = Solve { adjoint: !self.adjoint }.rows(back.x(1), back.dy)?;
        let da = match back.needs(1) {
            false => None,
            true => {
                let (left, right) = if self.adjoint { (y, &db) } else { (&db, y) };
                let all = left.matmul_with(right, MatmulOptions::new().transpose_b(true))?;
                Some(all.negative()?)
            }
        };
        of_arguments([da, back.needs(2).then_some(db)])
    }
}

/// The inverses of square matrices.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// let y = tf::linalg::inv(&tf::constant([[0.0, 2.0], [4.0, 0.0]])?)?;
/// assert_eq!(y.to_vec::<f32>()?, [0.0, 0.25, 0.5, 0.0]);
/// # Ok(())
/// # }
/// ```
///
/// For a singular matrix the result is infinity or NaN. To solve a system, [`solve`] is faster and more accurate.
///
/// # Errors
/// [`Error::Shape`](crate::Error::Shape) if the matrices are not square; [`Error::DType`](crate::Error::DType) if the
/// dtype is not float.
pub fn inv(x: &Tensor) -> Result<Tensor> {
    inv_with(x, InvOptions::new())
}

/// Like [`inv`], optionally of the transposed matrices.
///
/// # Errors
/// As [`inv`].
pub fn inv_with(x: &Tensor, options: InvOptions) -> Result<Tensor> {
    square("MatrixInverse", x)?;
    in_f32(x, |x| {
        let y = inverse(x)?;
        if options.adjoint { turned(&y) } else { Ok(y) }
    })
}

fn inverse(x: &Tensor) -> Result<Tensor> {
    let n = x.shape()[x.rank() - 1];
    let own = x.stop_gradient();
    let found = factors(&own)?;
    let ones = identity(&own, [n, n])?.broadcast_to(batched(&own, &[n, n]))?;
    ruled(Inverse, &lu_solve(&found.packed, &found.order, &ones)?, &[x])
}

#[derive(Debug, Attribute)]
pub(crate) struct Inverse;

impl Rule for Inverse {
    const KIND: &'static str = "InverseRule";
    const NAME: &'static str = "MatrixInverse";

    // dx = -y^T dy y^T.
    fn grad(&self, back: &Backward) -> Result<Grads> {
        let y = back.y();
        let left = y.matmul_with(back.dy, MatmulOptions::new().transpose_a(true))?;
        let both = left.matmul_with(y, MatmulOptions::new().transpose_b(true))?;
        of_arguments([Some(both.negative()?)])
    }
}

/// The determinants of square matrices: `[.., N, N]` to `[..]`; 1 for an empty matrix.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// let x = tf::constant([[1.0, 2.0], [3.0, 4.0]])?;
/// assert!((tf::linalg::det(&x)?.item::<f32>()? + 2.0).abs() < 1e-5);
/// # Ok(())
/// # }
/// ```
///
/// If the product of the pivots exceeds the range of `f32`, use [`slogdet`]. The gradient uses the inverse, as in TensorFlow,
/// so it is NaN or infinite at a singular matrix.
///
/// # Errors
/// As [`inv`].
pub fn det(x: &Tensor) -> Result<Tensor> {
    square("MatrixDeterminant", x)?;
    in_f32(x, |x| {
        let found = factors(&x.stop_gradient())?;
        let y = diag_part(&found.packed)?.reduce_prod(-1)?.multiply(sign_of(&found.order)?)?;
        ruled(Determinant, &y, &[x])
    })
}

#[derive(Debug, Attribute)]
pub(crate) struct Determinant;

impl Rule for Determinant {
    const KIND: &'static str = "DeterminantRule";
    const NAME: &'static str = "MatrixDeterminant";

    // dx = dy y x^-T.
    fn grad(&self, back: &Backward) -> Result<Grads> {
        scaled_inverse(back.x(1), &back.dy.multiply(back.y())?)
    }
}

/// `factor x^-T`, with a factor for each matrix.
fn scaled_inverse(x: &Tensor, factor: &Tensor) -> Result<Grads> {
    let shape = [lead(x), &[1, 1]].concat();
    let inverse = turned(&inverse(x)?)?;
    of_arguments([Some(inverse.multiply(factor.reshape_to(shape.into())?)?)])
}

/// The signs of the determinants, and the logarithms of their absolute values: `(sign, log_abs_det)`. For a singular matrix the
/// sign is 0 and the logarithm -infinity. The sign has no gradient.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// let x = tf::constant([[0.0, 2.0], [1.0, 0.0]])?;
/// let (sign, log) = tf::linalg::slogdet(&x)?;
/// assert_eq!(sign.item::<f32>()?, -1.0);
/// assert!((log.item::<f32>()? - 2f32.ln()).abs() < 1e-6);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// As [`inv`].
pub fn slogdet(x: &Tensor) -> Result<(Tensor, Tensor)> {
    square("LogMatrixDeterminant", x)?;
    let wide = x.cast(DType::F32)?;
    let found = factors(&wide.stop_gradient())?;
    let pivots = diag_part(&found.packed)?;
    let sign = pivots.sign()?.reduce_prod(-1)?.multiply(sign_of(&found.order)?)?;
    let log = ruled(LogDeterminant, &pivots.abs()?.log()?.reduce_sum(-1)?, &[&wide])?;
    Ok((sign.cast(x.dtype())?, log.cast(x.dtype())?))
}

#[derive(Debug, Attribute)]
pub(crate) struct LogDeterminant;

impl Rule for LogDeterminant {
    const KIND: &'static str = "LogDeterminantRule";
    const NAME: &'static str = "LogMatrixDeterminant";

    // dx = dy x^-T.
    fn grad(&self, back: &Backward) -> Result<Grads> {
        scaled_inverse(back.x(1), back.dy)
    }
}

fn call_slogdet(c: &Args) -> Answer {
    let (sign, log) = slogdet(c.arg("input")?)?;
    Ok(vec![sign, log])
}

/// The inventory of this file.
pub(in super::super) const ENTRIES: &[Entry] = &[
    Entry::new(OpKind::Composed, "solve", &["tf.linalg.solve"], |c| {
        let options = SolveOptions::new().adjoint(c.flag("adjoint")?);
        one(solve_with(c.arg("matrix")?, c.arg("rhs")?, options))
    })
    .forms(&["solve_with"])
    .cases(|cases| {
        cases
            .add("solve", &[(&[2, 3, 3], ANY), (&[2, 3, 2], ANY)], |x| solve(&firm(&x[0])?, &x[1]));
        cases.add("solve_with", &[(&[3, 3], ANY), (&[2, 3, 1], ANY)], |x| {
            solve_with(&firm(&x[0])?, &x[1], SolveOptions::new().adjoint(true))
        });
    }),
    Entry::new(OpKind::Composed, "inv", &["tf.linalg.inv"], |c| {
        one(inv_with(c.arg("input")?, InvOptions::new().adjoint(c.flag("adjoint")?)))
    })
    .forms(&["inv_with"])
    .cases(|cases| {
        cases.of_shape("inv", &[2, 3, 3], |x| inv(&firm(x)?));
        cases.of_shape("inv_with", &[3, 3], |x| {
            inv_with(&firm(x)?, InvOptions::new().adjoint(true))
        });
    }),
    Entry::new(OpKind::Composed, "det", &["tf.linalg.det"], |c| one(det(c.arg("input")?))).cases(
        |cases| cases.of_shape("det", &[2, 3, 3], |x| det(&x.add(firm(x)?)?.multiply(0.2)?)),
    ),
    Entry::new(OpKind::Composed, "slogdet", &["tf.linalg.slogdet"], call_slogdet)
        .cases(|cases| cases.of_shape("slogdet", &[2, 3, 3], |x| Ok(slogdet(&firm(x)?)?.1))),
];
