//! Makes a plan: lowers every node, forms clusters, lays down their kernels, assigns slots.

use std::borrow::Cow;
use std::collections::HashMap;

use smallvec::SmallVec;

use super::body::{Body, Scope, Source};
use super::cluster::{self, Cluster};
use super::code::{Bound, Kernel};
use super::memory::Slots;
use super::rows::{self, Shares};
use super::tuner::{Choice, Met};
use super::{Note, Params, Place, Plan, Ranges, Step, epilogue, map};
use crate::device::Caps;
use crate::graph::lower::{self, Arg, Bind, Kernels, Lowering, Pointwise, Site};
use crate::graph::{Graph, Input, Spec};

/// Plans `graph` for a device with `caps`; without `fusion` every node has a kernel of its own.
pub(crate) fn plan(graph: &Graph, caps: &Caps, fusion: bool, choice: &Choice) -> Plan {
    let mut met = Met::default();
    let mut lowerings: Vec<Lowering> =
        (0..graph.nodes.len()).map(|i| lower_node(graph, i, caps, choice, &mut met)).collect();
    let roots = find_roots(graph, &mut lowerings, fusion);
    let free = cluster::free(graph, &lowerings, fusion);
    let scope = Scope { graph, lowerings: &lowerings, roots: &roots, free: &free, caps };
    let planner = Planner {
        clusters: cluster::clusters(&scope, fusion),
        scope: &scope,
        places: vec![None; graph.nodes.len()],
        slots: Slots::default(),
        steps: Vec::new(),
        params: Params::default(),
    };
    Plan { met, ..planner.run() }
}

fn lower_node(graph: &Graph, i: usize, caps: &Caps, choice: &Choice, met: &mut Met) -> Lowering {
    let node = &graph.nodes[i];
    if node.spec.elements() == 0 {
        // Nothing to compute, and sizes of 0 are nothing that an op's tiles must cope with.
        return Lowering::Kernels(Kernels::default());
    }
    let inputs: SmallVec<[&Spec; 3]> = node.inputs.iter().map(|i| graph.spec(*i)).collect();
    let site = Site { inputs: &inputs, output: &node.spec, caps, variant: None };
    let variant = choice.variant(node, &site, met);
    let lowering = node.op.lower(&Site { variant: variant.as_deref(), ..site });
    match lowering {
        // A fold of nothing is its start value everywhere.
        Lowering::Reduce(reduction) if inputs[0].elements() == 0 => {
            let scalar = node.spec.dtype.register().scalar();
            let first = reduction.first;
            // Written so that no compiler knows it: one that does may take 0 / x for 0, whatever x is.
            let body = format!(
                "select(vec4<{scalar}>({first}), vec4<{scalar}>({scalar}(1)), i == vec4<u32>(4294967295u))"
            );
            let start = Pointwise::new("fold_of_nothing", Cow::Owned(body)).arg("i", Arg::Index);
            Lowering::Pointwise(start)
        }
        other => other,
    }
}

struct Planner<'a, 'b> {
    scope: &'b Scope<'a>,
    clusters: Vec<Cluster<'a>>,
    places: Vec<Option<Place>>,
    slots: Slots,
    steps: Vec<Step>,
    params: Params,
}

impl Planner<'_, '_> {
    fn run(mut self) -> Plan {
        let nodes = &self.scope.graph.nodes;
        let lives = Lifetimes::new(self.scope, &self.clusters);
        let mut clusters = std::mem::take(&mut self.clusters);
        for (at, cluster) in clusters.iter_mut().enumerate() {
            let mut ends = lives.ends(at);
            self.write_in_place(cluster, at, &lives, &mut ends);
            for &node in &cluster.outputs {
                if self.places[node as usize].is_none() {
                    let bytes = nodes[node as usize].spec.bytes();
                    let slot = self.slots.take(bytes, lives.keep[node as usize]);
                    self.places[node as usize] = Some(Place::Slot(slot));
                }
            }
            self.lay(cluster);
            for node in ends {
                if let Some(Place::Slot(slot)) = self.places[node as usize] {
                    self.slots.release(slot);
                }
            }
        }
        let outputs = (0..nodes.len())
            .filter(|&i| nodes[i].wanted)
            .map(|i| (i as u32, self.place(Input::Node(i as u32))))
            .collect();
        Plan::new(self.steps, self.slots.into_bytes(), outputs, self.params)
    }

    /// Lets results of the cluster take the buffers of values that it is the last to read. The values of `ends` that
    /// are so replaced are taken out of it.
    fn write_in_place(
        &mut self,
        cluster: &mut Cluster,
        at: usize,
        lives: &Lifetimes,
        ends: &mut Vec<u32>,
    ) {
        let Some(body) = &mut cluster.body else { return };
        for k in 0..body.outputs.len() {
            let output = &body.outputs[k];
            let (node, dtype) = (output.node, output.dtype);
            let bytes = self.scope.graph.nodes[node as usize].spec.bytes();
            let fits = body.replaceable(k, self.scope.graph).into_iter().find_map(|i| {
                let Source::Value(input) = body.loads[i].source else { return None };
                let alone = cluster.reads.iter().filter(|read| **read == input).count() == 1;
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
                ends.retain(|&end| Input::Node(end) != input);
                // Read nowhere, it is free again at once.
                if !lives.keep[node as usize] && lives.last(Input::Node(node)) == Some(at) {
                    ends.push(node);
                }
            }
        }
        ends.sort_unstable();
        ends.dedup();
    }

    fn place(&self, input: Input) -> Place {
        match self.scope.root(input) {
            Input::Leaf(i) => Place::Leaf(i),
            Input::Node(i) => {
                self.places[i as usize].expect("values are laid down before their readers")
            }
        }
    }

    fn lay(&mut self, cluster: &Cluster) {
        let scope = self.scope;
        let anchor = cluster.anchor.and_then(|node| match &scope.lowerings[node as usize] {
            Lowering::Kernels(kernels) => Some((node, kernels)),
            _ => None,
        });
        match (anchor, &cluster.body) {
            (Some((node, kernels)), _) => self.lay_kernels(cluster, node, kernels),
            (None, Some(body)) if body.levels() > 0 => self.lay_rows(cluster, body),
            (None, Some(body)) => {
                let kernel = map::generate(scope.graph, body);
                self.push(cluster, kernel, Some(body), &[], &[]);
            }
            (None, None) => {}
        }
    }

    fn lay_rows(&mut self, cluster: &Cluster, body: &Body) {
        let scope = self.scope;
        let shares = Shares::new(body, scope.caps);
        if shares.chunks == 1 {
            let kernel = rows::generate(scope.graph, body, shares);
            self.push(cluster, kernel, Some(body), &[], &[]);
            return;
        }
        let folds = rows::folds(body);
        let count = body.space.count(false) * shares.chunks;
        let temps: Vec<(u32, u64)> = folds
            .iter()
            .map(|&node| {
                let dtype = rows::partial(scope.graph.nodes[node as usize].spec.dtype);
                let bytes = dtype.bytes(count);
                (self.slots.take(bytes, false), bytes)
            })
            .collect();
        let kernel = rows::generate(scope.graph, body, shares);
        self.push(cluster, kernel, Some(body), &temps, &[]);
        let rows: Vec<u32> = body.outputs.iter().filter(|o| o.row).map(|o| o.node).collect();
        let second = scope
            .second(&cluster.members, &rows, &folds, shares.chunks)
            .expect("clusters are joined only if it exists");
        let kernel = rows::generate(scope.graph, &second, Shares::whole(&second, scope.caps));
        self.push(cluster, kernel, Some(&second), &temps, &[]);
        for (slot, _) in temps {
            self.slots.release(slot);
        }
    }

    fn lay_kernels(&mut self, cluster: &Cluster, node: u32, kernels: &Kernels) {
        let scope = self.scope;
        let body = cluster.body.as_ref();
        let temps: Vec<(u32, u64)> =
            kernels.temps.iter().map(|&b| (self.slots.take(b, false), b)).collect();
        for (k, kernel) in kernels.kernels.iter().enumerate() {
            let own: Vec<(Place, u64)> =
                kernel.binds.iter().map(|(bind, _)| self.bound(node, *bind, &temps)).collect();
            match body {
                Some(body) if k + 1 == kernels.kernels.len() => {
                    let kernel = epilogue::generate(scope.graph, body, kernel);
                    self.push(cluster, kernel, Some(body), &[], &own);
                }
                _ => self.push(cluster, plain(kernel), None, &[], &own),
            }
        }
        for (slot, _) in temps {
            self.slots.release(slot);
        }
    }

    /// What a kernel of `node` binds.
    fn bound(&self, node: u32, bind: Bind, temps: &[(u32, u64)]) -> (Place, u64) {
        let graph = self.scope.graph;
        let spec = &graph.nodes[node as usize];
        match bind {
            Bind::Input(k) => (self.place(spec.inputs[k]), graph.spec(spec.inputs[k]).bytes()),
            // Nobody may want the bare result; then another output takes its place.
            Bind::Output => {
                (self.places[node as usize].unwrap_or(Place::Slot(0)), spec.spec.bytes())
            }
            Bind::Temp(k) => (Place::Slot(temps[k].0), temps[k].1),
        }
    }

    fn push(
        &mut self,
        cluster: &Cluster,
        kernel: Kernel,
        body: Option<&Body>,
        temps: &[(u32, u64)],
        own: &[(Place, u64)],
    ) {
        let graph = self.scope.graph;
        let binds = kernel.binds.iter().map(|bound| match (*bound, body) {
            (Bound::Own(i), _) => own[i],
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
        });
        let binds = binds.collect();
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
        let note = self.note(cluster, body, &kernel);
        self.steps.push(Step::new(kernel.source, kernel.grid, binds, params, note));
    }

    /// What is said of a kernel of `cluster`.
    fn note(&self, cluster: &Cluster, body: Option<&Body>, kernel: &Kernel) -> Note {
        let nodes = &self.scope.graph.nodes;
        let lowering = |node: u32| &self.scope.lowerings[node as usize];
        let constant =
            |node: u32| matches!(lowering(node), Lowering::Pointwise(p) if p.is_uniform());
        let mut computed: Vec<u32> = match body {
            Some(body) => body.instances.iter().map(|instance| instance.node).collect(),
            // The first kernels of an op that has several.
            None => cluster.members.clone(),
        };
        match body {
            Some(_) if computed.len() > 1 => computed.retain(|&node| !constant(node)),
            Some(_) => {}
            None => computed.retain(|&node| matches!(lowering(node), Lowering::Kernels(_))),
        }
        computed.sort_unstable();
        computed.dedup();
        let outputs = cluster.outputs.iter().map(|&node| nodes[node as usize].spec.shape.clone());
        Note {
            label: kernel.source.label.clone(),
            ops: computed.iter().map(|&node| nodes[node as usize].op.name()).collect(),
            outputs: outputs.collect(),
            flops: kernel.flops,
        }
    }
}

/// Until when values are needed.
struct Lifetimes {
    /// The cluster that reads each node or leaf last.
    nodes: Vec<Option<usize>>,
    leaves: Vec<Option<usize>>,
    /// Nodes that outlive the run.
    keep: Vec<bool>,
    /// Leaves that do not.
    donated: Vec<bool>,
}

impl Lifetimes {
    fn new(scope: &Scope, clusters: &[Cluster]) -> Self {
        let graph = scope.graph;
        let mut lives = Lifetimes {
            nodes: vec![None; graph.nodes.len()],
            leaves: vec![None; graph.leaves.len()],
            keep: vec![false; graph.nodes.len()],
            donated: (0..graph.leaves.len())
                .map(|leaf| graph.donated.get(leaf).is_some_and(|donated| *donated))
                .collect(),
        };
        for (i, _) in graph.nodes.iter().enumerate().filter(|(_, node)| node.wanted) {
            match scope.roots[i] {
                Input::Node(root) => lives.keep[root as usize] = true,
                // An alias of it goes on.
                Input::Leaf(leaf) => lives.donated[leaf as usize] = false,
            }
        }
        for (at, cluster) in clusters.iter().enumerate() {
            for input in &cluster.reads {
                match *input {
                    Input::Node(j) => lives.nodes[j as usize] = Some(at),
                    Input::Leaf(j) => lives.leaves[j as usize] = Some(at),
                }
            }
            for &node in &cluster.outputs {
                lives.nodes[node as usize] = Some(at);
            }
        }
        lives
    }

    fn last(&self, input: Input) -> Option<usize> {
        match input {
            Input::Node(j) => self.nodes[j as usize],
            Input::Leaf(j) => self.leaves[j as usize],
        }
    }

    /// The nodes that nobody needs after cluster `at`.
    fn ends(&self, at: usize) -> Vec<u32> {
        let ends = |&i: &usize| self.nodes[i] == Some(at) && !self.keep[i];
        (0..self.nodes.len()).filter(ends).map(|i| i as u32).collect()
    }
}

/// A kernel as its op wrote it.
fn plain(kernel: &lower::Kernel) -> Kernel {
    Kernel {
        source: kernel.source(),
        grid: kernel.grid(),
        binds: (0..kernel.binds.len()).map(Bound::Own).collect(),
        params: vec![kernel.params.iter().map(|(_, word)| *word).collect()],
        words: Vec::new(),
        flops: kernel.flops,
    }
}

/// Where each node's value lies. With `fusion` a node that repeats an earlier one becomes an alias of it.
fn find_roots(graph: &Graph, lowerings: &mut [Lowering], fusion: bool) -> Vec<Input> {
    let mut roots: Vec<Input> = Vec::with_capacity(graph.nodes.len());
    let mut known: HashMap<Vec<u8>, u32> = HashMap::new();
    for (i, node) in graph.nodes.iter().enumerate() {
        let root = |input: &Input| match *input {
            Input::Node(j) => roots[j as usize],
            leaf => leaf,
        };
        let own = match (&lowerings[i], node.inputs.first()) {
            (Lowering::Alias, Some(input)) => root(input),
            _ if fusion => {
                let signature = graph.signature(i, node.inputs.iter().map(root));
                let first = *known.entry(signature).or_insert(i as u32);
                if first != i as u32 {
                    lowerings[i] = Lowering::Alias;
                }
                Input::Node(first)
            }
            _ => Input::Node(i as u32),
        };
        roots.push(own);
    }
    roots
}
