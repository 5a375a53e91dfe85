//! The stream: nodes that were called and have not run yet.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use smallvec::SmallVec;

use super::{Graph, Input, Node, Op, Spec, State, Value};
use crate::device::Buffer;
use crate::error::Result;

#[derive(Default)]
pub(crate) struct Stream {
    nodes: Vec<Waiting>,
    leaves: Vec<Leaf>,
    /// Address of a leaf's value to its index.
    leaf_of: HashMap<usize, u32>,
}

struct Waiting {
    op: Arc<dyn Op>,
    inputs: SmallVec<[Input; 3]>,
    spec: Spec,
    /// Dead once no tensor holds the result.
    value: Weak<Value>,
}

struct Leaf {
    /// Keeps the address in `leaf_of` from being given to another value.
    value: Arc<Value>,
    buffer: Arc<Buffer>,
}

/// What a flush takes out of the stream.
pub(crate) struct Taken {
    pub(crate) graph: Graph,
    pub(crate) leaves: Vec<Arc<Buffer>>,
    /// The wanted nodes of the graph and the values that wait for them.
    pub(crate) outputs: Vec<(u32, Arc<Value>)>,
}

impl Stream {
    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Appends `op`; its inputs are values of the same device. An input that has failed is returned as the error.
    pub(crate) fn push(
        &mut self,
        op: Arc<dyn Op>,
        inputs: &[&Arc<Value>],
        spec: Spec,
    ) -> Result<Arc<Value>> {
        let mut refs = SmallVec::with_capacity(inputs.len());
        for value in inputs {
            refs.push(match value.state() {
                State::Waiting(node) => Input::Node(node),
                State::Ready(buffer) => Input::Leaf(self.leaf(value, buffer)),
                State::Failed(error) => return Err(error),
            });
        }
        let value = Value::new(spec.clone(), State::Waiting(self.nodes.len() as u32));
        self.nodes.push(Waiting { op, inputs: refs, spec, value: Arc::downgrade(&value) });
        Ok(value)
    }

    fn leaf(&mut self, value: &Arc<Value>, buffer: Arc<Buffer>) -> u32 {
        *self.leaf_of.entry(Arc::as_ptr(value) as usize).or_insert_with(|| {
            self.leaves.push(Leaf { value: value.clone(), buffer });
            self.leaves.len() as u32 - 1
        })
    }

    /// Empties the stream into a graph without dead nodes.
    pub(crate) fn take(&mut self) -> Taken {
        let waiting = std::mem::take(&mut self.nodes);
        let leaves = std::mem::take(&mut self.leaves);
        self.leaf_of.clear();

        let values: Vec<Option<Arc<Value>>> = waiting.iter().map(|w| w.value.upgrade()).collect();
        let mut needed: Vec<bool> = values.iter().map(Option::is_some).collect();
        let mut leaf_needed = vec![false; leaves.len()];
        for i in (0..waiting.len()).rev() {
            if needed[i] {
                for input in &waiting[i].inputs {
                    match *input {
                        Input::Node(j) => needed[j as usize] = true,
                        Input::Leaf(j) => leaf_needed[j as usize] = true,
                    }
                }
            }
        }

        let mut taken = Taken { graph: Graph::default(), leaves: Vec::new(), outputs: Vec::new() };
        let mut leaf_at = vec![0u32; leaves.len()];
        for (i, leaf) in leaves.into_iter().enumerate() {
            if leaf_needed[i] {
                leaf_at[i] = taken.leaves.len() as u32;
                taken.graph.leaves.push(leaf.value.spec.clone());
                taken.leaves.push(leaf.buffer);
            }
        }
        let mut node_at = vec![0u32; waiting.len()];
        for (i, (node, value)) in waiting.into_iter().zip(values).enumerate() {
            if !needed[i] {
                continue;
            }
            let at = taken.graph.nodes.len() as u32;
            node_at[i] = at;
            let inputs = node.inputs.iter().map(|input| match *input {
                Input::Node(j) => Input::Node(node_at[j as usize]),
                Input::Leaf(j) => Input::Leaf(leaf_at[j as usize]),
            });
            let inputs = inputs.collect();
            let wanted = value.is_some();
            taken.graph.nodes.push(Node { op: node.op, inputs, spec: node.spec, wanted });
            if let Some(value) = value {
                taken.outputs.push((at, value));
            }
        }
        taken
    }
}
