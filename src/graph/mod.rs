//! The only representation of work: nodes that wait in a device's stream, and the graph that a flush makes of them.
//!
//! A node is an op applied to values. The trait [`Op`] defines what planning and running an op needs; gradients are
//! handled by the modules above.

pub(crate) mod attributes;
pub(crate) mod identity;
mod key;
pub(crate) mod lower;
mod stream;
mod value;

use std::fmt::{self, Debug};
use std::sync::Arc;

use smallvec::SmallVec;

use crate::dtype::DType;
use crate::error::Result;
use crate::shape::Shape;
pub(crate) use crate::support::mixer::{Mixer, hash_bytes};
pub(crate) use identity::{Identity, Runtime};
#[cfg(not(target_family = "wasm"))]
pub(crate) use key::identity_bytes;
pub(crate) use key::{Coincidences, HashIndex, Key};
use lower::{Lowering, LoweringContext, Variants};
pub(crate) use stream::{Stream, Taken, outside_its_trace};
pub(crate) use value::{Traced, Value, ValueState};

/// The shape and dtype of a value, which are known before it is computed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Spec {
    pub(crate) shape: Shape,
    pub(crate) dtype: DType,
}

impl Spec {
    pub(crate) fn new(shape: impl Into<Shape>, dtype: DType) -> Self {
        Spec { shape: shape.into(), dtype }
    }

    pub(crate) fn elements(&self) -> usize {
        self.shape.elements()
    }

    /// Bytes of the value that a binding covers.
    pub(crate) fn bytes(&self) -> u64 {
        self.dtype.bytes(self.elements())
    }
}

/// `f32[2, 3]`.
impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{:?}", self.dtype, &self.shape[..])
    }
}

/// A node's runtime scalars: numbers that may change from call to call without a new plan, such as the value of a
/// constant or the counter of a random generator. They are passed in the plan's parameters.
pub(crate) type RuntimeScalars = SmallVec<[u32; 6]>;

/// The interface of an op to the graph and the planner. Its attributes are the fields of the implementing struct, which
/// derives [`Attribute`](attributes::Attribute): they are the op's [`Identity`], too.
pub(crate) trait Op: Identity + Send + Sync {
    /// TensorFlow's name, which begins the error messages.
    fn name(&self) -> &'static str;

    /// The shape and dtype of the result, or the reason why the inputs are invalid. This never accesses the device.
    fn infer(&self, inputs: &[&Spec]) -> Result<Spec>;

    /// Numbers that may change without a new plan, from fields of type [`Runtime`].
    fn runtime_scalars(&self) -> RuntimeScalars {
        RuntimeScalars::new()
    }

    /// Whether the runtime scalars of this node change from run to run of one graph, so that a plan may not rely on their
    /// present values.
    fn scalars_vary(&self) -> bool {
        false
    }

    /// Which of its runtime scalars are multiples of four, as bits, if reading whole vectors depends on it. A plan may
    /// rely on it.
    fn in_fours(&self) -> u32 {
        0
    }

    /// The ways in which the op can be computed in this context, if there is a choice.
    fn variants(&self, _cx: &LoweringContext) -> Variants {
        Variants::default()
    }

    /// How the op becomes code. The planner calls this once for a plan, after `infer` has succeeded.
    fn lower(&self, cx: &LoweringContext) -> Lowering;
}

/// Prints only the name, so that a page does not load code that prints the attributes of every op.
impl Debug for dyn Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The source of a node's input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Input {
    /// The result of an earlier node of the graph.
    Node(u32),
    /// A value that existed before the graph.
    Leaf(u32),
}

#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) op: Arc<dyn Op>,
    pub(crate) inputs: SmallVec<[Input; 3]>,
    pub(crate) spec: Spec,
    /// The result is held outside the stream, so it must outlive the run.
    pub(crate) wanted: bool,
}

/// Nodes in an order in which they can run; a wanted node needs each of them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Graph {
    pub(crate) nodes: Vec<Node>,
    pub(crate) leaves: Vec<Spec>,
    /// Leaves that are not needed after the run: a plan may write into their buffers once it has read them.
    pub(crate) donated: Vec<bool>,
    /// The nodes before this one were called before a tape had computed its gradients, the others after; 0 if no tape
    /// did.
    pub(crate) gradients: u32,
    /// For each node with runtime scalars, the first earlier node of the same op with equal ones, if there is one. Two
    /// nodes with the same first node (a first node being its own) carry equal scalars in every graph of this key, so a
    /// plan may compute them once if attributes and inputs agree, too. [`Graph::key`] fills this in.
    pub(crate) equal_scalars: Vec<Option<u32>>,
    /// For each node, [`Op::in_fours`] in every graph of this key. [`Graph::key`] fills this in.
    pub(crate) in_fours: Vec<u32>,
}

impl Graph {
    pub(crate) fn spec(&self, input: Input) -> &Spec {
        match input {
            Input::Node(i) => &self.nodes[i as usize].spec,
            Input::Leaf(i) => &self.leaves[i as usize],
        }
    }

    /// The specs of all leaves and all results.
    #[cfg(any(test, all(feature = "kernel-hooks", not(target_family = "wasm"))))]
    pub(crate) fn specs(&self) -> impl Iterator<Item = &Spec> + '_ {
        self.leaves.iter().chain(self.nodes.iter().map(|node| &node.spec))
    }
}
