//! The backward pass: from the targets through the recorded calls to the sources.

use std::rc::Rc;

use crate::eager;
use crate::error::{Error, Result, message};
use crate::ops::{Backward, unbroadcast};
use crate::tensor::Tensor;

use super::recorder::{ById, Entry, Ids, ReadIds, Recorder};
use super::sources::{GradientSource, SourceKind, check_float};

/// The gradient of each source; with `once` the pass frees the entries as it proceeds.
pub(super) fn backward(
    recorder: &Recorder,
    once: bool,
    targets: &[Tensor],
    output_gradients: Option<&[&Tensor]>,
    sources: &[GradientSource],
) -> Result<Vec<Option<Tensor>>> {
    let ids: Vec<ReadIds> = sources
        .iter()
        .map(|source| match source.kind {
            SourceKind::Tensor(id) => smallvec::smallvec![id],
            SourceKind::Variable(id) => recorder.reads_of(id),
        })
        .collect();
    let mut entries = recorder.entries(once);
    let reached = reach(&entries, ids.iter().flatten());
    let mut grads = seed(targets, output_gradients, &reached)?;
    let wanted: Ids = ids.iter().flatten().copied().collect();

    while let Some(entry) = entries.pop() {
        if !reached.contains(&entry.output_id) {
            continue;
        }
        let dy = match wanted.contains(&entry.output_id) {
            true => grads.get(&entry.output_id).cloned(),
            false => grads.remove(&entry.output_id),
        };
        if let Some(dy) = dy {
            step_back(&entry, &dy, &reached, &mut grads)?;
        }
    }
    let grads = ids.iter().map(|ids| {
        let mut parts = ids.iter().filter_map(|id| grads.get(id));
        let Some(first) = parts.next() else { return Ok(None) };
        parts.try_fold(first.clone(), |sum, part| sum.add(part)).map(Some)
    });
    let grads = grads.collect::<Result<Vec<Option<Tensor>>>>()?;
    if let Some(target) = targets.first() {
        eager::gradients_end(target.device());
    }
    Ok(grads)
}

/// Converts a missing gradient into an error that explains why it is missing.
pub(super) fn require(
    recorder: &Recorder,
    grads: Vec<Option<Tensor>>,
    targets: &[Tensor],
    sources: &[GradientSource],
) -> Result<Vec<Tensor>> {
    grads
        .into_iter()
        .zip(sources)
        .enumerate()
        .map(|(at, (grad, source))| {
            grad.ok_or_else(|| {
                let shapes: Vec<&[usize]> = targets.iter().map(|t| t.shape()).collect();
                let unread = match source.kind {
                    SourceKind::Variable(id) if recorder.reads_of(id).is_empty() => {
                        " It was not read while the tape was open, or is not trainable: use it in the model, or watch it."
                    }
                    SourceKind::Tensor(_) => " Watch it before it is used.",
                    SourceKind::Variable(_) => "",
                };
                let which = match sources.len() {
                    1 => String::new(),
                    _ => format!(" (source {at})"),
                };
                let stops = recorder.stops();
                let stopped = match stops.is_empty() {
                    true => String::new(),
                    false => format!(" Gradients ended at {}.", stops.join("; ")),
                };
                Error::Gradient(message!(
                    "GradientTape.gradient: no path of differentiable ops leads from {}{which} to the target {}.{unread}{stopped}",
                    source.label(),
                    shapes.iter().map(|s| format!("{s:?}")).collect::<Vec<_>>().join(", "),
                ))
            })
        })
        .collect()
}

/// The ids that depend on the sources; the pass calls only their rules.
fn reach<'a>(entries: &[Rc<Entry>], sources: impl Iterator<Item = &'a u64>) -> Ids {
    let mut reached: Ids = sources.copied().collect();
    for entry in entries {
        if entry.inputs.iter().any(|x| reached.contains(&x.id)) {
            reached.insert(entry.output_id);
        }
    }
    reached
}

/// The gradients that the targets start with.
fn seed(
    targets: &[Tensor],
    output_gradients: Option<&[&Tensor]>,
    reached: &Ids,
) -> Result<ById<Tensor>> {
    if let Some(given) = output_gradients {
        let fits = given.len() == targets.len()
            && given.iter().zip(targets).all(|(g, t)| g.spec() == t.spec());
        if !fits {
            return Err(Error::Gradient(message!(
                "GradientTape.gradient: {} output_gradients for {} targets; give one of the same shape and dtype for each \
                 target.",
                given.len(),
                targets.len()
            )));
        }
    }
    let mut grads = ById::default();
    for (i, target) in targets.iter().enumerate() {
        check_float("gradient", "a target", target.spec())?;
        if !reached.contains(&target.id()) {
            continue;
        }
        let grad = match output_gradients {
            Some(given) => given[i].clone(),
            None => target.ones_like()?,
        };
        accumulate(&mut grads, target.id(), grad)?;
    }
    Ok(grads)
}

fn step_back(entry: &Entry, dy: &Tensor, reached: &Ids, grads: &mut ById<Tensor>) -> Result<()> {
    let needs = |i: usize| {
        let x = &entry.inputs[i];
        reached.contains(&x.id) && x.spec.dtype.is_float()
    };
    let back = Backward { inputs: &entry.inputs, output: entry.output.as_ref(), dy, needs: &needs };
    for (i, grad) in entry.op.grad(&back)?.into_iter().enumerate() {
        if let (true, Some(grad)) = (back.needs(i), grad) {
            let x = &entry.inputs[i];
            accumulate(grads, x.id, unbroadcast(&grad, &x.spec.shape)?)?;
        }
    }
    Ok(())
}

fn accumulate(grads: &mut ById<Tensor>, id: u64, grad: Tensor) -> Result<()> {
    let sum = match grads.get(&id) {
        Some(known) => known.add(&grad)?,
        None => grad,
    };
    grads.insert(id, sum);
    Ok(())
}
