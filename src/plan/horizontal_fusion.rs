//! Which groups run side by side in one kernel: those that have nothing to do with each other, and are so small that
//! a dispatch of their own would cost more than their work.
//!
//! Fusion groups are brought into stages, whose groups do not depend on each other. Small ones wait for company until
//! somebody needs them; all others stay where they stood, so that large values live no longer than before.

use super::context::PlanContext;
use super::fusion_group::FusionGroup;
use super::ir_builder::LARGEST;
use super::iteration_space::{Load, LoadSource};
use super::kernel_ir::{Code, KernelIr};
use super::reduction_schedule::ReductionSchedule;
use super::{elementwise, wgsl_module};
use crate::device::Caps;
use crate::graph::{HashIndex, Input};

/// Bytes that a group with company reads and writes at most. A GPU moves as many in about the time that it needs to
/// begin a kernel.
const SMALL: u64 = 4 << 20;
/// The same on a processor, where a kernel begins sooner and parts cost more: on Mesa's llvmpipe eight steps of Adam
/// side by side took 0.7 of their time apart with 56 kB each, 0.8 with 112 kB, and more than it from 448 kB on.
const SMALL_ON_CPU: u64 = 128 << 10;
/// Bytes of groups that wait: what they read cannot be given back.
const WAITING: u64 = 64 << 20;
/// What one kernel may cost to compile, and the length of its text.
const LONGEST_TEXT: [usize; 2] = [32_000, 16_000];
/// Storage bindings of one kernel, however many the adapter has: each is a descriptor that the driver must write.
const BINDINGS: usize = 64;

/// Fusion groups that do not depend on each other.
pub(super) type Stage<'a> = Vec<FusionGroup<'a>>;

/// Brings `groups` into stages.
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
        // A loop has work for a kernel of its own, and drivers count the rounds of all loops of an invocation.
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

/// Bytes that the group reads and writes.
fn bytes(context: &PlanContext, group: &FusionGroup) -> u64 {
    let reads = group.reads.iter().map(|input| context.graph.spec(*input).bytes());
    let writes = group.outputs.iter().map(|&node| context.graph.spec(Input::Node(node)).bytes());
    reads.chain(writes).sum()
}

/// Small groups whose turn has not come.
#[derive(Default)]
struct Waiting<'a> {
    /// Those of a level need results of levels before it only. With the bytes of each, and whether anybody reads it.
    levels: Vec<Vec<(FusionGroup<'a>, u64, bool)>>,
    /// Those that had no reader when others left, of whom none depends on another.
    later: Vec<FusionGroup<'a>>,
    /// The level that each node waits in.
    of: Vec<Option<usize>>,
    /// Of all that wait, and of those that do so for later.
    bytes: u64,
    bytes_later: u64,
}

impl<'a> Waiting<'a> {
    /// The last level that `group` needs results of.
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

    /// Those that others need run now; with `all` the rest too, such as the steps of an optimizer.
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

/// One kernel's work of a group.
pub(super) struct Unit<'c, 'a> {
    pub(super) group: &'c FusionGroup<'a>,
    pub(super) ir: &'c KernelIr<'a>,
    /// How folds are spread over threads; `None` where there are none.
    pub(super) schedule: Option<ReductionSchedule>,
    /// Slots of partial results, and their bytes.
    pub(super) temps: &'c [(u32, u64)],
}

impl Unit<'_, '_> {
    /// Its workgroups, and what the loops of a thread make.
    fn loops(&self) -> (u64, usize) {
        match self.schedule {
            Some(schedule) => (schedule.workgroups(self.ir), schedule.iterations(self.ir)),
            None => (elementwise::workgroups(self.ir), elementwise::iterations(self.ir)),
        }
    }

    fn workgroup(&self) -> usize {
        self.schedule.map_or(elementwise::WORKGROUP, ReductionSchedule::workgroup)
    }

    /// Equal for units that do the same in different turns of a run.
    fn class(&self) -> Option<u64> {
        (!self.group.labels.is_empty()).then(|| self.ir.form())
    }

    /// What its text costs to compile, and about how long it is.
    fn text(&self) -> [usize; 2] {
        [self.weight() + 100, self.ir.text_length()]
    }

    pub(super) fn weight(&self) -> usize {
        self.ir.weight() * self.schedule.map_or(1, |schedule| schedule.repeats(self.ir))
    }

    /// Values of which it reads one element, whose bindings several units can share.
    fn singles(&self) -> impl Iterator<Item = LoadSource> + '_ {
        let reads = self.ir.reads().filter(|(i, load)| self.is_single(*i, load));
        reads.map(|(_, load)| load.source)
    }

    fn is_single(&self, i: usize, load: &Load) -> bool {
        matches!(load.source, LoadSource::Value(_)) && self.ir.space.is_single(i)
    }

    /// Storage bindings beside those of [`Unit::singles`].
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
struct Bin {
    units: Vec<usize>,
    bindings: usize,
    singles: Vec<LoadSource>,
    text: [usize; 2],
    /// Of each unit.
    loops: Vec<(u64, usize)>,
}

/// Bins that a unit is tried in, the latest: so a wide stage takes no longer for each unit than a narrow one.
const OPEN_BINS: usize = 8;
/// Turns of a loop that run side by side in one kernel.
const TURNS: usize = 8;

/// Brings the units of a stage into kernels: those that are the same in several turns of a run among themselves, each
/// other one into the first that has room for it.
pub(super) fn kernels(units: &[Unit], caps: &Caps) -> Vec<Vec<usize>> {
    let limit = caps.storage_buffers.min(BINDINGS);
    let ends = |loops: &[(u64, usize)], more: (u64, usize), times: usize| {
        let loops = loops.iter().copied().chain(std::iter::repeat_n(more, times));
        wgsl_module::iterations(loops, caps.cpu) <= caps.loop_iterations
    };
    let mut kernels = Vec::new();
    // Those that have a kernel already.
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
        // In halves, so that no text depends on how many turns there are.
        let unit = &units[class[0]];
        let bindings = unit.bindings() + unit.singles().count();
        // Each part is compiled, as often as it stands there.
        let text = (LARGEST / unit.weight().max(1)).min(LONGEST_TEXT[1] / unit.text()[1]);
        let mut room = text.min(limit / bindings.max(1)).clamp(1, TURNS);
        while room > 1 && !ends(&[], unit.loops(), room) {
            room /= 2;
        }
        let mut open = &class[..];
        while !open.is_empty() {
            let count = room.min(open.len());
            let (own, later) = open.split_at(1 << count.ilog2());
            kernels.push(own.to_vec());
            open = later;
        }
    }
    let mut bins: Vec<Bin> = Vec::new();
    for (at, unit) in units.iter().enumerate().filter(|(at, _)| !placed[*at]) {
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
    kernels.extend(bins.into_iter().map(|bin| bin.units));
    kernels
}
