//! Which clusters run side by side in one kernel: those that have nothing to do with each other, and are so small that
//! a dispatch of their own would cost more than their work.
//!
//! Clusters are brought into stages, whose clusters do not depend on each other. Small ones wait for company until
//! somebody needs them; all others stay where they stood, so that large values live no longer than before.

use super::body::{Body, Code, Load, Scope, Source};
use super::builder::LARGEST;
use super::cluster::Cluster;
use super::rows::Shares;
use super::{map, parts};
use crate::device::Caps;
use crate::graph::{Input, Table};

/// Bytes that a cluster with company reads and writes at most. A GPU moves as many in about the time that it needs to
/// begin a kernel.
const SMALL: u64 = 4 << 20;
/// The same on a processor, where a kernel begins sooner and parts cost more: on Mesa's llvmpipe eight steps of Adam
/// side by side took 0.7 of their time apart with 56 kB each, 0.8 with 112 kB, and more than it from 448 kB on.
const SMALL_ON_CPU: u64 = 128 << 10;
/// Bytes of clusters that wait: what they read cannot be given back.
const WAITING: u64 = 64 << 20;
/// What one kernel may cost to compile, and the length of its text.
const LONGEST_TEXT: [usize; 2] = [32_000, 16_000];
/// Storage bindings of one kernel, however many the adapter has: each is a descriptor that the driver must write.
const BINDINGS: usize = 64;

/// Clusters that do not depend on each other.
pub(super) type Stage<'a> = Vec<Cluster<'a>>;

/// Brings `clusters` into stages.
pub(super) fn stages<'a>(
    scope: &Scope,
    clusters: Vec<Cluster<'a>>,
    fusion: bool,
) -> Vec<Stage<'a>> {
    if !fusion {
        return clusters.into_iter().map(|cluster| vec![cluster]).collect();
    }
    let small = if scope.caps.cpu { SMALL_ON_CPU } else { SMALL };
    let mut read = vec![false; scope.graph.nodes.len()];
    for input in clusters.iter().flat_map(|cluster| &cluster.reads) {
        if let Input::Node(j) = *input {
            read[j as usize] = true;
        }
    }
    let mut stages = Vec::new();
    let mut waiting = Waiting { of: vec![None; read.len()], ..Waiting::default() };
    for cluster in clusters {
        let bytes = bytes(scope, &cluster);
        // A loop has work for a kernel of its own, and drivers count the rounds of all loops of an invocation.
        let alone = cluster.body.as_ref().is_none_or(|body| body.roll.is_some());
        if cluster.anchor.is_none() && !alone && bytes <= small {
            let needed = cluster.outputs.iter().any(|&node| read[node as usize]);
            waiting.add(cluster, bytes, needed);
            if waiting.bytes > WAITING {
                waiting.leave(&mut stages, true);
            }
        } else {
            if waiting.after(&cluster).is_some() {
                waiting.leave(&mut stages, false);
            }
            stages.push(vec![cluster]);
        }
    }
    waiting.leave(&mut stages, true);
    stages
}

/// Bytes that the cluster reads and writes.
fn bytes(scope: &Scope, cluster: &Cluster) -> u64 {
    let reads = cluster.reads.iter().map(|input| scope.graph.spec(*input).bytes());
    let writes = cluster.outputs.iter().map(|&node| scope.graph.spec(Input::Node(node)).bytes());
    reads.chain(writes).sum()
}

/// Small clusters whose turn has not come.
#[derive(Default)]
struct Waiting<'a> {
    /// Those of a level need results of levels before it only. With the bytes of each, and whether anybody reads it.
    levels: Vec<Vec<(Cluster<'a>, u64, bool)>>,
    /// Those that had no reader when others left, of whom none depends on another.
    later: Vec<Cluster<'a>>,
    /// The level that each node waits in.
    of: Vec<Option<usize>>,
    /// Of all that wait, and of those that do so for later.
    bytes: u64,
    bytes_later: u64,
}

impl<'a> Waiting<'a> {
    /// The last level that `cluster` needs results of.
    fn after(&self, cluster: &Cluster) -> Option<usize> {
        let levels = cluster.reads.iter().filter_map(|input| match *input {
            Input::Node(j) => self.of[j as usize],
            Input::Leaf(_) => None,
        });
        levels.max()
    }

    fn add(&mut self, cluster: Cluster<'a>, bytes: u64, needed: bool) {
        let level = self.after(&cluster).map_or(0, |level| level + 1);
        if level == self.levels.len() {
            self.levels.push(Vec::new());
        }
        for &node in &cluster.outputs {
            self.of[node as usize] = Some(level);
        }
        self.bytes += bytes;
        self.levels[level].push((cluster, bytes, needed));
    }

    /// Those that others need run now; with `all` the rest too, such as the steps of an optimizer.
    fn leave(&mut self, stages: &mut Vec<Stage<'a>>, all: bool) {
        let mut first = if all { std::mem::take(&mut self.later) } else { Vec::new() };
        let mut bytes = 0;
        for level in std::mem::take(&mut self.levels) {
            let mut now = std::mem::take(&mut first);
            for (cluster, size, needed) in level {
                for &node in &cluster.outputs {
                    self.of[node as usize] = None;
                }
                if all || needed {
                    now.push(cluster);
                } else {
                    bytes += size;
                    self.later.push(cluster);
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

/// One kernel's work of a cluster.
pub(super) struct Unit<'c, 'a> {
    pub(super) cluster: &'c Cluster<'a>,
    pub(super) body: &'c Body<'a>,
    /// How folds are spread over threads; `None` where there are none.
    pub(super) shares: Option<Shares>,
    /// Slots of partial results, and their bytes.
    pub(super) temps: &'c [(u32, u64)],
}

impl Unit<'_, '_> {
    /// Its workgroups, and what the loops of a thread make.
    fn loops(&self) -> (u64, usize) {
        match self.shares {
            Some(shares) => (shares.groups(self.body), shares.iterations(self.body)),
            None => (map::groups(self.body), map::iterations(self.body)),
        }
    }

    fn workgroup(&self) -> usize {
        self.shares.map_or(map::WORKGROUP, Shares::workgroup)
    }

    /// Equal for units that do the same in different turns of a run.
    fn class(&self) -> Option<u64> {
        (!self.cluster.labels.is_empty()).then(|| self.body.form())
    }

    /// What its text costs to compile, and about how long it is.
    fn text(&self) -> [usize; 2] {
        [self.weight() + 100, self.body.text_length()]
    }

    pub(super) fn weight(&self) -> usize {
        self.body.weight() * self.shares.map_or(1, |shares| shares.repeats(self.body))
    }

    /// Values of which it reads one element, whose bindings several units can share.
    fn singles(&self) -> impl Iterator<Item = Source> + '_ {
        let reads = self.body.reads().filter(|(i, load)| self.is_single(*i, load));
        reads.map(|(_, load)| load.source)
    }

    fn is_single(&self, i: usize, load: &Load) -> bool {
        matches!(load.source, Source::Value(_)) && self.body.space.is_single(i)
    }

    /// Storage bindings beside those of [`Unit::singles`].
    fn bindings(&self) -> usize {
        let reads = self.body.reads().filter(|(i, load)| !self.is_single(*i, load)).count();
        let replaced = self.body.outputs.iter().filter(|o| o.replaces.is_some()).count();
        let writes = match self.shares {
            Some(shares) if shares.chunks > 1 => {
                let folds = self.body.instances.iter();
                let folds = folds.filter(|i| matches!(i.code, Code::Reduce(_))).count();
                folds + self.body.outputs.iter().filter(|output| !output.row).count()
            }
            _ => self.body.outputs.len(),
        };
        reads + writes - replaced
    }
}

/// Units that become one kernel.
struct Bin {
    units: Vec<usize>,
    bindings: usize,
    singles: Vec<Source>,
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
        parts::iterations(loops, caps.cpu) <= caps.loop_iterations
    };
    let mut kernels = Vec::new();
    // Those that have a kernel already.
    let mut placed = vec![false; units.len()];
    let mut of_class = Table::default();
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
        let mut own: Vec<Source> = Vec::new();
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
