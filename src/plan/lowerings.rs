//! How each node of a graph becomes code. Turns of a loop and equal layers call the same op on the same shapes, and
//! writing a matmul's shader takes longer than the rest of its planning, so nodes of one kind share a lowering.

use std::any::TypeId;
use std::borrow::Cow;
use std::ops::Index;

use super::tuner::{Choice, Met};
use crate::device::Caps;
use crate::graph::lower::{Arg, Elementwise, Kernels, Lowering, LoweringContext};
use crate::graph::{Graph, HashIndex, Spec, hash_bytes};

/// A lowering for each node.
#[derive(Default)]
pub(super) struct Lowerings {
    all: Vec<Lowering>,
    /// The number of each node's lowering.
    of: Vec<u32>,
}

impl Lowerings {
    /// Lowers every op that `graph` calls, once for each kind of node.
    pub(super) fn new(graph: &Graph, caps: &Caps, choice: &Choice, met: &mut Met) -> Self {
        let mut lowerings = Lowerings::default();
        // For ops that have custom kernels: the node that was lowered, and its lowering.
        let mut heavy: Vec<TypeId> = Vec::new();
        let mut known = HashIndex::default();
        let mut kinds: Vec<Vec<u8>> = Vec::new();
        for (i, node) in graph.nodes.iter().enumerate() {
            let op: &dyn std::any::Any = &*node.op;
            let kind = match heavy.contains(&op.type_id()) {
                true => graph.kind(i),
                false => Vec::new(),
            };
            let next = lowerings.all.len() as u32;
            let first = match kind.is_empty() {
                true => next,
                false => *known.entry(hash_bytes(&kind)).or_insert(next),
            };
            if first != next && kinds[first as usize] == kind {
                lowerings.of.push(first);
                continue;
            }
            let lowering = lower(graph, i, caps, choice, met);
            if matches!(lowering, Lowering::Kernels(_)) && !heavy.contains(&op.type_id()) {
                heavy.push(op.type_id());
            }
            lowerings.all.push(lowering);
            lowerings.of.push(next);
            kinds.push(kind);
        }
        lowerings
    }

    pub(super) fn get(&self, node: usize) -> Option<&Lowering> {
        self.all.get(*self.of.get(node)? as usize)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Lowering> {
        self.of.iter().map(|&at| &self.all[at as usize])
    }

    /// Marks the node as an alias of another one.
    pub(super) fn set_alias(&mut self, node: usize) {
        self.of[node] = self.all.len() as u32;
        self.all.push(Lowering::Alias);
    }
}

impl Index<usize> for Lowerings {
    type Output = Lowering;

    fn index(&self, node: usize) -> &Lowering {
        &self.all[self.of[node] as usize]
    }
}

#[cfg(test)]
impl From<Vec<Lowering>> for Lowerings {
    fn from(all: Vec<Lowering>) -> Self {
        Lowerings { of: (0..all.len() as u32).collect(), all }
    }
}

fn lower(graph: &Graph, i: usize, caps: &Caps, choice: &Choice, met: &mut Met) -> Lowering {
    let node = &graph.nodes[i];
    if node.spec.elements() == 0 {
        // There is nothing to compute, and an op's tiles need not cope with sizes of 0.
        return Lowering::Kernels(Kernels::default());
    }
    let inputs: Vec<&Spec> = node.inputs.iter().map(|i| graph.spec(*i)).collect();
    let cx = LoweringContext { inputs: &inputs, output: &node.spec, caps, variant: None };
    let variant = choice.variant(node, &cx, met);
    let lowering = node.op.lower(&LoweringContext { variant: variant.as_deref(), ..cx });
    match lowering {
        // A fold over no elements is its start value everywhere.
        Lowering::Reduce(reduction) if inputs[0].elements() == 0 => {
            let scalar = node.spec.dtype.register().scalar();
            let first = reduction.first;
            // No compiler can simplify this expression; otherwise it might treat 0 / x as 0, whatever x is.
            let body = format!(
                "select(vec4<{scalar}>({first}), vec4<{scalar}>({scalar}(1)), i == vec4<u32>(4294967295u))"
            );
            let start = Elementwise::new("fold_of_nothing", Cow::Owned(body)).arg("i", Arg::Index);
            Lowering::Elementwise(start)
        }
        other => other,
    }
}
