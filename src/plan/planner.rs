//! Makes a plan: lowers every node, groups pointwise ones, lays down the steps, assigns slots.

use std::collections::VecDeque;

use smallvec::SmallVec;

use super::fusion::{Role, constants, roles};
use super::memory::Slots;
use super::pointwise::{self, Group};
use super::{Params, Place, Plan, Slot, Step};
use crate::device::Caps;
use crate::graph::lower::{Bind, Kernels, Lowering, Site};
use crate::graph::{Graph, Input, Spec};

/// Plans `graph` for a device with `caps`. Without `fusion` every op but a scalar is a kernel of its own.
pub(crate) fn plan(graph: &Graph, caps: &Caps, fusion: bool) -> Plan {
    let lowerings: Vec<Lowering> = graph
        .nodes
        .iter()
        .map(|node| {
            if node.spec.elements() == 0 {
                // Nothing to compute, and sizes of 0 are nothing that an op's tiles must cope with.
                return Lowering::Kernels(Kernels::default());
            }
            let inputs: SmallVec<[&Spec; 3]> = node.inputs.iter().map(|i| graph.spec(*i)).collect();
            node.op.lower(&Site { inputs: &inputs, output: &node.spec, caps })
        })
        .collect();
    let planner = Planner {
        roles: if fusion { roles(graph, &lowerings, caps) } else { constants(graph, &lowerings) },
        roots: find_roots(graph, &lowerings),
        graph,
        lowerings: &lowerings,
        caps,
        places: vec![None; graph.nodes.len()],
        slots: Slots::default(),
        steps: Vec::new(),
        params: Params::default(),
    };
    planner.run()
}

struct Planner<'a> {
    graph: &'a Graph,
    lowerings: &'a [Lowering],
    caps: &'a Caps,
    roles: Vec<Role>,
    /// The node or leaf in whose buffer a node's value lies: itself, or what it is an alias of.
    roots: Vec<Input>,
    places: Vec<Option<Place>>,
    slots: Slots,
    steps: Vec<Step>,
    params: Params,
}

impl Planner<'_> {
    fn run(mut self) -> Plan {
        let (ends, keep) = self.lifetimes();
        for i in 0..self.graph.nodes.len() {
            if self.roles[i] != Role::Own || self.roots[i] != Input::Node(i as u32) {
                continue;
            }
            let spec = &self.graph.nodes[i].spec;
            let slot = self.slots.take(spec.bytes(), keep[i]);
            self.places[i] = Some(Place::Slot(slot));
            match &self.lowerings[i] {
                Lowering::Pointwise(_) => self.lay_pointwise(i),
                Lowering::Kernels(kernels) => self.lay_kernels(i, kernels),
                // An alias has another root.
                Lowering::Alias => {}
            }
            for &root in &ends[i] {
                if let Some(Place::Slot(slot)) = self.places[root] {
                    self.slots.release(slot);
                }
            }
        }
        let outputs = (0..self.graph.nodes.len())
            .filter(|&i| self.graph.nodes[i].wanted)
            .map(|i| (i as u32, self.place(Input::Node(i as u32))))
            .collect();
        let slots = self.slots.into_bytes();
        Plan {
            steps: self.steps,
            slots: slots.into_iter().map(|bytes| Slot { bytes, recent: VecDeque::new() }).collect(),
            outputs,
            params: self.params,
        }
    }

    /// The values that are read for the last time when each node is laid down, and which outlive the run.
    fn lifetimes(&self) -> (Vec<Vec<usize>>, Vec<bool>) {
        let nodes = &self.graph.nodes;
        // Where each node is computed: in its own place, or in that of the node it is computed inside.
        let mut laid: Vec<usize> = (0..nodes.len()).collect();
        for i in (0..nodes.len()).rev() {
            if let Role::Inside(reader) = self.roles[i] {
                laid[i] = laid[reader as usize];
            }
        }
        let mut last_reader = laid.clone();
        let mut keep = vec![false; nodes.len()];
        for (i, node) in nodes.iter().enumerate() {
            for input in &node.inputs {
                if let Input::Node(root) = self.root(*input) {
                    let last = &mut last_reader[root as usize];
                    *last = (*last).max(laid[i]);
                }
            }
            if let (true, Input::Node(root)) = (node.wanted, self.roots[i]) {
                keep[root as usize] = true;
            }
        }
        let mut ends = vec![Vec::new(); nodes.len()];
        for (root, last) in last_reader.into_iter().enumerate() {
            // An alias is laid down nowhere, so what it reads last lives until its readers have it; those
            // count as readers of the root.
            if self.roles[root] == Role::Own && !keep[root] {
                ends[last].push(root);
            }
        }
        (ends, keep)
    }

    fn root(&self, input: Input) -> Input {
        match input {
            Input::Node(i) => self.roots[i as usize],
            leaf => leaf,
        }
    }

    fn place(&self, input: Input) -> Place {
        match self.root(input) {
            Input::Leaf(i) => Place::Leaf(i),
            Input::Node(i) => {
                self.places[i as usize].expect("nodes are laid down before their readers")
            }
        }
    }

    fn lay_pointwise(&mut self, i: usize) {
        let group = Group::new(self.graph, self.lowerings, &self.roles, i);
        let code = pointwise::generate(&group);
        let mut binds: SmallVec<[(Place, u64); 4]> = group
            .loads()
            .map(|input| (self.place(input), self.graph.spec(input).bytes()))
            .collect();
        binds.push((self.place(Input::Node(i as u32)), self.graph.nodes[i].spec.bytes()));
        self.push_step(code.source, code.grid, binds, &code.params, &code.words);
    }

    fn lay_kernels(&mut self, i: usize, kernels: &Kernels) {
        let node = &self.graph.nodes[i];
        let temps: Vec<u32> = kernels.temps.iter().map(|b| self.slots.take(*b, false)).collect();
        for kernel in &kernels.kernels {
            debug_assert!(kernel.binds.len() <= self.caps.storage_buffers.max(8));
            let binds = kernel.binds.iter().map(|(bind, _)| match *bind {
                Bind::Input(k) => {
                    (self.place(node.inputs[k]), self.graph.spec(node.inputs[k]).bytes())
                }
                Bind::Output => (self.place(Input::Node(i as u32)), node.spec.bytes()),
                Bind::Temp(k) => (Place::Slot(temps[k]), kernels.temps[k]),
            });
            let binds = binds.collect();
            let params: Vec<u32> = kernel.params.iter().map(|(_, word)| *word).collect();
            self.push_step(kernel.source(), kernel.grid(), binds, &params, &[]);
        }
        for slot in temps {
            self.slots.release(slot);
        }
    }

    /// `words` are (position in `params`, node, word of the node).
    fn push_step(
        &mut self,
        source: crate::device::Source,
        grid: [u32; 3],
        binds: SmallVec<[(Place, u64); 4]>,
        params: &[u32],
        words: &[(usize, u32, usize)],
    ) {
        let aligned = (self.caps.uniform_alignment / 4).max(4) as usize;
        let start = self.params.words.len().next_multiple_of(aligned);
        let len = params.len().next_multiple_of(4);
        self.params.words.resize(start + len, 0);
        self.params.words[start..start + params.len()].copy_from_slice(params);
        let varying = words.iter().map(|&(at, node, word)| (start + at, node, word));
        self.params.varying.extend(varying);
        self.steps.push(Step {
            source,
            grid,
            binds,
            params_at: 4 * start as u64,
            params_bytes: 4 * len as u64,
            pipeline: None,
            bind_groups: VecDeque::new(),
        });
    }
}

fn find_roots(graph: &Graph, lowerings: &[Lowering]) -> Vec<Input> {
    let mut roots: Vec<Input> = Vec::with_capacity(graph.nodes.len());
    for (i, (node, lowering)) in graph.nodes.iter().zip(lowerings).enumerate() {
        let root = match (lowering, node.inputs.first()) {
            (Lowering::Alias, Some(Input::Node(j))) => roots[*j as usize],
            (Lowering::Alias, Some(leaf)) => *leaf,
            _ => Input::Node(i as u32),
        };
        roots.push(root);
    }
    roots
}
