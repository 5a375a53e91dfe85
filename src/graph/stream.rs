//! The stream: nodes that the program has called and that have not run yet.

use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use smallvec::SmallVec;

use super::attributes::Value as Attributes;
use super::{Graph, HashIndex, Input, Node, Op, Spec, Value, ValueState};
use crate::device::Buffer;
use crate::error::{Error, Result, message};
use crate::support::mixer::Mixer;

#[derive(Default)]
pub(crate) struct Stream {
    nodes: Vec<Waiting>,
    /// Values that existed before the nodes. The stream holds them until the nodes run, so no other value can get their
    /// addresses.
    leaves: Vec<Arc<Value>>,
    /// The index of each leaf, by its address.
    leaf_of: HashIndex,
    /// How many nodes waited when a tape last computed gradients.
    gradients: usize,
}

struct Waiting {
    op: Arc<dyn Op>,
    inputs: SmallVec<[Input; 3]>,
    /// The node is dead if only the stream holds this value.
    value: Arc<Value>,
}

/// The node is not needed.
const NOT: u32 = u32::MAX;
/// A needed node reads it.
const READ: u32 = u32::MAX - 1;
/// Its value is held outside the stream.
const WANTED: u32 = u32::MAX - 2;

/// The graph and the values that a flush takes out of the stream.
#[derive(Default)]
pub(crate) struct Taken {
    pub(crate) graph: Graph,
    pub(crate) leaves: Vec<Arc<Buffer>>,
    /// The wanted nodes of the graph, and the values that wait for them.
    pub(crate) outputs: Vec<(u32, Arc<Value>)>,
    /// The leaves that are donated although they are held: their holder has lent them.
    pub(crate) lent: Vec<Arc<Value>>,
    /// The error of a leaf that should have come from another device; then the graph cannot run.
    pub(crate) failed: Option<Error>,
}

impl Stream {
    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// The nodes as text, a line each, after the values that existed before them.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        for (at, leaf) in self.leaves.iter().enumerate() {
            text += &format!("%given{at}: {}\n", leaf.spec);
        }
        for (at, node) in self.nodes.iter().enumerate() {
            let inputs = node.inputs.iter().map(|input| match input {
                Input::Node(node) => format!("%{node}"),
                Input::Leaf(leaf) => format!("%given{leaf}"),
            });
            let inputs: Vec<String> = inputs.collect();
            let (kind, attributes) = (node.op.kind(), Attributes::from_op(&*node.op));
            let spec = &node.value.spec;
            text += &format!("%{at} = {kind}{attributes}({}): {spec}\n", inputs.join(", "));
        }
        text
    }

    /// Appends `op`; its inputs are values of the same device. If one of them has failed, the result has failed, too,
    /// and this also returns its error.
    pub(crate) fn push(
        &mut self,
        op: Arc<dyn Op>,
        inputs: &[&Arc<Value>],
        spec: Spec,
    ) -> (Arc<Value>, Option<Error>) {
        match self.sources(inputs) {
            Ok(inputs) => {
                let state = ValueState::Waiting(self.nodes.len() as u32);
                let value = Value::new(op.name(), spec, state);
                self.nodes.push(Waiting { op, inputs, value: value.clone() });
                (value, None)
            }
            Err(error) => {
                (Value::new(op.name(), spec, ValueState::Failed(error.clone())), Some(error))
            }
        }
    }

    /// As [`Stream::push`], for an op of a trace; `value` is its result.
    pub(crate) fn push_traced(
        &mut self,
        op: Arc<dyn Op>,
        inputs: &[&Arc<Value>],
        value: &Arc<Value>,
    ) -> Result<()> {
        match self.sources(inputs) {
            Ok(inputs) => {
                value.set(ValueState::Waiting(self.nodes.len() as u32));
                self.nodes.push(Waiting { op, inputs, value: value.clone() });
                Ok(())
            }
            Err(error) => {
                value.set(ValueState::Failed(error.clone()));
                Err(error)
            }
        }
    }

    /// The sources of a node's inputs; the error of the first value that has failed, or that only a trace knows.
    fn sources(&mut self, inputs: &[&Arc<Value>]) -> Result<SmallVec<[Input; 3]>> {
        let mut sources = SmallVec::with_capacity(inputs.len());
        for value in inputs {
            let node = match &*value.lock() {
                ValueState::Waiting(node) => Some(*node),
                ValueState::Ready(_) => None,
                ValueState::Failed(error) => return Err(error.clone()),
                ValueState::Traced(_) => return Err(outside_its_trace(value)),
            };
            sources.push(node.map_or_else(|| Input::Leaf(self.leaf(value)), Input::Node));
        }
        Ok(sources)
    }

    /// The op that makes a waiting value.
    #[cfg(not(target_family = "wasm"))]
    pub(crate) fn waiting_op(&self, value: &Value) -> Option<Arc<dyn Op>> {
        match &*value.lock() {
            ValueState::Waiting(node) => self.nodes.get(*node as usize).map(|node| node.op.clone()),
            _ => None,
        }
    }

    /// Records that a tape has computed gradients: the calls that follow use them.
    pub(crate) fn gradients_end(&mut self) {
        self.gradients = self.nodes.len();
    }

    /// Moves the nodes from `from` on into a separate stream; `None` if one of them reads a value that waits before
    /// them.
    pub(crate) fn split_off(&mut self, from: usize) -> Option<Stream> {
        let from = from.min(self.nodes.len());
        let before = |input: &Input| matches!(*input, Input::Node(j) if (j as usize) < from);
        if self.nodes[from..].iter().any(|node| node.inputs.iter().any(before)) {
            return None;
        }
        let mut tail = Stream::default();
        for mut node in self.nodes.drain(from..) {
            for input in &mut node.inputs {
                match input {
                    Input::Node(j) => *j -= from as u32,
                    Input::Leaf(j) => *j = tail.leaf(&self.leaves[*j as usize]),
                }
            }
            node.value.set(ValueState::Waiting(tail.nodes.len() as u32));
            tail.nodes.push(node);
        }
        Some(tail)
    }

    /// A hash for each node from `first` on, equal for calls that differ at most in their inputs and runtime scalars.
    pub(crate) fn calls(&self, first: usize) -> impl Iterator<Item = u64> {
        let call = |node: &Waiting| {
            let mut word = Mixer::default();
            node.op.identify(&mut word);
            node.value.spec.hash(&mut word);
            word.finish()
        };
        self.nodes.iter().skip(first).map(call)
    }

    fn leaf(&mut self, value: &Arc<Value>) -> u32 {
        *self.leaf_of.entry(address(value)).or_insert_with(|| {
            self.leaves.push(value.clone());
            self.leaves.len() as u32 - 1
        })
    }

    /// Empties the stream into a graph without dead nodes.
    ///
    /// A leaf that only the stream holds is donated: the plan may write into its buffer. `lent` lists handles that do
    /// not count as holders, one for each entry; the lender must not read the value if the graph runs.
    pub(crate) fn take(&mut self, lent: &[&Arc<Value>]) -> Taken {
        // First the reason why a node or a leaf is needed, then its index in the graph.
        let mut node_at = vec![NOT; self.nodes.len()];
        let mut leaf_at = vec![NOT; self.leaves.len()];
        let mut count = 0;
        for (i, node) in self.nodes.iter().enumerate().rev() {
            // If only the stream holds a value, no other thread can create a handle to it.
            if Arc::strong_count(&node.value) > 1 {
                node_at[i] = WANTED;
            } else if node_at[i] == NOT {
                continue;
            }
            count += 1;
            for input in &node.inputs {
                match *input {
                    Input::Node(j) => node_at[j as usize] = READ,
                    Input::Leaf(j) => leaf_at[j as usize] = READ,
                }
            }
        }

        let mut handles = HashIndex::default();
        for value in lent {
            *handles.entry(address(value)).or_insert(0) += 1;
        }
        let mut taken = Taken::default();
        taken.graph.nodes.reserve_exact(count);
        let gradients = std::mem::take(&mut self.gradients);
        for (i, mut node) in self.nodes.drain(..).enumerate() {
            if node_at[i] == NOT {
                continue;
            }
            let wanted = node_at[i] == WANTED;
            let at = taken.graph.nodes.len() as u32;
            if i < gradients {
                taken.graph.gradients = at + 1;
            }
            node_at[i] = at;
            for input in &mut node.inputs {
                match input {
                    Input::Node(j) => *j = node_at[*j as usize],
                    // Leaves are in the order in which needed nodes read them: dead nodes do not affect the graph.
                    Input::Leaf(j) => {
                        let at = &mut leaf_at[*j as usize];
                        if *at == READ {
                            *at = taken.add_leaf(&self.leaves[*j as usize], &handles);
                        }
                        *j = *at;
                    }
                }
            }
            let spec = node.value.spec.clone();
            if wanted {
                taken.outputs.push((at, node.value));
            }
            taken.graph.nodes.push(Node { op: node.op, inputs: node.inputs, spec, wanted });
        }
        self.leaves.clear();
        self.leaf_of.clear();
        // This orders what other threads did with their handles before what the run does.
        fence(Ordering::Acquire);
        taken
    }
}

/// The error of a call on, or a read of, a tensor that has no value outside of its trace.
pub(crate) fn outside_its_trace(value: &Value) -> Error {
    Error::Trace(message!(
        "{}: this tensor, {}, has no value yet: it belongs to a function that is being traced, or depends on the input of a \
         model that is being built. Use it only in the call that made it. To decide by it, use cond or while_loop; if the \
         call must store it or read it, compute it from tensors that do not depend on the input.",
        value.op,
        value.spec
    ))
}

fn address(value: &Arc<Value>) -> u64 {
    Arc::as_ptr(value) as usize as u64
}

impl Taken {
    /// Adds a leaf that the stream still holds. `lent` maps a value's address to the number of its handles that do not
    /// count as holders.
    fn add_leaf(&mut self, value: &Arc<Value>, lent: &HashIndex) -> u32 {
        let buffer = match value.state() {
            ValueState::Ready(buffer) => buffer,
            ValueState::Failed(error) => {
                self.failed.get_or_insert(error);
                self.graph.leaves.push(value.spec.clone());
                self.graph.donated.push(false);
                return self.graph.leaves.len() as u32 - 1;
            }
            _ => {
                unreachable!("a leaf is ready, and stays so until the nodes that read it have run")
            }
        };
        let lent = lent.get(&address(value)).map_or(0, |count| *count as usize);
        // A reshape shares the buffer of its input, so the buffer may have holders besides this function and the value.
        // Plans do not write an application's buffer; a value with a place on a board is first copied to its own
        // buffer.
        let donated = Arc::strong_count(value) == 1 + lent
            && Arc::strong_count(&buffer) == 2
            && (buffer.is_pooled() || buffer.is_placed());
        if donated && lent > 0 {
            self.lent.push(value.clone());
        }
        self.graph.leaves.push(value.spec.clone());
        self.graph.donated.push(donated);
        self.leaves.push(buffer);
        self.graph.leaves.len() as u32 - 1
    }
}
