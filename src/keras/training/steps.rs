//! The default steps of a model on a batch: train, evaluate, predict.

use super::any_model::AnyModel;
use super::logs::StepLogs;
use super::pass::{flush, reset_metrics};
use super::phase::Phase;
use crate::data::Batch;
use crate::error::{Error, Result};
use crate::keras::{INFERENCE, Losses, TRAINING};
use crate::tape::GradientTape;
use crate::tensor::Tensor;
use crate::trackable::{Trackable, penalties_of};

/// Performs a training step.
pub(super) fn train(model: &dyn AnyModel, batch: &Batch) -> Result<StepLogs> {
    #[cfg(not(target_family = "wasm"))]
    if let Some(functions) = model.trainer().step_functions() {
        return functions.train.call(batch, &|batch| train_eagerly(model, batch));
    }
    train_eagerly(model, batch)
}

/// The loss and the metrics.
pub(super) fn test(model: &dyn AnyModel, batch: &Batch) -> Result<StepLogs> {
    #[cfg(not(target_family = "wasm"))]
    if let Some(functions) = model.trainer().step_functions() {
        return functions.test.call(batch, &|batch| test_eagerly(model, batch));
    }
    test_eagerly(model, batch)
}

/// The model's results.
pub(super) fn predict(model: &dyn AnyModel, batch: &Batch) -> Result<Vec<Tensor>> {
    #[cfg(not(target_family = "wasm"))]
    if let Some(functions) = model.trainer().step_functions() {
        return functions.predict.call(batch, &|batch| predict_eagerly(model, batch));
    }
    predict_eagerly(model, batch)
}

pub(super) fn train_eagerly(model: &dyn AnyModel, batch: &Batch) -> Result<StepLogs> {
    let compiled = model.trainer().compiled("train_step")?;
    let tape = GradientTape::new();
    let losses = Losses::new();
    let (y_pred, mask) = model.call_all(&batch.x, TRAINING.collect(&losses))?;
    let (loss, logs) = measure(model, batch, &y_pred, mask.as_ref(), &losses)?;
    drop((y_pred, mask));
    // The gradients of all replicas are added.
    #[cfg(not(target_family = "wasm"))]
    let loss = match crate::keras::share::share() {
        Some(share) => loss.multiply(share)?,
        None => loss,
    };
    compiled.optimizer().minimize(&loss, tape, model as &dyn Trackable)?;
    Ok(logs)
}

pub(super) fn test_eagerly(model: &dyn AnyModel, batch: &Batch) -> Result<StepLogs> {
    let losses = Losses::new();
    let (y_pred, mask) = model.call_all(&batch.x, INFERENCE.collect(&losses))?;
    Ok(measure(model, batch, &y_pred, mask.as_ref(), &losses)?.1)
}

pub(super) fn predict_eagerly(model: &dyn AnyModel, batch: &Batch) -> Result<Vec<Tensor>> {
    Ok(model.call_all(&batch.x, INFERENCE)?.0)
}

/// Performs a step on a single batch. Returns its scalars and its metrics.
pub(super) fn on_batch(model: &dyn AnyModel, phase: Phase, batch: &Batch) -> Result<StepLogs> {
    let trains = phase == Phase::Train;
    let call = if trains { "train_on_batch" } else { "test_on_batch" };
    let compiled = model.trainer().compiled(call)?;
    reset_metrics(model, &compiled)?;
    compiled.set_checked_labels(false);
    let mut logs = if trains { model.train_step(batch)? } else { model.test_step(batch)? };
    logs.take_checks().into_iter().for_each(|check| check.report(call));
    for (name, value) in compiled.results()? {
        logs = logs.add(&name, &value);
    }
    flush()?;
    Ok(logs)
}

/// Computes the loss, including those of layers and regularizers, and adds the batch to the
/// metrics.
pub(super) fn measure(
    model: &dyn AnyModel,
    batch: &Batch,
    y_pred: &[Tensor],
    mask: Option<&Tensor>,
    losses: &Losses,
) -> Result<(Tensor, StepLogs)> {
    let compiled = model.trainer().compiled("compute_loss")?;
    let outlets = compiled.outlets(|| model.output_names(), batch, y_pred)?;
    // A mask belongs to a single output.
    let mask = mask.filter(|_| y_pred.len() == 1);
    let checked = match compiled.has_checked_labels() {
        true => Vec::new(),
        false => compiled.checks(outlets, batch, y_pred)?,
    };
    let (total, parts) = compiled.loss(outlets, batch, &checked, y_pred, mask)?;
    let mut added = Vec::new();
    if !losses.to_vec().is_empty() {
        added.push(losses.sum()?);
    }
    added.extend(penalties_of(model as &dyn Trackable)?);
    let mut total = total;
    for loss in added {
        total = Some(match total {
            Some(total) => total.add(loss.cast(total.dtype())?)?,
            None => loss,
        });
    }
    let Some(mut total) = total else {
        return Err(Error::Data(
            "compile: no output has a loss, and no layer adds one; there is nothing to minimize."
                .into(),
        ));
    };
    for labels in &checked {
        total = labels.check.hold(&total)?;
    }
    compiled.update_metrics(outlets, batch, y_pred, mask)?;
    let mut logs = StepLogs::new().add("loss", &total);
    for (name, value) in parts.iter() {
        logs = logs.add(name, value);
    }
    for labels in checked {
        logs = logs.check(labels.check);
    }
    Ok((total, logs))
}
