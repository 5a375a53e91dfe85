//! Converts truth and predictions to one dtype and shape, or returns an error that explains why they do not fit.

use crate::dtype::DType;
use crate::error::{Error, Result, message};
use crate::tensor::Tensor;

/// Truth and predictions in `f32` and of one shape.
pub(crate) fn agree(loss: &str, y_true: &Tensor, y_pred: &Tensor) -> Result<[Tensor; 2]> {
    let y_pred = float(loss, y_pred)?;
    same_shape(loss, &y_true.cast(DType::F32)?, &y_pred)
}

/// Same as [`agree`], for predictions of any dtype.
pub(crate) fn agree_cast(what: &str, y_true: &Tensor, y_pred: &Tensor) -> Result<[Tensor; 2]> {
    same_shape(what, &y_true.cast(DType::F32)?, &y_pred.cast(DType::F32)?)
}

/// The predictions in `f32`: sums over a batch need its precision.
pub(super) fn float(loss: &str, y_pred: &Tensor) -> Result<Tensor> {
    if !y_pred.dtype().is_float() {
        return Err(Error::DType(message!(
            "{loss}: y_pred is {}; predictions must be float. Cast them, or pass y_true first and y_pred second.",
            y_pred.dtype()
        )));
    }
    y_pred.cast(DType::F32)
}

/// Both in one shape. As in Keras, one may lack a last axis of size 1.
///
/// Other shapes are not broadcast: a column and a row would produce a number that looks like a loss but is not one.
pub(crate) fn same_shape(what: &str, y_true: &Tensor, y_pred: &Tensor) -> Result<[Tensor; 2]> {
    let pair = same_rank(y_true, y_pred)?;
    if pair[0].shape() == pair[1].shape() {
        return Ok(pair);
    }
    Err(Error::Shape(message!(
        "{what}: y_true is {:?} and y_pred is {:?}; they must have one shape. Reshape one of them.",
        y_true.shape(),
        y_pred.shape()
    )))
}

/// Converts both to one rank if one has an additional last axis of size 1: to the higher rank if the other has one
/// axis, else to the lower rank.
pub(crate) fn same_rank(a: &Tensor, b: &Tensor) -> Result<[Tensor; 2]> {
    let column = |long: &Tensor, short: &Tensor| {
        long.rank() == short.rank() + 1 && long.shape().last() == Some(&1)
    };
    Ok(match (column(a, b), column(b, a)) {
        (true, _) if b.rank() == 1 => [a.clone(), b.expand_dims(-1)?],
        (true, _) => [a.squeeze([-1])?, b.clone()],
        (_, true) if a.rank() == 1 => [a.expand_dims(-1)?, b.clone()],
        (_, true) => [a.clone(), b.squeeze([-1])?],
        _ => [a.clone(), b.clone()],
    })
}
