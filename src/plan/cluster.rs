//! Which nodes share a kernel.
//!
//! Every node begins as a cluster of its own. Clusters are joined where one kernel can do the work of both: first each
//! node with its only reader, so that its value never leaves the registers; then the rest of those that read each
//! other, whose values are stored as well; then those that read the same. What must not be joined is found by trying:
//! a [`Body`] exists or not.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::body::{Body, Code, Scope, Source};
use super::builder::LARGEST;
use super::lowerings::Lowerings;
use super::order::Order;
use super::repetition::{self, Labels, Repetition};
use super::rows::Shares;
use super::{epilogue, roll};
use crate::graph::lower::{Bind, Kernels, Lowering};
use crate::graph::{Input, Table, hash_bytes};
use crate::lists::insert_sorted;

/// Nodes that become one kernel, or two where a fold is long.
pub(super) struct Cluster<'a> {
    pub(super) members: Vec<u32>,
    /// The node with kernels of its own.
    pub(super) anchor: Option<u32>,
    /// `None` for kernels that nothing can be computed behind.
    pub(super) body: Option<Body<'a>>,
    pub(super) outputs: Vec<u32>,
    /// Values that the kernels read, nodes and leaves.
    pub(super) reads: Vec<Input>,
    /// The turns that its members belong to.
    pub(super) labels: Labels,
}

/// Clusters that cover all wanted nodes, in an order in which they can run.
pub(super) fn clusters<'a>(
    scope: &Scope<'a>,
    turns: &mut Repetition,
    fusion: bool,
) -> Vec<Cluster<'a>> {
    let mut former = Former::new(scope, turns);
    if !fusion {
        return former.finish();
    }
    former.join_all();
    if former.gather_turns() {
        former.join_all();
    }
    roll::roll(scope, former.finish())
}

/// Nodes that any reader may compute for itself: constants, and views if nodes are fused at all.
pub(super) fn free(graph: &crate::graph::Graph, lowerings: &Lowerings, fusion: bool) -> Vec<bool> {
    let nodes = graph.nodes.iter().zip(lowerings.iter());
    nodes
        .map(|(_, lowering)| match lowering {
            Lowering::Pointwise(p) => p.is_uniform() || (fusion && p.is_view()),
            _ => false,
        })
        .collect()
}

struct Former<'a, 'b> {
    scope: &'b Scope<'a>,
    turns: &'b mut Repetition,
    /// The cluster of each node; aliases have none.
    of: Vec<Option<u32>>,
    members: Vec<Vec<u32>>,
    /// The turns that each cluster's members belong to.
    labels: Vec<Labels>,
    /// Nodes that read each node, through aliases.
    readers: Vec<Vec<u32>>,
    /// Somebody holds the node's value, or that of an alias of it.
    keep: Vec<bool>,
    order: Order,
    /// Hashes of pairs of clusters that were tried in vain, with the numbers of both's members then. Two pairs of one
    /// hash cost a join and nothing else.
    failed: Table,
}

impl<'a, 'b> Former<'a, 'b> {
    fn new(scope: &'b Scope<'a>, turns: &'b mut Repetition) -> Self {
        let nodes = &scope.graph.nodes;
        let count = nodes.len();
        let mut former = Former {
            scope,
            labels: (0..count).map(|i| turns.of(i)).collect(),
            turns,
            of: vec![None; count],
            members: vec![Vec::new(); count],
            readers: vec![Vec::new(); count],
            keep: vec![false; count],
            order: Order::new(count),
            failed: Table::default(),
        };
        for (i, node) in nodes.iter().enumerate() {
            if let (true, Input::Node(root)) = (node.wanted, scope.roots[i]) {
                former.keep[root as usize] = true;
            }
            if scope.roots[i] != Input::Node(i as u32) {
                continue;
            }
            former.of[i] = Some(i as u32);
            former.members[i].push(i as u32);
            for input in &node.inputs {
                if let Input::Node(j) = scope.root(*input) {
                    let readers = &mut former.readers[j as usize];
                    // A node that reads a value twice is its reader once; nodes come in order.
                    if readers.last() != Some(&(i as u32)) {
                        readers.push(i as u32);
                    }
                }
            }
        }
        former
    }

    fn join_all(&mut self) {
        self.join_only_readers();
        self.join_readers();
        self.join_siblings();
    }

    /// Lets several turns of a run share a kernel where they cannot be one loop, and says if there are such runs.
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
            let mut clusters: Vec<u32> = Vec::new();
            for cluster in nodes.filter_map(|node| self.of[node]) {
                if !self.is_constant(cluster as usize) && !clusters.contains(&cluster) {
                    clusters.push(cluster);
                }
            }
            clusters
        };
        // The turns in the middle are alike; the first and the last have neighbours of another kind.
        let middle = run.count.div_ceil(2);
        let (now, next) = (turn(middle), turn(middle + 1));
        let pointwise = |cluster: &u32| {
            self.members[*cluster as usize]
                .iter()
                .all(|&m| matches!(self.scope.lowerings[m as usize], Lowering::Pointwise(_)))
        };
        // A kernel or a fold in each turn costs more than its launch.
        if !now.iter().all(pointwise) {
            return 1;
        }
        if let ([now], [next]) = (&now[..], &next[..]) {
            let body = |cluster: u32| {
                let members = &self.members[cluster as usize];
                self.scope.body(members, &self.outputs(members))
            };
            if let (Some(now), Some(next)) = (body(*now), body(*next)) {
                if roll::next(&now, &next).is_some() {
                    return 1;
                }
            }
        }
        let nodes = run.first + run.period..run.first + 2 * run.period;
        let (all, _) = repetition::weight(self.scope, nodes);
        let most = (LARGEST / all.max(1)).clamp(1, run.count);
        // The largest power of two that fits.
        1 << most.ilog2()
    }

    /// Each node into the cluster that alone reads it.
    fn join_only_readers(&mut self) {
        for i in (0..self.of.len()).rev() {
            let Some(own) = self.of[i] else { continue };
            if self.keep[i] || self.is_constant(i) {
                continue;
            }
            let mut clusters = self.readers[i].iter().filter_map(|&r| self.of[r as usize]);
            let Some(first) = clusters.next() else { continue };
            if first != own && clusters.all(|cluster| cluster == first) {
                self.try_join(own, first);
            }
        }
    }

    /// Clusters into those that read them.
    fn join_readers(&mut self) {
        for i in 0..self.of.len() {
            for k in 0..self.scope.graph.nodes[i].inputs.len() {
                let Input::Node(j) = self.scope.root(self.scope.graph.nodes[i].inputs[k]) else {
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

    /// Clusters that read the same value.
    fn join_siblings(&mut self) {
        let nodes = &self.scope.graph.nodes;
        let leaves = self.scope.graph.leaves.len();
        let mut reading: Vec<Vec<u32>> = vec![Vec::new(); leaves + nodes.len()];
        for (i, node) in nodes.iter().enumerate().filter(|(i, _)| self.of[*i].is_some()) {
            for input in &node.inputs {
                let at = match self.scope.root(*input) {
                    Input::Leaf(leaf) => leaf as usize,
                    Input::Node(j) if self.is_constant(j as usize) => continue,
                    Input::Node(j) => leaves + j as usize,
                };
                reading[at].push(i as u32);
            }
        }
        for list in reading {
            for pair in list.windows(2) {
                if let (Some(a), Some(b)) = (self.of[pair[0] as usize], self.of[pair[1] as usize]) {
                    if a != b && self.size(a) == self.size(b) {
                        self.try_join(a, b);
                    }
                }
            }
        }
    }

    /// Elements of a cluster's largest member.
    fn size(&self, cluster: u32) -> usize {
        let nodes = &self.scope.graph.nodes;
        let members = self.members[cluster as usize].iter();
        members.map(|&m| nodes[m as usize].spec.elements()).max().unwrap_or(0)
    }

    fn is_constant(&self, node: usize) -> bool {
        self.scope.is_constant(node)
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

    /// Makes one cluster of two if that can be, of which `from` may lead to `to`.
    fn join(&mut self, from: u32, to: u32) -> bool {
        let (first, second) = (from as usize, to as usize);
        let Some(labels) = self.turns.join(&self.labels[first], &self.labels[second]) else {
            return false;
        };
        let Some(anchor) = self.anchor(first, second) else { return false };
        // A way through a third cluster would make a circle.
        let nodes = &self.scope.graph.nodes;
        let (members, readers, of, scope) = (&self.members, &self.readers, &self.of, self.scope);
        let after = |cluster: u32| {
            let readers = members[cluster as usize].iter().flat_map(|&m| &readers[m as usize]);
            readers.filter_map(|&r| of[r as usize])
        };
        let before = |cluster: u32| {
            let members = members[cluster as usize].iter();
            members.flat_map(|&m| &nodes[m as usize].inputs).filter_map(|input| {
                match scope.root(*input) {
                    Input::Node(j) => of[j as usize],
                    Input::Leaf(_) => None,
                }
            })
        };
        let Some(between) = self.order.between(from, to, after, before) else { return false };
        let all = merged(&self.members[first], &self.members[second]);
        let fits = self.scope.body(&all, &self.outputs(&all));
        if !fits.is_some_and(|body| self.fits(&body, &all, anchor)) {
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

    /// The kernels of the one member of two clusters that has its own, if there is one; `None` if they cannot share a
    /// kernel for it.
    fn anchor(&self, a: usize, b: usize) -> Option<Option<&'a Kernels>> {
        let mut anchor = None;
        for &member in self.members[a].iter().chain(&self.members[b]) {
            if let Lowering::Kernels(kernels) = &self.scope.lowerings[member as usize] {
                if anchor.is_some() || !kernels.stores() {
                    return None;
                }
                anchor = Some(kernels);
            }
        }
        Some(anchor)
    }

    /// Those of `members` that somebody else needs.
    fn outputs(&self, members: &[u32]) -> Vec<u32> {
        let outside = |r: &u32| members.binary_search(r).is_err();
        let needed =
            |&m: &u32| self.keep[m as usize] || self.readers[m as usize].iter().any(outside);
        members.iter().copied().filter(needed).collect()
    }

    /// True if the adapter can bind what `body` needs, and its folds can be spread over threads.
    fn fits(&self, body: &Body, members: &[u32], anchor: Option<&Kernels>) -> bool {
        let (caps, last) = (self.scope.caps, anchor.and_then(|kernels| kernels.kernels.last()));
        let own = last.map_or(0, |k| k.binds.iter().filter(|(b, _)| *b != Bind::Output).count());
        let folds = body.instances.iter().filter(|i| matches!(i.code, Code::Reduce(_))).count();
        // What is stored behind an op's own loops may loop as well.
        let most = caps.loop_iterations;
        if own + body.bindings() + folds > caps.storage_buffers.max(4)
            || last.is_some_and(|k| epilogue::iterations(body, k) > most)
        {
            return false;
        }
        let shares = (folds > 0).then(|| Shares::new(body, caps));
        let Some(shares) = shares.filter(|shares| shares.chunks > 1) else { return true };
        // Of a row that is cut into chunks the fold is known to the second kernel only.
        let first = |o: &super::body::Output| o.row || body.instances[o.instance].level == 0;
        if body.levels() > 1 || !body.outputs.iter().all(first) {
            return false;
        }
        let rows: Vec<u32> = body.outputs.iter().filter(|o| o.row).map(|o| o.node).collect();
        let partials = super::rows::folds(body);
        let second = self.scope.second(members, &rows, &partials, shares.chunks);
        second.is_some_and(|second| Shares::whole(&second, caps).iterations(&second) <= most)
    }

    /// Builds what is asked for, from the end to the beginning.
    fn finish(&self) -> Vec<Cluster<'a>> {
        let mut demanded = self.keep.clone();
        let mut clusters = Vec::new();
        for cluster in self.order().into_iter().rev() {
            let members = &self.members[cluster];
            let built = self.build_all(members, &demanded, false);
            // Then each node has a kernel of its own.
            let built = built.or_else(|| self.build_all(members, &demanded, true));
            for cluster in built.expect("a node alone can always be built") {
                for input in &cluster.reads {
                    if let Input::Node(j) = *input {
                        demanded[j as usize] = true;
                    }
                }
                clusters.push(cluster);
            }
        }
        clusters.reverse();
        clusters
    }

    /// Kernels for those of `members` that are demanded, the last to run first. More may be asked of a cluster than when
    /// it was joined, as who computes a view for himself asks for what is behind it; then it takes several, which
    /// compute again what they share. With `alone` each node is built for itself.
    fn build_all(
        &self,
        members: &[u32],
        demanded: &[bool],
        alone: bool,
    ) -> Option<Vec<Cluster<'a>>> {
        let mut open: Vec<u32> =
            members.iter().copied().filter(|&m| demanded[m as usize]).collect();
        let mut clusters = Vec::new();
        while let Some(&last) = open.last() {
            let cluster = match alone {
                true => self.build(&[last], vec![last], true)?,
                false => self.build(members, open.clone(), false)?,
            };
            open.retain(|node| !cluster.outputs.contains(node));
            // Only a node alone reads other members, which were called before it.
            for input in &cluster.reads {
                if let Input::Node(j) = *input {
                    if members.contains(&j) && !open.contains(&j) {
                        insert_sorted(&mut open, j);
                    }
                }
            }
            clusters.push(cluster);
        }
        Some(clusters)
    }

    /// A kernel for the last of `outputs`, and for as many of the others as it can have.
    fn build(&self, members: &[u32], outputs: Vec<u32>, alone: bool) -> Option<Cluster<'a>> {
        let kernels = members.iter().find_map(|&m| match &self.scope.lowerings[m as usize] {
            Lowering::Kernels(kernels) => Some((m, kernels)),
            _ => None,
        });
        let inputs = |node: u32| {
            let inputs = self.scope.graph.nodes[node as usize].inputs.iter();
            inputs.map(|input| self.scope.root(*input)).collect::<Vec<_>>()
        };
        let members = members.to_vec();
        let labels = self.of[members[0] as usize].map(|cluster| &self.labels[cluster as usize]);
        let labels = labels.cloned().unwrap_or_default();
        if let Some((anchor, kernels)) = kernels {
            if !kernels.stores() {
                let reads = inputs(anchor);
                let (anchor, body) = (Some(anchor), None);
                return Some(Cluster { members, anchor, body, outputs, reads, labels });
            }
        }
        let body = |outputs: &[u32]| {
            let body = self.scope.body(&members, outputs)?;
            let fits = self.fits(&body, &members, kernels.map(|(_, kernels)| kernels));
            (alone || fits).then_some(body)
        };
        let (outputs, body) = match body(&outputs) {
            Some(all) => (outputs, all),
            None => {
                let last = *outputs.last()?;
                let (mut chosen, mut best) = (vec![last], body(&[last])?);
                for &output in outputs.iter().rev().skip(1) {
                    chosen.insert(0, output);
                    match body(&chosen) {
                        Some(more) => best = more,
                        None => drop(chosen.remove(0)),
                    }
                }
                (chosen, best)
            }
        };
        let mut reads = body.anchor.map(inputs).unwrap_or_default();
        reads.extend(body.reads().filter_map(|(_, load)| match load.source {
            Source::Value(input) => Some(input),
            _ => None,
        }));
        Some(Cluster { members, anchor: body.anchor, body: Some(body), outputs, reads, labels })
    }

    /// The clusters in an order in which they can run: the earliest first that is ready.
    fn order(&self) -> Vec<usize> {
        let count = self.of.len();
        let mut waiting = vec![0usize; count];
        let mut leads: Vec<Vec<u32>> = vec![Vec::new(); count];
        // The cluster whose edges have been counted last, for each that they lead to.
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
        // A cluster stands where its last member stood.
        let place = |c: usize| self.members[c].last().copied();
        let mut ready = BinaryHeap::new();
        for c in (0..count).filter(|&c| !self.members[c].is_empty() && waiting[c] == 0) {
            ready.push(Reverse((place(c), c)));
        }
        let mut order = Vec::new();
        while let Some(Reverse((_, cluster))) = ready.pop() {
            order.push(cluster);
            for &to in &leads[cluster] {
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
