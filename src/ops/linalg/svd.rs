//! Singular values and vectors, and the eigenvalues of symmetric matrices, by rotations of pairs of rows (one-sided Jacobi).

use super::super::inventory::{Answer, Args, Cases, Entry, OpKind, one};
use super::super::{Backward, Grads, Keep, MatmulOptions, Operation, refuse, where_};
use super::band_part::tril;
use super::blocks::{
    above, batch, batched, block, float_matrix, identity, in_f32, rows_at, side_by_side, square,
    turned,
};
use super::diagonals::{diag, diag_part, set_diag};
use super::lu::inverse_order;
use super::qr::{QrOptions, qr, qr_with};
use super::rule::{Factorization, Rule, completing, of_arguments, ruled};
use crate::dtype::DType;
use crate::eager::dispatch;
use crate::error::{Error, Result, message};
use crate::graph::attributes::Attribute;
use crate::graph::lower::{Bind, Kernel, Kernels, Lowering, LoweringContext};
use crate::graph::{Op, Spec};
use crate::shape::Axes;
use crate::support::options::options;
use crate::tensor::Tensor;
use crate::wgsl::shader;

options! {
    /// Which singular vectors to compute.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub struct SvdOptions {
        /// Whether `u` and `v` are square, with additional vectors beyond the number of singular values; `false` by default.
        full_matrices: bool = false,
    }
}

/// The singular values and vectors `(s, u, v)` of matrices `[.., M, N]`: `x = u diag(s) v^T`, with `s` `[.., P]` in descending
/// order, `u` `[.., M, P]`, `v` `[.., N, P]`, and `P` the smaller of `M` and `N`.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// let (s, u, v) = tf::linalg::svd(&tf::constant([[0.0, 2.0], [3.0, 0.0]])?)?;
/// let s = s.to_vec::<f32>()?;
/// assert!((s[0] - 3.0).abs() < 1e-6 && (s[1] - 2.0).abs() < 1e-6);
/// # let _ = (u, v);
/// # Ok(())
/// # }
/// ```
///
/// The signs of a pair of vectors are arbitrary. The kernel performs a fixed number of sweeps, after which the error is about
/// `P` times 1e-7 of the largest singular value. `P` may be at most 512; the kernel processes each matrix in one workgroup, so
/// large matrices are slow, and many small ones are fast. The gradient requires distinct singular values.
///
/// # Errors
/// [`Error::Shape`] if the tensor has fewer than two axes or `P` is above 512; [`Error::DType`] if the dtype is not float.
pub fn svd(x: &Tensor) -> Result<(Tensor, Tensor, Tensor)> {
    svd_with(x, SvdOptions::new())
}

/// Like [`svd`], optionally with square `u` and `v`. If one of them has more than one column in addition to those of [`svd`],
/// these are not unique, and the backward pass through the larger of the two returns an error.
///
/// # Errors
/// As [`svd`].
pub fn svd_with(x: &Tensor, options: SvdOptions) -> Result<(Tensor, Tensor, Tensor)> {
    let [rows, columns] = float_matrix("Svd", x)?;
    let kept = sized("Svd", x, rows.min(columns))?;
    let full = options.full_matrices && rows != columns;
    let wide = x.cast(DType::F32)?;
    let own = wide.stop_gradient();
    let (s, u, v) = match rows >= columns {
        true => tall(&own, full)?,
        false => {
            let (s, v, u) = tall(&turned(&own)?, full)?;
            (s, u, v)
        }
    };
    let (own_u, own_v) = (block(&u, 0..rows, 0..kept)?, block(&v, 0..columns, 0..kept)?);
    let all = above(&s.expand_dims(-2)?, &above(&own_u, &own_v)?)?;
    let all = ruled(Svd { rows, columns }, &all, &[&wide])?;
    let (s, mut own_u, mut own_v) = split(&all, rows, columns, kept)?;
    if full && rows > columns {
        own_u = side_by_side(
            &own_u,
            &completing(Factorization::Svd, &block(&u, 0..rows, kept..rows)?, &own_u)?,
        )?;
    } else if full {
        let rest = block(&v, 0..columns, kept..columns)?;
        own_v = side_by_side(&own_v, &completing(Factorization::Svd, &rest, &own_v)?)?;
    }
    let dtype = x.dtype();
    Ok((s.cast(dtype)?, own_u.cast(dtype)?, own_v.cast(dtype)?))
}

/// Only the singular values, in descending order.
///
/// # Errors
/// As [`svd`].
pub fn svdvals(x: &Tensor) -> Result<Tensor> {
    let [rows, columns] = float_matrix("Svd", x)?;
    sized("Svd", x, rows.min(columns))?;
    in_f32(x, |x| {
        let own = x.stop_gradient();
        let own = if rows >= columns { own } else { turned(&own)? };
        ruled(SingularValues, &tall(&own, false)?.0, &[x])
    })
}

/// The eigenvalues and eigenvectors `(e, v)` of symmetric matrices: `x = v diag(e) v^T`, with `e` in ascending order and the
/// eigenvectors in the columns of `v`. Only the lower triangle is read.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// let (e, _) = tf::linalg::eigh(&tf::constant([[0.0, 2.0], [2.0, 0.0]])?)?;
/// let e = e.to_vec::<f32>()?;
/// assert!((e[0] + 2.0).abs() < 1e-6 && (e[1] - 2.0).abs() < 1e-6);
/// # Ok(())
/// # }
/// ```
///
/// The signs of the vectors are arbitrary. The error is about `N` times 1e-7 of the magnitude of the largest eigenvalue; `N`
/// may be at most 512. The gradient requires distinct eigenvalues; it is with respect to the lower triangle.
///
/// # Errors
/// [`Error::Shape`] if the matrices are not square, or larger than 512; [`Error::DType`] if the dtype is not float.
pub fn eigh(x: &Tensor) -> Result<(Tensor, Tensor)> {
    let n = sized("SelfAdjointEigV2", x, square("SelfAdjointEigV2", x)?)?;
    let wide = x.cast(DType::F32)?;
    let (e, v) = symmetric(&wide.stop_gradient())?;
    let both = ruled(Eigh, &above(&e.expand_dims(-2)?, &v)?, &[&wide])?;
    let e = block(&both, 0..1, 0..n)?.squeeze(-2)?;
    Ok((e.cast(x.dtype())?, block(&both, 1..n + 1, 0..n)?.cast(x.dtype())?))
}

/// Only the eigenvalues of symmetric matrices, in ascending order.
///
/// # Errors
/// As [`eigh`].
pub fn eigvalsh(x: &Tensor) -> Result<Tensor> {
    sized("SelfAdjointEigV2", x, square("SelfAdjointEigV2", x)?)?;
    in_f32(x, |x| ruled(Eigenvalues, &symmetric(&x.stop_gradient())?.0, &[x]))
}

/// A matrix of this order needs about 600 launches.
const LARGEST: usize = 512;

fn sized(op: &str, x: &Tensor, n: usize) -> Result<usize> {
    if n <= LARGEST {
        return Ok(n);
    }
    Err(Error::Shape(message!(
        "{op}: the matrices are {:?}; the smaller side may be {LARGEST} at most. Compute larger ones on the host.",
        x.shape()
    )))
}

/// The singular values and vectors of matrices with at least as many rows as columns.
fn tall(x: &Tensor, full: bool) -> Result<(Tensor, Tensor, Tensor)> {
    let (rows, n) = (x.shape()[x.rank() - 2], x.shape()[x.rank() - 1]);
    // Squares of the elements must not overflow.
    let scale = largest(x)?;
    let scaled = x.divide(&scale)?;
    let (q, core) = match rows == n {
        true => (None, scaled),
        false => {
            let (q, r) = qr_with(&scaled, QrOptions::new().full_matrices(full))?;
            (Some(q), block(&r, 0..n, 0..n)?)
        }
    };
    let right = rotations(&turned(&core)?, SWEEPS)?;
    // Recomputed, without the rounding errors of the rotations.
    let left = right.matmul_with(&core, MatmulOptions::new().transpose_b(true))?;
    let order = places(&left.square()?.reduce_sum(-1)?.negative()?)?;
    let (left, right) = (rows_at(&left, &order)?, rows_at(&right, &order)?);
    let s = left.square()?.reduce_sum(-1)?.sqrt()?;
    // QR makes unit vectors of them, and finds some for singular values of 0.
    let (u, r) = qr(&turned(&left)?)?;
    let signs = diag_part(&r)?;
    let signs = where_(&signs.less(0.0)?, &signs.ones_like()?.negative()?, &signs.ones_like()?)?;
    let u = u.multiply(signs.expand_dims(-2)?)?;
    let u = match q {
        None => u,
        Some(q) => {
            let kept = q.shape()[q.rank() - 1];
            let own = block(&q, 0..rows, 0..n)?.matmul(u)?;
            if kept == n { own } else { side_by_side(&own, &block(&q, 0..rows, n..kept)?)? }
        }
    };
    Ok((s.multiply(scale.squeeze(-1)?)?, u, turned(&right)?))
}

/// The largest size of an element of each matrix, `[.., 1, 1]`; 1 for zeros.
fn largest(x: &Tensor) -> Result<Tensor> {
    let most = x.abs()?.reduce_max(Axes::from([-2, -1]).keepdims(true))?;
    where_(&most.equal(0.0)?, &most.ones_like()?, &most)
}

/// The eigenvalues and eigenvectors of symmetric matrices.
fn symmetric(x: &Tensor) -> Result<(Tensor, Tensor)> {
    let n = x.shape()[x.rank() - 1];
    let x = tril(x, 0)?.add(turned(&tril(x, -1)?)?)?;
    // No eigenvalue is larger than the largest row sum. After a slightly larger shift the eigenvalues are singular
    // values.
    let sums = x.abs()?.reduce_sum(Axes::from(-1).keepdims(true))?;
    let scale = largest(&sums)?;
    let moved = |x: &Tensor| x.divide(&scale)?.add(identity(x, [n, n])?.multiply(1.1)?);
    let vectors = rotations(&moved(&x)?, SWEEPS)?;
    // The remaining rounding errors are rotated away.
    let rest = vectors.matmul(x.matmul_with(&vectors, MatmulOptions::new().transpose_b(true))?)?;
    let vectors = refined(&rotations(&moved(&rest)?, 3)?.matmul(&vectors)?)?;
    let e = vectors.matmul(&x)?.multiply(&vectors)?.reduce_sum(-1)?;
    let order = places(&e)?;
    let e = rows_at(&e.expand_dims(-1)?, &order)?.squeeze(-1)?;
    Ok((e, turned(&rows_at(&vectors, &order)?)?))
}

/// The indices of the numbers in ascending order; equal numbers are in their original order, and NaN is first.
fn places(x: &Tensor) -> Result<Tensor> {
    let x = where_(&x.is_nan()?, &x.ones_like()?.multiply(f32::NEG_INFINITY)?, x)?;
    let (own, other) = (x.expand_dims(-1)?, x.expand_dims(-2)?);
    let earlier = tril(&other.equal(&own)?, -1)?;
    let before = other.less(&own)?.logical_or(earlier)?;
    inverse_order(&before.cast(DType::I32)?.reduce_sum(-1)?)
}

/// How often each pair of rows is rotated; random matrices need 6 to 10.
const SWEEPS: usize = 12;

/// Rotates the rows of square matrices until they are orthogonal; returns the product of the rotations.
fn rotations(x: &Tensor, sweeps: usize) -> Result<Tensor> {
    let n = x.shape()[x.rank() - 1];
    let unit = identity(x, [n, n])?.broadcast_to(batched(x, &[n, n]))?;
    let both = dispatch(Jacobi { sweeps }, &[&side_by_side(x, &unit)?])?;
    refined(&block(&both, 0..n, n..2 * n)?)
}

/// Makes nearly orthonormal rows orthonormal: a step of Newton's method, `(3 I - x x^T) x / 2`.
fn refined(x: &Tensor) -> Result<Tensor> {
    let square = x.matmul_with(x, MatmulOptions::new().transpose_b(true))?;
    x.multiply(1.5)?.subtract(square.matmul(x)?.multiply(0.5)?)
}

#[derive(Debug, Attribute)]
#[op("JacobiSweeps")]
pub(crate) struct Jacobi {
    sweeps: usize,
}

impl Op for Jacobi {
    fn name(&self) -> &'static str {
        "Svd"
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Spec> {
        Ok(inputs[0].clone())
    }

    fn lower(&self, cx: &LoweringContext) -> Lowering {
        let shape = &cx.inputs[0].shape;
        let (n, width) = (shape[shape.len() - 2], shape[shape.len() - 1]);
        let (m, count) = (n, batch(shape));
        let players = n.next_multiple_of(2);
        let pairs = players / 2;
        let threads: usize = if n <= 16 { 64 } else { 256 };
        let lanes = (threads / pairs.next_power_of_two()).clamp(1, m.next_power_of_two());
        let chunks = pairs.div_ceil(threads / lanes);
        let one_round = 1 + chunks * (1 + m.div_ceil(lanes) + lanes + width.div_ceil(lanes));
        let copies = (n * width).div_ceil(threads);
        let rounds = self.sweeps * (players - 1);
        let most = (cx.caps.loop_piece().saturating_sub(copies) / one_round).max(1);
        let kernels = (0..rounds).step_by(most).map(|first| {
            let rounds = most.min(rounds - first);
            Kernel::new("jacobi", shader!(include_str!("../../../shaders/jacobi.wgsl")))
                .constant("WG", threads as u32)
                .constant("LANES", lanes as u32)
                .read(Bind::Input(0))
                .write(Bind::Output)
                .param("n", n)
                .param("m", m)
                .param("width", width)
                .param("players", players)
                .param("first", first)
                .param("rounds", rounds)
                .param("count", count)
                .flops(count * rounds * pairs * (6 * m + 6 * width))
                .workgroups(count, copies + rounds * one_round)
        });
        Lowering::Kernels(Kernels { temps: Vec::new(), kernels: kernels.collect() })
    }
}

/// Never recorded: its callers pass no gradient through it.
impl Operation for Jacobi {
    fn keep(&self) -> Keep {
        Keep::Nothing
    }

    fn grad(&self, _: &Backward) -> Result<Grads> {
        refuse("Svd", "it is rotations on the way to the result", "differentiate the whole")
    }
}

/// Splits the tensor that contains `s`, `u` and `v` above each other.
fn split(
    all: &Tensor,
    rows: usize,
    columns: usize,
    kept: usize,
) -> Result<(Tensor, Tensor, Tensor)> {
    let s = block(all, 0..1, 0..kept)?.squeeze(-2)?;
    let u = block(all, 1..1 + rows, 0..kept)?;
    Ok((s, u, block(all, 1 + rows..1 + rows + columns, 0..kept)?))
}

/// `1 / x`, and 0 for 0.
fn reciprocal(x: &Tensor) -> Result<Tensor> {
    let none = x.equal(0.0)?;
    let safe = where_(&none, &x.ones_like()?, x)?;
    where_(&none, &x.zeros_like()?, &safe.reciprocal()?)
}

/// `1 / (x_j - x_i)` in row i and column j, 0 on the diagonal.
fn gaps(x: &Tensor) -> Result<Tensor> {
    reciprocal(&x.expand_dims(-2)?.subtract(x.expand_dims(-1)?)?)
}

#[derive(Debug, Attribute)]
pub(crate) struct Svd {
    rows: usize,
    columns: usize,
}

impl Rule for Svd {
    const KIND: &'static str = "SvdRule";
    const NAME: &'static str = "Svd";

    // Townsend 2016, "Differentiating the singular value decomposition": with F_ij = 1 / (s_j^2 - s_i^2),
    // dx = u ((F * (u^T du - du^T u)) S + S (F * (v^T dv - dv^T v)) + dS) v^T
    //      + (du - u u^T du) S^-1 v^T + u S^-1 (dv - v v^T dv)^T.
    fn grad(&self, back: &Backward) -> Result<Grads> {
        let Svd { rows, columns } = *self;
        let kept = rows.min(columns);
        let (s, u, v) = split(back.y(), rows, columns, kept)?;
        let (ds, du, dv) = split(back.dy, rows, columns, kept)?;
        let (left, right) =
            (MatmulOptions::new().transpose_a(true), MatmulOptions::new().transpose_b(true));
        let f = gaps(&s.square()?)?;
        let skew = |x: &Tensor| f.multiply(x.subtract(turned(x)?)?);
        let (own_u, own_v) = (u.matmul_with(&du, left)?, v.matmul_with(&dv, left)?);
        let (row, column) = (s.expand_dims(-2)?, s.expand_dims(-1)?);
        let middle = skew(&own_u)?.multiply(&row)?.add(skew(&own_v)?.multiply(&column)?)?;
        let middle = middle.add(diag(&ds)?)?;
        let inverse = reciprocal(&row)?;
        let mut outer = u.matmul(middle)?;
        if rows > columns {
            outer = outer.add(du.subtract(u.matmul(&own_u)?)?.multiply(&inverse)?)?;
        }
        let mut dx = outer.matmul_with(&v, right)?;
        if columns > rows {
            let across = dv.subtract(v.matmul(&own_v)?)?;
            dx = dx.add(u.multiply(inverse)?.matmul_with(across, right)?)?;
        }
        of_arguments([Some(dx)])
    }
}

#[derive(Debug, Attribute)]
pub(crate) struct SingularValues;

impl Rule for SingularValues {
    const KIND: &'static str = "SingularValuesRule";
    const NAME: &'static str = "Svd";

    // dx = u dS v^T.
    fn grad(&self, back: &Backward) -> Result<Grads> {
        let (_, u, v) = svd(back.x(1))?;
        let scaled = u.multiply(back.dy.expand_dims(-2)?)?;
        of_arguments([Some(scaled.matmul_with(v, MatmulOptions::new().transpose_b(true))?)])
    }
}

#[derive(Debug, Attribute)]
pub(crate) struct Eigh;

impl Rule for Eigh {
    const KIND: &'static str = "EighRule";
    const NAME: &'static str = "SelfAdjointEigV2";

    // dx = v (dE + F * (v^T dv)) v^T, with F_ij = 1 / (e_j - e_i).
    fn grad(&self, back: &Backward) -> Result<Grads> {
        let n = back.spec(1).shape[back.spec(1).shape.len() - 1];
        let parts = |x: &Tensor| -> Result<(Tensor, Tensor)> {
            Ok((block(x, 0..1, 0..n)?.squeeze(-2)?, block(x, 1..n + 1, 0..n)?))
        };
        let ((e, v), (de, dv)) = (parts(back.y())?, parts(back.dy)?);
        let own = v.matmul_with(dv, MatmulOptions::new().transpose_a(true))?;
        let middle = gaps(&e)?.multiply(own)?.add(diag(&de)?)?;
        let dx = v.matmul(middle)?.matmul_with(&v, MatmulOptions::new().transpose_b(true))?;
        of_arguments([Some(of_lower(&dx)?)])
    }
}

#[derive(Debug, Attribute)]
pub(crate) struct Eigenvalues;

impl Rule for Eigenvalues {
    const KIND: &'static str = "EigenvaluesRule";
    const NAME: &'static str = "SelfAdjointEigV2";

    // dx = v dE v^T.
    fn grad(&self, back: &Backward) -> Result<Grads> {
        let (_, v) = eigh(back.x(1))?;
        let scaled = v.multiply(back.dy.expand_dims(-2)?)?;
        let dx = scaled.matmul_with(&v, MatmulOptions::new().transpose_b(true))?;
        of_arguments([Some(of_lower(&dx)?)])
    }
}

/// The gradient of the lower triangle, which represents both.
fn of_lower(dx: &Tensor) -> Result<Tensor> {
    set_diag(&tril(&dx.add(turned(dx)?)?, -1)?, &diag_part(dx)?)
}

fn call_svd(c: &Args) -> Answer {
    let options = SvdOptions::new().full_matrices(c.flag("full_matrices")?);
    let (s, u, v) = svd_with(c.arg("tensor")?, options)?;
    Ok(vec![s, u, v])
}

fn call_eigh(c: &Args) -> Answer {
    let (e, v) = eigh(c.arg("tensor")?)?;
    Ok(vec![e, v])
}

/// Adds numbers that are 3 apart to the diagonal, so that singular values and eigenvalues differ.
fn graded(x: &Tensor) -> Result<Tensor> {
    let sizes = [x.shape()[x.rank() - 2], x.shape()[x.rank() - 1]];
    let steps = super::blocks::steps(x, sizes[1])?.add(1.0)?.multiply(3.0)?;
    x.add(identity(x, sizes)?.multiply(steps)?)
}

/// A function of the results that does not depend on the vectors' signs.
fn unsigned((s, u, v): (Tensor, Tensor, Tensor)) -> Result<Tensor> {
    let joint = block(&u, 0..1, 0..2)?.multiply(block(&v, 0..1, 0..2)?)?;
    let rows = above(&u.square()?, &v.square()?)?;
    side_by_side(
        &above(&rows, &s.expand_dims(-2)?)?,
        &joint.broadcast_to(
            [&s.shape()[..s.rank() - 1], &[rows.shape()[rows.rank() - 2] + 1, 2]].concat(),
        )?,
    )
}

fn svd_cases(cases: &mut Cases) {
    cases.of_shape("svd square", &[3, 3], |x| unsigned(svd(&graded(x)?)?));
    cases.of_shape("svd tall", &[2, 4, 3], |x| unsigned(svd(&graded(x)?)?));
    cases.of_shape("svd wide", &[2, 3], |x| unsigned(svd(&graded(x)?)?));
    cases.of_shape("svd_with square", &[3, 3], |x| {
        unsigned(svd_with(&graded(x)?, SvdOptions::new().full_matrices(true))?)
    });
    cases.of_shape("svd_with one column more of u", &[2, 4, 3], |x| {
        let (_, u, v) = svd_with(&graded(x)?, SvdOptions::new().full_matrices(true))?;
        side_by_side(&u.square()?, &above(&v, &v.slice(&[0, 0, 0], &[-1, 1, -1])?)?.square()?)
    });
    cases.of_shape("svd_with one column more of v", &[2, 3], |x| {
        let (s, _, v) = svd_with(&graded(x)?, SvdOptions::new().full_matrices(true))?;
        side_by_side(&v.square()?, &above(&diag(&s)?, &s.expand_dims(-2)?)?)
    });
}

/// The inventory of this file.
pub(in super::super) const ENTRIES: &[Entry] = &[
    Entry::new(OpKind::Kernel, "svd", &["tf.linalg.svd"], call_svd)
        .forms(&["svd_with"])
        .cases(svd_cases)
        .kernels(&[|make, dtype| {
            let full = SvdOptions::new().full_matrices(true);
            Ok(vec![
                svd(&make(&[3, 3], dtype))?.0,
                svd(&make(&[2, 40, 25], dtype))?.1,
                svd_with(&make(&[3, 5], dtype), full)?.2,
            ])
        }]),
    Entry::new(OpKind::Composed, "svdvals", &["tf.linalg.svd(compute_uv=False)"], |c| {
        one(svdvals(c.arg("tensor")?))
    })
    .cases(|cases| cases.of_shape("svdvals", &[3, 4], |x| svdvals(&graded(x)?))),
    Entry::new(OpKind::Composed, "eigh", &["tf.linalg.eigh"], call_eigh).cases(|cases| {
        cases.of_shape("eigh", &[2, 3, 3], |x| {
            let (e, v) = eigh(&graded(x)?)?;
            above(&e.expand_dims(-2)?, &v.square()?)
        });
    }),
    Entry::new(OpKind::Composed, "eigvalsh", &["tf.linalg.eigvalsh"], |c| {
        one(eigvalsh(c.arg("tensor")?))
    })
    .cases(|cases| cases.of_shape("eigvalsh", &[3, 3], |x| eigvalsh(&graded(x)?))),
];
