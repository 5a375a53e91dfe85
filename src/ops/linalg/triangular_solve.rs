//! `y = A^-1 B` for a triangular `A`: substitution in blocks, with matrix products between them.

use super::super::inventory::{ANY, Entry, OpKind, one};
use super::super::{Backward, Grads, Keep, MatmulOptions, Operation, refuse};
use super::band_part::band_part;
use super::blocks::{above, batch, block, fits, in_f32, same_batch, square};
use super::rule::{Rule, of_arguments, ruled};
use crate::dtype::DType;
use crate::eager::dispatch;
use crate::error::Result;
use crate::graph::attributes::Attribute;
use crate::graph::lower::{Bind, Kernel, Lowering, LoweringContext};
use crate::graph::{Op, Spec};
use crate::shape::{Shape, broadcast};
use crate::support::options::options;
use crate::tensor::Tensor;
use crate::wgsl::shader;

options! {
    /// Which triangle of the matrix to solve with.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub struct TriangularSolveOptions {
        /// Whether to use the lower triangle; `true` by default. The other triangle is not read.
        lower: bool = true,
        /// Whether to transpose the triangle first; `false` by default.
        adjoint: bool = false,
    }
}

/// Solves `A y = rhs` with the lower triangle of each matrix, `[.., N, N]` and `[.., N, K]`; leading axes broadcast.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// let a = tf::constant([[2.0, 0.0], [1.0, 4.0]])?;
/// let y = tf::linalg::triangular_solve(&a, &tf::constant([[2.0], [9.0]])?)?;
/// assert_eq!(y.to_vec::<f32>()?, [1.0, 2.0]);
/// # Ok(())
/// # }
/// ```
///
/// With a zero on the diagonal the result is infinity or NaN. The error is that of substitution, about `N` times 6e-8
/// times the condition number of the triangle.
///
/// # Errors
/// [`Error::Shape`](crate::Error::Shape) if the matrices are not square or `rhs` has a different number of rows;
/// [`Error::DType`](crate::Error::DType) if the dtypes differ or are not float.
pub fn triangular_solve(matrix: &Tensor, rhs: &Tensor) -> Result<Tensor> {
    triangular_solve_with(matrix, rhs, TriangularSolveOptions::new())
}

/// Like [`triangular_solve`], with the upper triangle or a transposed one.
///
/// # Errors
/// As [`triangular_solve`].
pub fn triangular_solve_with(
    matrix: &Tensor,
    rhs: &Tensor,
    options: TriangularSolveOptions,
) -> Result<Tensor> {
    let n = square("MatrixTriangularSolve", matrix)?;
    fits("MatrixTriangularSolve", matrix, n, rhs)?;
    let TriangularSolveOptions { lower, adjoint } = options;
    let solve = Triangle { lower, adjoint, unit: false };
    in_f32(matrix, |matrix| solve.rows(matrix, &rhs.cast(DType::F32)?))
}

/// Which triangle is used, and how.
#[derive(Debug, Clone, Copy, Attribute)]
#[op("TriangularSolve")]
pub(crate) struct Triangle {
    pub(super) lower: bool,
    pub(super) adjoint: bool,
    /// The diagonal counts as ones.
    pub(super) unit: bool,
}

/// A kernel solves blocks of this many rows; the number of steps of a thread is half the square of it.
const BLOCK: usize = 64;

impl Triangle {
    /// Solves with compatible matrices and right-hand sides of `f32`.
    pub(super) fn rows(self, a: &Tensor, b: &Tensor) -> Result<Tensor> {
        let y = self.solved(&a.stop_gradient(), &b.stop_gradient())?;
        ruled(self, &y, &[a, b])
    }

    /// As [`Triangle::rows`], without a gradient.
    pub(super) fn solved(self, a: &Tensor, b: &Tensor) -> Result<Tensor> {
        let one = |x: &Tensor| batch(&x.spec().shape) == 1;
        if a.shape()[..a.rank() - 2] == b.shape()[..b.rank() - 2] || one(a) || one(b) {
            return self.blocks(a, b);
        }
        let (a, b) = same_batch("MatrixTriangularSolve", a, b)?;
        self.blocks(&a, &b)
    }

    fn blocks(self, a: &Tensor, b: &Tensor) -> Result<Tensor> {
        let n = a.shape()[a.rank() - 1];
        if n <= BLOCK {
            return dispatch(self, &[a, b]);
        }
        let columns = b.shape()[b.rank() - 1];
        let half = (n / 2).next_multiple_of(BLOCK);
        let first = self.lower != self.adjoint;
        let (near, far) = if first { (0..half, half..n) } else { (half..n, 0..half) };
        let part = |rows: &std::ops::Range<usize>| block(b, rows.clone(), 0..columns);
        let diagonal = |rows: &std::ops::Range<usize>| block(a, rows.clone(), rows.clone());
        let solved = self.blocks(&diagonal(&near)?, &part(&near)?)?;
        let between = match self.adjoint {
            false => block(a, far.clone(), near)?,
            true => block(a, near, far.clone())?,
        };
        let known = between.matmul_with(&solved, MatmulOptions::new().transpose_a(self.adjoint))?;
        let rest = self.blocks(&diagonal(&far)?, &part(&far)?.subtract(known)?)?;
        if first { above(&solved, &rest) } else { above(&rest, &solved) }
    }
}

impl Op for Triangle {
    fn name(&self) -> &'static str {
        "MatrixTriangularSolve"
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Spec> {
        let (a, b) = (&inputs[0].shape, &inputs[1].shape);
        let own = |x: &Shape| Shape::new(&x[..x.len() - 2]);
        let mut shape = broadcast("MatrixTriangularSolve (leading axes)", &own(a), &own(b))?;
        shape.push(b[b.len() - 2]);
        shape.push(b[b.len() - 1]);
        Ok(Spec::new(shape, DType::F32))
    }

    fn lower(&self, cx: &LoweringContext) -> Lowering {
        let (a, b) = (cx.inputs[0], cx.inputs[1]);
        let (n, columns) = (b.shape[b.shape.len() - 2], b.shape[b.shape.len() - 1]);
        let count = cx.output.elements() / (n * columns);
        let step = |x: &Spec, size: usize| if batch(&x.shape) == 1 { 0 } else { size };
        let total = count * columns;
        let at = if self.adjoint { "j * p.n + i" } else { "i * p.n + j" };
        Kernel::new(
            "triangular_solve",
            shader!(include_str!("../../../shaders/triangular_solve.wgsl")),
        )
        .constant("WG", 64)
        .declare(format!("const BACKWARD = {};", self.lower == self.adjoint))
        .declare(format!("const UNIT = {};", self.unit))
        .declare(format!("fn at(i: u32, j: u32) -> u32 {{ return {at}; }}"))
        .read(Bind::Input(0))
        .read(Bind::Input(1))
        .write(Bind::Output)
        .param("n", n)
        .param("columns", columns)
        .param("a_batch", step(a, n * n))
        .param("b_batch", step(b, n * columns))
        .param("total", total)
        .flops(n * n * total)
        .workgroups(total.div_ceil(64), n * (n + 1) / 2)
        .into()
    }
}

/// Never recorded: its callers pass no gradient through it.
impl Operation for Triangle {
    fn keep(&self) -> Keep {
        Keep::Nothing
    }

    fn grad(&self, _: &Backward) -> Result<Grads> {
        refuse(
            "MatrixTriangularSolve",
            "it is a block of a larger solution",
            "differentiate the whole",
        )
    }
}

impl Rule for Triangle {
    const KIND: &'static str = "TriangularSolveRule";
    const NAME: &'static str = "MatrixTriangularSolve";

    // db = A^-T dy; dA = -db y^T in the triangle, or its transpose.
    fn grad(&self, back: &Backward) -> Result<Grads> {
        let (a, y) = (back.x(1), back.y());
        let db = Triangle { adjoint: !self.adjoint, ..*self }.rows(a, back.dy)?;
        let da = match back.needs(1) {
            false => None,
            true => {
                let (left, right) = if self.adjoint { (y, &db) } else { (&db, y) };
                let all = left.matmul_with(right, MatmulOptions::new().transpose_b(true))?;
                let within =
                    if self.lower { band_part(&all, -1, 0)? } else { band_part(&all, 0, -1)? };
                let within =
                    if self.unit { within.subtract(band_part(&within, 0, 0)?)? } else { within };
                Some(within.negative()?)
            }
        };
        of_arguments([da, back.needs(2).then_some(db)])
    }
}

/// The inventory of this file.
pub(in super::super) const ENTRIES: &[Entry] =
    &[Entry::new(OpKind::Kernel, "triangular_solve", &["tf.linalg.triangular_solve"], |c| {
        let options = TriangularSolveOptions::new()
            .lower(c.attribute("lower", |v| Some(*v == true.into()))?.unwrap_or(true))
            .adjoint(c.flag("adjoint")?);
        one(triangular_solve_with(c.arg("matrix")?, c.arg("rhs")?, options))
    })
    .forms(&["triangular_solve_with"])
    .cases(|cases| {
        // Diagonals far from 0.
        fn firm(x: &Tensor) -> Result<Tensor> {
            x.add(super::blocks::identity(x, [3, 3])?.multiply(4.0)?)
        }
        cases.add("triangular_solve", &[(&[2, 3, 3], ANY), (&[2, 3, 2], ANY)], |x| {
            triangular_solve(&firm(&x[0])?, &x[1])
        });
        for (lower, adjoint) in [(true, true), (false, false), (false, true)] {
            let options = TriangularSolveOptions::new().lower(lower).adjoint(adjoint);
            let name = format!("triangular_solve_with {lower} {adjoint}");
            cases.add(name, &[(&[3, 3], ANY), (&[2, 3, 2], ANY)], move |x| {
                triangular_solve_with(&firm(&x[0])?, &x[1], options)
            });
        }
    })
    .kernels(&[|make, dtype| {
        let mut made = Vec::new();
        for (lower, adjoint) in [(true, false), (true, true), (false, false), (false, true)] {
            let options = TriangularSolveOptions::new().lower(lower).adjoint(adjoint);
            for n in [5, 70] {
                let (a, b) = (make(&[2, n, n], dtype), make(&[2, n, 3], dtype));
                made.push(triangular_solve_with(&a, &b, options)?);
            }
        }
        Ok(made)
    }])];
