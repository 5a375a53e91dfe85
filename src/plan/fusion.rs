//! Decides which nodes share a kernel.
//!
//! Every node begins as its own fusion group. Groups are joined if one kernel can do the work of both: first each node
//! with its only reader, so that its value stays in registers; then the other groups that read each other, whose values
//! are also stored; then those that read the same value. To check whether two groups fit together, the fuser tries to
//! build their [`KernelIr`].

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::context::PlanContext;
use super::fusion_group::FusionGroup;
use super::ir_builder::LARGEST;
use super::iteration_space::{Load, LoadSource};
use super::kernel_ir::{Code, KernelIr};
use super::order::Order;
use super::reduction_schedule::ReductionSchedule;
use super::repetition::{self, Labels, Repetition};
use super::{epilogue, loop_rerolling};
use crate::graph::lower::{Bind, Kernels, Lowering};
use crate::graph::{HashIndex, Input, hash_bytes};

/// Up to this many results, a separate kernel for the nodes after a product costs little more than its launch.
const FEW_RESULTS: usize = 1 << 15;

/// The number of earlier readers of the same value with which a node is tried.
const SIBLINGS: usize = 2;

/// The fusion groups that cover all wanted nodes, in an order in which they can run.
pub(super) fn groups<'a>(
    context: &PlanContext<'a>,
    turns: &mut Repetition,
    fusion: bool,
) -> Vec<FusionGroup<'a>> {
    let mut fuser = Fuser::new(context, turns);
    if !fusion {
        return fuser.finish();
    }
    fuser.join_all();
    if fuser.gather_turns() {
        fuser.join_all();
    }
    loop_rerolling::roll(context, fuser.finish())
}

struct Fuser<'a, 'b> {
    context: &'b PlanContext<'a>,
    turns: &'b mut Repetition,
    /// The group of each node; aliases have none.
    of: Vec<Option<u32>>,
    members: Vec<Vec<u32>>,
    /// The turns that each group's members belong to.
    labels: Vec<Labels>,
    /// The nodes that read each node, also through aliases.
    readers: Vec<Vec<u32>>,
    /// The value of the node, or of an alias of it, is held outside the graph.
    keep: Vec<bool>,
    order: Order,
    /// Hashes of pairs of groups that did not fit, with their sizes at that time. If two pairs have the same hash, the
    /// only cost is a missed join.
    failed: HashIndex,
}

impl<'a, 'b> Fuser<'a, 'b> {
    fn new(context: &'b PlanContext<'a>, turns: &'b mut Repetition) -> Self {
        let nodes = &context.graph.nodes;
        let count = nodes.len();
        let mut fuser = Fuser {
            context,
            labels: (0..count).map(|i| turns.labels(i)).collect(),
            turns,
            of: vec![None; count],
            members: vec![Vec::new(); count],
            readers: vec![Vec::new(); count],
            keep: vec![false; count],
            order: Order::new(count),
            failed: HashIndex::default(),
        };
        for (i, node) in nodes.iter().enumerate() {
            if let (true, Input::Node(root)) = (node.wanted, context.canonical[i]) {
                fuser.keep[root as usize] = true;
            }
            if context.canonical[i] != Input::Node(i as u32) {
                continue;
            }
            fuser.of[i] = Some(i as u32);
            fuser.members[i].push(i as u32);
            for input in &node.inputs {
                if let Input::Node(j) = context.canonical(*input) {
                    let readers = &mut fuser.readers[j as usize];
                    // A node that reads a value twice counts once; nodes are in order.
                    if readers.last() != Some(&(i as u32)) {
                        readers.push(i as u32);
                    }
                }
            }
        }
        fuser
    }

    fn join_all(&mut self) {
        self.join_only_readers();
        self.join_readers();
        self.join_siblings();
    }

    /// Lets several turns of a run share a kernel if the turns cannot be one loop. Returns whether there are such runs.
    fn gather_turns(&mut self) -> bool {
        let mut gathers = false;
        for run in 0..self.turns.runs.len() {
            let together = self.together(run);
            self.turns.runs[run].together = together;
            gathers |= together > 1;
        }
        if gathers {
            self.failed.clear();
        }
        gathers
    }

    /// How many turns of a run may share a kernel.
    fn together(&self, run: usize) -> usize {
        let run = &self.turns.runs[run];
        let turn = |k: usize| {
            let nodes = run.first + (k - 1) * run.period..run.first + k * run.period;
            let mut groups: Vec<u32> = Vec::new();
            for group in nodes.filter_map(|node| self.of[node]) {
                if !self.is_constant(group as usize) && !groups.contains(&group) {
                    groups.push(group);
                }
            }
            groups
        };
        // The turns in the middle are equal; the first and the last have different neighbours.
        let middle = run.count.div_ceil(2);
        let (now, next) = (turn(middle), turn(middle + 1));
        let elementwise = |group: &u32| {
            self.members[*group as usize]
                .iter()
                .all(|&m| matches!(self.context.lowerings[m as usize], Lowering::Elementwise(_)))
        };
        // If each turn has a fold or a custom kernel, its cost exceeds the saved launch.
        if !now.iter().all(elementwise) {
            return 1;
        }
        if let ([now], [next]) = (&now[..], &next[..]) {
            let ir = |group: u32| {
                let members = &self.members[group as usize];
                self.context.kernel_ir(members, &self.outputs(members))
            };
            if let (Some(now), Some(next)) = (ir(*now), ir(*next)) {
                if loop_rerolling::next(&now, &next).is_some() {
                    return 1;
                }
            }
        }
        let nodes = run.first + run.period..run.first + 2 * run.period;
        let (all, _) = repetition::weight(self.context, nodes);
        let most = (LARGEST / all.max(1)).clamp(1, run.count);
        // The largest power of two that fits.
        1 << most.ilog2()
    }

    /// Joins each node with the group that is its only reader.
    fn join_only_readers(&mut self) {
        for i in (0..self.of.len()).rev() {
            let Some(own) = self.of[i] else { continue };
            if self.keep[i] || self.is_constant(i) {
                continue;
            }
            let mut groups = self.readers[i].iter().filter_map(|&r| self.of[r as usize]);
            let Some(first) = groups.next() else { continue };
            if first != own && groups.all(|group| group == first) {
                self.try_join(own, first);
            }
        }
    }

    /// Joins groups with those that read them.
    fn join_readers(&mut self) {
        for i in 0..self.of.len() {
            for k in 0..self.context.graph.nodes[i].inputs.len() {
                let Input::Node(j) = self.context.canonical(self.context.graph.nodes[i].inputs[k])
                else {
                    continue;
                };
                if let (Some(a), Some(b)) = (self.of[j as usize], self.of[i]) {
                    if a != b && !self.is_constant(j as usize) {
                        self.try_join(a, b);
                    }
                }
            }
        }
    }

    /// Joins groups that read the same value.
    fn join_siblings(&mut self) {
        let nodes = &self.context.graph.nodes;
        let leaves = self.context.graph.leaves.len();
        let mut reading: Vec<Vec<u32>> = vec![Vec::new(); leaves + nodes.len()];
        for (i, node) in nodes.iter().enumerate().filter(|(i, _)| self.of[*i].is_some()) {
            for input in &node.inputs {
                let at = match self.context.canonical(*input) {
                    Input::Leaf(leaf) => leaf as usize,
                    Input::Node(j) if self.is_constant(j as usize) => continue,
                    Input::Node(j) => leaves + j as usize,
                };
                reading[at].push(i as u32);
            }
        }
        for list in reading {
            for (at, &later) in list.iter().enumerate() {
                for &earlier in &list[at.saturating_sub(SIBLINGS)..at] {
                    if let (Some(a), Some(b)) = (self.of[earlier as usize], self.of[later as usize])
                    {
                        if a != b && self.size(a) == self.size(b) {
                            self.try_join(a, b);
                        }
                    }
                }
            }
        }
    }

    /// How many elements a group processes: those of its largest member, or those that a member folds.
    fn size(&self, group: u32) -> usize {
        let graph = self.context.graph;
        let size = |&m: &u32| match self.context.lowerings[m as usize] {
            Lowering::Reduce(_) => graph.spec(graph.nodes[m as usize].inputs[0]).elements(),
            _ => graph.nodes[m as usize].spec.elements(),
        };
        self.members[group as usize].iter().map(size).max().unwrap_or(0)
    }

    fn is_constant(&self, node: usize) -> bool {
        self.context.is_constant(node)
    }

    fn try_join(&mut self, a: u32, b: u32) {
        let (from, to) = if self.order.is_before(a, b) { (a, b) } else { (b, a) };
        let (first, second) = (&self.members[from as usize], &self.members[to as usize]);
        let pair = [from, to, first.len() as u32, second.len() as u32];
        let key = hash_bytes(bytemuck::cast_slice(&pair));
        if self.failed.contains_key(&key) || !self.join(from, to) {
            self.failed.insert(key, 0);
        }
    }

    /// Joins two groups if they fit together; `from` may lead to `to`.
    fn join(&mut self, from: u32, to: u32) -> bool {
        let (first, second) = (from as usize, to as usize);
        let Some(labels) = self.turns.join(&self.labels[first], &self.labels[second]) else {
            return false;
        };
        let Some(anchor) = self.anchor(first, second) else { return false };
        // If a path led through a third group, the join would create a cycle.
        let nodes = &self.context.graph.nodes;
        let (members, readers, of, context) =
            (&self.members, &self.readers, &self.of, self.context);
        let after = |group: u32| {
            let readers = members[group as usize].iter().flat_map(|&m| &readers[m as usize]);
            readers.filter_map(|&r| of[r as usize])
        };
        let before = |group: u32| {
            let members = members[group as usize].iter();
            members.flat_map(|&m| &nodes[m as usize].inputs).filter_map(|input| {
                match context.canonical(*input) {
                    Input::Node(j) => of[j as usize],
                    Input::Leaf(_) => None,
                }
            })
        };
        let Some(between) = self.order.between(from, to, after, before) else { return false };
        let all = merged(&self.members[first], &self.members[second]);
        let fits = self.context.kernel_ir(&all, &self.outputs(&all));
        let fits = fits.is_some_and(|ir| {
            let long = self.compiles_long(&ir, &all, anchor, !labels.is_empty());
            !long && self.fits(&ir, &all, anchor)
        });
        if !fits {
            return false;
        }
        self.order.join(from, to, between);
        for &node in &std::mem::take(&mut self.members[second]) {
            self.of[node as usize] = Some(from);
        }
        self.members[first] = all;
        self.labels[first] = labels;
        true
    }

    /// The kernels of the one member that has custom kernels, if there is one; `None` if the two groups cannot share a
    /// kernel because of such kernels.
    fn anchor(&self, a: usize, b: usize) -> Option<Option<&'a Kernels>> {
        let mut anchor = None;
        for &member in self.members[a].iter().chain(&self.members[b]) {
            if let Lowering::Kernels(kernels) = &self.context.lowerings[member as usize] {
                if anchor.is_some() || !kernels.stores() {
                    return None;
                }
                anchor = Some(kernels);
            }
        }
        Some(anchor)
    }

    /// The `members` whose values are needed outside the group.
    fn outputs(&self, members: &[u32]) -> Vec<u32> {
        let outside = |r: &u32| members.binary_search(r).is_err();
        let needed =
            |&m: &u32| self.keep[m as usize] || self.readers[m as usize].iter().any(outside);
        members.iter().copied().filter(needed).collect()
    }

    /// True if the adapter can bind what `ir` needs, and threads can share its folds.
    fn fits(&self, ir: &KernelIr, members: &[u32], anchor: Option<&Kernels>) -> bool {
        let (caps, last) = (self.context.caps, anchor.and_then(|kernels| kernels.kernels.last()));
        let own = last.map_or(0, |k| k.binds.iter().filter(|(b, _)| *b != Bind::Output).count());
        let folds = ir.instances.iter().filter(|i| matches!(i.code, Code::Reduce(_))).count();
        // The epilogue may also loop.
        let (most, bindings) = (caps.loop_iterations, caps.storage_buffers.max(4));
        if last.is_some_and(|k| epilogue::iterations(ir, k) > most) {
            return false;
        }
        let schedule = (folds > 0).then(|| ReductionSchedule::new(ir, caps));
        let Some(schedule) = schedule.filter(|schedule| schedule.chunks > 1) else {
            return own + ir.bindings() <= bindings;
        };
        // If a row is split into chunks, only the second kernel has the whole fold. The first stores the result of each
        // chunk instead of the rows' results.
        let rows_bound = ir.outputs.iter().filter(|output| output.row).count();
        if ir.bindings() - rows_bound + folds > bindings {
            return false;
        }
        let first = |o: &super::kernel_ir::Output| o.row || ir.instances[o.instance].level == 0;
        if ir.levels() > 1 || !ir.outputs.iter().all(first) {
            return false;
        }
        let rows: Vec<u32> = ir.outputs.iter().filter(|o| o.row).map(|o| o.node).collect();
        let partials = super::reduction_schedule::folds(ir);
        let second = self.context.second(members, &rows, &partials, schedule.chunks);
        second.is_some_and(|second| {
            let iterations = ReductionSchedule::whole(&second, caps).iterations(&second);
            iterations <= most && second.bindings() <= bindings
        })
    }

    /// True if compiling `ir` takes longer than launching its parts separately many times. On a CPU this is the case
    /// for: small kernels that both compute gradients and use them, because each activation with each optimizer would
    /// be a separate text; small products that are followed by anything; folds of few elements that are followed by
    /// outside values as large as their results, because each activation with each normalization would be a separate
    /// text; and such folds that recompute values that they could read. It is not the case for iterations of a loop,
    /// which save many launches.
    fn compiles_long(
        &self,
        ir: &KernelIr,
        members: &[u32],
        anchor: Option<&Kernels>,
        in_loop: bool,
    ) -> bool {
        let from_outside = |(i, load): (usize, &Load)| {
            let as_large = if ir.anchor.is_some() { ir.space.is_own(i) } else { load.row };
            as_large && matches!(load.source, LoadSource::Value(Input::Leaf(_)))
        };
        let others = || ir.loads.iter().enumerate().any(from_outside);
        let uses_gradients = |node: &u32| *node >= self.context.graph.gradients;
        let updates = || members.iter().any(uses_gradients) && !members.iter().all(uses_gradients);
        self.context.brief
            && match anchor.and_then(|kernels| kernels.kernels.last()) {
                Some(product) if ir.space.count(false) <= FEW_RESULTS => {
                    product.single && (!in_loop || updates() || others())
                }
                Some(_) => false,
                None if !ir.space.reads_singly() => false,
                None if ir.levels() == 0 => updates(),
                None => (!in_loop && ir.computes_again()) || updates() || others(),
            }
    }

    /// Builds the kernels whose results are needed, from the last to the first.
    fn finish(&self) -> Vec<FusionGroup<'a>> {
        let mut demanded = self.keep.clone();
        let mut groups = Vec::new();
        for group in self.order().into_iter().rev() {
            let members = &self.members[group];
            let built = self.build_all(members, &demanded, false);
            // If that fails, each node gets a separate kernel.
            let built = built.or_else(|| self.build_all(members, &demanded, true));
            for group in built.expect("a node alone can always be built") {
                for input in &group.reads {
                    if let Input::Node(j) = *input {
                        demanded[j as usize] = true;
                    }
                }
                groups.push(group);
            }
        }
        groups.reverse();
        groups
    }

    /// Builds kernels for those of `members` that are needed, beginning with the last to run. A reader that computes a
    /// view itself needs the view's input, so a group may have to store more than when it was joined; it then uses
    /// several kernels, which recompute what they share. With `alone` each node has a separate kernel.
    fn build_all(
        &self,
        members: &[u32],
        demanded: &[bool],
        alone: bool,
    ) -> Option<Vec<FusionGroup<'a>>> {
        let mut open: Vec<u32> =
            members.iter().copied().filter(|&m| demanded[m as usize]).collect();
        let mut groups = Vec::new();
        while let Some(&last) = open.last() {
            let group = match alone {
                true => self.build(&[last], vec![last], true)?,
                false => self.build(members, open.clone(), false)?,
            };
            open.retain(|node| !group.outputs.contains(node));
            // Only single-node kernels read other members, which were called earlier.
            for input in &group.reads {
                if let Input::Node(j) = *input {
                    if let (true, Err(at)) = (members.contains(&j), open.binary_search(&j)) {
                        open.insert(at, j);
                    }
                }
            }
            groups.push(group);
        }
        Some(groups)
    }

    /// Builds a kernel for the last of `outputs`, and for as many of the others as fit.
    fn build(&self, members: &[u32], outputs: Vec<u32>, alone: bool) -> Option<FusionGroup<'a>> {
        let kernels = members.iter().find_map(|&m| match &self.context.lowerings[m as usize] {
            Lowering::Kernels(kernels) => Some((m, kernels)),
            _ => None,
        });
        let inputs = |node: u32| {
            let inputs = self.context.graph.nodes[node as usize].inputs.iter();
            inputs.map(|input| self.context.canonical(*input)).collect::<Vec<_>>()
        };
        let members = members.to_vec();
        let labels = self.of[members[0] as usize].map(|group| &self.labels[group as usize]);
        let labels = labels.cloned().unwrap_or_default();
        if let Some((anchor, kernels)) = kernels {
            if !kernels.stores() {
                let reads = inputs(anchor);
                let (anchor, ir) = (Some(anchor), None);
                return Some(FusionGroup { members, anchor, ir, outputs, reads, labels });
            }
        }
        let ir = |outputs: &[u32]| {
            let ir = self.context.kernel_ir(&members, outputs)?;
            let fits = self.fits(&ir, &members, kernels.map(|(_, kernels)| kernels));
            (alone || fits).then_some(ir)
        };
        let (outputs, ir) = match ir(&outputs) {
            Some(all) => (outputs, all),
            None => {
                let last = *outputs.last()?;
                let (mut chosen, mut best) = (vec![last], ir(&[last])?);
                for &output in outputs.iter().rev().skip(1) {
                    chosen.insert(0, output);
                    match ir(&chosen) {
                        Some(more) => best = more,
                        None => drop(chosen.remove(0)),
                    }
                }
                (chosen, best)
            }
        };
        let mut reads = ir.anchor.map(inputs).unwrap_or_default();
        reads.extend(ir.reads().filter_map(|(_, load)| match load.source {
            LoadSource::Value(input) => Some(input),
            _ => None,
        }));
        Some(FusionGroup { members, anchor: ir.anchor, ir: Some(ir), outputs, reads, labels })
    }

    /// The groups in an order in which they can run: the earliest that is ready first.
    fn order(&self) -> Vec<usize> {
        let count = self.of.len();
        let mut waiting = vec![0usize; count];
        let mut leads: Vec<Vec<u32>> = vec![Vec::new(); count];
        // For each group, the last group whose edges to it have been counted.
        let mut counted = vec![u32::MAX; count];
        for (from, members) in self.members.iter().enumerate() {
            let readers = members.iter().flat_map(|&m| &self.readers[m as usize]);
            for to in readers.filter_map(|&r| self.of[r as usize]) {
                if to as usize != from && counted[to as usize] != from as u32 {
                    counted[to as usize] = from as u32;
                    leads[from].push(to);
                    waiting[to as usize] += 1;
                }
            }
        }
        // A group has the position of its last member.
        let place = |c: usize| self.members[c].last().copied();
        let mut ready = BinaryHeap::new();
        for c in (0..count).filter(|&c| !self.members[c].is_empty() && waiting[c] == 0) {
            ready.push(Reverse((place(c), c)));
        }
        let mut order = Vec::new();
        while let Some(Reverse((_, group))) = ready.pop() {
            order.push(group);
            for &to in &leads[group] {
                waiting[to as usize] -= 1;
                if waiting[to as usize] == 0 {
                    ready.push(Reverse((place(to as usize), to as usize)));
                }
            }
        }
        order
    }
}

/// The numbers of two ascending lists, in order.
fn merged(a: &[u32], b: &[u32]) -> Vec<u32> {
    let mut all = Vec::with_capacity(a.len() + b.len());
    let mut rest = b;
    for &x in a {
        while let [y, later @ ..] = rest {
            if *y > x {
                break;
            }
            all.push(*y);
            rest = later;
        }
        all.push(x);
    }
    all.extend_from_slice(rest);
    all
}
