//! Steps of `fit`, `evaluate` and `predict` in the replicas of a strategy: each computes its part of a batch.

use super::logs::StepLogs;
use super::trainer::Trainer;
use crate::data::Batch;
use crate::distribute::{PerReplica, Strategy};
use crate::eager;
use crate::error::{Error, Result, message};
use crate::keras::share::with_share;
use crate::tensor::Tensor;
use crate::trackable::Trackable;
use crate::variable::Variable;

/// Calls `step` with the batch, or if the model has a strategy with the parts of the batch, in its replicas. The scalars of the
/// result are the means over all examples.
pub(super) fn step(
    model: &dyn Trackable,
    trainer: &Trainer,
    batch: &Batch,
    step: impl Fn(&Batch) -> Result<StepLogs> + Sync,
) -> Result<StepLogs> {
    let Some(strategy) = strategy_for(trainer) else { return step(batch) };
    check_variables(model, &strategy)?;
    let (parts, shares) = match trainer.has_own_data() {
        true => split_own(&strategy, batch)?,
        false => split(&strategy, batch)?,
    };
    let part = |(batch, share): (Batch, f32)| with_share(share, || step(&batch));
    let parts = PerReplica::new(parts.into_iter().zip(shares.iter().copied()).collect());
    let logs = strategy.run(part, &parts)?;
    let device = &strategy.devices()[0];
    let mut all = StepLogs::new();
    let mut each = logs.into_values();
    // The values of this process are the means over its own examples.
    let own: f32 = shares.iter().sum();
    let weight = |share: f32| if own > 0.0 { share / own } else { 1.0 / shares.len() as f32 };
    for at in 0..each[0].iter().len() {
        let mut total: Option<Tensor> = None;
        let mut name = String::new();
        for (logs, share) in each.iter().zip(&shares) {
            let Some((own, value)) = logs.iter().nth(at) else { continue };
            let value = value.multiply(weight(*share))?.to(device)?;
            own.clone_into(&mut name);
            total = Some(match total {
                None => value,
                Some(total) => total.add(value)?,
            });
        }
        if let Some(total) = total {
            all = all.add(&name, &total);
        }
    }
    let checks = each.iter_mut().flat_map(StepLogs::take_checks);
    Ok(checks.fold(all, StepLogs::check))
}

/// As [`step`], for predictions, which this joins.
pub(super) fn predict(
    model: &dyn Trackable,
    trainer: &Trainer,
    batch: &Batch,
    step: impl Fn(&Batch) -> Result<Vec<Tensor>> + Sync,
) -> Result<Vec<Tensor>> {
    let strategy = strategy_for(trainer);
    let Some(strategy) = strategy.filter(|strategy| batch.len() >= strategy.num_replicas_in_sync())
    else {
        return step(batch);
    };
    check_variables(model, &strategy)?;
    let parts = PerReplica::new(split(&strategy, batch)?.0);
    let outputs = strategy.run(|batch: Batch| step(&batch), &parts)?.into_values();
    let joined = |at: usize| {
        let parts = outputs.iter().map(|all| all[at].clone()).collect();
        strategy.gather(&PerReplica::new(parts), 0)
    };
    (0..outputs[0].len()).map(joined).collect()
}

/// An error for a variable that has no value in each replica.
fn check_variables(model: &dyn Trackable, strategy: &Strategy) -> Result<()> {
    let lacks = |variable: &Variable| {
        !variable.is_on(strategy.devices())
            || strategy.workers().is_some() && !variable.is_mirrored()
    };
    if !model.variables().iter().any(lacks) {
        return Ok(());
    }
    let named = model.named_variables();
    let name = named.iter().find(|(_, variable)| lacks(variable)).map_or("", |(name, _)| name);
    Err(Error::Check(message!(
        "Strategy: the model was made in the scope of a strategy, but its variable '{name}' was not, so the replicas have no values \
         of it. Call build, or the model for the first time, in Strategy::scope, or leave both to fit."
    )))
}

/// The strategy to run a step with, unless this is a replica already.
fn strategy_for(trainer: &Trainer) -> Option<Strategy> {
    trainer.strategy().filter(|_| eager::replica().is_none() && !eager::in_trace())
}

/// As [`split`], of a batch that only this process has. All processes have such a batch, and the shares are those of all examples.
fn split_own(strategy: &Strategy, batch: &Batch) -> Result<(Vec<Batch>, Vec<f32>)> {
    let (rows, replicas) = (batch.len(), strategy.devices().len());
    let checked = match rows < replicas {
        true => Err(Error::Shape(message!(
            "fit: a batch of {rows} examples cannot be split among the {replicas} replicas of this process, which need an example each. \
             Drop a smaller last batch (drop_remainder)."
        ))),
        false => Ok(()),
    };
    let workers = strategy.workers().expect("there are several processes");
    checked.inspect_err(|error| workers.fail(error))?;
    workers.agree("fit: the sizes of batches", 0, false)?;
    let sizes = workers.gather((rows as u64).to_le_bytes().to_vec())?;
    let size = |bytes: &Vec<u8>| u64::from_le_bytes(bytes[..].try_into().unwrap_or_default());
    let all: u64 = sizes.iter().map(size).sum();
    let begin = |at: usize| rows / replicas * at + at.min(rows % replicas);
    let own = || (0..replicas).map(|at| (begin(at), begin(at + 1) - begin(at)));
    let mut parts = vec![Batch::default(); replicas];
    for (kind, tensors) in [&batch.x, &batch.y, &batch.sample_weight].into_iter().enumerate() {
        for tensor in tensors {
            let split = strategy.split_at(tensor, own())?.into_values();
            put(&mut parts, kind, split);
        }
    }
    Ok((parts, own().map(|(_, rows)| rows as f32 / all as f32).collect()))
}

/// Adds the parts of a tensor to the parts of its batch: of the inputs, the targets or the weights.
fn put(parts: &mut [Batch], kind: usize, split: Vec<Tensor>) {
    for (part, tensor) in parts.iter_mut().zip(split) {
        match kind {
            0 => part.x.push(tensor),
            1 => part.y.push(tensor),
            _ => part.sample_weight.push(tensor),
        }
    }
}

/// The parts of a batch, and their shares of its examples. If there are fewer examples than replicas, the last replicas repeat the
/// first example with a share of zero: all replicas take part in a step.
fn split(strategy: &Strategy, batch: &Batch) -> Result<(Vec<Batch>, Vec<f32>)> {
    let (rows, replicas) = (batch.len(), strategy.num_replicas_in_sync());
    let first = strategy.first_replica();
    let mut parts = vec![Batch::default(); strategy.devices().len()];
    let shares = strategy.own_rows(rows).map(|(_, own)| own as f32 / rows.max(1) as f32).collect();
    let tensors = |batch: &Batch| [batch.x.clone(), batch.y.clone(), batch.sample_weight.clone()];
    for (kind, tensors) in tensors(batch).into_iter().enumerate() {
        for tensor in tensors {
            let split = match rows < replicas && rows > 0 {
                false => strategy.split(&tensor)?.into_values(),
                true => {
                    let row = |at: usize| {
                        let (mut begin, mut size) =
                            (vec![0; tensor.rank()], vec![-1; tensor.rank()]);
                        let row = if first + at < rows { first + at } else { 0 };
                        (begin[0], size[0]) = (row, 1);
                        tensor.slice(&begin, &size)?.to(&strategy.devices()[at])
                    };
                    (0..strategy.devices().len()).map(row).collect::<Result<_>>()?
                }
            };
            put(&mut parts, kind, split);
        }
    }
    Ok((parts, shares))
}
