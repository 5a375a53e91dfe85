//! [`Mirrored`]: the values of a variable that was made in the scope of a strategy, one on each replica's device.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::aggregation::Writes;
use super::{Cell, Holder, Variable, VariableAggregation, VariableOptions};
use crate::dtype::DType;
use crate::eager::{self, Replicas};
use crate::error::{Error, Result, message};
use crate::runtime::Device;
use crate::tensor::Tensor;

/// Trainable variables have equal values in all replicas, as an optimizer changes them alike. Each replica may change its own
/// value of another variable, such as a moving average (TensorFlow's `ON_READ`): where no replica runs, the variable is their
/// mean. [`VariableOptions`] can say otherwise. With central storage, a trainable variable and an optimizer's slots have one value,
/// on the first device, which the other
/// replicas copy when they read it.
pub(super) struct Mirrored {
    replicas: Arc<Replicas>,
    values: Vec<Mutex<Tensor>>,
    writes: Writes,
}

/// An update: the new value of the variable's value and a delta.
type Update = fn(&Tensor, Tensor) -> Result<Tensor>;

impl Holder for Mirrored {
    fn lock(&self) -> MutexGuard<'_, Tensor> {
        match self.is_central() {
            true => self.of(0),
            false => self.of(eager::index_in(&self.replicas).unwrap_or(0)),
        }
    }

    fn mirrored(&self) -> Option<&Mirrored> {
        Some(self)
    }
}

impl Mirrored {
    /// A new variable; `None` unless this thread is in the scope of a strategy with several replicas.
    pub(super) fn variable(id: u64, options: VariableOptions, value: &Tensor) -> Option<Variable> {
        let trainable = options.trainable;
        let replicas = eager::replicas().filter(|replicas| replicas.in_sync() > 1)?;
        let central = replicas.is_central() && (trainable || eager::updates_replicas());
        let devices = &replicas.devices()[..if central { 1 } else { replicas.count() }];
        let values = copies(devices, value).into_iter().map(Mutex::new).collect();
        let mirrored = Mirrored { replicas: replicas.clone(), values, writes: options.writes() };
        if mirrored.writes == Writes::Own(VariableAggregation::Sum) {
            // The value is the sum of the replicas' ones.
            let _ = mirrored.assign_outside(value);
        }
        let cell = Cell::new(id, trainable, value.spec().clone(), mirrored);
        let variable = Variable(Arc::new(cell));
        replicas.made(&variable);
        Some(variable)
    }

    pub(super) fn changes_in_replicas(&self) -> bool {
        self.writes == Writes::Own(VariableAggregation::Mean) && !self.is_central()
    }

    fn is_central(&self) -> bool {
        self.values.len() < self.replicas.count()
    }

    fn of(&self, index: usize) -> MutexGuard<'_, Tensor> {
        self.values[index].lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn devices(&self) -> &[Device] {
        self.replicas.devices()
    }

    /// The value for this thread: that of its replica, or where no replica runs, the one of all.
    pub(super) fn value(&self) -> Tensor {
        if let Some(index) = eager::index_in(&self.replicas) {
            if !self.is_central() {
                return self.of(index).clone();
            }
            let value = self.of(0).clone();
            return copies(&self.devices()[index..=index], &value).swap_remove(0);
        }
        let first = self.of(0).clone();
        let is_float = matches!(first.dtype(), DType::F32 | DType::F16);
        let aggregate = match self.writes {
            Writes::Own(VariableAggregation::Mean) if is_float => {
                self.sum(&first).and_then(|sum| sum.divide(self.values.len() as f32))
            }
            Writes::Own(VariableAggregation::Sum) => self.sum(&first),
            _ => return first,
        };
        aggregate.unwrap_or_else(|error| Tensor::failed(&first, error))
    }

    fn sum(&self, first: &Tensor) -> Result<Tensor> {
        let mut sum = first.clone();
        for index in 1..self.values.len() {
            let value = self.of(index).clone();
            sum = sum.add(value.to(first.device())?)?;
        }
        Ok(sum)
    }

    /// Whether the replicas that run now assign the variable together.
    pub(super) fn is_joint_now(&self) -> bool {
        matches!(self.writes, Writes::Joint(_))
            && eager::index_in(&self.replicas).is_some()
            && !eager::updates_replicas()
    }

    /// Returns an error if the value that an update adds to is not that of one replica.
    pub(super) fn check_update(&self, op: &'static str) -> Result<()> {
        let outside = eager::index_in(&self.replicas).is_none();
        if outside && self.writes == Writes::Own(VariableAggregation::Sum) {
            return Err(Error::Check(message!(
                "{op}: outside of the replicas, this variable is the sum of their values, and which of them should change is not \
                 determined. Assign a whole value, which they share, or call this in Strategy::run."
            )));
        }
        Ok(())
    }

    /// Assigns the aggregate of what all replicas assign, or each replica's value updated by it. `id` is the variable's.
    pub(super) fn assign_together(
        &self,
        id: u64,
        op: &'static str,
        value: &Tensor,
        update: Option<Update>,
    ) -> Result<()> {
        let Some(replica) = eager::replica() else { return self.assign(value) };
        let Writes::Joint(aggregation) = self.writes else { return self.assign(value) };
        replica.meet(op, (id, value.stop_gradient()), |all| {
            if all.iter().any(|(other, _)| *other != id) {
                return Err(Error::Check(message!(
                    "{op}: the replicas assign different variables at the same time. All replicas have to make the same calls in the \
                     same order."
                )));
            }
            let total = self.aggregate(op, aggregation, all.into_iter().map(|(_, value)| value))?;
            let mut new = Vec::with_capacity(self.values.len());
            for (index, total) in total.into_iter().enumerate() {
                let old = self.of(index).clone();
                let value = || match update {
                    None => Ok(total),
                    Some(update) => update(&old, total),
                };
                new.push(self.devices()[index].scope(value)?.detached());
            }
            new.into_iter().enumerate().for_each(|(index, new)| *self.of(index) = new);
            Ok(vec![(); self.replicas.count()])
        })
    }

    /// The aggregate of a value of each replica of this process, over all processes, for each value of this variable.
    fn aggregate(
        &self,
        op: &'static str,
        aggregation: VariableAggregation,
        values: impl Iterator<Item = Tensor>,
    ) -> Result<Vec<Tensor>> {
        let only_first = aggregation == VariableAggregation::OnlyFirstReplica;
        if only_first && self.replicas.workers().is_none() {
            let first: Vec<Tensor> = values.take(1).collect();
            return self.devices()[..self.values.len()].iter().map(|to| first[0].to(to)).collect();
        }
        let first = self.replicas.first();
        let part = |(index, value): (usize, Tensor)| match only_first && first + index > 0 {
            // Zeros add nothing to the sum.
            true => value.device().scope(|| value.zeros_like()),
            false => Ok(value),
        };
        let parts = values.enumerate().map(|value| part(value).map(|part| vec![Some(part)]));
        let sums = self.replicas.sums(op, parts.collect::<Result<_>>()?, self.values.len())?;
        let sums = sums.into_iter().flatten().flatten();
        match aggregation {
            VariableAggregation::Mean => {
                sums.map(|sum| sum.divide(self.replicas.in_sync() as f32)).collect()
            }
            _ => Ok(sums.collect()),
        }
    }

    /// Assigns `value` where no replica runs.
    fn assign_outside(&self, value: &Tensor) -> Result<()> {
        let shared = match self.writes {
            // So that it is their sum.
            Writes::Own(VariableAggregation::Sum) => {
                let shares = self.replicas.count() as f32;
                match value.dtype() {
                    DType::F32 | DType::F16 => {
                        eager::lifted(|| value.stop_gradient().divide(shares))?
                    }
                    // Integers are not divisible: the first replica has all.
                    _ => {
                        let zeros = eager::lifted(|| value.zeros_like())?;
                        let rest = copies(&self.devices()[1..self.values.len()], &zeros);
                        let first = copies(&self.devices()[..1], value);
                        let all = first.into_iter().chain(rest).enumerate();
                        all.for_each(|(at, copy)| *self.of(at) = copy);
                        return Ok(());
                    }
                }
            }
            _ => value.clone(),
        };
        let copies = copies(&self.devices()[..self.values.len()], &shared);
        copies.into_iter().enumerate().for_each(|(at, copy)| *self.of(at) = copy);
        Ok(())
    }

    /// Changes the value of this thread's replica, or where no replica runs, that of all.
    pub(super) fn assign(&self, value: &Tensor) -> Result<()> {
        let Some(index) = eager::index_in(&self.replicas) else {
            return self.assign_outside(value);
        };
        if self.writes == Writes::Equal && !eager::updates_replicas() {
            return Err(Error::Check(message!(
                "AssignVariableOp: a replica cannot assign a trainable variable, which has equal values in all replicas. \
                 Change it with an optimizer, or assign it outside of Strategy::run; each replica can have its own value of a \
                 variable made with Variable::untrainable, and VariableOptions can aggregate what the replicas assign."
            )));
        }
        *self.of(if self.is_central() { 0 } else { index }) = value.detached();
        Ok(())
    }
}

/// `value` on each device. What cannot be copied has failed.
fn copies(devices: &[Device], value: &Tensor) -> Vec<Tensor> {
    let copy = |device: &Device| match eager::lifted(|| value.to(device)) {
        Ok(copy) => copy.detached(),
        Err(error) => Tensor::failed_on(device, value, error),
    };
    devices.iter().map(copy).collect()
}
