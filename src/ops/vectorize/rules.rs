//! Ops with shaders that accept the rows as one of their own axes, or as an additional first axis.

use std::any::Any;

use super::super::gather::Gather;
use super::super::matmul::MatMul;
use super::super::scan::{Cumulative, LinearRecurrence};
use super::super::segment_sum::{SegmentSum, segment_sum};
use super::super::{GatherOptions, MatmulOptions, Operation};
use super::windows;
use super::{Lane, spread};
use crate::error::Result;
use crate::tensor::Tensor;

/// Calls `op` on all rows, if there is a rule for it.
pub(super) fn call(op: &dyn Operation, inputs: &[Lane], rows: usize) -> Result<Option<Tensor>> {
    let op: &dyn Any = op;
    if let Some(y) = windows::call(op, inputs, rows)? {
        return Ok(Some(y));
    }
    let y = match inputs {
        [Lane::Rows(x)] => match op.downcast_ref::<Cumulative>() {
            Some(op) => op.of_rows(x)?,
            None => return Ok(None),
        },
        [a, b] => {
            if let Some(op) = op.downcast_ref::<MatMul>() {
                matmul(op, a, b)?
            } else if let Some(op) = op.downcast_ref::<Gather>() {
                gather(op, a, b, rows)?
            } else if let Some(op) = op.downcast_ref::<SegmentSum>().filter(|op| !op.product) {
                sum_segments(op, a, b, rows)?
            } else if let Some(op) = op.downcast_ref::<LinearRecurrence>() {
                op.of_rows(&spread(a, rows)?, &spread(b, rows)?)?
            } else {
                return Ok(None);
            }
        }
        _ => return Ok(None),
    };
    Ok(Some(y))
}

fn matmul(op: &MatMul, a: &Lane, b: &Lane) -> Result<Tensor> {
    let options = MatmulOptions::new().transpose_a(op.transpose_a).transpose_b(op.transpose_b);
    // The number of axes of one row.
    let rank = |x: &Lane| match x {
        Lane::Rows(x) => x.rank() - 1,
        Lane::One(x) => x.rank(),
    };
    let most = rank(a).max(rank(b));
    let aligned = |x: &Lane| match x {
        Lane::One(x) => Ok(x.clone()),
        Lane::Rows(x) => with_axes(x, most + 1 - x.rank()),
    };
    aligned(a)?.matmul_with(&aligned(b)?, options)
}

/// `x` with `count` axes of size 1 after its first.
fn with_axes(x: &Tensor, count: usize) -> Result<Tensor> {
    let mut shape = vec![x.shape()[0]];
    shape.resize(1 + count, 1);
    shape.extend_from_slice(&x.shape()[1..]);
    x.reshape_to(shape[..].into())
}

fn gather(op: &Gather, x: &Lane, indices: &Lane, rows: usize) -> Result<Tensor> {
    match (x, indices) {
        (Lane::Rows(x), Lane::One(indices)) if op.batch_dims == 0 => {
            x.gather(indices, op.axis as i64 + 1)
        }
        (Lane::One(x), Lane::Rows(indices)) if op.batch_dims == 0 && op.axis == 0 => {
            x.gather(indices, 0)
        }
        _ => {
            let options = GatherOptions::new().batch_dims(op.batch_dims + 1);
            spread(x, rows)?.gather_with(&spread(indices, rows)?, op.axis as i64 + 1, options)
        }
    }
}

fn sum_segments(op: &SegmentSum, x: &Lane, ids: &Lane, rows: usize) -> Result<Tensor> {
    // The rows become batches, in addition to the existing ones.
    let joined = |x: &Tensor| {
        let mut shape = vec![x.shape()[0] * x.shape()[1]];
        shape.extend_from_slice(&x.shape()[2..]);
        x.reshape_to(shape[..].into())
    };
    let sums = segment_sum(&joined(&spread(x, rows)?)?, &joined(&spread(ids, rows)?)?, op.rows)?;
    let batches = sums.shape()[0] / rows;
    sums.reshape_to([rows, batches, sums.shape()[1], sums.shape()[2]].into())
}
