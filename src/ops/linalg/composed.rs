//! Linear algebra composed of other ops.

use super::super::inventory::{ANY, Entry, Gradient, OpKind, one};
use super::super::{Backward, Grads, MatmulOptions, NUMERIC, concat, expect_dtype, where_};
use super::blocks::{batched, fits, float_matrix, identity, in_f32, matrix, square, turned};
use super::cholesky::{cholesky, cholesky_solve, definite};
use super::diagonals::diag_part;
use super::lu::firm;
use super::qr::qr;
use super::rule::{Rule, of_arguments, ruled};
use super::solve::{inv, solve};
use super::svd::{svd, svdvals};
use super::triangular_solve::{TriangularSolveOptions, triangular_solve_with};
use crate::dtype::DType;
use crate::error::{Error, Result, message};
use crate::graph::attributes::Attribute;
use crate::shape::Axes;
use crate::support::options::options;
use crate::tensor::Tensor;

/// The sum of the main diagonal of each matrix: `[.., M, N]` to `[..]`.
///
/// # Errors
/// [`Error::Shape`] if the tensor has fewer than two axes; [`Error::DType`] if the dtype is not numeric.
pub fn trace(x: &Tensor) -> Result<Tensor> {
    diag_part(x)?.reduce_sum(-1)
}

/// Swaps the last two axes.
///
/// # Errors
/// [`Error::Shape`] if the tensor has fewer than two axes.
pub fn matrix_transpose(x: &Tensor) -> Result<Tensor> {
    matrix("MatrixTranspose", x)?;
    turned(x)
}

/// The transposed matrices: without complex numbers there is nothing to conjugate.
///
/// # Errors
/// As [`matrix_transpose`].
pub fn adjoint(x: &Tensor) -> Result<Tensor> {
    matrix_transpose(x)
}

/// The cross product of vectors `[.., 3]`.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// let (a, b) = (tf::constant([1.0, 0.0, 0.0])?, tf::constant([0.0, 1.0, 0.0])?);
/// assert_eq!(tf::linalg::cross(&a, &b)?.to_vec::<f32>()?, [0.0, 0.0, 1.0]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::Shape`] if the shapes differ or the last axis is not 3; [`Error::DType`] if dtypes differ or are not numeric.
pub fn cross(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    expect_dtype("Cross", a.spec(), NUMERIC)?;
    if a.shape() != b.shape() || a.shape().last() != Some(&3) {
        return Err(Error::Shape(message!(
            "Cross: a is {:?} and b is {:?}; both must have one shape, whose last axis is 3.",
            a.shape(),
            b.shape()
        )));
    }
    // Elements 1, 2, 0 and 2, 0, 1.
    let moved = |x: &Tensor, by: usize| -> Result<Tensor> {
        let parts = x.split_sizes(&[by, 3 - by], -1)?;
        concat([&parts[1], &parts[0]], -1)
    };
    let one_way = moved(a, 1)?.multiply(moved(b, 2)?)?;
    one_way.subtract(moved(a, 2)?.multiply(moved(b, 1)?)?)
}

/// The products of all pairs of elements of the flattened tensors, `y[i, j] = a[i] b[j]`.
///
/// # Errors
/// [`Error::DType`] if the dtypes differ or are not numeric.
pub fn outer(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    expect_dtype("Outer", a.spec(), NUMERIC)?;
    let (rows, columns) = (a.len(), b.len());
    a.reshape_to([rows, 1].into())?.multiply(b.reshape_to([1, columns].into())?)
}

/// The logarithm of the determinant of symmetric positive definite matrices, by Cholesky factorization; NaN for other matrices.
///
/// # Errors
/// [`Error::Shape`] if the matrices are not square; [`Error::DType`] if the dtype is not float.
pub fn logdet(x: &Tensor) -> Result<Tensor> {
    square("LogDet", x)?;
    in_f32(x, |x| diag_part(&cholesky(x)?)?.log()?.reduce_sum(-1)?.multiply(2.0))
}

/// The matrices to an integer power, by repeated squaring; a negative power inverts the matrix first, 0 gives identity
/// matrices.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// let x = tf::constant([[1.0, 1.0], [1.0, 0.0]])?;
/// assert_eq!(tf::linalg::matrix_power(&x, 10)?.to_vec::<f32>()?, [89.0, 55.0, 55.0, 34.0]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::Shape`] if the matrices are not square; [`Error::DType`] if the dtype is not float.
pub fn matrix_power(x: &Tensor, power: i64) -> Result<Tensor> {
    let n = square("MatrixPower", x)?;
    let mut base = if power < 0 { inv(x)? } else { x.clone() };
    let mut left = power.unsigned_abs();
    let mut y: Option<Tensor> = None;
    while left > 0 {
        if left & 1 == 1 {
            y = Some(match y {
                None => base.clone(),
                Some(y) => y.matmul(&base)?,
            });
        }
        left >>= 1;
        if left > 0 {
            base = base.matmul(&base)?;
        }
    }
    match y {
        Some(y) => Ok(y),
        None => identity(x, [n, n])?.broadcast_to(batched(x, &[n, n])),
    }
}

/// The most squarings, and the largest column sum for which the series suffices.
const SQUARINGS: i32 = 10;
const SERIES: f64 = 3.925_724_783_138_66;

/// The matrix exponential, `I + x + x^2 / 2 + ...`, by scaling and squaring: repeated halving, a rational approximation of
/// degree 7, and the same number of squarings (Higham 2005).
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// let y = tf::linalg::expm(&tf::constant([[0.0, 1.0], [0.0, 0.0]])?)?;
/// assert_eq!(y.to_vec::<f32>()?, [1.0, 1.0, 0.0, 1.0]);
/// # Ok(())
/// # }
/// ```
///
/// For matrices with a column sum above 4,019 the result is NaN: nothing is read back, so the number of squarings is
/// bounded. The relative error is about 1e-6 times the column sum.
///
/// # Errors
/// [`Error::Shape`] if the matrices are not square; [`Error::DType`] if the dtype is not float.
pub fn expm(x: &Tensor) -> Result<Tensor> {
    let n = square("MatrixExponential", x)?;
    if n == 0 {
        return Ok(x.clone());
    }
    in_f32(x, |x| {
        let sums = x.stop_gradient().abs()?.reduce_sum(Axes::from(-2).keepdims(true))?;
        let norm = sums.reduce_max(Axes::from(-1).keepdims(true))?;
        let halvings = norm.divide(SERIES)?.log()?.divide(std::f64::consts::LN_2)?.ceil()?;
        let halvings = halvings.clip_by_value(0.0, f64::from(SQUARINGS))?;
        let range = norm.less_equal(SERIES * f64::from(1 << SQUARINGS))?;
        let scale = halvings.multiply(-std::f64::consts::LN_2)?.exp()?;
        let nan = norm.zeros_like()?.divide(norm.zeros_like()?)?;
        let small = x.multiply(where_(&range, &scale, &nan)?)?;
        let unit = identity(x, [n, n])?;
        let x2 = small.matmul(&small)?;
        let x4 = x2.matmul(&x2)?;
        let x6 = x4.matmul(&x2)?;
        // The coefficients of the series, divided by the first.
        let sum = |[c0, c2, c4, c6]: [f64; 4]| -> Result<Tensor> {
            let high = x6.multiply(c6)?.add(x4.multiply(c4)?)?;
            high.add(x2.multiply(c2)?)?.add(unit.multiply(c0)?)
        };
        let odd = sum([1.0 / 2.0, 5.0 / 312.0, 1.0 / 11_440.0, 1.0 / 17_297_280.0])?;
        let odd = small.matmul(odd)?;
        let even = sum([1.0, 3.0 / 26.0, 5.0 / 3_432.0, 1.0 / 308_880.0])?;
        let mut y = solve(&even.subtract(&odd)?, &even.add(&odd)?)?;
        for done in 0..SQUARINGS {
            y = where_(&halvings.greater(f64::from(done))?, &y.matmul(&y)?, &y)?;
        }
        Ok(y)
    })
}

options! {
    /// How to solve the least squares problem.
    #[derive(Debug, Clone, Copy, PartialEq)]
    pub struct LstsqOptions {
        /// The L2 regularization, which is added to the diagonal of the normal equations; 0 by default. Only used if `fast` is
        /// true.
        l2_regularizer: f64 = 0.0,
        /// Whether to solve the normal equations by Cholesky factorization; `true` by default. Otherwise QR is used, which is
        /// necessary for condition numbers above 1,000.
        fast: bool = true,
    }
}

/// The least squares solution of `A y = rhs`, `A` with the shape `[.., M, N]`: for `M >= N` the `y` that minimizes
/// `|A y - rhs|`, otherwise the solution with the smallest norm.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// let a = tf::constant([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]])?;
/// let y = tf::linalg::lstsq(&a, &tf::constant([[1.0], [3.0], [5.0]])?)?.to_vec::<f32>()?;
/// assert!((y[0] - 1.0).abs() < 1e-5 && (y[1] - 2.0).abs() < 1e-5);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::Shape`] if `rhs` and the matrix differ in their number of rows; [`Error::DType`] if the dtypes differ or are not
/// float.
pub fn lstsq(matrix: &Tensor, rhs: &Tensor) -> Result<Tensor> {
    lstsq_with(matrix, rhs, LstsqOptions::new())
}

/// As [`lstsq`], with options.
///
/// # Errors
/// As [`lstsq`].
pub fn lstsq_with(matrix: &Tensor, rhs: &Tensor, options: LstsqOptions) -> Result<Tensor> {
    let [rows, columns] = float_matrix("MatrixSolveLs", matrix)?;
    fits("MatrixSolveLs", matrix, rows, rhs)?;
    let transposed = MatmulOptions::new().transpose_a(true);
    in_f32(matrix, |a| {
        let b = rhs.cast(DType::F32)?;
        if !options.fast {
            let (q, r) = qr(&if rows >= columns { a.clone() } else { turned(a)? })?;
            let upper = TriangularSolveOptions::new().lower(false);
            return match rows >= columns {
                true => triangular_solve_with(&r, &q.matmul_with(b, transposed)?, upper),
                false => q.matmul(triangular_solve_with(&r, &b, upper.adjoint(true))?),
            };
        }
        let (n, normal) = match rows >= columns {
            true => (columns, a.matmul_with(a, transposed)?),
            false => (rows, a.matmul_with(a, MatmulOptions::new().transpose_b(true))?),
        };
        let normal = match options.l2_regularizer {
            0.0 => normal,
            more => normal.add(identity(a, [n, n])?.multiply(more)?)?,
        };
        let factor = cholesky(&normal)?;
        match rows >= columns {
            true => cholesky_solve(&factor, &a.matmul_with(b, transposed)?),
            false => a.matmul_with(cholesky_solve(&factor, &b)?, transposed),
        }
    })
}

/// The number of singular values above `max(M, N)` times 1.2e-7 times the largest one, as `i32`.
///
/// # Errors
/// As [`svd`].
pub fn matrix_rank(x: &Tensor) -> Result<Tensor> {
    let [rows, columns] = float_matrix("MatrixRank", x)?;
    let s = svdvals(x)?.stop_gradient().cast(DType::F32)?;
    let least = f64::from(f32::EPSILON) * rows.max(columns) as f64;
    let cut = s.reduce_max(Axes::from(-1).keepdims(true))?.multiply(least)?;
    s.greater(cut)?.cast(DType::I32)?.reduce_sum(-1)
}

/// The Moore-Penrose inverse, `[.., M, N]` to `[.., N, M]`: singular values up to `10 max(M, N)` times 1.2e-7 times the largest
/// one are treated as 0.
///
/// # Errors
/// As [`svd`].
pub fn pinv(x: &Tensor) -> Result<Tensor> {
    let [rows, columns] = float_matrix("Pinv", x)?;
    in_f32(x, |x| {
        let (s, u, v) = svd(&x.stop_gradient())?;
        let least = 10.0 * f64::from(f32::EPSILON) * rows.max(columns) as f64;
        let cut = s.reduce_max(Axes::from(-1).keepdims(true))?.multiply(least)?;
        // NaN is preserved.
        let inverse = where_(&s.less_equal(cut)?, &s.zeros_like()?, &s.reciprocal()?)?;
        let scaled = v.multiply(inverse.expand_dims(-2)?)?;
        ruled(Pinv, &scaled.matmul_with(u, MatmulOptions::new().transpose_b(true))?, &[x])
    })
}

#[derive(Debug, Attribute)]
pub(crate) struct Pinv;

impl Rule for Pinv {
    const KIND: &'static str = "PinvRule";
    const NAME: &'static str = "Pinv";

    // Golub and Pereyra 1973, for a constant rank: dx = -y^T dy y^T + (I - x y) dy^T y y^T + y^T y dy^T (I - y x).
    fn grad(&self, back: &Backward) -> Result<Grads> {
        let (x, y) = (back.x(1), back.y());
        let (yt, dyt) = (turned(y)?, turned(back.dy)?);
        let first = yt.matmul(back.dy)?.matmul(&yt)?;
        let right = dyt.matmul(y)?.matmul(&yt)?;
        let left = yt.matmul(y)?.matmul(&dyt)?;
        let right = right.subtract(x.matmul(y.matmul(&right)?)?)?;
        let left = left.subtract(left.matmul(y)?.matmul(x)?)?;
        of_arguments([Some(right.add(left)?.subtract(first)?)])
    }
}

/// The inventory of this file.
pub(in super::super) const ENTRIES: &[Entry] = &[
    Entry::new(OpKind::Composed, "trace", &["tf.linalg.trace"], |c| one(trace(c.x()?)))
        .takes(NUMERIC)
        .cases(|cases| cases.of_shape("trace", &[2, 3, 4], trace)),
    Entry::new(OpKind::Composed, "matrix_transpose", &["tf.linalg.matrix_transpose"], |c| {
        one(matrix_transpose(c.arg("a")?))
    })
    .takes(&DType::ALL)
    .cases(|cases| cases.of_shape("matrix_transpose", &[2, 3, 4], matrix_transpose)),
    Entry::new(OpKind::Composed, "adjoint", &["tf.linalg.adjoint"], |c| {
        one(adjoint(c.arg("matrix")?))
    })
    .takes(&DType::ALL)
    .cases(|cases| cases.of_shape("adjoint", &[3, 4], adjoint)),
    Entry::new(OpKind::Composed, "cross", &["tf.linalg.cross"], |c| {
        one(cross(c.arg("a")?, c.arg("b")?))
    })
    .takes(NUMERIC)
    .cases(|cases| cases.add("cross", &[(&[4, 3], ANY), (&[4, 3], ANY)], |x| cross(&x[0], &x[1]))),
    Entry::new(OpKind::Composed, "outer", &["tf.experimental.numpy.outer"], |c| {
        one(outer(c.arg("a")?, c.arg("b")?))
    })
    .takes(NUMERIC)
    .cases(|cases| cases.add("outer", &[(&[2, 2], ANY), (&[3], ANY)], |x| outer(&x[0], &x[1]))),
    Entry::new(OpKind::Composed, "logdet", &["tf.linalg.logdet"], |c| {
        one(logdet(c.arg("matrix")?))
    })
    .cases(|cases| cases.of_shape("logdet", &[2, 3, 3], |x| logdet(&definite(x, 2.0)?))),
    Entry::new(OpKind::Composed, "matrix_power", &["numpy.linalg.matrix_power"], |c| {
        one(matrix_power(c.arg("a")?, c.need("n", c.int("n")?)?))
    })
    .cases(|cases| {
        cases.of_shape("matrix_power", &[2, 3, 3], |x| matrix_power(&x.multiply(0.5)?, 5));
        cases.of_shape("matrix_power inverse", &[3, 3], |x| matrix_power(&firm(x)?, -2));
    }),
    Entry::new(OpKind::Composed, "expm", &["tf.linalg.expm"], |c| one(expm(c.arg("input")?)))
        .cases(|cases| {
            cases.of_shape("expm", &[2, 3, 3], |x| expm(&x.multiply(0.5)?));
            cases.of_shape("expm with squarings", &[2, 2], |x| expm(&firm(x)?.multiply(-1.0)?));
        }),
    Entry::new(OpKind::Composed, "lstsq", &["tf.linalg.lstsq"], |c| {
        let options = LstsqOptions::new()
            .l2_regularizer(c.float("l2_regularizer")?.unwrap_or(0.0))
            .fast(c.attribute("fast", |v| Some(*v == true.into()))?.unwrap_or(true));
        one(lstsq_with(c.arg("matrix")?, c.arg("rhs")?, options))
    })
    .forms(&["lstsq_with"])
    .cases(|cases| {
        fn apart(x: &Tensor) -> Result<Tensor> {
            let sizes = [x.shape()[x.rank() - 2], x.shape()[x.rank() - 1]];
            x.add(identity(x, sizes)?.multiply(3.0)?)
        }
        cases.add("lstsq", &[(&[4, 2], ANY), (&[4, 1], ANY)], |x| lstsq(&apart(&x[0])?, &x[1]));
        for (fast, name, shape, rows) in [
            (true, "wide", &[2usize, 3] as &'static [usize], &[2usize, 2] as &'static [usize]),
            (false, "tall", &[4, 2], &[4, 2]),
            (false, "long", &[2, 3], &[2, 2]),
        ] {
            let options = LstsqOptions::new().fast(fast).l2_regularizer(0.5);
            cases.add(format!("lstsq_with {name}"), &[(shape, ANY), (rows, ANY)], move |x| {
                lstsq_with(&apart(&x[0])?, &x[1], options)
            });
        }
    }),
    Entry::new(OpKind::Composed, "matrix_rank", &["tf.linalg.matrix_rank"], |c| {
        one(matrix_rank(c.arg("a")?))
    })
    .gradient(Gradient::None("MatrixRank: an integer")),
    Entry::new(OpKind::Composed, "pinv", &["tf.linalg.pinv"], |c| one(pinv(c.arg("a")?))).cases(
        |cases| {
            cases.of_shape("pinv tall", &[3, 2], |x| {
                pinv(&x.add(identity(x, [3, 2])?.multiply(3.0)?)?)
            });
            cases.of_shape("pinv wide", &[2, 3], |x| {
                pinv(&x.add(identity(x, [2, 3])?.multiply(3.0)?)?)
            });
        },
    ),
];
