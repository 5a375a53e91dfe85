//! Measures variants: runs each variant of an op alone, on random numbers, and compares it with the plain one before
//! timing it.
//!
//! A measurement proceeds in small steps, all at once or distributed between flushes. Between steps it holds no device
//! memory.

use std::sync::Arc;

use half::f16;
use web_time::{Duration, Instant};

use super::super::{Plan, Reads, plan};
use super::agree::agree;
use super::report::{TunedOp, TunedVariant};
use super::times::Times;
use super::{Choice, Task};
use crate::device::{Buffer, Gpu, platform};
use crate::dtype::DType;
use crate::error::{DeviceFault, Error, Result, message};
use crate::graph::lower::Variants;
use crate::graph::{Graph, Input, Node, Spec};

/// The number of rounds, in each of which every variant still in the running is measured once (its *turn*).
const ROUNDS: usize = 7;
/// A variant that is slower than the fastest by this factor is dropped; after only one turn, which may have been slow
/// by chance, the factor is larger.
const LEFT_BEHIND: f64 = 1.5;
const FAR_BEHIND: f64 = 3.0;
/// The first choice stays in the running for this many rounds, and there are at least this many however long they take.
const LEAST: usize = 3;
/// The first choice stays unless another variant is faster by this factor: smaller differences may be noise.
const WORTH: f64 = 1.05;
/// After this much time with one op there is no further round.
const LONGEST: Duration = Duration::from_millis(1500);
/// A variant whose verification takes longer than the others' by this much is not timed: no driver takes as long to
/// compile.
const HOPELESS: Duration = Duration::from_millis(300);
/// A turn runs a short kernel several times, for about this long.
const TURN: Duration = platform::TUNER_TURN;
/// A turn runs a kernel at most this often.
const RUNS: u32 = platform::TUNER_RUNS;

/// The measurement of one op.
pub(super) struct Measurement {
    task: Arc<Task>,
    graph: Graph,
    entries: Vec<Entry>,
    /// The result of the plain variant, once it has run.
    plain: Option<Vec<u8>>,
    round: usize,
    /// The index of the entry to run next.
    turn: usize,
    spent: Duration,
}

struct Entry {
    plan: Plan,
    /// How long its verification took, compiling included.
    tried: Duration,
    times: Times,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Untried,
    /// It agrees with the plain variant.
    Right,
    Slow,
    /// It does not agree, or the driver rejects it.
    Wrong,
}

impl Measurement {
    pub(super) fn new(task: Arc<Task>) -> Self {
        let inputs = (0..task.inputs.len() as u32).map(Input::Leaf).collect();
        let spec = task.output.clone();
        let graph = Graph {
            nodes: vec![Node { op: task.op.clone(), inputs, spec, wanted: true }],
            leaves: task.inputs.clone(),
            donated: vec![false; task.inputs.len()],
            ..Graph::default()
        };
        let entry = |name: &String| Entry {
            plan: plan(&graph, &task.caps, true, &Choice::Forced(name)),
            tried: Duration::ZERO,
            times: Times::default(),
            state: State::Untried,
        };
        let entries = task.variants.names.iter().map(entry).collect();
        Measurement { entries, graph, plain: None, round: 0, turn: 0, spent: Duration::ZERO, task }
    }

    /// Does the next step. `None` if there is none left.
    ///
    /// # Errors
    /// If there is no memory, the device is lost, or the plain variant does not run.
    pub(super) async fn step(
        &mut self,
        gpu: &Gpu,
        scratch: &mut Option<Scratch>,
    ) -> Result<Option<()>> {
        let began = Instant::now();
        let stepped = self.next(gpu, scratch).await;
        self.spent += began.elapsed();
        stepped
    }

    async fn next(&mut self, gpu: &Gpu, scratch: &mut Option<Scratch>) -> Result<Option<()>> {
        let leaves = match scratch {
            Some(leaves) => leaves,
            None => scratch.insert(fill(gpu, &self.task.inputs)?),
        };
        // The plain variant is first.
        let untried = match &self.plain {
            None => Some(self.task.variants.plain),
            Some(_) => self.entries.iter().position(|entry| entry.state == State::Untried),
        };
        if let Some(at) = untried {
            self.verify(at, gpu, leaves).await?;
            return Ok(Some(()));
        }
        if self.round == 0 && self.turn == 0 {
            // The verification was not a round.
            self.spent = Duration::ZERO;
            self.give_up_hopeless();
        }
        let in_race = |entry: &Entry| entry.state == State::Right;
        let racing = self.entries.iter().filter(|entry| in_race(entry)).count();
        if self.round >= ROUNDS || (racing < 2 && self.round > 0) {
            return Ok(None);
        }
        if let Some(at) = (self.turn..self.entries.len()).find(|&i| in_race(&self.entries[i])) {
            self.turn = at + 1;
            self.time(at, gpu, leaves).await?;
            return Ok(Some(()));
        }
        self.turn = 0;
        self.round += 1;
        self.leave_behind();
        if self.spent > LONGEST && self.round >= LEAST {
            self.round = ROUNDS;
        }
        Ok(Some(()))
    }

    /// Compares a variant with the plain one, which is first and must be right.
    async fn verify(&mut self, at: usize, gpu: &Gpu, leaves: &Scratch) -> Result<()> {
        let entry = &mut self.entries[at];
        let first = self.plain.is_none();
        let Variants { names, terms, half, .. } = &self.task.variants;
        let half = half.contains(&names[at]);
        let verdict = match entry.result(gpu, &self.graph, leaves).await {
            Ok(result) => {
                let dtype = self.task.output.dtype;
                // A NaN does not even agree with itself.
                let verdict =
                    agree(dtype, half, *terms, self.plain.as_ref().unwrap_or(&result), &result);
                if first {
                    self.plain = Some(result);
                }
                verdict
            }
            Err(error) if first || is_grave(&error) => return Err(error),
            Err(error) => Err(error.to_string()),
        };
        entry.state = match verdict {
            Ok(()) => State::Right,
            Err(why) if first => {
                let what = message!("{}, variant {:?}: {why}", self.task.key, names[at]);
                return Err(Error::Device(DeviceFault::Validation, what));
            }
            Err(why) => {
                log::warn!("{}, variant {:?}: {why} It is not used.", self.task.key, names[at]);
                State::Wrong
            }
        };
        Ok(())
    }

    /// Whether the first variant has the same result as the plain one; `None` if this is unknown because memory or the
    /// device is not available.
    pub(super) fn proves_the_first(mut self, gpu: &Gpu) -> Option<bool> {
        let mut scratch = None;
        for _ in 0..2 {
            if let Err(error) = pollster::block_on(self.step(gpu, &mut scratch)) {
                log::debug!("{}: {error}", self.task.key);
                return (!is_grave(&error)).then_some(false);
            }
        }
        Some(self.entries[0].state == State::Right)
    }

    async fn time(&mut self, at: usize, gpu: &Gpu, leaves: &Scratch) -> Result<()> {
        let entry = &mut self.entries[at];
        // The first turn shows how long a run takes.
        let runs = match entry.times.usual() {
            Some(time) => (TURN.as_secs_f64() / time.as_secs_f64()).clamp(1.0, RUNS.into()) as u32,
            None => 1,
        };
        match entry.run_timed(gpu, &self.graph, leaves, runs).await {
            Ok(times) => entry.times.extend(times),
            Err(error) if is_grave(&error) => return Err(error),
            Err(error) => {
                log::warn!("{}: {error} The variant is not used.", self.task.key);
                entry.state = State::Wrong;
            }
        }
        Ok(())
    }

    fn give_up_hopeless(&mut self) {
        let right = self.entries.iter().filter(|entry| entry.state == State::Right);
        let Some(best) = right.map(|entry| entry.tried).min() else { return };
        for entry in self.entries.iter_mut().skip(1) {
            if entry.state == State::Right && entry.tried > 2 * best + HOPELESS {
                entry.state = State::Slow;
            }
        }
    }

    /// Compares the shortest times.
    fn leave_behind(&mut self) {
        let right = self.entries.iter().filter(|entry| entry.state == State::Right);
        let times = right.filter_map(|entry| Some((entry.times.shortest()?, entry.times.doubt())));
        let Some((best, doubt)) = times.min() else { return };
        let most = best.mul_f64(if self.round < 2 { FAR_BEHIND } else { LEFT_BEHIND }) + doubt;
        let spared = usize::from(self.round < LEAST);
        for entry in self.entries.iter_mut().skip(spared) {
            let (time, doubt) = (entry.times.shortest(), entry.times.doubt());
            if entry.state == State::Right && time.is_some_and(|time| time > most + doubt) {
                entry.state = State::Slow;
            }
        }
    }

    /// The finding of all steps; `done` is the result of the last one.
    ///
    /// # Errors
    /// If the device is lost.
    pub(super) fn close(self, done: Result<()>) -> Result<Option<TunedOp>> {
        match done {
            Ok(()) => Ok(self.finish()),
            Err(error) if error.is_device_lost() => Err(error),
            Err(error) => {
                log::debug!("{} is not measured: {error}", self.task.key);
                Ok(None)
            }
        }
    }

    /// The name of the variant that is the op's own choice.
    pub(super) fn first(&self) -> &str {
        &self.task.variants.names[0]
    }

    /// `None` if not even the plain variant could be timed.
    ///
    /// Usual times decide, even among variants that were dropped because of their shortest times: one lucky run must
    /// not lead to a choice that is slower than the first one according to the reported times.
    fn finish(self) -> Option<TunedOp> {
        let time = |i: usize| match self.entries[i].state {
            State::Right | State::Slow => self.entries[i].times.usual(),
            State::Untried | State::Wrong => None,
        };
        let best =
            (0..self.entries.len()).filter(|&i| time(i).is_some()).min_by_key(|&i| time(i))?;
        let doubt = self.entries[0].times.doubt() + self.entries[best].times.doubt();
        let first = time(0)
            .zip(time(best))
            .is_some_and(|(first, best)| first < best.mul_f64(WORTH) + doubt);
        let names = &self.task.variants.names;
        let variants = self.entries.iter().zip(names).map(|(entry, name)| TunedVariant {
            name: name.clone(),
            time: entry.times.usual(),
            wrong: entry.state == State::Wrong,
        });
        Some(TunedOp {
            op: self.task.key.clone(),
            chosen: names[if first { 0 } else { best }].clone(),
            variants: variants.collect(),
        })
    }
}

/// Measures `tasks` one after another, removing each from the list, and adds the findings to `found`. It skips an op
/// for which there is not enough memory.
///
/// # Errors
/// If the device is lost; the tasks that are left were not measured.
pub(crate) async fn measure(
    gpu: &Gpu,
    tasks: &mut Vec<Arc<Task>>,
    found: &mut Vec<TunedOp>,
) -> Result<()> {
    while let Some(task) = tasks.pop() {
        let mut measurement = Measurement::new(task);
        let mut scratch = None;
        let done = loop {
            match measurement.step(gpu, &mut scratch).await {
                Ok(Some(())) => {}
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        found.extend(measurement.close(done)?);
    }
    Ok(())
}

/// Buffers of inputs, with random numbers in them.
pub(super) type Scratch = Vec<Arc<Buffer>>;

fn fill(gpu: &Gpu, inputs: &[Spec]) -> Result<Scratch> {
    let mut random = fastrand::Rng::with_seed(1);
    let mut scratch = Vec::with_capacity(inputs.len());
    for spec in inputs {
        let buffer = gpu.pool.acquire(spec.bytes(), &[])?;
        gpu.upload(&buffer, &numbers(spec, &mut random))?;
        scratch.push(buffer);
    }
    Ok(scratch)
}

/// Random elements of `spec`, followed by bytes that make a result wrong if a kernel reads them.
fn numbers(spec: &Spec, random: &mut fastrand::Rng) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(spec.bytes() as usize);
    for _ in 0..spec.elements() {
        match spec.dtype {
            DType::F32 => bytes.extend((random.f32() * 2.0 - 1.0).to_ne_bytes()),
            DType::F16 => bytes.extend(f16::from_f32(random.f32() * 2.0 - 1.0).to_ne_bytes()),
            DType::I32 => bytes.extend(random.i32(-9..10).to_ne_bytes()),
            DType::U32 => bytes.extend(random.u32(0..10).to_ne_bytes()),
            DType::U8 => bytes.push(random.u8(0..10)),
            DType::Bool => bytes.extend(random.u32(0..2).to_ne_bytes()),
        }
    }
    bytes.resize(spec.bytes() as usize, 0xff);
    bytes
}

impl Entry {
    /// Runs the variant and reads its result.
    async fn result(
        &mut self,
        gpu: &Gpu,
        graph: &Graph,
        leaves: &[Arc<Buffer>],
    ) -> Result<Vec<u8>> {
        let began = Instant::now();
        let spec = &graph.nodes[0].spec;
        // The run takes the buffers that were freed last. If another variant's result were still in them, a variant
        // that writes nothing would seem right.
        let mut taken = Vec::new();
        gpu.pool
            .acquire_all(self.plan.slots.iter().map(|slot| (slot.bytes, &[][..])), &mut taken)?;
        for (buffer, slot) in taken.iter().zip(&self.plan.slots) {
            gpu.upload(buffer, &vec![0xff; slot.bytes as usize])?;
        }
        drop(taken);
        let staging = gpu.staging(spec.dtype.size() * spec.elements())?;
        self.plan.run(gpu, &graph.nodes, leaves, Reads::One(0, &staging))?;
        let read = gpu.read(staging).await;
        self.tried = began.elapsed();
        read
    }

    /// The times of `runs` runs, by the device's clock if it has one; none if another thread's work ran in between. In
    /// a browser their mean, by the page's clock.
    async fn run_timed(
        &mut self,
        gpu: &Gpu,
        graph: &Graph,
        leaves: &[Arc<Buffer>],
        runs: u32,
    ) -> Result<Vec<Duration>> {
        gpu.done().await?;
        if !platform::TIMESTAMPS_ARE_FINE {
            let began = Instant::now();
            for _ in 0..runs {
                self.plan.run(gpu, &graph.nodes, leaves, Reads::None)?;
            }
            gpu.done().await?;
            return Ok(vec![began.elapsed() / runs.max(1)]);
        }
        gpu.start_profile()?;
        for _ in 0..runs {
            if let Err(error) = self.plan.run(gpu, &graph.nodes, leaves, Reads::None) {
                gpu.drop_profile();
                return Err(error);
            }
        }
        let profile = gpu.finish_profile().await?;
        let steps = self.plan.steps.len().max(1);
        if profile.kernels().len() != runs as usize * steps {
            return Ok(Vec::new());
        }
        let run = |kernels: &[crate::device::ProfiledKernel]| {
            let end = kernels.iter().map(|kernel| kernel.start + kernel.duration).max();
            let start = kernels.iter().map(|kernel| kernel.start).min();
            end.zip(start).map_or(Duration::ZERO, |(end, start)| end - start)
        };
        Ok(profile.kernels().chunks(steps).map(run).collect())
    }
}

/// Errors that are not the fault of one variant.
fn is_grave(error: &Error) -> bool {
    error.is_device_lost() || error.is_out_of_memory()
}

#[cfg(test)]
mod tests;
