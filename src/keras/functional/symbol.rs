//! [`SymbolicTensor`]: a result with a known shape and dtype, but without values.

use std::fmt;
use std::sync::{Arc, OnceLock};

use super::operation::{Operation, fresh_number};
use crate::dtype::DType;
use crate::error::Result;
use crate::shape::Shape;
use crate::trackable::shape_text;

/// A shape in which some sizes may be unknown: `[28, 28, 1]`, `[None, Some(64)]`, `()` for no axes, and slices and vectors of
/// sizes convert to it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct PartialShape(pub(crate) Vec<Option<usize>>);

impl PartialShape {
    /// Returns the sizes.
    pub fn sizes(&self) -> &[Option<usize>] {
        &self.0
    }
}

impl From<()> for PartialShape {
    fn from((): ()) -> Self {
        PartialShape::default()
    }
}

impl From<crate::shape::Shape> for PartialShape {
    fn from(sizes: crate::shape::Shape) -> Self {
        sizes[..].into()
    }
}

macro_rules! sizes {
    ($([$($n:ident)?] $list:ty, $partial:ty;)*) => {$(
        impl$(<const $n: usize>)? From<$list> for PartialShape {
            fn from(sizes: $list) -> Self {
                PartialShape(sizes.iter().copied().map(Some).collect())
            }
        }

        impl$(<const $n: usize>)? From<$partial> for PartialShape {
            fn from(sizes: $partial) -> Self {
                PartialShape(sizes.to_vec())
            }
        }
    )*};
}
sizes! {
    [N] [usize; N], [Option<usize>; N];
    [] &[usize], &[Option<usize>];
    [] Vec<usize>, Vec<Option<usize>>;
}

/// The result of a layer that was called on symbols: its shape and dtype, and how it is computed. `None` in a shape is a size
/// that varies from call to call, such as that of the batch.
///
/// [`LayerExt::on`](super::LayerExt::on) calls a layer on symbols; [`Functional`](super::Functional) creates a model of the
/// layers between symbols. A clone is the same symbol.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// use tf::keras::{Input, LayerExt, layers::Dense};
/// let x = Input::new([None, Some(16)]);
/// let y = Dense::new(8).on(&x)?;
/// assert_eq!(y.shape(), [None, None, Some(8)]);
/// assert_eq!(y.to_string(), "(None, None, 8) f32");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct SymbolicTensor(pub(super) Arc<Symbol>);

pub(super) struct Symbol {
    pub(super) node: Arc<Node>,
    /// The index among the node's results.
    pub(super) output: usize,
    pub(super) spec: SymbolSpec,
}

/// The known properties of a symbol.
#[derive(Clone)]
pub(super) struct SymbolSpec {
    pub(super) shape: Vec<Option<usize>>,
    pub(super) dtype: DType,
    pub(super) probe: Probe,
}

/// The shapes of a result for three choices of the unknown sizes.
#[derive(Clone, PartialEq)]
pub(super) struct Probe {
    /// The index of the sizes used for unknown ones, below [`LEVELS`].
    pub(super) level: usize,
    pub(super) shapes: ProbedShapes,
    /// The shapes of the result's mask, if it has one.
    pub(super) mask: Option<ProbedShapes>,
}

/// A shape for each choice of the unknown sizes.
pub(super) type ProbedShapes = [Shape; 3];

/// The number of sizes to try for unknown ones.
pub(super) const LEVELS: usize = 5;

/// The origin of symbols: an input or a call.
pub(super) struct Node {
    /// Nodes are numbered in the order in which they are created.
    pub(super) id: u64,
    pub(super) origin: Origin,
    /// The results, or the error, with the sizes of each level that was tried later.
    pub(super) tried: [OnceLock<Result<Vec<Probe>>>; LEVELS],
}

pub(super) enum Origin {
    Input {
        name: Option<String>,
        shape: Vec<Option<usize>>,
    },
    Call {
        operation: Arc<Operation>,
        inputs: Vec<SymbolicTensor>,
        mask: Option<SymbolicTensor>,
        outputs: Vec<SymbolSpec>,
    },
}

impl Node {
    pub(super) fn new(origin: Origin) -> Arc<Self> {
        Arc::new(Node { id: fresh_number(), origin, tried: Default::default() })
    }

    /// The symbols from which the node is computed.
    pub(super) fn inputs(&self) -> impl DoubleEndedIterator<Item = &SymbolicTensor> {
        let (inputs, mask) = match &self.origin {
            Origin::Input { .. } => (&[][..], None),
            Origin::Call { inputs, mask, .. } => (&inputs[..], mask.as_ref()),
        };
        inputs.iter().chain(mask)
    }
}

/// Drops iteratively: a long chain of calls would overflow the stack with nested calls of `drop`.
impl Drop for Node {
    fn drop(&mut self) {
        let mut left: Vec<SymbolicTensor> = Vec::new();
        let take = |origin: &mut Origin, left: &mut Vec<SymbolicTensor>| {
            if let Origin::Call { inputs, mask, .. } = origin {
                left.append(inputs);
                left.extend(mask.take());
            }
        };
        take(&mut self.origin, &mut left);
        while let Some(symbol) = left.pop() {
            let Some(symbol) = Arc::into_inner(symbol.0) else { continue };
            if let Some(mut node) = Arc::into_inner(symbol.node) {
                take(&mut node.origin, &mut left);
            }
        }
    }
}

impl SymbolicTensor {
    pub(super) fn new(node: Arc<Node>, output: usize, spec: SymbolSpec) -> Self {
        SymbolicTensor(Arc::new(Symbol { node, output, spec }))
    }

    /// Returns the sizes of the axes, the batch first; `None` for those that vary.
    pub fn shape(&self) -> &[Option<usize>] {
        &self.0.spec.shape
    }

    /// Returns the element type.
    pub fn dtype(&self) -> DType {
        self.0.spec.dtype
    }

    /// Returns the number of axes.
    pub fn rank(&self) -> usize {
        self.shape().len()
    }

    /// The node, and the index among its results.
    pub(super) fn key(&self) -> (u64, usize) {
        (self.0.node.id, self.0.output)
    }

    pub(super) fn spec(&self) -> &SymbolSpec {
        &self.0.spec
    }

    /// Whether sizes besides that of the batch are unknown.
    pub(super) fn has_lengths(&self) -> bool {
        self.shape().iter().skip(1).any(Option::is_none)
    }
}

impl fmt::Display for SymbolicTensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", shape_text(self.shape()), self.dtype())
    }
}

impl fmt::Debug for SymbolicTensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SymbolicTensor({self})")
    }
}
