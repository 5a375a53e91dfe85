//! Makes a plan: lowers every node, forms fusion groups, emits their kernels, assigns slots.

use super::context::{PlanContext, find_common_subexpressions, rematerialisable};
use super::fusion;
use super::fusion_group::FusionGroup;
use super::horizontal_fusion::{self, Stage, Unit};
use super::ir_builder::LARGEST;
use super::iteration_space::{LoadSource, Varying};
use super::kernel_ir::KernelIr;
use super::lowerings::Lowerings;
use super::memory::{Lifetimes, Slots};
use super::reduction_schedule::{self, ReductionSchedule};
use super::repetition::Repetition;
use super::tuner::{Choice, Met};
use super::wgsl_writer::{Bound, Common, EmittedKernel};
use super::{
    Binds, BufferRef, Note, Params, Plan, Ranges, Step, elementwise, epilogue, reduction_emission,
    wgsl_module,
};
use crate::device::{Access, Caps};
use crate::error::{DeviceFault, Error, message};
use crate::graph::lower::{self, Bind, Kernels, Lowering};
use crate::graph::{Graph, Input};
use crate::support::sort::sort_by_key;

/// Which nodes share kernels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fusion {
    /// Every node has a separate kernel.
    Off,
    /// For a CPU, on which compiling takes longer than computing: kernels that many programs share.
    Brief,
    Full,
}

impl From<bool> for Fusion {
    fn from(on: bool) -> Self {
        if on { Fusion::Full } else { Fusion::Off }
    }
}

/// Plans `graph` for a device with `caps`.
pub(crate) fn plan(graph: &Graph, caps: &Caps, fusion: impl Into<Fusion>, choice: &Choice) -> Plan {
    let fusion = fusion.into();
    let brief = caps.cpu && fusion != Fusion::Full;
    let fusion = fusion != Fusion::Off;
    let mut met = Met::default();
    let mut lowerings = Lowerings::new(graph, caps, choice, &mut met);
    let canonical = find_common_subexpressions(graph, &mut lowerings, fusion);
    let rematerialisable = rematerialisable(graph, &lowerings, fusion);
    let context = PlanContext {
        graph,
        lowerings: &lowerings,
        canonical: &canonical,
        rematerialisable: &rematerialisable,
        caps,
        brief,
    };
    let mut turns =
        if fusion { Repetition::find(&context, LARGEST / 4) } else { Repetition::default() };
    let groups = fusion::groups(&context, &mut turns, fusion);
    let planner = Planner {
        stages: horizontal_fusion::stages(&context, groups, fusion),
        context: &context,
        buffers: vec![None; graph.nodes.len()],
        replaced: vec![false; graph.nodes.len()],
        slots: Slots::default(),
        steps: Vec::new(),
        params: Params::default(),
        refused: None,
    };
    Plan { met, ..planner.run() }
}

/// Bytes of a buffer that a kernel binds and does not use: the largest element of any binding.
const UNUSED: u64 = 16;

struct Planner<'a, 'b> {
    context: &'b PlanContext<'a>,
    stages: Vec<Stage<'a>>,
    buffers: Vec<Option<BufferRef>>,
    /// The values whose slots are reused by a later value.
    replaced: Vec<bool>,
    slots: Slots,
    steps: Vec<Step>,
    params: Params,
    /// Why the plan cannot run.
    refused: Option<Error>,
}

impl<'a> Planner<'a, '_> {
    fn run(mut self) -> Plan {
        let nodes = &self.context.graph.nodes;
        let mut stages = std::mem::take(&mut self.stages);
        let lives = Lifetimes::new(self.context, &stages);
        let ends = lives.ends(stages.len());
        // How often the groups of a stage read each node, and each leaf.
        let leaves = self.context.graph.leaves.len();
        let mut readers = Readers { nodes: vec![0; nodes.len()], leaves: vec![0; leaves] };
        for (at, (stage, ends)) in stages.iter_mut().zip(ends).enumerate() {
            readers.count(stage, 1);
            for group in &mut *stage {
                self.write_in_place(group, &readers, at, &lives);
            }
            readers.count(stage, -1);
            for &node in stage.iter().flat_map(|group| &group.outputs) {
                if self.buffers[node as usize].is_none() {
                    let bytes = nodes[node as usize].spec.bytes();
                    let slot = self.slots.take(bytes, lives.keep[node as usize]);
                    self.buffers[node as usize] = Some(BufferRef::Slot(slot));
                }
            }
            self.lay(stage);
            // The slot of a replaced value is already reused.
            for node in ends.into_iter().filter(|&node| !self.replaced[node as usize]) {
                if let Some(BufferRef::Slot(slot)) = self.buffers[node as usize] {
                    self.slots.release(slot);
                }
            }
        }
        let outputs = (0..nodes.len())
            .filter(|&i| nodes[i].wanted)
            .map(|i| (i as u32, self.buffer(Input::Node(i as u32))))
            .collect();
        let refused = self.refused;
        Plan { refused, ..Plan::new(self.steps, self.slots.into_bytes(), outputs, self.params) }
    }

    /// Lets results of the group overwrite values that this group is the last to read. No other group of the stage may
    /// read them, because it may run at the same time.
    fn write_in_place(
        &mut self,
        group: &mut FusionGroup,
        readers: &Readers,
        at: usize,
        lives: &Lifetimes,
    ) {
        let Some(ir) = &mut group.ir else { return };
        for k in 0..ir.outputs.len() {
            let output = &ir.outputs[k];
            let (node, dtype) = (output.node, output.dtype);
            let bytes = self.context.graph.nodes[node as usize].spec.bytes();
            // Values from outside the graph first: whether a slot fits depends on sizes, and the text specifies what is
            // overwritten.
            let inside =
                |i: &usize| matches!(ir.loads[*i].source, LoadSource::Value(Input::Node(_)));
            let mut replaceable = ir.replaceable(k);
            sort_by_key(&mut replaceable, inside);
            let fits = replaceable.into_iter().find_map(|i| {
                let LoadSource::Value(input) = ir.loads[i].source else { return None };
                let alone = readers.total(input) == 1;
                let ends_here = lives.last(input) == Some(at) && alone;
                let buffer = match input {
                    Input::Leaf(leaf) => {
                        lives.donated[leaf as usize].then_some(BufferRef::Leaf(leaf))
                    }
                    Input::Node(j) if lives.keep[j as usize] => None,
                    Input::Node(j) => match self.buffers[j as usize] {
                        // A value that outlives the run uses exactly the memory that it needs. Others use any slot: a
                        // kernel's text specifies what it overwrites, and must not depend on which slots were free.
                        Some(BufferRef::Slot(slot))
                            if !lives.keep[node as usize] || self.slots.bytes(slot) == bytes =>
                        {
                            Some(BufferRef::Slot(slot))
                        }
                        _ => None,
                    },
                };
                let same =
                    self.context.graph.spec(input).bytes() == bytes && ir.loads[i].dtype == dtype;
                buffer.filter(|_| ends_here && same).map(|buffer| (i, input, buffer))
            });
            if let Some((load, input, buffer)) = fits {
                ir.outputs[k].replaces = Some(load);
                self.buffers[node as usize] = Some(buffer);
                if let Input::Node(j) = input {
                    self.replaced[j as usize] = true;
                }
            }
        }
    }

    fn buffer(&self, input: Input) -> BufferRef {
        match self.context.canonical(input) {
            Input::Leaf(i) => BufferRef::Leaf(i),
            Input::Node(i) => {
                self.buffers[i as usize].expect("values are laid down before their readers")
            }
        }
    }

    fn lay(&mut self, stage: &[FusionGroup<'a>]) {
        let context = self.context;
        if let [group] = stage {
            if let Some(node) = group.anchor {
                if let Lowering::Kernels(kernels) = &context.lowerings[node as usize] {
                    self.lay_kernels(group, node, kernels);
                }
                return;
            }
        }
        let irs = stage.iter().filter_map(|group| Some((group, group.ir.as_ref()?)));
        let works: Vec<Work> = irs.map(|(group, ir)| self.work(group, ir)).collect();
        let first: Vec<Unit> = works.iter().map(Work::first).collect();
        self.lay_units(&first);
        // A long fold ends in a second kernel.
        let second: Vec<Unit> = works.iter().filter_map(Work::second).collect();
        self.lay_units(&second);
        for (slot, _) in works.iter().flat_map(|work| &work.temps) {
            self.slots.release(*slot);
        }
    }

    /// The work of the kernels of a group without an anchor.
    fn work<'c>(&mut self, group: &'c FusionGroup<'a>, ir: &'c KernelIr<'a>) -> Work<'c, 'a> {
        let context = self.context;
        let schedule = (ir.levels() > 0).then(|| ReductionSchedule::new(ir, context.caps));
        let mut work = Work { group, ir, schedule, temps: Vec::new(), second: None };
        let Some(schedule) = schedule.filter(|schedule| schedule.chunks > 1) else { return work };
        let folds = reduction_schedule::folds(ir);
        let count = ir.space.count(false) * schedule.chunks;
        for &node in &folds {
            let dtype = reduction_schedule::partial(context.graph.nodes[node as usize].spec.dtype);
            let bytes = dtype.bytes(count);
            work.temps.push((self.slots.take(bytes, false), bytes));
        }
        let rows: Vec<u32> = ir.outputs.iter().filter(|o| o.row).map(|o| o.node).collect();
        let second = context
            .second(&group.members, &rows, &folds, schedule.chunks)
            .expect("fusion groups are joined only if it exists");
        let schedule = ReductionSchedule::whole(&second, context.caps);
        work.second = Some((second, schedule));
        work
    }

    /// Emits kernels for units that do not depend on each other.
    fn lay_units(&mut self, units: &[Unit]) {
        let graph = self.context.graph;
        for company in horizontal_fusion::kernels(units, self.context) {
            let like = &units[company.like];
            let units: Vec<&Unit> = company.units.iter().map(|&at| &units[at]).collect();
            let (Some(&last), count) = (units.last(), company.sections) else { continue };
            let mut common = Common::default();
            let mut sections = Vec::with_capacity(count);
            for k in 0..count {
                let prefix = if count > 1 { wgsl_module::prefix(k) } else { String::new() };
                let unit = units.get(k).copied().unwrap_or(last);
                if k >= units.len() {
                    unit.own_singles(like).for_each(|source| common.forget(source));
                }
                let section = match unit.schedule {
                    Some(schedule) => {
                        reduction_emission::generate(graph, unit.ir, schedule, &prefix, &mut common)
                    }
                    None => elementwise::generate(graph, unit.ir, &prefix, &mut common),
                };
                sections.push(if k < units.len() { section } else { section.idle() });
            }
            let kernel = wgsl_module::module(sections, &common, self.context.caps.cpu);
            let notes = units.iter().map(|unit| self.note(unit.group, Some(unit.ir)));
            let idle = (count - units.len()) * last.weight();
            let weight = units.iter().map(|unit| unit.weight()).sum::<usize>() + idle;
            let note = Note { weight, ..Note::of_parts(notes.collect(), &kernel.source.label) };
            // Sections without work bind small slots: one to read, and others to write, because no buffer may be bound
            // for writing twice.
            let mut unused = Vec::new();
            let mut binds = Binds::with_capacity(kernel.binds.len());
            for (&(k, bound), access) in kernel.binds.iter().zip(&kernel.source.accesses) {
                let bind = match units.get(k) {
                    Some(Unit { ir, temps, .. }) => self.bind(bound, Some(ir), temps, &[]),
                    None => {
                        let reads = *access == Access::Read;
                        let known = unused.iter().find(|(read, _)| reads && *read);
                        let slot = known.map(|(_, slot)| *slot);
                        let slot = slot.unwrap_or_else(|| self.slots.take(UNUSED, false));
                        if known.is_none() {
                            unused.push((reads, slot));
                        }
                        (BufferRef::Slot(slot), UNUSED)
                    }
                };
                binds.push(bind);
            }
            self.push(kernel, binds, note);
            for (_, slot) in unused {
                self.slots.release(slot);
            }
        }
    }

    fn lay_kernels(&mut self, group: &FusionGroup, node: u32, kernels: &Kernels) {
        let ir = group.ir.as_ref();
        let temps: Vec<(u32, u64)> =
            kernels.temps.iter().map(|&b| (self.slots.take(b, false), b)).collect();
        for (k, kernel) in kernels.kernels.iter().enumerate() {
            let own: Vec<Option<(BufferRef, u64)>> =
                kernel.binds.iter().map(|(bind, _)| self.bound(node, *bind, &temps)).collect();
            match ir {
                Some(ir) if k + 1 == kernels.kernels.len() => {
                    let kernel = epilogue::generate(ir, kernel);
                    self.push_anchored(group, kernel, Some(ir), &own);
                }
                _ => self.push_anchored(group, plain(kernel), None, &own),
            }
        }
        for (slot, _) in temps {
            self.slots.release(slot);
        }
    }

    /// The buffer of a binding of `node`'s kernel, if it exists.
    fn bound(&self, node: u32, bind: Bind, temps: &[(u32, u64)]) -> Option<(BufferRef, u64)> {
        let graph = self.context.graph;
        let spec = &graph.nodes[node as usize];
        match bind {
            Bind::Input(k) => {
                Some((self.buffer(spec.inputs[k]), graph.spec(spec.inputs[k]).bytes()))
            }
            // If the plain result is not needed, another output replaces it.
            Bind::Output => self.buffers[node as usize].map(|buffer| (buffer, spec.spec.bytes())),
            Bind::Temp(k) => Some((BufferRef::Slot(temps[k].0), temps[k].1)),
        }
    }

    /// The bound buffer, and how many bytes of it. `own` are the bindings of an op's kernel.
    fn bind(
        &self,
        bound: Bound,
        ir: Option<&KernelIr>,
        temps: &[(u32, u64)],
        own: &[Option<(BufferRef, u64)>],
    ) -> (BufferRef, u64) {
        let graph = self.context.graph;
        match (bound, ir) {
            (Bound::Own(i), _) => own[i].expect("what is asked of nobody is not bound"),
            (Bound::Temp(i), _) => (BufferRef::Slot(temps[i].0), temps[i].1),
            (Bound::Load(i), Some(ir)) => match ir.loads[i].source {
                LoadSource::Value(input) => (self.buffer(input), graph.spec(input).bytes()),
                LoadSource::Temp(i) => (BufferRef::Slot(temps[i].0), temps[i].1),
                LoadSource::Index => unreachable!("an index has no binding"),
            },
            (Bound::Output(k), Some(ir)) => {
                let node = ir.outputs[k].node;
                let spec = &graph.nodes[node as usize].spec;
                (self.buffer(Input::Node(node)), spec.bytes())
            }
            (_, None) => unreachable!("only kernel IRs have loads and outputs"),
        }
    }

    fn push_anchored(
        &mut self,
        group: &FusionGroup,
        kernel: EmittedKernel,
        ir: Option<&KernelIr>,
        own: &[Option<(BufferRef, u64)>],
    ) {
        let binds = kernel.binds.iter().map(|&(_, bound)| self.bind(bound, ir, &[], own));
        let binds = binds.collect();
        let note = self.note(group, ir);
        let label = kernel.source.label.clone();
        // The weight of an op's own shader is estimated by its length.
        let weight = kernel.source.wgsl.len() / 2 + ir.map_or(0, KernelIr::weight);
        let note = Note { label, flops: kernel.flops, weight, ..note };
        self.push(kernel, binds, note);
    }

    fn push(&mut self, kernel: EmittedKernel, binds: Binds, note: Note) {
        let mut params = Ranges::new();
        for (k, words) in kernel.params.iter().enumerate() {
            let aligned = (self.context.caps.uniform_alignment / 4).max(4) as usize;
            let start = self.params.words.len().next_multiple_of(aligned);
            let len = words.len().next_multiple_of(4);
            self.params.words.resize(start + len, 0);
            self.params.words[start..start + words.len()].copy_from_slice(words);
            params.push((4 * start as u64, 4 * len as u64));
            if k + 1 == kernel.params.len() {
                let of = |word: &Varying| Varying { at: start + word.at, ..word.clone() };
                self.params.varying.extend(kernel.varying.iter().map(of));
            }
        }
        let caps = self.context.caps;
        let bytes = binds.iter().map(|&(_, bytes)| bytes).max().unwrap_or(0);
        if self.refused.is_none() {
            self.refused = if kernel.iterations > caps.loop_iterations {
                Some(loops_too_long(&note.ops, kernel.iterations, caps.loop_iterations))
            } else if bytes > caps.binding_bytes {
                Some(too_large_between(&note.ops, bytes, caps.binding_bytes))
            } else {
                None
            };
        }
        #[cfg_attr(not(test), allow(unused_mut))]
        let mut source = kernel.source;
        #[cfg(test)]
        if self.context.caps.strict {
            source.wgsl = super::strict::end_loops(&source.wgsl, kernel.iterations).into();
        }
        self.steps.push(Step::new(source, kernel.grid, binds, params, note));
    }

    /// The note of a kernel of `group`.
    fn note(&self, group: &FusionGroup, ir: Option<&KernelIr>) -> Note {
        let nodes = &self.context.graph.nodes;
        let lowering = |node: u32| &self.context.lowerings[node as usize];
        let constant =
            |node: u32| matches!(lowering(node), Lowering::Elementwise(p) if p.is_uniform());
        let mut computed: Vec<u32> = match ir {
            Some(ir) => {
                let all = ir.instances.len() == 1;
                let nodes = ir.instances.iter().map(|instance| instance.node);
                nodes.filter(|&node| all || !constant(node)).collect()
            }
            // These are the first kernels of an op that has several.
            None => {
                let own = |node: &u32| matches!(lowering(*node), Lowering::Kernels(_));
                group.members.iter().copied().filter(own).collect()
            }
        };
        computed.sort_unstable();
        computed.dedup();
        let outputs = group.outputs.iter().map(|&node| nodes[node as usize].spec.shape.clone());
        Note {
            ops: computed.iter().map(|&node| nodes[node as usize].op.name()).collect(),
            outputs: outputs.collect(),
            ..Note::default()
        }
    }
}

/// How often the groups of a stage read each value.
struct Readers {
    nodes: Vec<i32>,
    leaves: Vec<i32>,
}

impl Readers {
    fn count(&mut self, stage: &[FusionGroup], by: i32) {
        for input in stage.iter().flat_map(|group| &group.reads) {
            match *input {
                Input::Node(j) => self.nodes[j as usize] += by,
                Input::Leaf(j) => self.leaves[j as usize] += by,
            }
        }
    }

    fn total(&self, input: Input) -> i32 {
        match input {
            Input::Node(j) => self.nodes[j as usize],
            Input::Leaf(j) => self.leaves[j as usize],
        }
    }
}

/// The kernels of a group without an anchor: one, or two if a fold is long.
struct Work<'c, 'a> {
    group: &'c FusionGroup<'a>,
    ir: &'c KernelIr<'a>,
    schedule: Option<ReductionSchedule>,
    /// Slots of partial results, and their bytes.
    temps: Vec<(u32, u64)>,
    second: Option<(KernelIr<'a>, ReductionSchedule)>,
}

impl<'a> Work<'_, 'a> {
    fn first(&self) -> Unit<'_, 'a> {
        let Work { group, ir, schedule, ref temps, .. } = *self;
        Unit { group, ir, schedule, temps }
    }

    fn second(&self) -> Option<Unit<'_, 'a>> {
        let (ir, schedule) = self.second.as_ref()?;
        Some(Unit { group: self.group, ir, schedule: Some(*schedule), temps: &self.temps })
    }
}

/// This cannot occur for tensors that an adapter can bind.
fn loops_too_long(ops: &[&str], iterations: usize, most: usize) -> Error {
    Error::Device(
        DeviceFault::Limit,
        message!(
            "{}: a thread would iterate {iterations} times, and at most {most} are safe on every adapter. Split the \
             tensors along an axis.",
            ops.join(", ")
        ),
    )
}

/// Calls reject tensors that no binding covers, so this is a buffer between the kernels of one op.
fn too_large_between(ops: &[&str], bytes: u64, most: u64) -> Error {
    Error::Device(
        DeviceFault::Limit,
        message!(
            "{}: its kernels pass on {bytes} bytes, and at most {most} fit into one binding on this adapter. Split \
             the tensors along an axis.",
            ops.join(", ")
        ),
    )
}

/// A kernel as its op wrote it.
fn plain(kernel: &lower::Kernel) -> EmittedKernel {
    EmittedKernel {
        source: kernel.source(),
        grid: kernel.grid(),
        binds: (0..kernel.binds.len()).map(|i| (0, Bound::Own(i))).collect(),
        params: vec![kernel.params.iter().map(|(_, word)| *word).collect()],
        varying: Vec::new(),
        flops: kernel.flops,
        iterations: kernel.iterations,
    }
}
