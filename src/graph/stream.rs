//! The stream: nodes that were called and have not run yet.

use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use smallvec::SmallVec;

use super::{Graph, HashIndex, Input, Mixer, Node, Op, Spec, Value, ValueState};
use crate::device::Buffer;
use crate::error::Error;

#[derive(Default)]
pub(crate) struct Stream {
    nodes: Vec<Waiting>,
    /// Values that were there before. Held here, they are there until the nodes run, and their addresses are
    /// given to no other value.
    leaves: Vec<Arc<Value>>,
    /// Address of a leaf to its index.
    leaf_of: HashIndex,
}

struct Waiting {
    op: Arc<dyn Op>,
    inputs: SmallVec<[Input; 3]>,
    /// Dead once nobody but the stream holds it.
    value: Arc<Value>,
}

/// Nobody needs it.
const NOT: u32 = u32::MAX;
/// A needed node reads it.
const READ: u32 = u32::MAX - 1;
/// Somebody holds it.
const WANTED: u32 = u32::MAX - 2;

/// What a flush takes out of the stream.
#[derive(Default)]
pub(crate) struct Taken {
    pub(crate) graph: Graph,
    pub(crate) leaves: Vec<Arc<Buffer>>,
    /// The wanted nodes of the graph and the values that wait for them.
    pub(crate) outputs: Vec<(u32, Arc<Value>)>,
    /// The leaves that are donated although somebody holds them, who has lent them.
    pub(crate) lent: Vec<Arc<Value>>,
}

impl Stream {
    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Appends `op`; its inputs are values of the same device. If one of them has failed, so has the result, and
    /// the error comes with it.
    pub(crate) fn push(
        &mut self,
        op: Arc<dyn Op>,
        inputs: &[&Arc<Value>],
        spec: Spec,
    ) -> (Arc<Value>, Option<Error>) {
        let mut refs = SmallVec::with_capacity(inputs.len());
        for value in inputs {
            let node = match &*value.lock() {
                ValueState::Waiting(node) => Some(*node),
                ValueState::Ready(_) => None,
                ValueState::Failed(error) => {
                    let failed = Value::new(spec, ValueState::Failed(error.clone()));
                    return (failed, Some(error.clone()));
                }
            };
            refs.push(node.map_or_else(|| Input::Leaf(self.leaf(value)), Input::Node));
        }
        let value = Value::new(spec, ValueState::Waiting(self.nodes.len() as u32));
        self.nodes.push(Waiting { op, inputs: refs, value: value.clone() });
        (value, None)
    }

    /// A word for each node from `first` on, the same for calls that differ at most in what they read and in their numbers.
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
    /// A leaf that nobody holds besides the stream is donated: the plan may write into its buffer. `lent` are
    /// handles that do not count as holders, one for each time a value stands there; who lends promises not to
    /// look at the value if the graph runs.
    pub(crate) fn take(&mut self, lent: &[&Arc<Value>]) -> Taken {
        // Why a node or a leaf is needed, and then its place in the graph.
        let mut node_at = vec![NOT; self.nodes.len()];
        let mut leaf_at = vec![NOT; self.leaves.len()];
        let mut count = 0;
        for (i, node) in self.nodes.iter().enumerate().rev() {
            // No other thread makes a handle of a value that only the stream holds.
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
        for (i, mut node) in self.nodes.drain(..).enumerate() {
            if node_at[i] == NOT {
                continue;
            }
            let wanted = node_at[i] == WANTED;
            let at = taken.graph.nodes.len() as u32;
            node_at[i] = at;
            for input in &mut node.inputs {
                match input {
                    Input::Node(j) => *j = node_at[*j as usize],
                    // In the order in which needed nodes read them: the dead leave no trace in the graph.
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
        // What other threads did with their handles happened before they dropped them.
        fence(Ordering::Acquire);
        taken
    }
}

fn address(value: &Arc<Value>) -> u64 {
    Arc::as_ptr(value) as usize as u64
}

impl Taken {
    /// Adds a leaf that the stream still holds. `lent` says how many handles of a value, by its address, do not count
    /// as holders.
    fn add_leaf(&mut self, value: &Arc<Value>, lent: &HashIndex) -> u32 {
        let ValueState::Ready(buffer) = value.state() else {
            unreachable!("a leaf is ready, and stays so until the nodes that read it have run");
        };
        let lent = lent.get(&address(value)).map_or(0, |count| *count as usize);
        // A reshape shares its buffer with what it was made from: the buffer's holders are this function, the
        // value, and whoever else. An application's buffer is not ours to write.
        let donated = Arc::strong_count(value) == 1 + lent
            && Arc::strong_count(&buffer) == 2
            && buffer.is_pooled();
        if donated && lent > 0 {
            self.lent.push(value.clone());
        }
        self.graph.leaves.push(value.spec.clone());
        self.graph.donated.push(donated);
        self.leaves.push(buffer);
        self.leaves.len() as u32 - 1
    }
}
