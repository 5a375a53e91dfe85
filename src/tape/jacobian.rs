//! Jacobians: the backward pass is traced once, for a placeholder of one row, and repeated on all rows at once.

use crate::error::{Error, Result, message};
use crate::ops::{Trace, concat, eye};
use crate::tensor::Tensor;

use super::options::JacobianOptions;
use super::recorder::Recorder;
use super::sources::{GradientSource, check_float};
use super::walk;

/// For each source a tensor whose shape is the target's followed by the source's.
pub(super) fn jacobian(
    recorder: &Recorder,
    once: bool,
    target: &Tensor,
    sources: &[GradientSource],
    options: &JacobianOptions,
) -> Result<Vec<Option<Tensor>>> {
    check_float("jacobian", "a target", target.spec())?;
    let rows = target.len();
    let each = rows_back(recorder, once, target, sources, options, rows, &|from, count| {
        let shape = [&[count], target.shape()].concat();
        unit_rows(target, rows, from, count)?.reshape_to(shape[..].into())
    })?;
    let each = each.into_iter().zip(sources).map(|(rows, source)| {
        let jacobian = match rows {
            Some(rows) => {
                let shape = [target.shape(), &source.spec.shape].concat();
                Some(rows.reshape_to(shape[..].into())?)
            }
            None => None,
        };
        let shapes = [target.shape(), &source.spec.shape];
        options.unconnected_gradients.instead(jacobian, shapes, source)
    });
    each.collect()
}

/// For the only source a tensor `[B, M.., N..]`, where the target is `[B, M..]` and the source `[B, N..]`.
pub(super) fn batch_jacobian(
    recorder: &Recorder,
    once: bool,
    target: &Tensor,
    sources: &[GradientSource],
    options: &JacobianOptions,
) -> Result<Vec<Option<Tensor>>> {
    check_float("batch_jacobian", "a target", target.spec())?;
    let [source] = sources else {
        return Err(Error::Gradient(message!(
            "GradientTape.batch_jacobian: {} sources; give one.",
            sources.len()
        )));
    };
    let first = |shape| <[usize]>::split_first(shape);
    let (Some((&batch, of_one)), Some((&own, x))) =
        (first(target.shape()), first(&source.spec.shape))
    else {
        return Err(no_batch(target, source));
    };
    if batch != own {
        return Err(no_batch(target, source));
    }
    let rows: usize = of_one.iter().product();
    let each = rows_back(recorder, once, target, sources, options, rows, &|from, count| {
        // Row r is 1 at element r of every example.
        let mut shape = vec![count, 1];
        shape.extend_from_slice(of_one);
        let units = unit_rows(target, rows, from, count)?.reshape_to(shape[..].into())?;
        shape[1] = batch;
        units.broadcast_to(shape)
    })?;
    let jacobian = match each.into_iter().next().flatten() {
        // [rows, B, N..] to [B, rows, N..].
        Some(grads) => {
            let order: Vec<i64> = [1, 0].into_iter().chain(2..grads.rank() as i64).collect();
            let shape = [target.shape(), x].concat();
            Some(grads.transpose(&order[..])?.reshape_to(shape[..].into())?)
        }
        None => None,
    };
    let shapes = [target.shape(), x];
    Ok(vec![options.unconnected_gradients.instead(jacobian, shapes, source)?])
}

fn no_batch(target: &Tensor, source: &GradientSource) -> Error {
    Error::Shape(message!(
        "GradientTape.batch_jacobian: the target is {:?} and the source {}; their first axes must have one size, the \
         batch. Use jacobian where there is no batch.",
        target.shape(),
        source.spec.shape
    ))
}

/// The rows `from` to `from + count` of the identity matrix of `size` rows.
fn unit_rows(target: &Tensor, size: usize, from: usize, count: usize) -> Result<Tensor> {
    let units = target.device().scope(|| eye(size, size))?.cast(target.dtype())?;
    if count == size { Ok(units) } else { units.slice(&[from, 0], &[count as i64, size as i64]) }
}

/// The gradients for `count` rows of target gradients, which `upstream` returns from a given row on; each is stacked
/// along a leading axis.
fn rows_back(
    recorder: &Recorder,
    once: bool,
    target: &Tensor,
    sources: &[GradientSource],
    options: &JacobianOptions,
    count: usize,
    upstream: &dyn Fn(usize, usize) -> Result<Tensor>,
) -> Result<Vec<Option<Tensor>>> {
    let one = target.ones_like()?;
    let (trace, grads) = Trace::record(&[&one], || {
        walk::backward(recorder, once, std::slice::from_ref(target), Some(&[&one]), sources)
    })?;
    let found: Vec<&Tensor> = grads.iter().flatten().collect();
    let at_once = options.parallel_iterations.unwrap_or(count).clamp(1, count.max(1));
    let mut parts: Vec<Vec<Tensor>> = vec![Vec::new(); found.len()];
    for from in (0..count).step_by(at_once) {
        let rows = at_once.min(count - from);
        let replayed = trace.replay(rows, &[(&one, upstream(from, rows)?)], &found)?;
        for (parts, part) in parts.iter_mut().zip(replayed) {
            parts.push(part);
        }
    }
    let mut whole = found.iter().zip(parts).map(|(grad, mut parts)| match parts.len() {
        0 => {
            let shape = [&[0], grad.shape()].concat();
            grad.device().scope(|| Tensor::zeros(shape))?.cast(grad.dtype())
        }
        1 => Ok(parts.swap_remove(0)),
        _ => concat(parts, 0),
    });
    grads.iter().map(|grad| grad.as_ref().and_then(|_| whole.next()).transpose()).collect()
}
