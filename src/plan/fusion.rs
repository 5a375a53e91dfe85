//! Which pointwise nodes share a kernel with their reader.
//!
//! A node that only one pointwise node reads, element by element, is computed inside that reader: its value never
//! leaves the registers. Constants are computed by every reader for itself.

use crate::device::Caps;
use crate::dtype::DType;
use crate::graph::lower::{Arg, Lowering, View};
use crate::graph::{Graph, Input};

/// What becomes of each node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// Has a place of its own in the plan.
    Own,
    /// Computed by every reader for itself.
    Constant,
    /// Computed inside this later node.
    Inside(u32),
}

/// Nodes that one kernel computes at most: longer chains gain little and take a driver long to compile.
const LARGEST: usize = 32;

pub(super) fn roles(graph: &Graph, lowerings: &[Lowering], caps: &Caps) -> Vec<Role> {
    let mut roles = constants(graph, lowerings);
    let readers = only_readers(graph);
    // Buffers that the kernel ending in a node loads, and how many nodes it computes.
    let mut loads: Vec<Vec<(Input, &View)>> = vec![Vec::new(); graph.nodes.len()];
    let mut sizes = vec![1usize; graph.nodes.len()];
    // One binding is the result.
    let most = caps.storage_buffers.saturating_sub(1).max(1);
    for i in 0..graph.nodes.len() {
        let Lowering::Pointwise(pointwise) = &lowerings[i] else { continue };
        let mut own: Vec<(Input, &View)> = Vec::new();
        for (_, arg) in &pointwise.args {
            let Arg::Input { input, view } = arg else { continue };
            let from = graph.nodes[i].inputs[*input];
            let constant = matches!(from, Input::Node(j) if roles[j as usize] == Role::Constant);
            if !constant && !own.contains(&(from, view)) {
                own.push((from, view));
            }
        }
        for k in 0..graph.nodes[i].inputs.len() {
            let Input::Node(j) = graph.nodes[i].inputs[k] else { continue };
            let j = j as usize;
            let fits = roles[j] == Role::Own
                && readers[j] == Some(i as u32)
                && !graph.nodes[j].wanted
                // Storing these rounds or wraps what a register holds.
                && !matches!(graph.nodes[j].spec.dtype, DType::F16 | DType::U8)
                && matches!(lowerings[j], Lowering::Pointwise(_))
                && element_by_element(pointwise, graph, i, j)
                && sizes[i] + sizes[j] <= LARGEST;
            if !fits {
                continue;
            }
            let mut merged: Vec<_> =
                own.iter().filter(|(from, _)| *from != Input::Node(j as u32)).copied().collect();
            merged.extend(loads[j].iter().filter(|load| !own.contains(load)));
            if merged.len() <= most {
                own = merged;
                sizes[i] += sizes[j];
                roles[j] = Role::Inside(i as u32);
            }
        }
        loads[i] = own;
    }
    roles
}

/// True if node `i` reads node `j` at its own index only.
fn element_by_element(
    pointwise: &crate::graph::lower::Pointwise,
    graph: &Graph,
    i: usize,
    j: usize,
) -> bool {
    let from = Input::Node(j as u32);
    pointwise.args.iter().all(|(_, arg)| match arg {
        Arg::Input { input, view } => graph.nodes[i].inputs[*input] != from || *view == View::Same,
        Arg::Inside { input } => graph.nodes[i].inputs[*input] != from,
        Arg::Index | Arg::Word(_) => true,
    })
}

/// For each node the one node that reads it, if there is just one.
fn only_readers(graph: &Graph) -> Vec<Option<u32>> {
    let mut readers: Vec<Option<u32>> = vec![None; graph.nodes.len()];
    let mut several = vec![false; graph.nodes.len()];
    for (i, node) in graph.nodes.iter().enumerate() {
        for input in &node.inputs {
            if let Input::Node(j) = *input {
                let reader = &mut readers[j as usize];
                several[j as usize] |= reader.is_some_and(|r| r != i as u32);
                *reader = Some(i as u32);
            }
        }
    }
    readers.iter().zip(several).map(|(reader, several)| reader.filter(|_| !several)).collect()
}

/// Nodes without inputs of their own whose readers are all pointwise: a scalar never takes a kernel. A reader
/// that asks where its input ends needs one to look at.
pub(super) fn constants(graph: &Graph, lowerings: &[Lowering]) -> Vec<Role> {
    let mut constant: Vec<bool> = lowerings
        .iter()
        .zip(&graph.nodes)
        .map(|(lowering, node)| {
            matches!(lowering, Lowering::Pointwise(p) if p.is_uniform()) && !node.wanted
        })
        .collect();
    for (node, lowering) in graph.nodes.iter().zip(lowerings) {
        for (k, input) in node.inputs.iter().enumerate() {
            let everywhere = match lowering {
                Lowering::Pointwise(p) => !p.args.iter().any(|(_, arg)| arg.asks_inside(k)),
                _ => false,
            };
            if let (false, Input::Node(i)) = (everywhere, *input) {
                constant[i as usize] = false;
            }
        }
    }
    constant.into_iter().map(|c| if c { Role::Constant } else { Role::Own }).collect()
}
