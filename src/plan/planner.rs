//! Makes a plan: lowers every node, forms clusters, lays down their kernels, assigns slots.

use super::body::{Body, Scope, Source};
use super::builder::LARGEST;
use super::cluster::{self, Cluster};
use super::code::{Bound, Common, Kernel};
use super::lowerings::Lowerings;
use super::memory::{Lifetimes, Slots};
use super::packs::{self, Stage, Unit};
use super::repetition::Repetition;
use super::rows::{self, Shares};
use super::tuner::{Choice, Met};
use super::{Binds, Note, Params, Place, Plan, Ranges, Step, epilogue, map, parts};
use crate::device::Caps;
use crate::error::{DeviceFault, Error, message};
use crate::graph::lower::{self, Bind, Kernels, Lowering};
use crate::graph::{Graph, Input, Table, hash_bytes};
use crate::lists::insert_new;

/// Plans `graph` for a device with `caps`; without `fusion` every node has a kernel of its own.
pub(crate) fn plan(graph: &Graph, caps: &Caps, fusion: bool, choice: &Choice) -> Plan {
    let mut met = Met::default();
    let mut lowerings = Lowerings::new(graph, caps, choice, &mut met);
    let roots = find_roots(graph, &mut lowerings, fusion);
    let free = cluster::free(graph, &lowerings, fusion);
    let scope = Scope { graph, lowerings: &lowerings, roots: &roots, free: &free, caps };
    let mut turns =
        if fusion { Repetition::find(&scope, LARGEST / 4) } else { Repetition::default() };
    let clusters = cluster::clusters(&scope, &mut turns, fusion);
    let planner = Planner {
        stages: packs::stages(&scope, clusters, fusion),
        scope: &scope,
        places: vec![None; graph.nodes.len()],
        replaced: vec![false; graph.nodes.len()],
        slots: Slots::default(),
        steps: Vec::new(),
        texts: Table::default(),
        params: Params::default(),
        refused: None,
    };
    Plan { met, ..planner.run() }
}

struct Planner<'a, 'b> {
    scope: &'b Scope<'a>,
    stages: Vec<Stage<'a>>,
    places: Vec<Option<Place>>,
    /// Values whose slots were taken over by a later one.
    replaced: Vec<bool>,
    slots: Slots,
    steps: Vec<Step>,
    /// The first step of each text, by its hash.
    texts: Table,
    params: Params,
    /// Why the plan cannot run.
    refused: Option<Error>,
}

impl<'a> Planner<'a, '_> {
    fn run(mut self) -> Plan {
        let nodes = &self.scope.graph.nodes;
        let mut stages = std::mem::take(&mut self.stages);
        let lives = Lifetimes::new(self.scope, &stages);
        let ends = lives.ends(stages.len());
        // How often the clusters of a stage read each node, and each leaf.
        let leaves = self.scope.graph.leaves.len();
        let mut readers = Readers { nodes: vec![0; nodes.len()], leaves: vec![0; leaves] };
        for (at, (stage, ends)) in stages.iter_mut().zip(ends).enumerate() {
            readers.count(stage, 1);
            for cluster in &mut *stage {
                self.write_in_place(cluster, &readers, at, &lives);
            }
            readers.count(stage, -1);
            for &node in stage.iter().flat_map(|cluster| &cluster.outputs) {
                if self.places[node as usize].is_none() {
                    let bytes = nodes[node as usize].spec.bytes();
                    let slot = self.slots.take(bytes, lives.keep[node as usize]);
                    self.places[node as usize] = Some(Place::Slot(slot));
                }
            }
            self.lay(stage);
            // A value that was replaced has handed its slot on.
            for node in ends.into_iter().filter(|&node| !self.replaced[node as usize]) {
                if let Some(Place::Slot(slot)) = self.places[node as usize] {
                    self.slots.release(slot);
                }
            }
        }
        let outputs = (0..nodes.len())
            .filter(|&i| nodes[i].wanted)
            .map(|i| (i as u32, self.place(Input::Node(i as u32))))
            .collect();
        let refused = self.refused;
        Plan { refused, ..Plan::new(self.steps, self.slots.into_bytes(), outputs, self.params) }
    }

    /// Lets results of the cluster take the buffers of values that it is the last to read: it alone, as the others of
    /// its stage may run beside it.
    fn write_in_place(
        &mut self,
        cluster: &mut Cluster,
        readers: &Readers,
        at: usize,
        lives: &Lifetimes,
    ) {
        let Some(body) = &mut cluster.body else { return };
        for k in 0..body.outputs.len() {
            let output = &body.outputs[k];
            let (node, dtype) = (output.node, output.dtype);
            let bytes = self.scope.graph.nodes[node as usize].spec.bytes();
            let fits = body.replaceable(k, self.scope.graph).into_iter().find_map(|i| {
                let Source::Value(input) = body.loads[i].source else { return None };
                let alone = readers.of(input) == 1;
                let ends_here = lives.last(input) == Some(at) && alone;
                let place = match input {
                    Input::Leaf(leaf) => lives.donated[leaf as usize].then_some(Place::Leaf(leaf)),
                    Input::Node(j) if lives.keep[j as usize] => None,
                    Input::Node(j) => match self.places[j as usize] {
                        // What outlives the run takes no more memory than it needs.
                        Some(Place::Slot(slot)) if self.slots.bytes(slot) == bytes => {
                            Some(Place::Slot(slot))
                        }
                        _ => None,
                    },
                };
                let same =
                    self.scope.graph.spec(input).bytes() == bytes && body.loads[i].dtype == dtype;
                place.filter(|_| ends_here && same).map(|place| (i, input, place))
            });
            if let Some((load, input, place)) = fits {
                body.outputs[k].replaces = Some(load);
                self.places[node as usize] = Some(place);
                if let Input::Node(j) = input {
                    self.replaced[j as usize] = true;
                }
            }
        }
    }

    fn place(&self, input: Input) -> Place {
        match self.scope.root(input) {
            Input::Leaf(i) => Place::Leaf(i),
            Input::Node(i) => {
                self.places[i as usize].expect("values are laid down before their readers")
            }
        }
    }

    fn lay(&mut self, stage: &[Cluster<'a>]) {
        let scope = self.scope;
        if let [cluster] = stage {
            if let Some(node) = cluster.anchor {
                if let Lowering::Kernels(kernels) = &scope.lowerings[node as usize] {
                    self.lay_kernels(cluster, node, kernels);
                }
                return;
            }
        }
        let bodies = stage.iter().filter_map(|cluster| Some((cluster, cluster.body.as_ref()?)));
        let works: Vec<Work> = bodies.map(|(cluster, body)| self.work(cluster, body)).collect();
        let first: Vec<Unit> = works.iter().map(Work::first).collect();
        self.lay_units(&first);
        // Long folds end in second kernels.
        let second: Vec<Unit> = works.iter().filter_map(Work::second).collect();
        self.lay_units(&second);
        for (slot, _) in works.iter().flat_map(|work| &work.temps) {
            self.slots.release(*slot);
        }
    }

    /// What the kernels of a cluster without an anchor do.
    fn work<'c>(&mut self, cluster: &'c Cluster<'a>, body: &'c Body<'a>) -> Work<'c, 'a> {
        let scope = self.scope;
        let shares = (body.levels() > 0).then(|| Shares::new(body, scope.caps));
        let mut work = Work { cluster, body, shares, temps: Vec::new(), second: None };
        let Some(shares) = shares.filter(|shares| shares.chunks > 1) else { return work };
        let folds = rows::folds(body);
        let count = body.space.count(false) * shares.chunks;
        for &node in &folds {
            let dtype = rows::partial(scope.graph.nodes[node as usize].spec.dtype);
            let bytes = dtype.bytes(count);
            work.temps.push((self.slots.take(bytes, false), bytes));
        }
        let rows: Vec<u32> = body.outputs.iter().filter(|o| o.row).map(|o| o.node).collect();
        let second = scope
            .second(&cluster.members, &rows, &folds, shares.chunks)
            .expect("clusters are joined only if it exists");
        let shares = Shares::whole(&second, scope.caps);
        work.second = Some((second, shares));
        work
    }

    /// Lays down kernels for units that do not depend on each other.
    fn lay_units(&mut self, units: &[Unit]) {
        let graph = self.scope.graph;
        for kernel in packs::kernels(units, self.scope.caps) {
            let units: Vec<&Unit> = kernel.iter().map(|&at| &units[at]).collect();
            let mut common = Common::default();
            let parts = units.iter().enumerate().map(|(k, unit)| {
                let part = if units.len() > 1 { parts::prefix(k) } else { String::new() };
                match unit.shares {
                    Some(shares) => rows::generate(graph, unit.body, shares, &part, &mut common),
                    None => map::generate(graph, unit.body, &part, &mut common),
                }
            });
            let parts = parts.collect();
            let kernel = parts::module(parts, &common, self.scope.caps.cpu);
            let notes = units.iter().map(|unit| self.note(unit.cluster, Some(unit.body)));
            let weight = units.iter().map(|unit| unit.weight()).sum();
            let note = Note { weight, ..Note::of_parts(notes.collect(), &kernel.source.label) };
            let binds = kernel.binds.iter().map(|&(k, bound)| {
                let Unit { body, temps, .. } = units[k];
                self.bind(bound, Some(body), temps, &[])
            });
            let binds = binds.collect();
            self.push(kernel, binds, note);
        }
    }

    fn lay_kernels(&mut self, cluster: &Cluster, node: u32, kernels: &Kernels) {
        let scope = self.scope;
        let body = cluster.body.as_ref();
        let temps: Vec<(u32, u64)> =
            kernels.temps.iter().map(|&b| (self.slots.take(b, false), b)).collect();
        for (k, kernel) in kernels.kernels.iter().enumerate() {
            let own: Vec<Option<(Place, u64)>> =
                kernel.binds.iter().map(|(bind, _)| self.bound(node, *bind, &temps)).collect();
            match body {
                Some(body) if k + 1 == kernels.kernels.len() => {
                    let kernel = epilogue::generate(scope.graph, body, kernel);
                    self.push_anchored(cluster, kernel, Some(body), &own);
                }
                _ => self.push_anchored(cluster, plain(kernel), None, &own),
            }
        }
        for (slot, _) in temps {
            self.slots.release(slot);
        }
    }

    /// What a kernel of `node` binds, if it is anywhere.
    fn bound(&self, node: u32, bind: Bind, temps: &[(u32, u64)]) -> Option<(Place, u64)> {
        let graph = self.scope.graph;
        let spec = &graph.nodes[node as usize];
        match bind {
            Bind::Input(k) => {
                Some((self.place(spec.inputs[k]), graph.spec(spec.inputs[k]).bytes()))
            }
            // Nobody may want the bare result; then another output takes its place.
            Bind::Output => self.places[node as usize].map(|place| (place, spec.spec.bytes())),
            Bind::Temp(k) => Some((Place::Slot(temps[k].0), temps[k].1)),
        }
    }

    /// What is bound, and how many bytes of it. `own` are the bindings of an op's kernel.
    fn bind(
        &self,
        bound: Bound,
        body: Option<&Body>,
        temps: &[(u32, u64)],
        own: &[Option<(Place, u64)>],
    ) -> (Place, u64) {
        let graph = self.scope.graph;
        match (bound, body) {
            (Bound::Own(i), _) => own[i].expect("what is asked of nobody is not bound"),
            (Bound::Temp(i), _) => (Place::Slot(temps[i].0), temps[i].1),
            (Bound::Load(i), Some(body)) => match body.loads[i].source {
                Source::Value(input) => (self.place(input), graph.spec(input).bytes()),
                Source::Temp(i) => (Place::Slot(temps[i].0), temps[i].1),
                Source::Index => unreachable!("an index has no binding"),
            },
            (Bound::Output(k), Some(body)) => {
                let node = body.outputs[k].node;
                let spec = &graph.nodes[node as usize].spec;
                (self.place(Input::Node(node)), spec.bytes())
            }
            (_, None) => unreachable!("only bodies have loads and outputs"),
        }
    }

    fn push_anchored(
        &mut self,
        cluster: &Cluster,
        kernel: Kernel,
        body: Option<&Body>,
        own: &[Option<(Place, u64)>],
    ) {
        let binds = kernel.binds.iter().map(|&(_, bound)| self.bind(bound, body, &[], own));
        let binds = binds.collect();
        let note = self.note(cluster, body);
        let label = kernel.source.label.clone();
        // Of the op's own text the length must do.
        let weight = kernel.source.wgsl.len() / 2 + body.map_or(0, Body::weight);
        let note = Note { label, flops: kernel.flops, weight, ..note };
        self.push(kernel, binds, note);
    }

    fn push(&mut self, kernel: Kernel, binds: Binds, note: Note) {
        let mut params = Ranges::new();
        for (k, words) in kernel.params.iter().enumerate() {
            let aligned = (self.scope.caps.uniform_alignment / 4).max(4) as usize;
            let start = self.params.words.len().next_multiple_of(aligned);
            let len = words.len().next_multiple_of(4);
            self.params.words.resize(start + len, 0);
            self.params.words[start..start + words.len()].copy_from_slice(words);
            params.push((4 * start as u64, 4 * len as u64));
            if k + 1 == kernel.params.len() {
                let of = |&(at, node, word): &(usize, u32, usize)| (start + at, node, word);
                self.params.varying.extend(kernel.words.iter().map(of));
            }
        }
        let caps = self.scope.caps;
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
        let mut source = kernel.source;
        #[cfg(test)]
        if self.scope.caps.strict {
            source.wgsl = super::strict::end_loops(&source.wgsl, kernel.iterations).into();
        }
        // Equal texts, of which a long plan has many, are one.
        let next = self.steps.len() as u32;
        let first = *self.texts.entry(hash_bytes(source.wgsl.as_bytes())).or_insert(next);
        if let Some(step) = self.steps.get(first as usize) {
            if step.source.wgsl == source.wgsl {
                source.wgsl = step.source.wgsl.clone();
            }
        }
        self.steps.push(Step::new(source, kernel.grid, binds, params, note));
    }

    /// What a kernel of `cluster` computes.
    fn note(&self, cluster: &Cluster, body: Option<&Body>) -> Note {
        let nodes = &self.scope.graph.nodes;
        let lowering = |node: u32| &self.scope.lowerings[node as usize];
        let constant =
            |node: u32| matches!(lowering(node), Lowering::Pointwise(p) if p.is_uniform());
        let mut computed: Vec<u32> = Vec::new();
        let mut add = |node: u32| insert_new(&mut computed, node);
        match body {
            Some(body) => {
                let all = body.instances.len() == 1;
                let nodes = body.instances.iter().map(|instance| instance.node);
                nodes.filter(|&node| all || !constant(node)).for_each(&mut add);
            }
            // The first kernels of an op that has several.
            None => {
                let own = |node: &u32| matches!(lowering(*node), Lowering::Kernels(_));
                cluster.members.iter().copied().filter(own).for_each(&mut add);
            }
        }
        let outputs = cluster.outputs.iter().map(|&node| nodes[node as usize].spec.shape.clone());
        Note {
            ops: computed.iter().map(|&node| nodes[node as usize].op.name()).collect(),
            outputs: outputs.collect(),
            ..Note::default()
        }
    }
}

/// How often the clusters of a stage read each value.
struct Readers {
    nodes: Vec<i32>,
    leaves: Vec<i32>,
}

impl Readers {
    fn count(&mut self, stage: &[Cluster], by: i32) {
        for input in stage.iter().flat_map(|cluster| &cluster.reads) {
            match *input {
                Input::Node(j) => self.nodes[j as usize] += by,
                Input::Leaf(j) => self.leaves[j as usize] += by,
            }
        }
    }

    fn of(&self, input: Input) -> i32 {
        match input {
            Input::Node(j) => self.nodes[j as usize],
            Input::Leaf(j) => self.leaves[j as usize],
        }
    }
}

/// The kernels of a cluster without an anchor: one, or two where a fold is long.
struct Work<'c, 'a> {
    cluster: &'c Cluster<'a>,
    body: &'c Body<'a>,
    shares: Option<Shares>,
    /// Slots of partial results, and their bytes.
    temps: Vec<(u32, u64)>,
    second: Option<(Body<'a>, Shares)>,
}

impl<'a> Work<'_, 'a> {
    fn first(&self) -> Unit<'_, 'a> {
        let Work { cluster, body, shares, ref temps, .. } = *self;
        Unit { cluster, body, shares, temps }
    }

    fn second(&self) -> Option<Unit<'_, 'a>> {
        let (body, shares) = self.second.as_ref()?;
        Some(Unit { cluster: self.cluster, body, shares: Some(*shares), temps: &self.temps })
    }
}

/// No op's loops are as long as this says, as long as tensors are smaller than any adapter binds.
fn loops_too_long(ops: &[&str], iterations: usize, most: usize) -> Error {
    Error::Device(
        DeviceFault::Limit,
        message!(
            "{}: a thread would go round {iterations} times, and at most {most} are safe on every adapter. Split the \
             tensors along an axis.",
            ops.join(", ")
        ),
    )
}

/// Tensors that no binding covers are refused at the call, so this is what the kernels of one op hand on.
fn too_large_between(ops: &[&str], bytes: u64, most: u64) -> Error {
    Error::Device(
        DeviceFault::Limit,
        message!(
            "{}: its kernels hand on {bytes} bytes, and at most {most} fit into one binding on this adapter. Split the \
             tensors along an axis.",
            ops.join(", ")
        ),
    )
}

/// A kernel as its op wrote it.
fn plain(kernel: &lower::Kernel) -> Kernel {
    Kernel {
        source: kernel.source(),
        grid: kernel.grid(),
        binds: (0..kernel.binds.len()).map(|i| (0, Bound::Own(i))).collect(),
        params: vec![kernel.params.iter().map(|(_, word)| *word).collect()],
        words: Vec::new(),
        flops: kernel.flops,
        iterations: kernel.iterations,
    }
}

/// Where each node's value lies. With `fusion` a node that repeats an earlier one becomes an alias of it.
fn find_roots(graph: &Graph, lowerings: &mut Lowerings, fusion: bool) -> Vec<Input> {
    let mut roots: Vec<Input> = Vec::with_capacity(graph.nodes.len());
    let mut known = Table::default();
    let mut signatures: Vec<Vec<u8>> = vec![Vec::new(); graph.nodes.len()];
    for (i, node) in graph.nodes.iter().enumerate() {
        let root = |input: &Input| match *input {
            Input::Node(j) => roots[j as usize],
            leaf => leaf,
        };
        let own = match (&lowerings[i], node.inputs.first()) {
            (Lowering::Alias, Some(input)) => root(input),
            _ if fusion => {
                let signature = graph.signature(i, node.inputs.iter().map(root));
                let first = *known.entry(hash_bytes(&signature)).or_insert(i as u32);
                let repeats = signatures[first as usize] == signature;
                signatures[i] = signature;
                if repeats {
                    lowerings.set_alias(i);
                    Input::Node(first)
                } else {
                    Input::Node(i as u32)
                }
            }
            _ => Input::Node(i as u32),
        };
        roots.push(own);
    }
    roots
}
