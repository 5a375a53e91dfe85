//! Decides which fusion groups run side by side in one kernel: groups that do not depend on each other, and are so
//! small that a separate dispatch would cost more than their work.
//!
//! The planner gathers such groups in stages. Small groups wait for others until their results are needed; all other
//! groups keep their position, so that the lifetimes of large values do not increase.

use std::hash::{Hash, Hasher};

use super::context::PlanContext;
use super::fusion_group::FusionGroup;
use super::ir_builder::LARGEST;
use super::iteration_space::{Load, LoadSource};
use super::kernel_ir::{Code, KernelIr};
use super::reduction_schedule::ReductionSchedule;
use super::{elementwise, wgsl_module};
use crate::graph::{HashIndex, Input, Mixer};
use crate::support::sort::sort_by_key;

/// The most bytes that a group in a shared kernel reads and writes. A GPU moves them in about the time that it needs to
/// start a kernel.
const SMALL: u64 = 4 << 20;
/// The same on a CPU, where kernels start faster and sections cost more: on Mesa's llvmpipe eight steps of Adam in one
/// kernel took 0.7 of the time of separate kernels with 56 kB each, 0.8 with 112 kB, and more than it from 448 kB on.
const SMALL_ON_CPU: u64 = 128 << 10;
/// The most bytes that all waiting groups read and write, because their inputs cannot be reused meanwhile.
const WAITING: u64 = 64 << 20;
/// The limits of a kernel's compilation cost, and of the length of its text.
const LONGEST_TEXT: [usize; 2] = [32_000, 16_000];
/// How many storage buffers one kernel binds at most, whatever the adapter allows: the driver must write a descriptor
/// for each.
const BINDINGS: usize = 64;

/// Fusion groups that do not depend on each other, and run together.
pub(super) type Stage<'a> = Vec<FusionGroup<'a>>;

/// Gathers `groups` in stages.
pub(super) fn stages<'a>(
    context: &PlanContext,
    groups: Vec<FusionGroup<'a>>,
    fusion: bool,
) -> Vec<Stage<'a>> {
    if !fusion {
        return groups.into_iter().map(|group| vec![group]).collect();
    }
    let small = if context.caps.cpu { SMALL_ON_CPU } else { SMALL };
    let mut read = vec![false; context.graph.nodes.len()];
    for input in groups.iter().flat_map(|group| &group.reads) {
        if let Input::Node(j) = *input {
            read[j as usize] = true;
        }
    }
    let mut stages = Vec::new();
    let mut waiting = Waiting { of: vec![None; read.len()], ..Waiting::default() };
    for group in groups {
        let bytes = bytes(context, &group);
        // A loop has enough work for a separate kernel, and drivers count the iterations of all loops of an invocation
        // together.
        let alone = group.ir.as_ref().is_none_or(|ir| ir.roll.is_some());
        if group.anchor.is_none() && !alone && bytes <= small {
            let needed = group.outputs.iter().any(|&node| read[node as usize]);
            waiting.add(group, bytes, needed);
            if waiting.bytes > WAITING {
                waiting.leave(&mut stages, true);
            }
        } else {
            if waiting.after(&group).is_some() {
                waiting.leave(&mut stages, false);
            }
            stages.push(vec![group]);
        }
    }
    waiting.leave(&mut stages, true);
    stages
}

/// How many bytes the group reads and writes.
fn bytes(context: &PlanContext, group: &FusionGroup) -> u64 {
    let reads = group.reads.iter().map(|input| context.graph.spec(*input).bytes());
    let writes = group.outputs.iter().map(|&node| context.graph.spec(Input::Node(node)).bytes());
    reads.chain(writes).sum()
}

/// Small groups that wait for others.
#[derive(Default)]
struct Waiting<'a> {
    /// By levels: a group needs only results of earlier levels. With the bytes of each group, and whether it has a
    /// reader.
    levels: Vec<Vec<(FusionGroup<'a>, u64, bool)>>,
    /// Groups that had no reader when others left; none of them depends on another.
    later: Vec<FusionGroup<'a>>,
    /// The level in which each node waits.
    of: Vec<Option<usize>>,
    /// Bytes of all waiting groups, and of those in `later`.
    bytes: u64,
    bytes_later: u64,
}

impl<'a> Waiting<'a> {
    /// The last level whose results `group` needs.
    fn after(&self, group: &FusionGroup) -> Option<usize> {
        let levels = group.reads.iter().filter_map(|input| match *input {
            Input::Node(j) => self.of[j as usize],
            Input::Leaf(_) => None,
        });
        levels.max()
    }

    fn add(&mut self, group: FusionGroup<'a>, bytes: u64, needed: bool) {
        let level = self.after(&group).map_or(0, |level| level + 1);
        if level == self.levels.len() {
            self.levels.push(Vec::new());
        }
        for &node in &group.outputs {
            self.of[node as usize] = Some(level);
        }
        self.bytes += bytes;
        self.levels[level].push((group, bytes, needed));
    }

    /// Makes stages of the groups whose results are needed; with `all` also of the rest, such as the steps of an
    /// optimizer.
    fn leave(&mut self, stages: &mut Vec<Stage<'a>>, all: bool) {
        let mut first = if all { std::mem::take(&mut self.later) } else { Vec::new() };
        let mut bytes = 0;
        for level in std::mem::take(&mut self.levels) {
            let mut now = std::mem::take(&mut first);
            for (group, size, needed) in level {
                for &node in &group.outputs {
                    self.of[node as usize] = None;
                }
                if all || needed {
                    now.push(group);
                } else {
                    bytes += size;
                    self.later.push(group);
                }
            }
            if !now.is_empty() {
                stages.push(now);
            }
        }
        if !first.is_empty() {
            stages.push(first);
        }
        self.bytes = if all { 0 } else { self.bytes_later + bytes };
        self.bytes_later = self.bytes;
    }
}

/// The work of one kernel, or of one section of it, for a group.
pub(super) struct Unit<'c, 'a> {
    pub(super) group: &'c FusionGroup<'a>,
    pub(super) ir: &'c KernelIr<'a>,
    /// How its folds are distributed over threads; `None` if it has none.
    pub(super) schedule: Option<ReductionSchedule>,
    /// The slots of partial results, and their bytes.
    pub(super) temps: &'c [(u32, u64)],
}

impl Unit<'_, '_> {
    /// Its workgroups, and how many iterations the loops of one thread make.
    fn loops(&self) -> (u64, usize) {
        match self.schedule {
            Some(schedule) => (schedule.workgroups(self.ir), schedule.iterations(self.ir)),
            None => (elementwise::workgroups(self.ir), elementwise::iterations(self.ir)),
        }
    }

    fn workgroup(&self) -> usize {
        self.schedule.map_or(elementwise::WORKGROUP, ReductionSchedule::workgroup)
    }

    /// Equal for units that do the same work in different turns of a run, in workgroups of the same size.
    fn class(&self) -> Option<u64> {
        let mut hash = Mixer::default();
        (self.ir.form(), self.workgroup()).hash(&mut hash);
        (!self.group.labels.is_empty()).then(|| hash.finish())
    }

    /// The compilation cost of its text, and the approximate length of the text.
    fn text(&self) -> [usize; 2] {
        [self.weight() + 100, self.ir.text_length()]
    }

    pub(super) fn weight(&self) -> usize {
        self.ir.weight() * self.schedule.map_or(1, |schedule| schedule.repeats(self.ir))
    }

    /// The single elements that it reads from other sources than `other`, which does the same work.
    pub(super) fn own_singles<'s>(
        &'s self,
        other: &'s Unit,
    ) -> impl Iterator<Item = LoadSource> + 's {
        let pairs = self.ir.loads.iter().zip(&other.ir.loads).enumerate();
        let own = pairs.filter(|(i, (a, b))| self.is_single(*i, a) && a.source != b.source);
        own.map(|(_, (load, _))| load.source)
    }

    /// The values of which it reads a single element; several units can share their bindings.
    fn singles(&self) -> impl Iterator<Item = LoadSource> + '_ {
        let reads = self.ir.reads().filter(|(i, load)| self.is_single(*i, load));
        reads.map(|(_, load)| load.source)
    }

    fn is_single(&self, i: usize, load: &Load) -> bool {
        matches!(load.source, LoadSource::Value(_)) && self.ir.space.is_single(i)
    }

    /// How many storage buffers it binds in addition to [`Unit::singles`].
    fn bindings(&self) -> usize {
        let reads = self.ir.reads().filter(|(i, load)| !self.is_single(*i, load)).count();
        let replaced = self.ir.outputs.iter().filter(|o| o.replaces.is_some()).count();
        let writes = match self.schedule {
            Some(schedule) if schedule.chunks > 1 => {
                let folds = self.ir.instances.iter();
                let folds = folds.filter(|i| matches!(i.code, Code::Reduce(_))).count();
                folds + self.ir.outputs.iter().filter(|output| !output.row).count()
            }
            _ => self.ir.outputs.len(),
        };
        reads + writes - replaced
    }
}

/// Units that become one kernel.
pub(super) struct Company {
    /// The units, by their numbers.
    pub(super) units: Vec<usize>,
    /// The number of sections of the text. Those beyond the units have no work, but the same code.
    pub(super) sections: usize,
    /// The unit whose code the sections without work have.
    pub(super) like: usize,
}

/// Units that become one kernel.
struct Bin {
    units: Vec<usize>,
    bindings: usize,
    singles: Vec<LoadSource>,
    text: [usize; 2],
    /// The loops of each unit.
    loops: Vec<(u64, usize)>,
}

/// The number of most recent bins in which a unit is tried, so that planning a wide stage takes no longer per unit than
/// a narrow one.
const OPEN_BINS: usize = 8;
/// In a plan for few runs, fewer units of a stage than this have separate kernels.
const FEW: usize = 16;
/// How many turns of a loop run in one kernel.
const TURNS: usize = 8;

/// Puts the units of a stage into kernels. Units that do the same work in several turns of a run are grouped; each
/// other unit is added to the first kernel that has room for it.
pub(super) fn kernels(units: &[Unit], context: &PlanContext) -> Vec<Company> {
    let caps = context.caps;
    let limit = caps.storage_buffers.min(BINDINGS);
    let ends = |loops: &[(u64, usize)], more: (u64, usize), times: usize| {
        let loops = loops.iter().copied().chain(std::iter::repeat_n(more, times));
        wgsl_module::iterations(loops, caps.cpu) <= caps.loop_iterations
    };
    let mut kernels = Vec::new();
    // The units that already have a kernel.
    let mut placed = vec![false; units.len()];
    let mut of_class = HashIndex::default();
    let mut classes: Vec<Vec<usize>> = Vec::new();
    for (at, unit) in units.iter().enumerate() {
        let Some(class) = unit.class() else { continue };
        let next = classes.len() as u32;
        let class = *of_class.entry(class).or_insert(next);
        if class == next {
            classes.push(Vec::new());
        }
        classes[class as usize].push(at);
    }
    for class in classes {
        if class.len() == 1 {
            continue;
        }
        class.iter().for_each(|&at| placed[at] = true);
        let unit = &units[class[0]];
        let bindings = unit.bindings() + unit.singles().count();
        // The driver compiles each occurrence of a section in the text.
        let text = (LARGEST / unit.weight().max(1)).min(LONGEST_TEXT[1] / unit.text()[1]);
        let mut room = text.min(limit / bindings.max(1)).clamp(1, TURNS);
        while room > 1 && !ends(&[], unit.loops(), room) {
            room /= 2;
        }
        // No text depends on the number of turns: the remaining turns have a kernel with the same number of sections.
        let sections = (1 << room.ilog2()).min(class.len().next_power_of_two());
        let company = |own: &[usize]| {
            let last = own[own.len() - 1];
            let like = if last == class[0] { class[1] } else { class[0] };
            Company { units: own.to_vec(), sections, like }
        };
        kernels.extend(class.chunks(sections).map(company));
    }
    // Units of one form are adjacent, so that no text depends on the order in which a program called them. The sort is
    // stable.
    let forms: Vec<u64> = units.iter().map(|unit| unit.ir.form()).collect();
    let mut open: Vec<usize> = (0..units.len()).filter(|&at| !placed[at]).collect();
    let mut bins: Vec<Bin> = Vec::new();
    sort_by_key(&mut open, |at| if caps.cpu { forms[*at] } else { 0 });
    for at in open {
        let unit = &units[at];
        let mut own: Vec<LoadSource> = Vec::new();
        unit.singles().for_each(|single| {
            if !own.contains(&single) {
                own.push(single);
            }
        });
        let (text, loops) = (unit.text(), unit.loops());
        let fits = |bin: &&mut Bin| {
            let more = own.iter().filter(|single| !bin.singles.contains(single)).count();
            bin.bindings + unit.bindings() + bin.singles.len() + more <= limit
                && (0..2).all(|k| bin.text[k] + text[k] <= LONGEST_TEXT[k])
                && units[bin.units[0]].workgroup() == unit.workgroup()
                && ends(&bin.loops, loops, 1)
        };
        let from = bins.len().saturating_sub(OPEN_BINS);
        match bins[from..].iter_mut().find(fits) {
            Some(bin) => {
                bin.units.push(at);
                bin.loops.push(loops);
                bin.bindings += unit.bindings();
                (0..2).for_each(|k| bin.text[k] += text[k]);
                own.retain(|single| !bin.singles.contains(single));
                bin.singles.extend(own);
            }
            None => bins.push(Bin {
                units: vec![at],
                bindings: unit.bindings(),
                singles: own,
                text,
                loops: vec![loops],
            }),
        }
    }
    // If the driver compiles for the CPU, an additional launch costs less than an additional text, and a few launches
    // cost less than a text of several sections, which few other programs share.
    let few = context.brief && placed.iter().filter(|placed| !**placed).count() < FEW;
    let together = |units: Vec<usize>| Company { sections: units.len(), like: units[0], units };
    for bin in bins {
        match caps.cpu {
            true if few => {
                kernels.extend(bin.units.into_iter().map(|unit| together(vec![unit])));
            }
            true => kernels.extend(halves(bin.units, &forms).into_iter().map(together)),
            false => kernels.push(together(bin.units)),
        }
    }
    kernels
}

/// Makes texts independent of the number of units of one form: a kernel has one, two, four, ... of each, and the rest
/// is put into another.
fn halves(mut units: Vec<usize>, forms: &[u64]) -> Vec<Vec<usize>> {
    let mut kernels = Vec::new();
    while !units.is_empty() {
        let (mut own, mut later) = (Vec::new(), Vec::new());
        for same in units.chunk_by(|a, b| forms[*a] == forms[*b]) {
            let (now, rest) = same.split_at(1 << same.len().ilog2());
            own.extend_from_slice(now);
            later.extend_from_slice(rest);
        }
        kernels.push(own);
        units = later;
    }
    kernels
}
