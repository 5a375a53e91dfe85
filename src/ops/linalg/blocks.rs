//! Helpers of this folder: checks of matrices, blocks of them, identity matrices, casts to `f32`.

use std::ops::Range;

use super::super::iota::iota;
use super::super::{FLOATS, GatherOptions, concat, expect_dtype};
use crate::dtype::DType;
use crate::error::{Error, Result, message};
use crate::runtime::Device;
use crate::shape::Shape;
use crate::tensor::Tensor;

/// The rows and columns of the matrices in `x`.
pub(super) fn matrix(op: &str, x: &Tensor) -> Result<[usize; 2]> {
    match x.shape() {
        [.., rows, columns] => Ok([*rows, *columns]),
        _ => Err(Error::Shape(message!(
            "{op}: the tensor is {:?}; a matrix needs two axes. Use expand_dims.",
            x.shape()
        ))),
    }
}

/// As [`matrix`], of floats.
pub(super) fn float_matrix(op: &str, x: &Tensor) -> Result<[usize; 2]> {
    let sizes = matrix(op, x)?;
    expect_dtype(op, x.spec(), FLOATS)?;
    Ok(sizes)
}

/// The order of the square matrices of floats in `x`.
pub(super) fn square(op: &str, x: &Tensor) -> Result<usize> {
    let [rows, columns] = float_matrix(op, x)?;
    if rows == columns {
        return Ok(rows);
    }
    Err(Error::Shape(message!(
        "{op}: the matrices are {:?}, {rows} rows by {columns} columns; they must be square.",
        x.shape()
    )))
}

/// The sizes of the axes before the last two.
pub(super) fn lead(x: &Tensor) -> &[usize] {
    &x.shape()[..x.rank().saturating_sub(2)]
}

/// The number of matrices.
pub(super) fn batch(x: &Shape) -> usize {
    Shape::new(&x[..x.len().saturating_sub(2)]).elements()
}

/// The shape of these matrices in the batches of `x`.
pub(super) fn batched(x: &Tensor, sizes: &[usize]) -> Shape {
    [lead(x), sizes].concat().into()
}

/// Computes in `f32`, and returns the result in the dtype of `x`.
pub(super) fn in_f32(x: &Tensor, f: impl FnOnce(&Tensor) -> Result<Tensor>) -> Result<Tensor> {
    match x.dtype() {
        DType::F16 => f(&x.cast(DType::F32)?)?.cast(DType::F16),
        _ => f(x),
    }
}

/// Some rows and columns of each matrix.
pub(super) fn block(x: &Tensor, rows: Range<usize>, columns: Range<usize>) -> Result<Tensor> {
    let mut begin = vec![0; x.rank()];
    let mut size: Vec<i64> = x.shape().iter().map(|&n| n as i64).collect();
    for (axis, range) in [(x.rank() - 2, rows), (x.rank() - 1, columns)] {
        begin[axis] = range.start;
        size[axis] = range.len() as i64;
    }
    if size.iter().zip(x.shape()).all(|(&size, &n)| size == n as i64) {
        return Ok(x.clone());
    }
    x.slice(&begin, &size)
}

pub(super) fn above(top: &Tensor, bottom: &Tensor) -> Result<Tensor> {
    concat([top, bottom], -2)
}

pub(super) fn side_by_side(left: &Tensor, right: &Tensor) -> Result<Tensor> {
    concat([left, right], -1)
}

/// 0, 1, 2, ..., for the device and the dtype of `like`.
pub(super) fn steps(like: &Tensor, n: usize) -> Result<Tensor> {
    iota(Some(like.device()), n, 0.into(), 1.into(), like.dtype())
}

/// True on diagonal `k`.
pub(super) fn identity_mask(
    device: &Device,
    [rows, columns]: [usize; 2],
    k: i64,
) -> Result<Tensor> {
    let line = |n, from: i64| iota(Some(device), n, from.into(), 1.into(), DType::I32);
    line(rows, k)?.expand_dims(-1)?.equal(line(columns, 0)?)
}

/// A matrix with ones on its diagonal, for the device and the dtype of `like`.
pub(super) fn identity(like: &Tensor, sizes: [usize; 2]) -> Result<Tensor> {
    identity_mask(like.device(), sizes, 0)?.cast(like.dtype())
}

/// The transpose.
pub(super) fn turned(x: &Tensor) -> Result<Tensor> {
    let mut order: Vec<usize> = (0..x.rank()).collect();
    order.swap(x.rank() - 2, x.rank() - 1);
    x.transpose(&order)
}

/// The rows of each matrix at the indices `places` `[.., M]`.
pub(super) fn rows_at(x: &Tensor, places: &Tensor) -> Result<Tensor> {
    let batch_dims = x.rank() - 2;
    x.gather_with(places, batch_dims, GatherOptions::new().batch_dims(batch_dims))
}

/// Broadcasts the batch axes of both against each other.
pub(super) fn same_batch(op: &str, a: &Tensor, b: &Tensor) -> Result<(Tensor, Tensor)> {
    let both = crate::shape::broadcast(
        &format!("{op} (leading axes)"),
        &Shape::new(lead(a)),
        &Shape::new(lead(b)),
    )?;
    let spread = |x: &Tensor| {
        let sizes = [&both[..], &x.shape()[x.rank() - 2..]].concat();
        x.broadcast_to(sizes)
    };
    Ok((spread(a)?, spread(b)?))
}

/// Returns an error for a right-hand side whose rows or dtype do not match the matrix.
pub(super) fn fits(op: &str, matrix: &Tensor, rows: usize, rhs: &Tensor) -> Result<usize> {
    super::super::same_dtype(op, matrix.spec(), rhs.spec())?;
    let [have, columns] = match rhs.shape() {
        [.., have, columns] => [*have, *columns],
        _ => [usize::MAX, 0],
    };
    if have == rows {
        return Ok(columns);
    }
    Err(Error::Shape(message!(
        "{op}: the matrix is {:?} and the right side {:?}; the right side needs {rows} rows, [.., {rows}, K]. For one \
         vector use expand_dims(-1).",
        matrix.shape(),
        rhs.shape()
    )))
}
