//! Argument checks of recurrent cells and layers.

use crate::error::{Error, Result, message};
use crate::ops::{FLOATS, expect_dtype, same_dtype};
use crate::tensor::Tensor;

/// Checks a cell's shapes: `x` `[B,F]`, states `[B,U]`, kernels `[F,G*U]` and `[U,G*U]`, bias `[G*U]`, or `[2,G*U]` if
/// it has two rows.
pub(super) fn cell(
    op: &str,
    gates: usize,
    x: &Tensor,
    states: &[&Tensor],
    kernels: [&Tensor; 2],
    bias: Option<&Tensor>,
    rows: usize,
) -> Result<()> {
    if x.rank() != 2 {
        return Err(Error::Shape(message!(
            "{op}: the input is {:?}; a cell takes one step, [B, F]. For whole sequences call the layer's function.",
            x.shape()
        )));
    }
    let units = kernels_and_bias(op, gates, x, kernels, bias, rows)?;
    states.iter().try_for_each(|state| one_state(op, state, [x.shape()[0], units], x))
}

/// Checks kernels and bias against the last axis of `x`; returns the number of units.
pub(super) fn kernels_and_bias(
    op: &str,
    gates: usize,
    x: &Tensor,
    [kernel, recurrent]: [&Tensor; 2],
    bias: Option<&Tensor>,
    rows: usize,
) -> Result<usize> {
    expect_dtype(op, x.spec(), FLOATS)?;
    for weight in [kernel, recurrent].into_iter().chain(bias) {
        same_dtype(op, x.spec(), weight.spec())?;
    }
    let features = x.shape()[x.rank() - 1];
    let units = recurrent.shape().first().copied().unwrap_or(0);
    let wide = gates.saturating_mul(units);
    let known = match rows {
        1 => vec![wide],
        _ => vec![rows, wide],
    };
    let fits = recurrent.shape() == [units, wide]
        && kernel.shape() == [features, wide]
        && bias.is_none_or(|bias| bias.shape() == known);
    if fits && units > 0 {
        return Ok(units);
    }
    Err(Error::Shape(message!(
        "{op}: with inputs of {features} features, the kernel is {:?}, the recurrent kernel {:?} and the bias {:?}; for U \
         units they must be [{features}, {gates} U], [U, {gates} U] and {}.",
        kernel.shape(),
        recurrent.shape(),
        bias.map(Tensor::shape),
        if rows == 1 { format!("[{gates} U]") } else { format!("[{rows}, {gates} U]") }
    )))
}

pub(super) fn one_state(op: &str, state: &Tensor, shape: [usize; 2], x: &Tensor) -> Result<()> {
    same_dtype(op, x.spec(), state.spec())?;
    if state.shape() == shape {
        return Ok(());
    }
    Err(Error::Shape(message!(
        "{op}: a state is {:?}; for this batch and these kernels it must be {shape:?}.",
        state.shape()
    )))
}
