//! Products, and the linear algebra of matrices.

use super::call::{Call, Entry, Results, any, many, unary, unsupported};
use crate::error::{Error, Result};
use crate::ops::linalg::{self, DiagOptions, InvOptions, SolveOptions, TriangularSolveOptions};
use crate::ops::{MatmulOptions, einsum};
use crate::saved_model::graph_def::value::Value;

pub(super) static OPS: &[Entry] = &[
    any("BatchMatMul", |call| matmul(call, "adj_x", "adj_y")),
    any("BatchMatMulV2", |call| matmul(call, "adj_x", "adj_y")),
    any("BatchMatMulV3", |call| matmul(call, "adj_x", "adj_y")),
    unary("Cholesky", linalg::cholesky),
    any("Cross", |call| Ok(Value::Tensor(linalg::cross(&call.tensor(0)?, &call.tensor(1)?)?))),
    any("Einsum", |call| {
        let operands = call.tensors(0, call.inputs.len())?;
        Ok(Value::Tensor(einsum(call.attr_text("equation", ""), operands)?))
    }),
    any("MatMul", |call| matmul(call, "transpose_a", "transpose_b")),
    any("MatrixBandPart", |call| {
        Ok(Value::Tensor(linalg::band_part(&call.tensor(0)?, call.int(1)?, call.int(2)?)?))
    }),
    unary("MatrixDeterminant", linalg::det),
    unary("MatrixDiag", linalg::diag),
    unary("MatrixDiagPart", linalg::diag_part),
    any("MatrixDiagPartV2", part),
    any("MatrixDiagPartV3", part),
    any("MatrixDiagV2", diag),
    any("MatrixDiagV3", diag),
    any("MatrixInverse", |call| {
        let options = InvOptions::new().adjoint(call.attr_bool("adjoint", false));
        Ok(Value::Tensor(linalg::inv_with(&call.tensor(0)?, options)?))
    }),
    any("MatrixSetDiag", |call| {
        Ok(Value::Tensor(linalg::set_diag(&call.tensor(0)?, &call.tensor(1)?)?))
    }),
    any("MatrixSetDiagV2", set_diag),
    any("MatrixSetDiagV3", set_diag),
    any("MatrixSolve", |call| {
        let options = SolveOptions::new().adjoint(call.attr_bool("adjoint", false));
        Ok(Value::Tensor(linalg::solve_with(&call.tensor(0)?, &call.tensor(1)?, options)?))
    }),
    any("MatrixTriangularSolve", |call| {
        let options = TriangularSolveOptions::new()
            .lower(call.attr_bool("lower", true))
            .adjoint(call.attr_bool("adjoint", false));
        let (matrix, rhs) = (call.tensor(0)?, call.tensor(1)?);
        Ok(Value::Tensor(linalg::triangular_solve_with(&matrix, &rhs, options)?))
    }),
    many("Qr", &["q", "r"], |call| {
        let options =
            linalg::QrOptions::new().full_matrices(call.attr_bool("full_matrices", false));
        let (q, r) = linalg::qr_with(&call.tensor(0)?, options)?;
        Ok(Results::from_iter([Value::Tensor(q), Value::Tensor(r)]))
    }),
    many("Svd", &["s", "u", "v"], |call| {
        let options =
            linalg::SvdOptions::new().full_matrices(call.attr_bool("full_matrices", false));
        let (s, u, v) = linalg::svd_with(&call.tensor(0)?, options)?;
        Ok(Results::from_iter([Value::Tensor(s), Value::Tensor(u), Value::Tensor(v)]))
    }),
];

/// The number of the diagonal; a band of several is not supported.
fn diagonal(call: &Call<'_>, at: usize) -> Result<i64> {
    match call.ints(at)?[..] {
        [k] => Ok(k),
        [low, high] if low == high => Ok(low),
        ref band => Err(unsupported(format_args!("the band of diagonals {band:?}"))),
    }
}

fn part(call: &Call<'_>) -> Result<Value> {
    let k = diagonal(call, 1)?;
    Ok(Value::Tensor(linalg::diag_part_with(&call.tensor(0)?, k)?))
}

fn diag(call: &Call<'_>) -> Result<Value> {
    let k = diagonal(call, 1)?;
    let size = |at: usize| Ok::<_, Error>(usize::try_from(call.int(at)?).ok());
    let options = DiagOptions::new().k(k).num_rows(size(2)?).num_cols(size(3)?);
    let options = options.padding_value(call.float(4)?);
    Ok(Value::Tensor(linalg::diag_with(&call.tensor(0)?, options)?))
}

fn set_diag(call: &Call<'_>) -> Result<Value> {
    let k = diagonal(call, 2)?;
    Ok(Value::Tensor(linalg::set_diag_with(&call.tensor(0)?, &call.tensor(1)?, k)?))
}

/// The product of matrices, each transposed if an attribute says so.
pub(super) fn matmul(call: &Call<'_>, first: &str, second: &str) -> Result<Value> {
    let options = MatmulOptions::new()
        .transpose_a(call.attr_bool(first, false))
        .transpose_b(call.attr_bool(second, false));
    Ok(Value::Tensor(call.tensor(0)?.matmul_with(call.tensor(1)?, options)?))
}
