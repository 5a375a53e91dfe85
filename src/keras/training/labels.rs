//! Checks labels before the first step: a device says nothing of a label that its loss does not have.

use super::any_model::AnyModel;
use super::feed::Feed;
use super::trainer::Compiled;
use crate::data::Column;
use crate::error::{Error, Result, message};
use crate::keras::INFERENCE;
use crate::tensor::Tensor;

/// Refuses labels out of the range of a loss that takes labels of classes.
pub(super) async fn check(
    model: &dyn AnyModel,
    compiled: &Compiled,
    feed: &Feed<'_>,
) -> Result<()> {
    let Some(arrays) = feed.arrays().filter(|arrays| !arrays.y.is_empty()) else { return Ok(()) };
    let Some(batch) = feed.sample()? else { return Ok(()) };
    // Nobody reads the results, so nothing is computed but the shapes, and the weights if this is the first call.
    let (y_pred, _) = model.call_all(&batch.x, INFERENCE)?;
    let outlets = compiled.outlets(|| model.output_names(), &batch, &y_pred)?;
    for (outlet, y_pred) in outlets.iter().zip(&y_pred) {
        let sparse = |loss: &str| loss == "sparse_categorical_crossentropy";
        let classes = match (&outlet.loss, y_pred.shape()) {
            (Some(loss), [.., classes]) if sparse(loss.name()) => *classes,
            _ => continue,
        };
        let Some(column) = outlet.column(&arrays.y) else { continue };
        let Some((low, high)) = range(column).await? else { continue };
        if low >= 0.0 && high < classes as f64 {
            continue;
        }
        let wrong = if low >= 0.0 { high } else { low };
        return Err(Error::Index(message!(
            "fit: a label is {wrong}, and the model's output {:?} has {classes} classes: labels must be from 0 to {}. \
             Count the classes from 0, or give the last layer more units.",
            y_pred.shape(),
            classes.saturating_sub(1)
        )));
    }
    Ok(())
}

/// The smallest and the largest value.
async fn range(column: &Column<'_>) -> Result<Option<(f64, f64)>> {
    let Some(tensor) = column.tensor() else { return Ok(column.range()) };
    if tensor.is_empty() || tensor.dtype() == crate::dtype::DType::Bool {
        return Ok(None);
    }
    let numbers = tensor.cast(crate::dtype::DType::F32)?;
    let bounds = [numbers.reduce_min(())?, numbers.reduce_max(())?];
    let bounds = Tensor::to_vecs_async::<f32>(&[&bounds[0], &bounds[1]]).await?;
    Ok(Some((f64::from(bounds[0][0]), f64::from(bounds[1][0]))))
}
