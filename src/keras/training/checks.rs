//! Detects errors in data that ops accept: a label out of range would only result in a NaN loss. Labels of arrays are checked
//! before the first step, those of batches by the device, together with the step.

use super::any_model::AnyModel;
use super::feed::Feed;
use super::label_check::label_error;
use super::trainer::Compiled;
use crate::data::{Batch, Column};
use crate::dtype::DType;
use crate::error::{Error, Result, message};
use crate::keras::INFERENCE;
use crate::keras::trial::trial;
use crate::ops::where_;
use crate::tensor::Tensor;

/// Refuses arrays with labels that a loss does not accept.
pub(super) async fn labels(
    model: &dyn AnyModel,
    compiled: &Compiled,
    feed: &Feed<'_>,
) -> Result<()> {
    let Some(arrays) = feed.arrays().filter(|arrays| !arrays.y.is_empty()) else { return Ok(()) };
    let Some(batch) = feed.sample()? else { return Ok(()) };
    let mut wanted = Vec::new();
    // The results are not read, so only the shapes are computed, and the weights if this is the first call.
    trial(|| {
        let (y_pred, _) = model
            .call_all(&batch.x, INFERENCE)
            .map_err(|error| with_remedy(model, Some(compiled), feed, &batch, error))?;
        let outlets = compiled.outlets(|| model.output_names(), &batch, &y_pred)?;
        for (outlet, y_pred) in outlets.iter().zip(&y_pred) {
            let rule = outlet.loss.as_ref().and_then(|loss| loss.class_labels(y_pred));
            let column = outlet.column(&arrays.y);
            wanted.extend(rule.zip(column).map(|found| (found, y_pred.shape().to_vec())));
        }
        Ok(())
    })?;
    for ((rule, column), shape) in wanted {
        let Some((low, high)) = range(column, rule.ignored).await? else { continue };
        if low >= 0.0 && high < rule.classes as f64 {
            continue;
        }
        let wrong = if low >= 0.0 { high } else { low };
        return Err(label_error(feed.call(), wrong, rule, &shape));
    }
    Ok(())
}

/// The smallest and the largest value that is not ignored.
async fn range(column: &Column<'_>, ignored: Option<i32>) -> Result<Option<(f64, f64)>> {
    let Some(tensor) = column.tensor() else { return Ok(column.range(ignored)) };
    if tensor.is_empty() || tensor.dtype() == DType::Bool {
        return Ok(None);
    }
    let mut numbers = tensor.cast(DType::F32)?;
    if let Some(ignored) = ignored {
        let counts = numbers.not_equal(ignored as f32)?;
        numbers = where_(&counts, &numbers, &numbers.zeros_like()?)?;
    }
    let bounds = [numbers.reduce_min(())?, numbers.reduce_max(())?];
    let bounds = Tensor::to_vecs_async::<f32>(&[&bounds[0], &bounds[1]]).await?;
    Ok(Some((f64::from(bounds[0][0]), f64::from(bounds[1][0]))))
}

/// Checks that the model and its losses accept a batch such as `sample`. Nothing is computed or changed.
fn takes(model: &dyn AnyModel, compiled: &Compiled, sample: &Batch) -> Result<()> {
    trial(|| {
        let (y_pred, mask) = model.call_all(&sample.x, INFERENCE)?;
        let outlets = compiled.outlets(|| model.output_names(), sample, &y_pred)?;
        compiled.loss(
            outlets,
            sample,
            &[],
            &y_pred,
            mask.as_ref().filter(|_| y_pred.len() == 1),
        )?;
        Ok(())
    })
}

/// Adds a remedy to the error of a step on `batch`, if the batch seems to be a single example: if the model accepts it as a
/// batch of one.
pub(super) fn with_remedy(
    model: &dyn AnyModel,
    compiled: Option<&Compiled>,
    feed: &Feed<'_>,
    batch: &Batch,
    error: Error,
) -> Error {
    let lifted =
        |list: &[Tensor]| list.iter().map(|x| x.expand_dims(0)).collect::<Result<Vec<_>>>();
    let as_one = || -> Result<()> {
        let (x, y) = (lifted(&batch.x)?, lifted(&batch.y)?);
        let one = Batch { x, y, sample_weight: lifted(&batch.sample_weight)? };
        match compiled {
            Some(compiled) => takes(model, compiled, &one),
            None => trial(|| model.call_all(&one.x, INFERENCE).map(drop)),
        }
    };
    if !matches!(error, Error::Shape(_)) || as_one().is_err() {
        return error;
    }
    let shape = batch.x.first().map_or(&[][..], Tensor::shape);
    let remedy = match feed.arrays() {
        Some(_) => "give it one: x.expand_dims(0) of a tensor, x.insert_axis(Axis(0)) of an array",
        None => "batch the examples: dataset.batch(32)",
    };
    error.reworded(|text| {
        let call = match text.starts_with(feed.call()) {
            true => String::new(),
            false => format!("{}: ", feed.call()),
        };
        message!(
            "{call}{text} The first axis must count the examples, and x is {shape:?}; if that is a single example, {remedy}."
        )
    })
}

/// Refuses validation data that the model does not accept before the training rather than after the first epoch. A model with
/// custom steps may accept data that its losses do not; in that case, the check also fails for the training data, and is
/// skipped.
pub(super) fn validation(
    model: &dyn AnyModel,
    compiled: &Compiled,
    training: &Feed<'_>,
    validation: &Feed<'_>,
) -> Result<()> {
    let (Some(one), Some(other)) = (training.sample()?, validation.sample()?) else {
        return Ok(());
    };
    if takes(model, compiled, &one).is_err() {
        return Ok(());
    }
    takes(model, compiled, &other)
        .map_err(|error| error.reworded(|text| message!("{}: {text}", validation.call())))
}
