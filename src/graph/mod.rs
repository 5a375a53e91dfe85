//! The one representation of work: nodes that wait in a device's stream, and the graph a flush makes.
//!
//! A node is an op applied to values. What an op must know to be planned and run is the trait [`Op`]; its
//! gradient is the business of the rooms above.

pub(crate) mod identity;
mod key;
pub(crate) mod lower;
mod stream;
mod value;

use std::fmt::Debug;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::dtype::DType;
use crate::error::Result;
use crate::shape::Shape;
pub(crate) use identity::{Identity, Runtime};
pub(crate) use key::{Coincidences, HashIndex, Key, Mixer, hash_bytes};
use lower::{Lowering, LoweringContext, Variants};
pub(crate) use stream::{Stream, Taken};
pub(crate) use value::{Value, ValueState};

/// What is known of a value before it is computed.
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

    /// Bytes that a binding of the value covers.
    pub(crate) fn bytes(&self) -> u64 {
        self.dtype.bytes(self.elements())
    }
}

/// Numbers of a node that may change from call to call without a new plan: the value of a scalar, the
/// counter of a random generator. They travel in the plan's parameters.
pub(crate) type RuntimeScalars = SmallVec<[u32; 6]>;

/// What the graph and the planner ask of an op. Attributes are fields of the implementing struct, which derives
/// `Hash`, `PartialEq` and `Eq`: they are the op's [`Identity`].
pub(crate) trait Op: Identity + Debug + Send + Sync {
    /// TensorFlow's name, which error messages begin with.
    fn name(&self) -> &'static str;

    /// The shape and dtype of the result, or why the inputs do not fit. Never touches the device.
    fn infer(&self, inputs: &[&Spec]) -> Result<Spec>;

    /// Numbers that may change without a new plan, from fields of type [`Runtime`].
    fn runtime_scalars(&self) -> RuntimeScalars {
        RuntimeScalars::new()
    }

    /// The ways in which the op can be computed at `cx`, if there is a choice.
    fn variants(&self, _cx: &LoweringContext) -> Variants {
        Variants::default()
    }

    /// How the op becomes code. Called once for a plan, after `infer` has agreed.
    fn lower(&self, cx: &LoweringContext) -> Lowering;
}

/// Where a node's input comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Input {
    /// The result of an earlier node of the graph.
    Node(u32),
    /// A value that was there before the graph.
    Leaf(u32),
}

#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) op: Arc<dyn Op>,
    pub(crate) inputs: SmallVec<[Input; 3]>,
    pub(crate) spec: Spec,
    /// Somebody holds the result, so it must outlive the run.
    pub(crate) wanted: bool,
}

/// Nodes in an order in which they can run, every one of them needed for a wanted one.
#[derive(Debug, Clone, Default)]
pub(crate) struct Graph {
    pub(crate) nodes: Vec<Node>,
    pub(crate) leaves: Vec<Spec>,
    /// Leaves that nobody will look at when the graph has run: a plan may write into their buffers once it has
    /// read them.
    pub(crate) donated: Vec<bool>,
    /// For each node that carries words, the first node before it of the same op with the same words, if there
    /// is one. Two nodes with words whose first ones are the same (a first node being its own) carry the same
    /// words in every graph of this key, so a plan may compute them once if attributes and inputs agree too.
    /// Filled by [`Graph::key`].
    pub(crate) equal_scalars: Vec<Option<u32>>,
}

impl Graph {
    pub(crate) fn spec(&self, input: Input) -> &Spec {
        match input {
            Input::Node(i) => &self.nodes[i as usize].spec,
            Input::Leaf(i) => &self.leaves[i as usize],
        }
    }
}
