//! A flush: what waits becomes a graph, finds its plan, and runs.

use std::sync::Arc;

use web_time::Instant;

use super::{Device, DeviceState};
use crate::device::{Buffer, Counter, Gpu, Staging};
use crate::error::{DeviceFault, Error, Result};
use crate::graph::{Taken, Value, ValueState};

impl Device {
    /// Flushes, and lets the run write into the buffers of `old`, of which each stands for one handle that the
    /// caller holds, if nobody else holds the value.
    ///
    /// After an error they are as they were, unless the driver reported it when it had the work already: then they
    /// have failed, as has what was computed. After `Ok` the caller drops its handles; a value that was given up
    /// and is looked at all the same tells so.
    ///
    /// # Errors
    /// As [`Device::flush`].
    pub(crate) fn flush_replacing(&self, old: &[&Arc<Value>]) -> Result<()> {
        let mut state = self.state();
        state.cutter.step_ends();
        state.cutter.replaces();
        // With an error to tell the caller keeps what it has, so it has nothing to lend.
        if let Some(error) = state.failure.take() {
            let _ = self.flush_locked(&mut state, None, &[]);
            return Err(self.0.gpu.judge(error));
        }
        self.flush_locked(&mut state, None, old).map(drop)
    }

    /// Runs what waits. Values that it should have made fail with its error. `lent` as in [`Stream::take`].
    ///
    /// [`Stream::take`]: crate::graph::Stream::take
    pub(super) fn flush_locked(
        &self,
        state: &mut DeviceState,
        read: Option<(&Arc<Value>, &Staging)>,
        lent: &[&Arc<Value>],
    ) -> Result<Option<wgpu::SubmissionIndex>> {
        state.uploaded = 0;
        let training = state.cutter.flushed(state.stream.len());
        if state.stream.len() == 0 {
            return self.0.gpu.ask().map(|()| None);
        }
        match state.tuner.slice(&self.0.gpu) {
            Ok(false) => {}
            Ok(true) => state.plans.clear(),
            Err(error) => drop(state.failure.get_or_insert(error)),
        }
        let mut taken = state.stream.take(lent);
        if taken.graph.nodes.is_empty() {
            return self.0.gpu.ask().map(|()| None);
        }
        let gpu = &self.0.gpu;
        let key = taken.graph.key(&mut state.coincidences);
        let graph = &taken.graph;
        let mut awaited = Awaited::new(gpu, &taken);
        let fusion = state.fusion;
        let (tuner, caps) = (&mut state.tuner, &mut state.caps);
        let (plan, known) = state.plans.get(key, |first, tries| {
            let began = Instant::now();
            let mut plan = tuner.plan(gpu, caps, graph, fusion);
            // A training step has the same kernels from its first time on, also in a process that resumes another's.
            if first && fusion && !training {
                let calls = graph.nodes.iter().filter(|node| !node.inputs.is_empty()).count();
                let apart = || tuner.plan(gpu, caps, graph, false);
                plan = plan.for_first_run(gpu, tries, calls, apart);
            }
            gpu.counters.add(Counter::Planning, began.elapsed().as_nanos() as u64);
            plan
        });
        if !known {
            state.tuner.saw(plan.tasks());
            // Proofs are submissions, too.
            awaited.count_submits();
        }
        gpu.counters.add(Counter::Flushes, 1);
        gpu.counters.add(if known { Counter::PlanHits } else { Counter::PlanMisses }, 1);

        let read: Option<(u32, &Staging)> = read.and_then(|(value, staging)| {
            let output = taken.outputs.iter().find(|(_, v)| Arc::ptr_eq(v, value))?;
            Some((output.0, staging))
        });
        match plan.run(gpu, &graph.nodes, &taken.leaves, read) {
            Ok((buffers, index)) => {
                awaited.ran = Some(Ok(()));
                let runs = plan.ran();
                state.tuner.ran(plan.tasks(), runs);
                debug_assert!(plan.outputs().eq(taken.outputs.iter().map(|(node, _)| *node)));
                for ((_, value), buffer) in taken.outputs.iter().zip(buffers) {
                    value.set(ValueState::Ready(buffer));
                }
                Ok(Some(index))
            }
            Err(error) => {
                awaited.ran = Some(Err(error.clone()));
                Err(error)
            }
        }
    }
}

/// Values that a flush has taken out of the stream. Those that still wait when it ends, be it by a panic in a
/// driver, fail: their places in the stream belong to others now. So do lent ones, if the run has reached the
/// queue.
struct Awaited<'a> {
    gpu: &'a Gpu,
    taken: &'a Taken,
    /// What became of the run, if it came to an end.
    ran: Option<Result<()>>,
    /// Submissions before the run.
    submits: u64,
}

impl<'a> Awaited<'a> {
    fn new(gpu: &'a Gpu, taken: &'a Taken) -> Self {
        let mut awaited = Awaited { gpu, taken, ran: None, submits: 0 };
        awaited.count_submits();
        awaited
    }

    /// The run begins after the submissions until now.
    fn count_submits(&mut self) {
        if !self.taken.lent.is_empty() {
            self.submits = self.gpu.stats().submits;
        }
    }

    /// What a value that the run should have made or has taken fails with.
    fn error(&self) -> Error {
        match &self.ran {
            Some(Err(error)) => error.clone(),
            Some(Ok(())) => given_up(),
            None => never_ran(),
        }
    }
}

impl Drop for Awaited<'_> {
    fn drop(&mut self) {
        if !matches!(self.ran, Some(Ok(()))) {
            for (_, value) in &self.taken.outputs {
                if matches!(value.state(), ValueState::Waiting(_)) {
                    value.set(ValueState::Failed(self.error()));
                }
            }
        }
        // All submissions of a device are made with its state locked, so another one can only be this run's.
        if !self.taken.lent.is_empty() && self.gpu.stats().submits != self.submits {
            for value in &self.taken.lent {
                value.set(ValueState::Failed(self.error()));
            }
        }
    }
}

fn given_up() -> Error {
    Error::Device(
        DeviceFault::Validation,
        "Device: a value was looked at after it had been given up; this is a defect in wgrad."
            .into(),
    )
}

pub(super) fn never_ran() -> Error {
    Error::Device(
        DeviceFault::Validation,
        "Device: a value was dropped from its stream before it ran; this is a defect in wgrad."
            .into(),
    )
}

/// The buffer of a value that has run.
pub(super) fn ready(value: &Value) -> Result<Arc<Buffer>> {
    match value.state() {
        ValueState::Ready(buffer) => Ok(buffer),
        ValueState::Failed(error) => Err(error),
        ValueState::Waiting(_) => Err(never_ran()),
    }
}
