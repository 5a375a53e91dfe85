//! The planner's knowledge of a graph before it decides which nodes share a kernel: how each node is lowered, which
//! nodes are common subexpressions, and which ones every reader computes itself.

use std::borrow::Cow;

use super::lowerings::Lowerings;
use crate::device::Caps;
use crate::graph::lower::{Lowering, Term, View};
use crate::graph::{Graph, HashIndex, Input, hash_bytes};

/// A graph, and the planner's information about its nodes.
pub(super) struct PlanContext<'a> {
    pub(super) graph: &'a Graph,
    pub(super) lowerings: &'a Lowerings,
    /// For each node, the node or leaf whose buffer holds its value: itself, or the one that it is an alias of.
    pub(super) canonical: &'a [Input],
    /// Nodes that any reader may compute itself: constants and views.
    pub(super) rematerialisable: &'a [bool],
    pub(super) caps: &'a Caps,
    /// An additional launch costs less than an additional text, because the plan is for few runs on a CPU.
    pub(super) brief: bool,
}

impl<'a> PlanContext<'a> {
    pub(super) fn canonical(&self, input: Input) -> Input {
        match input {
            Input::Node(i) => self.canonical[i as usize],
            leaf => leaf,
        }
    }

    /// True if all elements of the node have one value, which every reader computes itself.
    pub(super) fn is_constant(&self, node: usize) -> bool {
        matches!(&self.lowerings[node], Lowering::Elementwise(p) if p.is_uniform())
    }

    pub(super) fn shape(&self, node: u32) -> &'a [usize] {
        &self.graph.nodes[node as usize].spec.shape
    }

    pub(super) fn elements(&self, node: u32) -> usize {
        self.graph.nodes[node as usize].spec.elements()
    }

    /// A view of `node` whose scalars refer to the node that carries them: the first one of nodes with equal scalars.
    pub(super) fn placed<'v>(&self, node: u32, view: &'v View) -> Cow<'v, View> {
        let View::Strided(own) = view else { return Cow::Borrowed(view) };
        if !own.varies() {
            return Cow::Borrowed(view);
        }
        let at = node as usize;
        let in_fours = self.graph.in_fours.get(at).copied().unwrap_or(0);
        let first = self.graph.equal_scalars.get(at).copied().flatten().unwrap_or(node);
        Cow::Owned(View::Strided(own.with_places(|place| {
            for term in place.terms.iter_mut().filter(|term| term.node == Term::OWN) {
                term.node = first;
                term.in_fours = in_fours.checked_shr(term.word).is_some_and(|bits| bits & 1 == 1);
            }
        })))
    }
}

/// The node or leaf that holds each node's value. With `fusion` a node that repeats an earlier one becomes an alias of it.
pub(super) fn find_common_subexpressions(
    graph: &Graph,
    lowerings: &mut Lowerings,
    fusion: bool,
) -> Vec<Input> {
    let mut canonical: Vec<Input> = Vec::with_capacity(graph.nodes.len());
    let mut known = HashIndex::default();
    let mut signatures: Vec<Vec<u8>> = vec![Vec::new(); graph.nodes.len()];
    for (i, node) in graph.nodes.iter().enumerate() {
        let root = |input: &Input| match *input {
            Input::Node(j) => canonical[j as usize],
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
        canonical.push(own);
    }
    canonical
}

/// Nodes that any reader may compute itself: constants, and views if nodes are fused at all.
pub(super) fn rematerialisable(graph: &Graph, lowerings: &Lowerings, fusion: bool) -> Vec<bool> {
    let nodes = graph.nodes.iter().zip(lowerings.iter());
    nodes
        .map(|(_, lowering)| match lowering {
            Lowering::Elementwise(p) => p.is_uniform() || (fusion && p.is_view()),
            _ => false,
        })
        .collect()
}
