//! The QR factorization, `x = Q R`, by Householder reflections in panels that are combined by matrix products.

use super::super::inventory::{Answer, Args, Entry, OpKind};
use super::super::{Backward, Grads, Keep, MatmulOptions, Operation, refuse};
use super::band_part::{band_part, tril, triu};
use super::blocks::{above, batch, block, float_matrix, identity, side_by_side, turned};
use super::rule::{Factorization, Rule, completing, of_arguments, ruled};
use super::triangular_solve::Triangle;
use crate::device::Caps;
use crate::dtype::DType;
use crate::eager::dispatch;
use crate::error::Result;
use crate::graph::attributes::Attribute;
use crate::graph::lower::{Bind, Kernel, Lowering, LoweringContext};
use crate::graph::{Op, Spec};
use crate::shape::Shape;
use crate::support::options::options;
use crate::tensor::Tensor;
use crate::wgsl::shader;

options! {
    /// How much of `Q` to compute.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub struct QrOptions {
        /// Whether `Q` is square: `[.., M, M]`, and `R` `[.., M, N]`. By default (`false`) they are `[.., M, P]` and
        /// `[.., P, N]`, with `P` the smaller of `M` and `N`.
        full_matrices: bool = false,
    }
}

/// The factors `(q, r)` of matrices `[.., M, N]`: `x = q r`, with orthonormal columns of `q` and upper triangular `r`.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// let (q, r) = tf::linalg::qr(&tf::constant([[3.0, 1.0], [4.0, 1.0]])?)?;
/// assert!((r.to_vec::<f32>()?[0] + 5.0).abs() < 1e-6);
/// assert!((q.to_vec::<f32>()?[0] + 0.6).abs() < 1e-6);
/// # Ok(())
/// # }
/// ```
///
/// The signs are the same as in LAPACK, TensorFlow and NumPy: the diagonal of `r` is negative where the reflected element was
/// positive. `q r` differs from `x`, and `q^T q` from the identity matrix, by about `N` times 6e-8, whatever the condition
/// number.
///
/// # Errors
/// [`Error::Shape`](crate::Error::Shape) if the tensor has fewer than two axes; [`Error::DType`](crate::Error::DType)
/// if the dtype is not float.
pub fn qr(x: &Tensor) -> Result<(Tensor, Tensor)> {
    qr_with(x, QrOptions::new())
}

/// Like [`qr`], optionally with a square `q`. If it has more than one column in addition to those of [`qr`], these are not
/// unique, and the backward pass through `q` returns an error.
///
/// # Errors
/// As [`qr`].
pub fn qr_with(x: &Tensor, options: QrOptions) -> Result<(Tensor, Tensor)> {
    let [rows, columns] = float_matrix("Qr", x)?;
    let wide = x.cast(DType::F32)?;
    let own = wide.stop_gradient();
    let shared = rows.min(columns);
    let full = options.full_matrices && rows > columns;
    let kept = if full { rows } else { shared };
    // The factors of the first columns; the columns to the right are multiplied by Q^T.
    let Reflections { packed, t } = reflections(&block(&own, 0..rows, 0..shared)?)?;
    let v = unit_lower(&packed)?;
    let through = v.matmul(&match full {
        true => t.matmul_with(&v, MatmulOptions::new().transpose_b(true))?,
        false => {
            let top = block(&v, 0..shared, 0..shared)?;
            t.matmul_with(top, MatmulOptions::new().transpose_b(true))?
        }
    })?;
    let q = identity(&own, [rows, kept])?.subtract(through)?;
    let mut r = triu(&block(&packed, 0..shared, 0..shared)?, 0)?;
    if columns > rows {
        let rest = block(&own, 0..rows, rows..columns)?;
        r = side_by_side(&r, &q.matmul_with(rest, MatmulOptions::new().transpose_a(true))?)?;
    }
    // As one tensor, both share one gradient rule.
    let both = above(&block(&q, 0..rows, 0..shared)?, &turned(&r)?)?;
    let (mut own_q, mut r) =
        split(&ruled(Qr { rows, columns }, &both, &[&wide])?, rows, columns, shared)?;
    if full {
        let rest = completing(Factorization::Qr, &block(&q, 0..rows, columns..rows)?, &own_q)?;
        own_q = side_by_side(&own_q, &rest)?;
        r = above(&r, &block(&own.zeros_like()?, 0..rows - columns, 0..columns)?)?;
    }
    Ok((own_q.cast(x.dtype())?, r.cast(x.dtype())?))
}

/// Splits the tensor that contains `q` above the transposed `r`.
fn split(both: &Tensor, rows: usize, columns: usize, kept: usize) -> Result<(Tensor, Tensor)> {
    let q = block(both, 0..rows, 0..kept)?;
    Ok((q, turned(&block(both, rows..rows + columns, 0..kept)?)?))
}

/// The product of Householder reflections, `I - V T V^T`, and the matrix after the reflections.
struct Reflections {
    /// `R` on and above the diagonal, `V` below.
    packed: Tensor,
    t: Tensor,
}

fn unit_lower(packed: &Tensor) -> Result<Tensor> {
    let sizes = [packed.shape()[packed.rank() - 2], packed.shape()[packed.rank() - 1]];
    tril(packed, -1)?.add(identity(packed, sizes)?)
}

/// Factors matrices with at least as many rows as columns.
fn reflections(x: &Tensor) -> Result<Reflections> {
    let (rows, columns) = (x.shape()[x.rank() - 2], x.shape()[x.rank() - 1]);
    let panel = panel_width(rows, x.device().caps());
    if columns <= panel {
        let both = dispatch(QrPanel, &[x])?;
        return Ok(Reflections {
            packed: block(&both, 0..rows, 0..columns)?,
            t: block(&both, rows..rows + columns, 0..columns)?,
        });
    }
    let half = (columns / 2).next_multiple_of(panel);
    let (transposed, plain) = (MatmulOptions::new().transpose_a(true), MatmulOptions::new());
    let left = reflections(&block(x, 0..rows, 0..half)?)?;
    let v = unit_lower(&left.packed)?;
    let right = block(x, 0..rows, half..columns)?;
    let common = left.t.matmul_with(v.matmul_with(&right, transposed)?, transposed)?;
    let right = right.subtract(v.matmul_with(common, plain)?)?;
    let low = reflections(&block(&right, half..rows, 0..columns - half)?)?;
    let top = block(&right, 0..half, 0..columns - half)?;
    let packed = side_by_side(&left.packed, &above(&top, &low.packed)?)?;
    // (I - V1 T1 V1^T) (I - V2 T2 V2^T) = I - V T V^T, with -T1 (V1^T V2) T2 in the corner of T.
    let below = block(&v, half..rows, 0..half)?;
    let between = below.matmul_with(unit_lower(&low.packed)?, transposed)?;
    let corner = left.t.matmul(between.matmul(&low.t)?)?.negative()?;
    let zero = turned(&corner.zeros_like()?)?;
    let t = above(&side_by_side(&left.t, &corner)?, &side_by_side(&zero, &low.t)?)?;
    Ok(Reflections { packed, t })
}

const THREADS: usize = 256;

/// The widest panel whose kernel stays within the loop limit: 32 columns for up to some thousand rows.
fn panel_width(rows: usize, caps: &Caps) -> usize {
    let fits = |width: &usize| panel_loops(rows, *width) <= caps.loop_piece();
    [32, 16, 8, 4, 2].into_iter().find(fits).unwrap_or(1)
}

fn panel_threads(rows: usize) -> usize {
    if rows <= 64 { 64 } else { THREADS }
}

/// How many iterations a thread of the panel's kernel makes at most.
fn panel_loops(rows: usize, columns: usize) -> usize {
    let threads = panel_threads(rows);
    let lanes = threads / columns.next_power_of_two();
    let column = 2 * rows.div_ceil(threads) + 2 * rows.div_ceil(lanes) + lanes + columns + 12;
    (rows * columns).div_ceil(threads) + columns * columns / threads + 4 + columns * (column + 1)
}

#[derive(Debug, Attribute)]
#[op("QrPanel")]
pub(crate) struct QrPanel;

impl Op for QrPanel {
    fn name(&self) -> &'static str {
        "Qr"
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Spec> {
        let x = &inputs[0].shape;
        let (rows, columns) = (x[x.len() - 2], x[x.len() - 1]);
        let mut shape = Shape::new(&x[..x.len() - 2]);
        shape.push(rows + columns);
        shape.push(columns);
        Ok(Spec::new(shape, DType::F32))
    }

    fn lower(&self, cx: &LoweringContext) -> Lowering {
        let shape = &cx.inputs[0].shape;
        let (rows, columns) = (shape[shape.len() - 2], shape[shape.len() - 1]);
        let count = batch(shape);
        Kernel::new("qr_panel", shader!(include_str!("../../../shaders/qr_panel.wgsl")))
            .constant("WG", panel_threads(rows) as u32)
            .constant("WIDE", columns.next_power_of_two() as u32)
            .read(Bind::Input(0))
            .write(Bind::Output)
            .param("m", rows)
            .param("n", columns)
            .param("count", count)
            .flops(2 * count * rows * columns * columns)
            .workgroups(count, panel_loops(rows, columns))
            .into()
    }
}

/// Never recorded: its callers pass no gradient through it.
impl Operation for QrPanel {
    fn keep(&self) -> Keep {
        Keep::Nothing
    }

    fn grad(&self, _: &Backward) -> Result<Grads> {
        refuse("Qr", "it is a panel of larger factors", "differentiate the whole")
    }
}

/// The result is `q` above `r^T`.
#[derive(Debug, Attribute)]
pub(crate) struct Qr {
    rows: usize,
    columns: usize,
}

impl Rule for Qr {
    const KIND: &'static str = "QrRule";
    const NAME: &'static str = "Qr";

    // With y the columns of x right of the square part, r = [u, v]: dy = q dv, and y dv^T is added to dq.
    fn grad(&self, back: &Backward) -> Result<Grads> {
        let Qr { rows, columns } = *self;
        let kept = rows.min(columns);
        let (q, r) = split(back.y(), rows, columns, kept)?;
        let (dq, dr) = split(back.dy, rows, columns, kept)?;
        if columns <= rows {
            return of_arguments([Some(deep(&q, &r, &dq, &dr)?)]);
        }
        let y = block(back.x(1), 0..rows, rows..columns)?;
        let dv = block(&dr, 0..rows, rows..columns)?;
        let dq = dq.add(y.matmul_with(&dv, MatmulOptions::new().transpose_b(true))?)?;
        let square = |x: &Tensor| block(x, 0..rows, 0..rows);
        let dx = deep(&q, &square(&r)?, &dq, &square(&dr)?)?;
        of_arguments([Some(side_by_side(&dx, &q.matmul(&dv)?)?)])
    }
}

/// The gradient for at least as many rows as columns (Walter and Lehmann 2012; Roberts and Roberts 2020):
/// `dx = q (dr + tril(S) r^-T) + (dq - q q^T dq) r^-T`, with `S = r dr^T - dr r^T + q^T dq - dq^T q`.
fn deep(q: &Tensor, r: &Tensor, dq: &Tensor, dr: &Tensor) -> Result<Tensor> {
    let transposed = MatmulOptions::new().transpose_a(true);
    let common = q.matmul_with(dq, transposed)?;
    let turning = r.matmul_with(dr, MatmulOptions::new().transpose_b(true))?;
    let skew = |x: &Tensor| x.subtract(turned(x)?);
    let lower = band_part(&skew(&common)?.add(skew(&turning)?)?, -1, 0)?;
    // x r^-T is the transpose of r^-1 x^T.
    let upper = Triangle { lower: false, adjoint: false, unit: false };
    let through = |x: &Tensor| turned(&upper.rows(r, &turned(x)?)?);
    let within = q.matmul(dr.add(through(&lower)?)?)?;
    within.add(through(&dq.subtract(q.matmul(&common)?)?)?)
}

fn call(c: &Args) -> Answer {
    let options = QrOptions::new().full_matrices(c.flag("full_matrices")?);
    let (q, r) = qr_with(c.arg("input")?, options)?;
    Ok(vec![q, r])
}

/// The inventory of this file.
pub(in super::super) const ENTRIES: &[Entry] =
    &[Entry::new(OpKind::Kernel, "qr", &["tf.linalg.qr"], call)
        .forms(&["qr_with"])
        .cases(|cases| {
            // Columns that are far from parallel.
            fn apart(x: &Tensor) -> Result<Tensor> {
                let sizes = [x.shape()[x.rank() - 2], x.shape()[x.rank() - 1]];
                x.add(identity(x, sizes)?.multiply(3.0)?)
            }
            fn both((q, r): (Tensor, Tensor)) -> Result<Tensor> {
                above(&q, &turned(&r)?)
            }
            cases.of_shape("qr tall", &[2, 4, 3], |x| both(qr(&apart(x)?)?));
            cases.of_shape("qr square", &[3, 3], |x| both(qr(&apart(x)?)?));
            cases.of_shape("qr wide", &[2, 4], |x| both(qr(&apart(x)?)?));
            cases.of_shape("qr_with wide", &[2, 4], |x| {
                both(qr_with(&apart(x)?, QrOptions::new().full_matrices(true))?)
            });
            cases.of_shape("qr_with one column more", &[2, 4, 3], |x| {
                let (q, r) = qr_with(&apart(x)?, QrOptions::new().full_matrices(true))?;
                above(&q, &side_by_side(&r, &r.zeros_like()?)?.slice(&[0, 0, 0], &[-1, -1, 4])?)
            });
        })
        .kernels(&[|make, dtype| {
            let full = QrOptions::new().full_matrices(true);
            Ok(vec![
                qr(&make(&[3, 3], dtype))?.0,
                qr(&make(&[2, 70, 40], dtype))?.1,
                qr_with(&make(&[40, 7], dtype), full)?.0,
                qr_with(&make(&[7, 40], dtype), full)?.1,
            ])
        }])];
