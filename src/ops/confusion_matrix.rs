//! Confusion matrices.

use super::inventory::{Entry, Gradient, OpKind, one};
use super::{expect_dtype, select};
use crate::dtype::DType;
use crate::error::{Error, Result, message};
use crate::support::options::options;
use crate::tensor::Tensor;

options! {
    /// Options of [`confusion_matrix_with`].
    #[derive(Debug, Clone)]
    pub struct ConfusionMatrixOptions {
        /// The weight of each prediction, in the dtype of the result; 1 by default.
        weights: Option<Tensor> as impl Into<Option<Tensor>> = None,
        /// The dtype of the result; `i32` by default.
        dtype: DType = DType::I32,
    }
}

/// Counts the predictions: the element in row `i` and column `j` of the result `[num_classes,num_classes]` is the number of
/// times that the label was `i` and the prediction `j`. `labels` and `predictions` are `i32` and have the same shape. A pair
/// with a class outside `0..num_classes` is ignored; TensorFlow raises an error, which would require reading values back to the
/// host.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// let y = tf::confusion_matrix(&tf::constant([0, 1, 1])?, &tf::constant([0, 0, 1])?, 2)?;
/// assert_eq!(y.to_vec::<i32>()?, [1, 0, 1, 1]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::Shape`] if the shapes differ or the matrix is too large; [`Error::DType`] if the classes are not `i32`.
pub fn confusion_matrix(
    labels: &Tensor,
    predictions: &Tensor,
    num_classes: usize,
) -> Result<Tensor> {
    confusion_matrix_with(labels, predictions, num_classes, ConfusionMatrixOptions::new())
}

/// Like [`confusion_matrix`], with weights, or in another dtype.
///
/// # Errors
/// Same as [`confusion_matrix`], and [`Error::Shape`] if the shape of the weights differs from that of the labels,
/// [`Error::DType`] if their dtype differs from that of the result.
pub fn confusion_matrix_with(
    labels: &Tensor,
    predictions: &Tensor,
    num_classes: usize,
    options: ConfusionMatrixOptions,
) -> Result<Tensor> {
    const OP: &str = "ConfusionMatrix";
    for (what, x) in [("the labels", labels), ("the predictions", predictions)] {
        expect_dtype(&format!("{OP} ({what})"), x.spec(), &[DType::I32])?;
    }
    let weights = options.weights;
    let others = [Some(predictions), weights.as_ref()];
    if let Some(other) = others.into_iter().flatten().find(|x| x.shape() != labels.shape()) {
        return Err(Error::Shape(message!(
            "{OP}: the labels are {:?}, and the predictions or the weights {:?}; all need one shape.",
            labels.shape(),
            other.shape()
        )));
    }
    // The index of a cell must fit in `i32`.
    let cells = num_classes.checked_mul(num_classes).filter(|cells| i32::try_from(*cells).is_ok());
    let Some(cells) = cells else {
        return Err(Error::Shape(message!(
            "{OP}: {num_classes} classes make a matrix of more than 2^31 cells."
        )));
    };
    let count = match weights {
        Some(weights) => {
            expect_dtype(&format!("{OP} (the weights)"), weights.spec(), &[options.dtype])?;
            weights
        }
        None => Tensor::full_of(labels.shape(), 1, options.dtype)?,
    };
    let within = |x: &Tensor| x.greater_equal(0)?.logical_and(x.less(num_classes)?);
    let cell = labels.multiply(num_classes)?.add(predictions)?;
    let outside = Tensor::full_of([], -1, DType::I32)?;
    let cell = select(&within(labels)?.logical_and(within(predictions)?)?, &cell, &outside)?;
    let count = count.reshape([-1])?;
    let sums = count.unsorted_segment_sum(&cell.reshape([-1])?, cells)?;
    sums.reshape([num_classes, num_classes])
}

/// The inventory of this file.
pub(super) const ENTRIES: &[Entry] =
    &[Entry::new(OpKind::Composed, "confusion_matrix", &["tf.math.confusion_matrix"], |c| {
        let (labels, predictions) = (c.arg("labels")?, c.arg("predictions")?);
        one(confusion_matrix(labels, predictions, c.size("num_classes")?))
    })
    .forms(&["confusion_matrix_with"])
    .takes(&[DType::I32])
    .gradient(Gradient::None("ConfusionMatrix: numbers of pairs"))];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_count_and_strange_classes_do_not() {
        let ints = |x: &[i32]| Tensor::from_slice(x, [x.len()]).unwrap();
        let (labels, predictions) = (ints(&[0, 1, 2, -1, 1, 0]), ints(&[1, 1, 0, 0, 7, 1]));
        let plain = confusion_matrix(&labels, &predictions, 2).unwrap();
        assert_eq!(plain.to_vec::<i32>().unwrap(), [0, 2, 0, 1]);
        let weights = Tensor::from_slice(&[0.5f32, 1.0, 8.0, 8.0, 8.0, 0.25], [6]).unwrap();
        let options = ConfusionMatrixOptions::new().weights(weights).dtype(DType::F32);
        let weighted = confusion_matrix_with(&labels, &predictions, 2, options).unwrap();
        assert_eq!(weighted.to_vec::<f32>().unwrap(), [0.0, 0.75, 0.0, 1.0]);
        let none = confusion_matrix(&ints(&[]), &ints(&[]), 2).unwrap();
        assert_eq!(none.to_vec::<i32>().unwrap(), [0; 4]);
    }
}
