//! Linear algebra on matrices and batches of matrices: `tf.linalg` except for `matmul` and `matvec`, which are methods of
//! [`Tensor`].
//!
//! A matrix is the last two axes of a tensor, `[.., M, N]`; all axes before them are batch axes. Factorizations compute
//! in `f32` (`f16` is cast and cast back) and read nothing back: for a matrix that has no factorization the result is
//! NaN or infinity; TensorFlow on a CPU raises an error. Small blocks have kernels; larger matrices are split into
//! blocks, which are combined by matrix products, so their size is not limited, except for `eigh` and `svd`, whose
//! documentation states the limit.
//!
//! ```
//! # fn main() -> wgrad::Result<()> {
//! use wgrad as tf;
//! use wgrad::linalg;
//! let a = tf::constant([[4.0, 2.0], [2.0, 5.0]])?;
//! assert_eq!(linalg::cholesky(&a)?.to_vec::<f32>()?, [2.0, 0.0, 1.0, 2.0]);
//! let x = linalg::solve(&a, &tf::constant([[2.0], [9.0]])?)?;
//! assert!((x.to_vec::<f32>()?[1] - 2.0).abs() < 1e-6);
//! # Ok(())
//! # }
//! ```

pub(super) mod band_part;
pub(super) mod blocks;
#[cfg(feature = "linalg")]
pub(super) mod cholesky;
#[cfg(feature = "linalg")]
pub(super) mod composed;
pub(super) mod diagonals;
#[cfg(feature = "linalg")]
pub(super) mod lu;
#[cfg(feature = "linalg")]
pub(super) mod qr;
#[cfg(feature = "linalg")]
pub(super) mod rule;
#[cfg(feature = "linalg")]
pub(super) mod solve;
#[cfg(feature = "linalg")]
pub(super) mod svd;
#[cfg(test)]
#[cfg(feature = "linalg")]
pub(super) mod tests;
#[cfg(feature = "linalg")]
pub(super) mod triangular_solve;

pub use band_part::{band_part, tril, triu};
#[cfg(feature = "linalg")]
pub use cholesky::{cholesky, cholesky_solve};
#[cfg(feature = "linalg")]
pub(super) use composed::ENTRIES;
#[cfg(feature = "linalg")]
pub use composed::{
    LstsqOptions, adjoint, cross, expm, logdet, lstsq, lstsq_with, matrix_power, matrix_rank,
    matrix_transpose, outer, pinv, trace,
};
pub use diagonals::{
    DiagOptions, diag, diag_part, diag_part_with, diag_with, set_diag, set_diag_with, tensor_diag,
    tensor_diag_part,
};
#[cfg(feature = "linalg")]
pub use lu::{lu, lu_solve};
#[cfg(feature = "linalg")]
pub use qr::{QrOptions, qr, qr_with};
#[cfg(feature = "linalg")]
pub use solve::{InvOptions, SolveOptions, det, inv, inv_with, slogdet, solve, solve_with};
#[cfg(feature = "linalg")]
pub use svd::{SvdOptions, eigh, eigvalsh, svd, svd_with, svdvals};
#[cfg(feature = "linalg")]
pub use triangular_solve::{TriangularSolveOptions, triangular_solve, triangular_solve_with};

#[cfg(doc)]
use crate::tensor::Tensor;
