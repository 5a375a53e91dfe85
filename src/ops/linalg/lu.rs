//! The LU factorization with row exchanges, `x[permutation] = L U`, and solvers that use it.

use super::super::inventory::{ANY, Answer, Cases, Entry, OpKind, one};
use super::super::{Backward, Grads, Keep, MatmulOptions, Operation, refuse};
use super::band_part::{tril, triu};
use super::blocks::{
    above, batch, block, fits, identity, rows_at, side_by_side, square, steps, turned,
};
use super::rule::{Rule, of_arguments, ruled};
use super::triangular_solve::Triangle;
use crate::device::Caps;
use crate::dtype::DType;
use crate::eager::dispatch;
use crate::error::{Error, Result, message};
use crate::graph::attributes::Attribute;
use crate::graph::lower::{Bind, Kernel, Lowering, LoweringContext};
use crate::graph::{Op, Spec};
use crate::shape::Shape;
use crate::tensor::Tensor;
use crate::wgsl::shader;

/// The LU factors of square matrices with row pivoting: `(lu, p)`, where row `i` of `L U` is row `p[i]` of the matrix.
///
/// `lu` contains `U` on and above the diagonal, and `L` below it, whose diagonal is all ones; `p` is `i32`, `[.., N]`, and has
/// no gradient.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// let x = tf::constant([[1.0, 3.0], [2.0, 4.0]])?;
/// let (lu, p) = tf::linalg::lu(&x)?;
/// assert_eq!(lu.to_vec::<f32>()?, [2.0, 4.0, 0.5, 1.0]);
/// assert_eq!(p.to_vec::<i32>()?, [1, 0]);
/// # Ok(())
/// # }
/// ```
///
/// A singular matrix is not an error: `U` has a zero on its diagonal.
///
/// # Errors
/// [`Error::Shape`] if the matrices are not square; [`Error::DType`] if the dtype is not float.
pub fn lu(x: &Tensor) -> Result<(Tensor, Tensor)> {
    square("Lu", x)?;
    let wide = x.cast(DType::F32)?;
    let Factors { packed, order } = factors(&wide.stop_gradient())?;
    let packed = ruled(Lu, &packed, &[&order, &wide])?;
    Ok((packed.cast(x.dtype())?, order))
}

/// Solves `A y = rhs`, where `lower_upper` and `perm` are the [`lu`] factors of `A`.
///
/// # Errors
/// [`Error::Shape`] if the shapes are incompatible; [`Error::DType`] if the dtypes differ or `perm` is not `i32`.
pub fn lu_solve(lower_upper: &Tensor, perm: &Tensor, rhs: &Tensor) -> Result<Tensor> {
    let n = square("LuSolve", lower_upper)?;
    fits("LuSolve", lower_upper, n, rhs)?;
    if perm.shape() != &lower_upper.shape()[..lower_upper.rank() - 1] {
        return Err(Error::Shape(message!(
            "LuSolve: lower_upper is {:?} and perm {:?}; perm has one axis less.",
            lower_upper.shape(),
            perm.shape()
        )));
    }
    let wide = |x: &Tensor| x.cast(DType::F32);
    let (lower_upper, b) = (wide(lower_upper)?, wide(rhs)?);
    // Every batch of the result has its own order of rows.
    let (b, _) = super::blocks::same_batch("LuSolve", &b, &lower_upper)?;
    let order = perm.broadcast_to(&b.shape()[..b.rank() - 1])?;
    let y = LOWER.rows(&lower_upper, &rows_at(&b, &order)?)?;
    UPPER.rows(&lower_upper, &y)?.cast(rhs.dtype())
}

const LOWER: Triangle = Triangle { lower: true, adjoint: false, unit: true };
const UPPER: Triangle = Triangle { lower: false, adjoint: false, unit: false };

/// The factors of tall matrices of `f32`: `packed` `[.., M, N]`, `order` `[.., M]`.
pub(super) struct Factors {
    pub(super) packed: Tensor,
    pub(super) order: Tensor,
}

/// Factors matrices with at least as many rows as columns. No gradient passes through it.
pub(super) fn factors(x: &Tensor) -> Result<Factors> {
    let (rows, columns) = (x.shape()[x.rank() - 2], x.shape()[x.rank() - 1]);
    let panel = panel_width(rows, x.device().caps());
    if columns <= panel {
        let both = dispatch(LuPanel, &[x])?;
        let order = block(&both, 0..rows, columns..columns + 1)?.cast(DType::I32)?;
        return Ok(Factors {
            packed: block(&both, 0..rows, 0..columns)?,
            order: order.squeeze(-1)?,
        });
    }
    // The left half first; then the right half, with its rows in the same order, minus the contribution of the left
    // half.
    let half = (columns / 2).next_multiple_of(panel);
    let left = factors(&block(x, 0..rows, 0..half)?)?;
    let right = rows_at(&block(x, 0..rows, half..columns)?, &left.order)?;
    let corner = block(&left.packed, 0..half, 0..half)?;
    let top = LOWER.solved(&corner, &block(&right, 0..half, 0..columns - half)?)?;
    let below = block(&left.packed, half..rows, 0..half)?;
    let rest = block(&right, half..rows, 0..columns - half)?.subtract(below.matmul(&top)?)?;
    let rest = factors(&rest)?;
    let below = rows_at(&below, &rest.order)?;
    let packed = side_by_side(&above(&corner, &below)?, &above(&top, &rest.packed)?)?;
    let tail = |from: usize, to: usize| -> Result<Tensor> {
        let order = left.order.expand_dims(-1)?;
        block(&order, from..to, 0..1)
    };
    let later = rows_at(&tail(half, rows)?, &rest.order)?;
    let order = above(&tail(0, half)?, &later)?.squeeze(-1)?;
    Ok(Factors { packed, order })
}

/// The determinant of the permutation, 1 or -1, for each matrix: -1 to the number of pairs that are out of order.
pub(super) fn sign_of(order: &Tensor) -> Result<Tensor> {
    let before = order.expand_dims(-1)?.greater(order.expand_dims(-2)?)?;
    let out_of_order = triu(&before.cast(DType::F32)?, 1)?;
    out_of_order.multiply(-2.0)?.add(1.0)?.reduce_prod([-2, -1])
}

/// The widest panel whose kernel stays within the loop limit: 64 columns for up to some thousand rows.
fn panel_width(rows: usize, caps: &Caps) -> usize {
    let fits = |width: &usize| panel_loops(rows, *width) <= caps.loop_piece();
    [64, 32, 16, 8, 4, 2].into_iter().find(fits).unwrap_or(1)
}

fn panel_threads(rows: usize) -> usize {
    if rows <= 64 { 64 } else { 256 }
}

/// How many iterations a thread of the panel's kernel makes at most.
fn panel_loops(rows: usize, columns: usize) -> usize {
    let own = rows.div_ceil(panel_threads(rows));
    own * (columns + 2) + columns * (own * (columns + 3) + 12 + (columns + 1).div_ceil(64))
}

#[derive(Debug, Attribute)]
#[op("LuPanel")]
pub(crate) struct LuPanel;

impl Op for LuPanel {
    fn name(&self) -> &'static str {
        "Lu"
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Spec> {
        let at = inputs[0].shape.len() - 1;
        let mut shape = Shape::new(&inputs[0].shape[..at]);
        shape.push(inputs[0].shape[at] + 1);
        Ok(Spec::new(shape, DType::F32))
    }

    fn lower(&self, cx: &LoweringContext) -> Lowering {
        let shape = &cx.inputs[0].shape;
        let (rows, columns) = (shape[shape.len() - 2], shape[shape.len() - 1]);
        let count = batch(shape);
        Kernel::new("lu_panel", shader!(include_str!("../../../shaders/lu_panel.wgsl")))
            .constant("WG", panel_threads(rows) as u32)
            .read(Bind::Input(0))
            .write(Bind::Output)
            .param("m", rows)
            .param("n", columns)
            .param("count", count)
            .flops(count * rows * columns * columns)
            .workgroups(count, panel_loops(rows, columns))
            .into()
    }
}

/// Never recorded: its callers pass no gradient through it.
impl Operation for LuPanel {
    fn keep(&self) -> Keep {
        Keep::Nothing
    }

    fn grad(&self, _: &Backward) -> Result<Grads> {
        refuse("Lu", "it is a panel of larger factors", "differentiate the whole")
    }
}

#[derive(Debug, Attribute)]
pub(crate) struct Lu;

impl Rule for Lu {
    const KIND: &'static str = "LuRule";
    const NAME: &'static str = "Lu";

    // x[p] = L U: dx[p] = L^-T (tril(L^T dL, -1) + triu(dU U^T)) U^-T.
    fn grad(&self, back: &Backward) -> Result<Grads> {
        let (packed, order, dy) = (back.y(), back.x(1), back.dy);
        let n = packed.shape()[packed.rank() - 1];
        let lower = tril(packed, -1)?.add(identity(packed, [n, n])?)?;
        let upper = triu(packed, 0)?;
        let below = lower.matmul_with(tril(dy, -1)?, MatmulOptions::new().transpose_a(true))?;
        let over = triu(dy, 0)?.matmul_with(&upper, MatmulOptions::new().transpose_b(true))?;
        let middle = tril(&below, -1)?.add(triu(&over, 0)?)?;
        let left = Triangle { adjoint: true, ..LOWER }.rows(packed, &middle)?;
        // M U^-T is the transpose of U^-1 M^T.
        let rows = turned(&UPPER.rows(packed, &turned(&left)?)?)?;
        of_arguments([None, Some(rows_at(&rows, &inverse_order(order)?)?)])
    }
}

/// The inverse permutation of `order`: element `j` is the index of `j` in `order`.
pub(super) fn inverse_order(order: &Tensor) -> Result<Tensor> {
    let n = order.shape()[order.rank() - 1];
    let places = steps(order, n)?;
    let hit = order.expand_dims(-1)?.equal(&places)?.cast(DType::I32)?;
    hit.multiply(places.expand_dims(-1)?)?.reduce_sum(-2)
}

fn call(c: &super::super::inventory::Args) -> Answer {
    let (packed, order) = lu(c.arg("input")?)?;
    Ok(vec![packed, order])
}

/// The matrix with 4 added to its diagonal.
pub(super) fn firm(x: &Tensor) -> Result<Tensor> {
    let n = x.shape()[x.rank() - 1];
    x.add(identity(x, [n, n])?.multiply(4.0)?)
}

fn cases(cases: &mut Cases) {
    cases.of_shape("lu", &[2, 3, 3], |x| {
        // Its rows are exchanged.
        let x = rows_at(&firm(x)?, &crate::tensor::constant([[2, 0, 1], [1, 2, 0]])?)?;
        Ok(lu(&x)?.0)
    });
}

/// The inventory of this file.
pub(in super::super) const ENTRIES: &[Entry] = &[
    Entry::new(OpKind::Kernel, "lu", &["tf.linalg.lu"], call).cases(cases).kernels(&[
        |make, dtype| {
            Ok(vec![
                lu(&make(&[3, 3], dtype))?.0,
                lu(&make(&[2, 70, 70], dtype))?.0,
                lu(&make(&[200, 200], dtype))?.1,
            ])
        },
    ]),
    Entry::new(OpKind::Composed, "lu_solve", &["tf.linalg.lu_solve"], |c| {
        one(lu_solve(c.arg("lower_upper")?, c.arg("perm")?, c.arg("rhs")?))
    })
    .cases(|cases| {
        cases.add("lu_solve", &[(&[2, 3, 3], ANY), (&[3, 2], ANY)], |x| {
            let (factors, order) = lu(&firm(&x[0])?)?;
            lu_solve(&factors, &order, &x[1])
        });
    }),
];
