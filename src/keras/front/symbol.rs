//! [`HostSymbol`]: a value on the host that a model's inputs are computed from.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

#[cfg(all(feature = "json", feature = "saved-model"))]
use crate::error::{Error, Result, message};
#[cfg(all(feature = "json", feature = "saved-model"))]
use crate::host_array::{HostArray, HostDType};
use crate::keras::PartialShape;
use crate::keras::layers::{HashedCrossing, HostLayer};

/// A value on the host, without values yet: an input of strings or integers, or the result of a layer for it. A
/// [`FrontModel`](super::FrontModel) computes it before its model. A clone is the same symbol.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use std::sync::Arc;
/// use wgrad::DType;
/// use wgrad::keras::layers::{Dense, OutputMode, StringLookup};
/// use wgrad::keras::{FrontModel, Functional, HostSymbol, INFERENCE, Input, LayerExt};
/// let word = HostSymbol::input("word");
/// let lookup = StringLookup::new().vocabulary(["red", "green"]).output_mode(OutputMode::MultiHot);
/// let rows = word.then(Arc::new(lookup));
///
/// let (x, size) = (Input::new([3]).with_name("rows"), Input::new([1]).with_name("size"));
/// let y = Dense::new(2).on(&x)?.add(&Dense::new(2).on(&size)?)?;
/// let model = FrontModel::functional(Functional::new([&x, &size], &y)?, [("rows", &rows)])?;
/// assert_eq!(model.input_names(), ["word", "size"]);
/// let y = model.call_host(&(["red", "blue"], [1.0f32, 2.0]), INFERENCE)?;
/// assert_eq!(y[0].shape(), [2, 2]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct HostSymbol {
    /// The nodes that it depends on, in an order in which they can be computed; its own is the last one.
    pub(super) nodes: Vec<Arc<Node>>,
}

#[derive(Debug)]
pub(super) struct Node {
    pub(super) id: u64,
    pub(super) origin: Origin,
}

#[derive(Debug)]
pub(super) enum Origin {
    Input(FrontInput),
    Call { layer: FrontLayer, from: Vec<u64> },
}

/// An input of a model with a front.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FrontInput {
    pub(crate) name: String,
    /// The sizes, that of the batch first.
    pub(crate) shape: Vec<Option<usize>>,
    /// Keras's name of its dtype, `string` for strings.
    pub(crate) dtype: String,
}

#[cfg(all(feature = "json", feature = "saved-model"))]
impl FrontInput {
    /// The dtype, of which Keras's names are TensorFlow's.
    pub(crate) fn host_dtype(&self) -> Result<HostDType> {
        let mut known = HostDType::ALL.iter().copied();
        known.find(|dtype| dtype.tensorflow_name() == self.dtype).ok_or_else(|| {
            Error::DType(message!(
                "FrontModel: the input '{}' has the unknown dtype {}.",
                self.name,
                self.dtype
            ))
        })
    }

    /// A batch of no examples.
    pub(super) fn empty(&self) -> Result<HostArray<'static>> {
        let sizes = self.shape.iter().skip(1).map(|size| size.unwrap_or(1));
        let shape: Vec<usize> = std::iter::once(0).chain(sizes).collect();
        match self.host_dtype()? {
            HostDType::String => HostArray::from_strings(shape, Vec::new()),
            dtype => HostArray::new(dtype, shape, Vec::new()),
        }
    }
}

/// A layer in front of a model.
#[derive(Debug, Clone)]
pub(super) enum FrontLayer {
    One(Arc<dyn HostLayer>),
    Crossing(Arc<HashedCrossing>),
}

impl FrontLayer {
    /// Whether both are the same layer, and not only equal ones.
    #[cfg(feature = "json")]
    pub(super) fn is(&self, other: &FrontLayer) -> bool {
        match (self, other) {
            (FrontLayer::One(a), FrontLayer::One(b)) => {
                std::ptr::addr_eq(Arc::as_ptr(a), Arc::as_ptr(b))
            }
            (FrontLayer::Crossing(a), FrontLayer::Crossing(b)) => Arc::ptr_eq(a, b),
            _ => false,
        }
    }
}

impl HostSymbol {
    /// An input of strings, one for each example.
    pub fn input(name: &str) -> Self {
        HostSymbol::input_with_shape(name, [1])
    }

    /// An input of strings; `shape` is that of an example.
    pub fn input_with_shape(name: &str, shape: impl Into<PartialShape>) -> Self {
        HostSymbol::begin(name, shape.into(), "string")
    }

    /// An input of integers, one for each example, for layers that take integers: [`Hashing`](crate::keras::layers::Hashing),
    /// [`HashedCrossing`], [`IntegerLookup`](crate::keras::layers::IntegerLookup).
    pub fn integers(name: &str) -> Self {
        HostSymbol::begin(name, [1].into(), "int64")
    }

    fn begin(name: &str, shape: PartialShape, dtype: &str) -> Self {
        let shape = std::iter::once(None).chain(shape.sizes().iter().copied()).collect();
        let input = FrontInput { name: name.to_string(), shape, dtype: dtype.to_string() };
        HostSymbol { nodes: vec![node(Origin::Input(input))] }
    }

    /// The result of a layer for this value. A layer that is called on several symbols is one layer of the model.
    pub fn then(&self, layer: Arc<dyn HostLayer>) -> Self {
        HostSymbol::call(&[self], FrontLayer::One(layer))
    }

    /// The result of crossing several values.
    pub fn cross(symbols: &[&HostSymbol], layer: HashedCrossing) -> Self {
        HostSymbol::call(symbols, FrontLayer::Crossing(Arc::new(layer)))
    }

    fn call(symbols: &[&HostSymbol], layer: FrontLayer) -> Self {
        let mut nodes: Vec<Arc<Node>> = Vec::new();
        let mut known = std::collections::HashSet::new();
        for node in symbols.iter().flat_map(|symbol| &symbol.nodes) {
            if known.insert(node.id) {
                nodes.push(node.clone());
            }
        }
        let from =
            symbols.iter().filter_map(|symbol| symbol.nodes.last()).map(|node| node.id).collect();
        nodes.push(node(Origin::Call { layer, from }));
        HostSymbol { nodes }
    }
}

fn node(origin: Origin) -> Arc<Node> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    Arc::new(Node { id: NEXT.fetch_add(1, Ordering::Relaxed), origin })
}
