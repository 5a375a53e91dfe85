//! A flush: the waiting ops become a graph, the graph finds its plan, and the plan runs.

use std::sync::Arc;

use web_time::Instant;

use super::cut::{Cutter, Sent};
use super::{Device, DeviceState};
use crate::device::{Buffer, Caps, Counter, Gpu, Staging, platform};
use crate::error::{DeviceFault, Error, Result};
use crate::graph::{Graph, Key, Stream, Taken, Value, ValueState, outside_its_trace};
#[cfg(not(target_family = "wasm"))]
use crate::plan::PackPlace;
use crate::plan::{Fusion, Plan, Reads, Stage, Tuner};
#[cfg(all(feature = "kernel-hooks", not(target_family = "wasm")))]
use crate::plan::{Recording, plan_for_known_adapters};

/// What a flush copies to the host.
pub(super) enum ReadValues<'a> {
    None,
    /// A value, after everything else.
    One(&'a Arc<Value>, &'a Staging),
    /// Values in packs, each as soon as it is computed; `submitted` receives the submissions that complete the packs.
    #[cfg(not(target_family = "wasm"))]
    Early {
        values: &'a [(Arc<Value>, PackPlace)],
        packs: &'a [Staging],
        submitted: &'a mut Vec<wgpu::SubmissionIndex>,
    },
}

impl Device {
    /// Flushes, and allows the run to write into the buffers of `old` if only the caller holds these values. Each entry
    /// of `old` counts for one handle that the caller holds.
    ///
    /// After an error the old values are as they were, unless the driver reported the error after it had accepted the
    /// work: then they have failed, as have the results. After `Ok` the caller drops its handles; a later read of a
    /// value that it gave up returns an error.
    ///
    /// `made` is the number of earlier steps, if this flush makes a step of an optimizer. This number, not the runs in
    /// this process, determines the kernels of a step, so that a process that resumes another's training rounds the
    /// same way.
    ///
    /// # Errors
    /// As [`Device::flush`].
    pub(crate) fn flush_replacing(&self, old: &[&Arc<Value>], made: Option<u64>) -> Result<()> {
        let mut state = self.state();
        state.cutter.step_ends();
        state.cutter.replaces(made);
        // The caller receives this error and retains its values, so nothing is lent.
        if let Some(error) = state.failure.take() {
            let _ = self.flush_locked(&mut state, ReadValues::None, &[]);
            return Err(self.0.gpu.judge(error));
        }
        self.flush_locked(&mut state, ReadValues::None, old).map(drop)
    }

    /// How many ops wait.
    pub(crate) fn waiting(&self) -> usize {
        self.state().stream.len()
    }

    /// Runs only the ops after the first `from` waiting ones. The first ones stay in the stream, so that a value needed
    /// in between does not change which ops run together.
    ///
    /// # Errors
    /// As [`Device::flush`].
    pub(crate) fn flush_behind(&self, from: usize) -> Result<()> {
        let mut state = self.state();
        let Some(tail) = state.stream.split_off(from) else {
            drop(state);
            return self.flush();
        };
        state.cutter.leaves_out(tail.len());
        let aside = (std::mem::replace(&mut state.stream, tail), state.cutter.aside());
        let mut aside = Aside { state: &mut state, kept: Some(aside) };
        self.flush_locked(aside.state(), ReadValues::None, &[]).map(drop)
    }

    /// Runs the waiting ops. If the run fails, the values that it should have made fail with its error. `lent` as in
    /// [`Stream::take`].
    ///
    /// [`Stream::take`]: crate::graph::Stream::take
    pub(super) fn flush_locked(
        &self,
        state: &mut DeviceState,
        reads: ReadValues<'_>,
        lent: &[&Arc<Value>],
    ) -> Result<Option<wgpu::SubmissionIndex>> {
        self.0.gpu.check_thread()?;
        let ran = self.run_waiting(state, reads, lent);
        self.count_plans(state);
        self.put_away(state);
        if state.reports.is_some() {
            self.send_reports(state);
        }
        ran
    }

    /// Updates the counters of what plans hold.
    pub(super) fn count_plans(&self, state: &DeviceState) {
        let (plans, bytes) = state.plans.size();
        self.0.gpu.counters.set(Counter::Plans, plans);
        self.0.gpu.counters.set(Counter::PlanBytes, bytes);
    }

    fn run_waiting(
        &self,
        state: &mut DeviceState,
        reads: ReadValues<'_>,
        lent: &[&Arc<Value>],
    ) -> Result<Option<wgpu::SubmissionIndex>> {
        state.uploaded = 0;
        let Sent { training, made } = state.cutter.flushed(state.stream.len());
        if state.stream.len() == 0 {
            return self.0.gpu.ask().map(|()| None);
        }
        self.slice_tuning(state);
        let mut taken = state.stream.take(lent);
        self.take_off(state, &mut taken);
        if taken.graph.nodes.is_empty() {
            return self.0.gpu.ask().map(|()| None);
        }
        let key = taken.graph.key(&mut state.coincidences);
        if let Some(error) = taken.failed.take() {
            // A value on its way from another device has failed to arrive.
            for (_, value) in &taken.outputs {
                value.set(ValueState::Failed(error.clone()));
            }
            return Err(error);
        }
        let Taken { graph, leaves, outputs, lent, .. } = &taken;
        let node = |value: &Arc<Value>| {
            outputs.iter().find(|(_, v)| Arc::ptr_eq(v, value)).map(|output| output.0)
        };
        #[cfg(not(target_family = "wasm"))]
        let wanted: Vec<(u32, PackPlace)>;
        let reads = match reads {
            ReadValues::None => Reads::None,
            ReadValues::One(value, staging) => {
                node(value).map_or(Reads::None, |node| Reads::One(node, staging))
            }
            #[cfg(not(target_family = "wasm"))]
            ReadValues::Early { values, packs, submitted } => {
                wanted = values
                    .iter()
                    .filter_map(|(value, place)| Some((node(value)?, *place)))
                    .collect();
                // A value that the graph does not compute is read after the flush, with the others of its packs.
                match wanted.len() == values.len() {
                    true => Reads::Early { wanted: &wanted, packs, submitted },
                    false => Reads::None,
                }
            }
        };
        let run = Run { graph, key: &key, leaves, outputs, lent, training, made };
        self.run_graph(state, &run, reads)
    }

    /// Lets the tuner measure for a while, and drops the plans if it has found better kernels.
    pub(super) fn slice_tuning(&self, state: &mut DeviceState) {
        if self.0.gpu.is_paced() {
            return;
        }
        match state.tuner.slice(&self.0.gpu) {
            Ok(false) => {}
            Ok(true) => state.plans.clear(),
            Err(error) => drop(state.failure.get_or_insert(error)),
        }
    }

    /// Runs a graph: finds or makes its plan, and gives its outputs their buffers. Returns the submission, unless the run is
    /// held.
    pub(super) fn run_graph(
        &self,
        state: &mut DeviceState,
        run: &Run<'_>,
        reads: Reads<'_>,
    ) -> Result<Option<wgpu::SubmissionIndex>> {
        let gpu = &self.0.gpu;
        let graph = run.graph;
        #[cfg(not(target_family = "wasm"))]
        let reads = match reads {
            Reads::None if gpu.is_paced() => Reads::Hold,
            reads => reads,
        };
        let mut awaited = Awaited::new(gpu, run);
        if let Err(error) = self.land_all(state, run.leaves) {
            awaited.ran = Some(Err(error.clone()));
            return Err(error);
        }
        let mut planning = Planning::new(gpu, &mut state.tuner, &mut state.caps, state.fusion);
        let (plan, known) = state.plans.get(run.key, run.made, |before, few, tries| {
            planning.plan(graph, before, few, tries, run.training)
        });
        if !known {
            state.tuner.saw(plan.tasks());
            // Proofs also submit work.
            awaited.count_submits();
        }
        gpu.counters.add(Counter::Flushes, 1);
        gpu.counters.add(if known { Counter::PlanHits } else { Counter::PlanMisses }, 1);

        #[cfg(all(feature = "kernel-hooks", not(target_family = "wasm")))]
        let recording = {
            if !known {
                plan_for_known_adapters(plan, graph)?;
            }
            let recording = Recording::begin(gpu, plan, &state.caps, graph, run.leaves)?;
            // Reads also submit work.
            awaited.count_submits();
            recording
        };
        #[cfg(not(target_family = "wasm"))]
        let held = matches!(reads, Reads::Hold);
        #[cfg_attr(target_family = "wasm", expect(unused_mut))]
        let mut ran = plan.run(gpu, &graph.nodes, run.leaves, reads);
        #[cfg(not(target_family = "wasm"))]
        if held && ran.as_ref().is_err_and(Error::is_out_of_memory) {
            // Freed buffers that held work names take memory until that work is sent.
            ran =
                gpu.send_held().and_then(|()| plan.run(gpu, &graph.nodes, run.leaves, Reads::Hold));
        }
        match ran {
            Ok((buffers, index)) => {
                #[cfg(all(feature = "kernel-hooks", not(target_family = "wasm")))]
                if let Some(recording) = recording {
                    let written = recording.end(gpu, plan, graph, &buffers);
                    written.inspect_err(|error| awaited.ran = Some(Err(error.clone())))?;
                }
                awaited.ran = Some(Ok(()));
                let runs = plan.ran();
                state.tuner.ran(plan.tasks(), runs);
                debug_assert!(plan.outputs().eq(run.outputs.iter().map(|(node, _)| *node)));
                for ((_, value), buffer) in run.outputs.iter().zip(buffers) {
                    state.kept.note(value, &buffer);
                    buffer.holds(value.op, value.spec.dtype, &value.spec.shape);
                    value.set(ValueState::Ready(buffer));
                }
                Ok(index)
            }
            Err(error) => {
                awaited.ran = Some(Err(error.clone()));
                Err(error)
            }
        }
    }
}

/// What new plans depend on besides their graphs.
pub(super) struct Planning<'a> {
    gpu: &'a Gpu,
    tuner: &'a mut Tuner,
    caps: &'a mut Caps,
    fusion: bool,
}

impl<'a> Planning<'a> {
    pub(super) fn new(
        gpu: &'a Gpu,
        tuner: &'a mut Tuner,
        caps: &'a mut Caps,
        fusion: bool,
    ) -> Self {
        Planning { gpu, tuner, caps, fusion }
    }

    /// The plan for the next runs of `graph`; `before`, `few` and `tries` are those of [`PlanCache::get`].
    ///
    /// [`PlanCache::get`]: crate::plan::PlanCache::get
    pub(super) fn plan(
        &mut self,
        graph: &Graph,
        before: Option<Stage>,
        few: bool,
        tries: bool,
        training: bool,
    ) -> Plan {
        let Planning { gpu, tuner, caps, fusion } = self;
        let began = Instant::now();
        // A page can show progress for kernels that it compiles first, but would freeze for kernels compiled later.
        let brief = few && caps.cpu && platform::MAY_BLOCK;
        let mut plan = match (*fusion, brief) {
            (false, _) => tuner.plan(gpu, caps, graph, Fusion::Off),
            (true, false) => tuner.plan(gpu, caps, graph, Fusion::Full),
            (true, true) => tuner.plan(gpu, caps, graph, Fusion::Brief).for_first_runs(),
        };
        // A training step is fused from its first run on, as in a process that resumes the training.
        if before.is_none() && *fusion && !training {
            let calls = graph.nodes.iter().filter(|node| !node.inputs.is_empty()).count();
            let apart = || tuner.plan(gpu, caps, graph, Fusion::Off);
            plan = plan.for_first_run(gpu, tries, calls, apart);
        }
        gpu.counters.add(Counter::Planning, began.elapsed().as_nanos() as u64);
        plan
    }
}

/// A graph with the values of one run.
pub(super) struct Run<'a> {
    pub(super) graph: &'a Graph,
    pub(super) key: &'a Key,
    pub(super) leaves: &'a [Arc<Buffer>],
    /// The wanted nodes of the graph, and the values that wait for them.
    pub(super) outputs: &'a [(u32, Arc<Value>)],
    /// Values of leaves that the plan may overwrite although their holder still has them.
    pub(super) lent: &'a [Arc<Value>],
    /// Whether the run is a step of a training.
    pub(super) training: bool,
    /// How many steps an optimizer has made before, if the run makes one.
    pub(super) made: Option<u64>,
}

/// A stream that is set aside while something else runs; it is restored even if a driver panics.
struct Aside<'a> {
    state: &'a mut DeviceState,
    kept: Option<(Stream, Cutter)>,
}

impl Aside<'_> {
    fn state(&mut self) -> &mut DeviceState {
        self.state
    }
}

impl Drop for Aside<'_> {
    fn drop(&mut self) {
        if let Some((stream, cutter)) = self.kept.take() {
            (self.state.stream, self.state.cutter) = (stream, cutter);
        }
    }
}

/// The values that a flush has taken out of the stream. Those that still wait when the flush ends (a driver may have
/// panicked) fail, because their indices in the stream now belong to other nodes. Lent values also fail, if the run has
/// reached the queue.
struct Awaited<'a> {
    gpu: &'a Gpu,
    of: &'a Run<'a>,
    /// The result of the run, if the run has ended.
    ran: Option<Result<()>>,
    /// How many submissions there were before the run.
    submits: u64,
}

impl<'a> Awaited<'a> {
    fn new(gpu: &'a Gpu, of: &'a Run<'a>) -> Self {
        let mut awaited = Awaited { gpu, of, ran: None, submits: 0 };
        awaited.count_submits();
        awaited
    }

    /// Counts the submissions until now; the run begins after them.
    fn count_submits(&mut self) {
        if !self.of.lent.is_empty() {
            self.submits = self.gpu.stats().submits;
        }
    }

    /// The error of a value that the run should have computed, or was allowed to overwrite.
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
            for (_, value) in self.of.outputs {
                if matches!(value.state(), ValueState::Waiting(_)) {
                    value.set(ValueState::Failed(self.error()));
                }
            }
        }
        // Every submission holds the lock on the device's state, so another submission can only be this run's.
        if !self.of.lent.is_empty() && self.gpu.stats().submits != self.submits {
            for value in self.of.lent {
                value.set(ValueState::Failed(self.error()));
            }
        }
    }
}

fn given_up() -> Error {
    Error::Device(
        DeviceFault::Validation,
        "Device: a value was used after it had been dropped; this is a defect in wgrad.".into(),
    )
}

pub(super) fn never_ran() -> Error {
    Error::Device(
        DeviceFault::Validation,
        "Device: a value was dropped from its stream before it ran; this is a defect in wgrad."
            .into(),
    )
}

/// The buffer of a value that an earlier run has computed.
pub(super) fn ready(value: &Value) -> Result<Arc<Buffer>> {
    match value.state() {
        ValueState::Ready(buffer) => Ok(buffer),
        ValueState::Failed(error) => Err(error),
        ValueState::Waiting(_) => Err(never_ran()),
        ValueState::Traced(_) => Err(outside_its_trace(value)),
    }
}
