//! Sample weights, broadcast to the shape of the weighted values.

use crate::dtype::DType;
use crate::error::{Error, Result, message};
use crate::tensor::Tensor;

/// Weights `[N]`, `[N,1]` or of the values' shape, broadcast to the values' shape.
pub(super) fn along(
    metric: &str,
    weight: Option<&Tensor>,
    values: &Tensor,
) -> Result<Option<Tensor>> {
    let Some(weight) = weight else { return Ok(None) };
    let shape = values.shape();
    let weight = weight.stop_gradient().cast(DType::F32)?;
    let mut sizes = weight.shape().to_vec();
    while sizes.len() > shape.len() && sizes.last() == Some(&1) {
        sizes.pop();
    }
    sizes.resize(sizes.len().max(shape.len()), 1);
    let fits = sizes.len() == shape.len()
        && sizes.iter().zip(shape).all(|(weight, value)| *weight == 1 || weight == value);
    if !fits {
        return Err(Error::Shape(message!(
            "{metric}: sample_weight is {:?} and the values are {shape:?}; weights need the first axes of the values, and \
             along each their size or 1.",
            weight.shape()
        )));
    }
    weight.reshape(&sizes[..])?.broadcast_to(shape).map(Some)
}
