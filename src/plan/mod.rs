//! From a graph to kernels: decides which nodes share a kernel, which buffers live where, which WGSL and which
//! parameters.
//!
//! The planner makes a plan once for a structure and caches it; running it again costs a look-up and an encode, with
//! the bind groups that the plan has cached. The planner calls each op to lower itself, and does not depend on
//! particular ops.

mod cache;
#[cfg(all(feature = "kernel-hooks", not(target_family = "wasm")))]
mod capture;
mod context;
mod elementwise;
mod epilogue;
mod first_run;
mod fusion;
mod fusion_group;
mod horizontal_fusion;
#[cfg(test)]
mod interpret;
mod ir_builder;
mod iteration_space;
mod kernel_ir;
mod loop_rerolling;
mod lowerings;
mod memory;
#[cfg(any(test, all(feature = "kernel-hooks", not(target_family = "wasm"))))]
mod misfits;
mod order;
mod planner;
#[cfg(all(feature = "saved-model", not(target_family = "wasm")))]
pub(crate) mod portable;
mod pressure;
mod reduction_emission;
mod reduction_schedule;
mod regrouping;
mod repetition;
mod report;
#[cfg(all(feature = "saved-plans", not(target_family = "wasm")))]
pub(crate) mod saved;
#[cfg(test)]
mod strict;
mod tiles;
mod tuner;
mod view;
mod wgsl_module;
mod wgsl_writer;

use std::sync::Arc;

pub(crate) use cache::PlanCache;
#[cfg(all(feature = "kernel-hooks", not(target_family = "wasm")))]
pub(crate) use capture::{Recording, plan_for_known_adapters};
#[cfg(test)]
pub(crate) use interpret::faults;
use iteration_space::Varying;
pub(crate) use planner::{Fusion, plan};
pub(crate) use report::Note;
pub use report::{PlanReport, PlannedKernel};
#[cfg(test)]
pub(crate) use tuner::Choice;
pub(crate) use tuner::{Identity, Tuner, measure};
pub use tuner::{TunedOp, TunedVariant, Tuning, TuningReport};

#[cfg(not(target_family = "wasm"))]
use crate::device::EarlyRead;
use crate::device::{Access, Buffer, Counter, Gpu, Launch, Pipeline, ShaderSource, Staging};
use crate::error::{DeviceFault, Error, Result, message};
use crate::graph::Node;

/// A graph that is prepared to run on one device.
pub(crate) struct Plan {
    steps: Vec<Step>,
    slots: Vec<Slot>,
    /// The buffer that holds each wanted node's result, by node index.
    outputs: Vec<(u32, BufferRef)>,
    params: Params,
    /// Bytes of the slots that hold no output.
    arena_bytes: u64,
    report: PlanReport,
    /// The ops and variants that the tuner has yet to measure or verify.
    met: tuner::Met,
    /// How often it has run.
    runs: u32,
    /// All steps have their pipelines.
    compiled: bool,
    stage: Stage,
    /// The number of runs after which the structure gets a plan of the next stage.
    until: u32,
    /// Why the plan cannot run.
    refused: Option<Error>,
    /// The slots' buffers while the plan runs; the vector is kept to reuse its memory.
    taken: Vec<Arc<Buffer>>,
}

/// The purpose of a structure's plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// A first run, with a kernel for each op.
    SingleOps,
    /// Some runs, with kernels that many programs share.
    Brief,
    /// Any number of runs.
    Final,
}

/// One dispatch.
pub(crate) struct Step {
    source: ShaderSource,
    grid: [u32; 3],
    binds: Binds,
    /// The step's ranges of the parameter buffer, in the order of its uniforms.
    params: Ranges,
    note: Note,
    /// Bytes of all bound storage.
    bytes: u64,
    pipeline: Option<Arc<Pipeline>>,
    /// Bind groups by the ids of the buffers that they name, the latest first.
    bind_groups: Vec<(Vec<u64>, wgpu::BindGroup)>,
}

/// The bound storage in order: which buffers, and how many bytes of each.
pub(crate) type Binds = Vec<(BufferRef, u64)>;

/// Ranges of a buffer: offset and bytes.
pub(crate) type Ranges = Vec<(u64, u64)>;

/// What a run copies to the host.
pub(crate) enum Reads<'a> {
    None,
    /// Nothing, and the kernels wait for [`Gpu::send_for`].
    #[cfg(not(target_family = "wasm"))]
    Hold,
    /// The output of a node, after all kernels.
    One(u32, &'a Staging),
    /// Outputs in packs, each as soon as it is computed.
    #[cfg(not(target_family = "wasm"))]
    Early {
        wanted: &'a [(u32, PackPlace)],
        packs: &'a [Staging],
        /// Receives the submissions that complete the packs.
        submitted: &'a mut Vec<wgpu::SubmissionIndex>,
    },
}

/// The place of a value in a pack of values.
#[cfg(not(target_family = "wasm"))]
#[derive(Debug, Clone, Copy)]
pub(crate) struct PackPlace {
    pub(crate) pack: usize,
    /// The first byte, and how many there are; whole words.
    pub(crate) at: u64,
    pub(crate) bytes: u64,
}

/// A buffer, as the plan identifies it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BufferRef {
    /// The buffer of a value from outside the graph.
    Leaf(u32),
    /// A buffer that the run takes from the pool.
    Slot(u32),
}

struct Slot {
    bytes: u64,
    /// The ids of the buffers of the last runs. An output that replaces its predecessor alternates between two.
    recent: Vec<u64>,
}

/// The parameters of all steps in one buffer; a run uploads them if a word has changed.
#[derive(Default)]
struct Params {
    words: Vec<u32>,
    /// Which words depend on runtime scalars.
    varying: Vec<Varying>,
    buffer: Option<Arc<Buffer>>,
}

/// How many bind groups a step caches. Loops use only few combinations of buffers.
const BIND_GROUPS: usize = 4;
/// Bytes of host memory that wgpu and the driver take for a bind group, for each binding in it, and for a buffer.
/// Measured by the memory that the allocator returns, on Mesa's lavapipe.
const BIND_GROUP: usize = 1500;
const BINDING: usize = 280;
const BUFFER: usize = 2500;
const POINTER: usize = size_of::<usize>();
/// How many buffers a slot remembers.
const RECENT: usize = 3;

impl Plan {
    /// A plan of `steps`; a run takes a buffer for each of `slots`, which are sizes in bytes.
    fn new(
        steps: Vec<Step>,
        slots: Vec<u64>,
        outputs: Vec<(u32, BufferRef)>,
        params: Params,
    ) -> Self {
        let mut inner = vec![true; slots.len()];
        for (_, reference) in &outputs {
            if let BufferRef::Slot(slot) = *reference {
                inner[slot as usize] = false;
            }
        }
        let arena = slots.iter().zip(&inner).filter(|(_, inner)| **inner);
        Plan {
            arena_bytes: arena.map(|(bytes, _)| bytes).sum(),
            report: PlanReport::new(&steps, slots.iter().sum()),
            met: tuner::Met::default(),
            runs: 0,
            compiled: false,
            stage: Stage::Final,
            until: u32::MAX,
            refused: None,
            taken: Vec::with_capacity(slots.len()),
            slots: slots.into_iter().map(|bytes| Slot { bytes, recent: Vec::new() }).collect(),
            steps,
            outputs,
            params,
        }
    }

    /// Encodes and submits the plan, and copies the outputs that `reads` names to their staging buffers. Returns the buffers of
    /// the outputs, in the order of [`Plan::outputs`], and the submission, unless the plan is held.
    pub(crate) fn run(
        &mut self,
        gpu: &Gpu,
        nodes: &[Node],
        leaves: &[Arc<Buffer>],
        reads: Reads<'_>,
    ) -> Result<(Vec<Arc<Buffer>>, Option<wgpu::SubmissionIndex>)> {
        let result = self.run_in_slots(gpu, nodes, leaves, reads);
        // The buffers return to the pool, even after an error.
        self.taken.clear();
        result
    }

    fn run_in_slots(
        &mut self,
        gpu: &Gpu,
        nodes: &[Node],
        leaves: &[Arc<Buffer>],
        reads: Reads<'_>,
    ) -> Result<(Vec<Arc<Buffer>>, Option<wgpu::SubmissionIndex>)> {
        self.compile(gpu)?;
        self.params.refresh(gpu, nodes)?;
        self.take_slots(gpu)?;
        let slots = &self.taken;
        let buffer = |reference: BufferRef| match reference {
            BufferRef::Leaf(i) => &leaves[i as usize],
            BufferRef::Slot(i) => &slots[i as usize],
        };
        // A plan without parameters has no steps.
        if let Some(params) = &self.params.buffer {
            for step in &mut self.steps {
                step.bind(gpu, params, buffer);
            }
        }
        let launches = self.steps.iter().map(Step::launch).collect::<Result<Vec<Launch>>>()?;
        let outputs: Vec<Arc<Buffer>> =
            self.outputs.iter().map(|(_, reference)| buffer(*reference).clone()).collect();
        let output = |node: u32| self.outputs.iter().position(|(n, _)| *n == node);
        let index = match reads {
            Reads::None => Some(gpu.submit(&launches, None)?),
            #[cfg(not(target_family = "wasm"))]
            Reads::Hold => {
                let used = leaves.iter().chain(slots).map(|buffer| buffer.id()).collect();
                gpu.hold(&launches, used)?;
                None
            }
            Reads::One(node, staging) => {
                Some(gpu.submit(&launches, output(node).map(|at| (&*outputs[at], staging)))?)
            }
            #[cfg(not(target_family = "wasm"))]
            Reads::Early { wanted, packs, submitted } => {
                let mut reads = Vec::with_capacity(wanted.len());
                for (node, place) in wanted {
                    let Some(at) = output(*node) else { continue };
                    let after = self.kernels_until(self.outputs[at].1);
                    let PackPlace { pack, at: begin, bytes } = *place;
                    reads.push(EarlyRead { from: &outputs[at], after, pack, at: begin, bytes });
                }
                let (of_packs, last) = gpu.submit_with_early_reads(&launches, &reads, packs)?;
                *submitted = of_packs;
                Some(last)
            }
        };
        gpu.counters.set(Counter::ArenaBytes, self.arena_bytes);
        Ok((outputs, index))
    }

    /// How many kernels must run until this buffer has its last value.
    #[cfg(not(target_family = "wasm"))]
    fn kernels_until(&self, buffer: BufferRef) -> usize {
        let writes = |step: &Step| {
            let mut storage = step.binds.iter();
            step.source.accesses.iter().any(|access| match access {
                Access::Uniform => false,
                Access::Read => {
                    storage.next();
                    false
                }
                Access::Write => storage.next().is_some_and(|(bound, _)| *bound == buffer),
            })
        };
        self.steps.iter().rposition(writes).map_or(0, |at| at + 1)
    }

    /// The ops that the tuner has not measured yet.
    pub(crate) fn tasks(&self) -> &[Arc<tuner::Task>] {
        &self.met.tasks
    }

    /// Its kernels.
    pub(crate) fn report(&self) -> PlanReport {
        self.report.clone()
    }

    /// Counts a run, and returns its number.
    pub(crate) fn ran(&mut self) -> u32 {
        self.runs = self.runs.saturating_add(1);
        self.runs
    }

    /// About how many bytes of host memory the plan holds, or will hold once it has run: itself, its report, its parameters and
    /// its bind groups. Kernels' texts belong to the pipelines, which plans share.
    fn host_bytes(&self) -> u64 {
        let steps = self.steps.iter().map(Step::host_bytes).sum::<usize>();
        let slots =
            self.slots.len() * (size_of::<Slot>() + RECENT * size_of::<u64>() + 2 * POINTER);
        let params = BUFFER + self.params.words.len() * 8 + size_of_val(&self.params.varying[..]);
        (size_of::<Plan>() + steps + slots + params + size_of_val(&self.outputs[..])) as u64
    }

    /// The kernels' texts, for tests that validate them.
    #[cfg(test)]
    pub(crate) fn sources(&self) -> impl Iterator<Item = &ShaderSource> + '_ {
        self.steps.iter().map(|step| &step.source)
    }

    pub(crate) fn outputs(&self) -> impl Iterator<Item = u32> + '_ {
        self.outputs.iter().map(|(node, _)| *node)
    }

    /// Gets the steps' pipelines, all at once, so that new ones are compiled in parallel.
    fn compile(&mut self, gpu: &Gpu) -> Result<()> {
        if self.compiled {
            return Ok(());
        }
        if let Some(error) = &self.refused {
            return Err(error.clone());
        }
        // Equal texts are one allocation, so each is included once, by its address.
        let mut places = crate::graph::HashIndex::default();
        let mut sources: Vec<&ShaderSource> = Vec::new();
        let mut of = Vec::with_capacity(self.steps.len());
        for step in &self.steps {
            let next = sources.len() as u32;
            let at = *places.entry(step.source.wgsl.as_ptr() as usize as u64).or_insert(next);
            if at == next {
                sources.push(&step.source);
            }
            of.push(at as usize);
        }
        let pipelines = gpu.pipelines(&sources)?;
        for (step, at) in self.steps.iter_mut().zip(of) {
            step.pipeline = Some(pipelines[at].clone());
        }
        self.compiled = true;
        Ok(())
    }

    fn take_slots(&mut self, gpu: &Gpu) -> Result<()> {
        let wanted = self.slots.iter().map(|slot| (slot.bytes, &slot.recent[..]));
        gpu.pool.acquire_all(wanted, &mut self.taken)?;
        for (slot, buffer) in self.slots.iter_mut().zip(&self.taken) {
            if slot.recent.first() != Some(&buffer.id()) {
                slot.recent.retain(|id| *id != buffer.id());
                slot.recent.truncate(RECENT - 1);
                slot.recent.insert(0, buffer.id());
            }
        }
        Ok(())
    }
}

impl Step {
    pub(crate) fn new(
        source: ShaderSource,
        grid: [u32; 3],
        binds: Binds,
        params: Ranges,
        note: Note,
    ) -> Self {
        Step {
            bytes: binds.iter().map(|(_, bytes)| bytes).sum(),
            source,
            grid,
            binds,
            params,
            note,
            pipeline: None,
            bind_groups: Vec::new(),
        }
    }

    /// See [`Plan::host_bytes`].
    fn host_bytes(&self) -> usize {
        let note = &self.note;
        // The step's own note, and the report's copy.
        let said =
            2 * (self.label().len() + size_of_val(&note.ops[..]) + size_of_val(&note.outputs[..]));
        let bound = size_of_val(&self.binds[..]) + size_of_val(&self.params[..]);
        let groups = self.bind_groups.len().max(1) * (BIND_GROUP + self.binds.len() * BINDING);
        size_of::<Step>() + size_of::<PlannedKernel>() + said + bound + groups
    }

    fn label(&self) -> &str {
        if self.note.label.is_empty() { &self.source.label } else { &self.note.label }
    }

    /// The dispatch of this step. A step without a pipeline or a bind group is an error and never skipped, because
    /// results would be wrong.
    fn launch(&self) -> Result<Launch<'_>> {
        let (Some(pipeline), Some((_, bind_group))) = (&self.pipeline, self.bind_groups.first())
        else {
            let lacks = if self.pipeline.is_none() { "pipeline" } else { "bind group" };
            return Err(Error::Device(
                DeviceFault::Validation,
                message!(
                    "Device: the kernel {} has no {lacks}, so its plan was not run. This is a defect in wgrad; please \
                     report it.",
                    self.label()
                ),
            ));
        };
        Ok(Launch {
            pipeline,
            bind_group,
            grid: self.grid,
            label: self.label(),
            bytes: self.bytes,
            flops: self.note.flops,
        })
    }

    /// Moves the bind group of this run's buffers to the front, after creating it if necessary.
    fn bind<'a>(
        &mut self,
        gpu: &Gpu,
        params: &Buffer,
        buffer: impl Fn(BufferRef) -> &'a Arc<Buffer>,
    ) {
        let Some(pipeline) = &self.pipeline else { return };
        let ids = || self.binds.iter().map(|(reference, _)| buffer(*reference).id());
        match self.bind_groups.iter().position(|(known, _)| ids().eq(known.iter().copied())) {
            Some(0) => {}
            Some(at) => self.bind_groups[..=at].rotate_right(1),
            None => {
                let group = self.bind_group(gpu, pipeline, params, &buffer);
                let ids = ids().collect();
                self.bind_groups.truncate(BIND_GROUPS - 1);
                self.bind_groups.insert(0, (ids, group));
            }
        }
    }

    fn bind_group<'a>(
        &self,
        gpu: &Gpu,
        pipeline: &Pipeline,
        params: &Buffer,
        buffer: &impl Fn(BufferRef) -> &'a Arc<Buffer>,
    ) -> wgpu::BindGroup {
        let range = |buffer, offset, bytes| {
            let size = std::num::NonZeroU64::new(bytes);
            wgpu::BindingResource::Buffer(wgpu::BufferBinding { buffer, offset, size })
        };
        let mut storage = self.binds.iter().map(|(reference, bytes)| {
            let buffer = buffer(*reference);
            range(buffer.raw(), buffer.offset(), *bytes)
        });
        let mut uniforms = self.params.iter().map(|(at, bytes)| range(params.raw(), *at, *bytes));
        let accesses = self.source.accesses.iter().enumerate();
        let entries: Vec<wgpu::BindGroupEntry> = accesses
            .filter_map(|(i, access)| {
                let resource = match access {
                    Access::Uniform => uniforms.next(),
                    _ => storage.next(),
                };
                resource.map(|resource| wgpu::BindGroupEntry { binding: i as u32, resource })
            })
            .collect();
        gpu.counters.add(Counter::BindGroups, 1);
        gpu.device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: Some(&self.source.label),
            layout: &pipeline.layout,
            entries: &entries,
        })
    }
}

impl Params {
    /// Writes this run's runtime scalars into the words. Returns the range that has changed.
    fn update(&mut self, nodes: &[Node]) -> std::ops::Range<usize> {
        let mut changed = self.words.len()..0;
        let mut of_node = (u32::MAX, crate::graph::RuntimeScalars::new());
        for &Varying { at, constant, ref terms } in &self.varying {
            let mut now = constant;
            for &(node, word, factor) in terms {
                if of_node.0 != node {
                    of_node = (node, nodes[node as usize].op.runtime_scalars());
                }
                now = now.wrapping_add(of_node.1[word as usize].wrapping_mul(factor));
            }
            if self.words[at] != now {
                self.words[at] = now;
                changed = changed.start.min(at)..changed.end.max(at + 1);
            }
        }
        changed
    }

    /// Writes this run's runtime scalars into the buffer; a run with the same scalars as the last uploads nothing.
    fn refresh(&mut self, gpu: &Gpu, nodes: &[Node]) -> Result<()> {
        let mut changed = self.update(nodes);
        if self.words.is_empty() {
            return Ok(());
        }
        let buffer = match &self.buffer {
            Some(buffer) => buffer,
            None => {
                changed = 0..self.words.len();
                self.buffer.insert(gpu.uniform_buffer(4 * self.words.len() as u64)?)
            }
        };
        if !changed.is_empty() {
            let bytes = bytemuck::cast_slice(&self.words[changed.clone()]);
            gpu.write(buffer, 4 * changed.start as u64, bytes)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::graph::attributes::Attribute;

    use super::*;
    use crate::device::DeviceOptions;
    use crate::dtype::DType;
    use crate::graph::lower::{Bind, Kernel, Lowering, LoweringContext};
    use crate::graph::{Graph, Op, Spec};

    /// Writes sevens.
    #[derive(Debug, Attribute)]
    #[op("Sevens")]
    struct Sevens;

    impl Op for Sevens {
        fn name(&self) -> &'static str {
            "Sevens"
        }

        fn infer(&self, _: &[&Spec]) -> Result<Spec> {
            Ok(Spec::new([4], DType::F32))
        }

        fn lower(&self, _: &LoweringContext) -> Lowering {
            let text = "@group(0) @binding(0) var<storage, read_write> y: array<f32>;\n\
                        @compute @workgroup_size(4) fn main(@builtin(local_invocation_index) i: u32) { y[i] = 7.0; }\n";
            Kernel::new("sevens", text).write(Bind::Output).workgroups(1, 0).into()
        }
    }

    #[test]
    fn a_kernel_without_a_pipeline_or_a_bind_group_is_an_error() {
        let gpu = pollster::block_on(Gpu::open(&DeviceOptions::default())).unwrap();
        let spec = Sevens.infer(&[]).unwrap();
        let node = Node { op: Arc::new(Sevens), inputs: Default::default(), spec, wanted: true };
        let graph = Graph { nodes: vec![node], ..Graph::default() };
        let fresh = || {
            let mut plan = plan(&graph, &gpu.caps, true, &tuner::Choice::Unasked);
            // A step is bound only where the plan has parameters.
            plan.params.words = vec![0];
            plan
        };
        let read = |plan: &mut Plan| {
            let staging = gpu.staging(16)?;
            plan.run(&gpu, &graph.nodes, &[], Reads::One(0, &staging))?;
            pollster::block_on(gpu.read(staging))
        };
        let sevens: Vec<u8> = [7f32; 4].iter().flat_map(|x| x.to_ne_bytes()).collect();
        assert_eq!(read(&mut fresh()).unwrap(), sevens);

        let mut lacks_pipeline = fresh();
        lacks_pipeline.compiled = true;
        assert_eq!(
            read(&mut lacks_pipeline).unwrap_err().to_string(),
            "Device: the kernel sevens has no pipeline, so its plan was not run. This is a defect in wgrad; please \
             report it."
        );
        let mut lacks_group = fresh();
        lacks_group.params.words.clear();
        assert_eq!(
            read(&mut lacks_group).unwrap_err().to_string(),
            "Device: the kernel sevens has no bind group, so its plan was not run. This is a defect in wgrad; please \
             report it."
        );
    }
}
