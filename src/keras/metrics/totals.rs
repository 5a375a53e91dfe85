//! [`Totals`]: the sums of a metric on the device, and the count on the host.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::dtype::DType;
use crate::eager::{self, RunCounter};
use crate::error::{Error, Result, message};
use crate::graph::ValueState;
use crate::host_array::HostDType;
#[cfg(not(target_family = "wasm"))]
use crate::keras::share::share;
use crate::runtime::Device;
use crate::tensor::{Operand, Tensor, Varying};
use crate::trackable::{HostState, NamedArray, Parts, Slot, Trackable};
use crate::variable::Variable;

/// Sums to which each batch is added. The first batch determines their shapes and their device.
#[derive(Debug)]
pub(super) struct Totals {
    slots: Vec<(&'static str, Slot)>,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    count: u64,
    /// The last totals that the device has certainly computed, and their count.
    safe: Option<(Vec<Tensor>, u64)>,
    /// The zeros of the last reset.
    zeros: Vec<Tensor>,
}

impl Totals {
    /// As [`Totals::add`], in a replica of a strategy: adds the parts of all replicas, on the device of the first one.
    #[cfg(not(target_family = "wasm"))]
    fn add_in_replicas(
        &self,
        replica: &eager::Replica,
        metric: &str,
        sums: &[Tensor],
        count: u64,
    ) -> Result<()> {
        let part = (share() != Some(0.0)).then(|| (sums.to_vec(), count));
        replica.meet("update_state", part, |parts| {
            let device = &replica.replicas.devices()[0];
            eager::outside_replicas(|| {
                parts.iter().flatten().try_for_each(|(sums, count)| {
                    let sums = sums.iter().map(|sum| sum.to(device)).collect::<Result<Vec<_>>>()?;
                    self.add(metric, &sums, *count)
                })
            })?;
            Ok(vec![(); parts.len()])
        })
    }

    pub(super) fn new(names: &[&'static str]) -> Self {
        let slots = names.iter().map(|name| (*name, Slot::new(false))).collect();
        Totals { slots, state: Arc::default() }
    }

    /// Adds a batch's `sums`, one for each of the first names, and `count`, in one step: either all of them count or
    /// none. The other totals, which must be scalars, do not change.
    pub(super) fn add(&self, metric: &str, sums: &[Tensor], count: u64) -> Result<()> {
        #[cfg(not(target_family = "wasm"))]
        if let Some(replica) = eager::replica() {
            return self.add_in_replicas(&replica, metric, sums, count);
        }
        let mut totals = Vec::with_capacity(self.slots.len());
        for (at, (_, slot)) in self.slots.iter().enumerate() {
            let Some(sum) = sums.get(at) else {
                let zero = |left: Option<&NamedArray<'_>>| match left {
                    Some(left) => left.to_tensor(&[], DType::F32),
                    None => Tensor::from_slice(&[0f32], []),
                };
                totals.push(sums[0].device().scope(|| slot.get_or_make(zero))?);
                continue;
            };
            let value = |left: Option<&NamedArray<'_>>| match left {
                Some(left) => left.to_tensor(sum.shape(), DType::F32),
                None => Tensor::zeros(sum.shape()),
            };
            let total = sum.device().scope(|| slot.get_or_make(value))?;
            if total.shape() != sum.shape() {
                return Err(Error::Shape(message!(
                    "{metric}: the batches before gave totals {:?}, and this one gives {:?}. Give it batches with \
                     the same number of classes, or use a separate metric for these.",
                    total.shape(),
                    sum.shape()
                )));
            }
            totals.push(total);
        }
        let mut state = self.state();
        let runs_now = !eager::traces_function();
        if runs_now {
            state.heal(metric, &totals, sums[0].device())?;
            state.follow(&totals, sums[0].device())?;
        }
        let new = totals.iter().zip(sums).map(|(total, sum)| total.read_stopped().add(sum));
        let new = new.collect::<Result<Vec<Tensor>>>()?;
        for (total, value) in totals.iter().zip(&new) {
            total.assign(value)?;
        }
        if runs_now {
            state.count += count;
            return Ok(());
        }
        drop(state);
        let (metric, device) = (metric.to_string(), sums[0].device().clone());
        let totals: Vec<Variable> = totals.into_iter().cloned().collect();
        self.at_each_run(move |state| {
            let totals: Vec<&Variable> = totals.iter().collect();
            state.heal(&metric, &totals, &device)?;
            state.count += count;
            Ok(())
        });
        Ok(())
    }

    /// The totals if batches or a checkpoint have set them.
    pub(super) fn now(&self) -> Result<Option<Vec<Tensor>>> {
        let totals = self.variables()?;
        Ok(totals.map(|totals| totals.iter().map(|total| total.read_stopped()).collect()))
    }

    /// The count. A function's trace uses [`Totals::of_count`].
    pub(super) fn count(&self) -> u64 {
        self.state().count
    }

    /// The number that `f` computes from the count.
    pub(super) fn of_count(&self, f: impl Fn(u64) -> f64 + Send + Sync + 'static) -> Operand {
        let now = f(self.count());
        Operand::Varying(Varying::new(now, || {
            let state = self.state.clone();
            move || f(lock(&state).count).into()
        }))
    }

    /// In the trace of a function: makes each run begin with `f`, which changes the count.
    fn at_each_run(&self, f: impl Fn(&mut State) -> Result<()> + Send + Sync + 'static) {
        let counter: Arc<dyn RunCounter> =
            Arc::new(CountChange { state: self.state.clone(), f, before: Mutex::default() });
        eager::advances(&counter);
    }

    pub(super) fn reset(&self) -> Result<()> {
        if eager::traces_function() {
            for total in self.variables()?.unwrap_or_default() {
                total.assign(total.peek().zeros_like()?)?;
            }
            self.at_each_run(|state| {
                *state = State::default();
                Ok(())
            });
            return Ok(());
        }
        let mut state = self.state();
        *state = State::default();
        for total in self.variables()?.unwrap_or_default() {
            let zeros = total.peek().zeros_like()?;
            total.assign(&zeros)?;
            state.zeros.push(zeros);
        }
        Ok(())
    }

    /// The variables, if batches or a checkpoint have set their values.
    fn variables(&self) -> Result<Option<Vec<&Variable>>> {
        let mut found = Vec::with_capacity(self.slots.len());
        for (_, slot) in &self.slots {
            let value = |left: Option<&NamedArray<'_>>| match left {
                Some(left) => left.to_tensor(left.array.shape(), DType::F32),
                None => Tensor::zeros([]),
            };
            match slot.variable() {
                Some(variable) => found.push(variable),
                None if slot.left().is_some() => found.push(slot.get_or_make(value)?),
                None => return Ok(None),
            }
        }
        Ok(Some(found))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A change of the count in each run of a function.
struct CountChange<F> {
    state: Arc<Mutex<State>>,
    f: F,
    /// The count before the last run.
    before: Mutex<u64>,
}

impl<F: Fn(&mut State) -> Result<()> + Send + Sync> RunCounter for CountChange<F> {
    fn advance(&self) -> Result<Option<u64>> {
        let state = &mut *lock(&self.state);
        *self.before.lock().unwrap_or_else(PoisonError::into_inner) = state.count;
        (self.f)(state).map(|()| None)
    }

    fn step_back(&self) {
        lock(&self.state).count = *self.before.lock().unwrap_or_else(PoisonError::into_inner);
    }
}

impl Trackable for Totals {
    fn track(&self, parts: &mut Parts<'_>) {
        self.slots.iter().for_each(|(name, slot)| parts.add(name, slot));
        parts.state("count", self);
    }
}

/// The count, and the reset.
impl HostState for Totals {
    fn form(&self) -> (HostDType, Option<&'static [usize]>) {
        (HostDType::U64, Some(&[]))
    }

    fn get(&self) -> Result<Vec<u8>> {
        Ok(self.state().count.to_le_bytes().into())
    }

    fn set(&self, bytes: &[u8]) -> Result<()> {
        let count = u64::from_le_bytes(bytes.try_into().unwrap_or_default());
        *self.state() = State { count, ..State::default() };
        Ok(())
    }

    fn reset_metric(&self) -> Result<()> {
        self.reset()
    }
}

impl State {
    /// The device computes the totals together with the next training step. If that step fails, the metric continues
    /// from the previous totals, so that one failed step does not invalidate all later ones.
    fn heal(&mut self, metric: &str, totals: &[&Variable], device: &Device) -> Result<()> {
        let now: Vec<Tensor> = totals.iter().map(|total| total.peek()).collect();
        let mut ready = true;
        let mut failed = None;
        for total in &now {
            match total.value().state() {
                ValueState::Ready(_) | ValueState::Traced(_) => {}
                ValueState::Waiting(_) => ready = false,
                ValueState::Failed(error) => failed = Some(error),
            }
        }
        let Some(error) = failed else {
            if ready {
                self.safe = Some((now, self.count));
            }
            return Ok(());
        };
        crate::warnings::warn_user!(
            "{metric}: a step failed ({error}); its values are not counted."
        );
        let (values, count) = match &self.safe {
            Some((values, count)) => (values.clone(), *count),
            None => (zeros(totals, device)?, 0),
        };
        for (total, value) in totals.iter().zip(&values) {
            total.assign(value)?;
        }
        self.count = count;
        Ok(())
    }

    /// After a reset the totals move to the batch's device.
    fn follow(&mut self, totals: &[&Variable], device: &Device) -> Result<()> {
        for (total, zero) in totals.iter().zip(std::mem::take(&mut self.zeros)) {
            let now = total.peek();
            if Arc::ptr_eq(zero.value(), now.value()) && now.device() != device {
                total.assign(&zeros(&[*total], device)?[0])?;
            }
        }
        Ok(())
    }
}

fn zeros(totals: &[&Variable], device: &Device) -> Result<Vec<Tensor>> {
    device.scope(|| totals.iter().map(|total| Tensor::zeros(total.shape())).collect())
}
