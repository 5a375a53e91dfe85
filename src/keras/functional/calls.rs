//! [`LayerExt`]: calls layers on symbols.

use std::marker::PhantomData;
use std::sync::Arc;

#[cfg(feature = "json")]
use serde_json::{Map, Value};

use super::operation::{Callable, Masked, Name, Operation};
use super::probe;
use super::symbol::{Node, Origin, SymbolicTensor};
use super::symbols::{Results, Symbols};
use crate::error::{Error, Result, message};
use crate::keras::layers::in_layer;
use crate::keras::{Context, Inputs, Layer};
use crate::tensor::Tensor;
use crate::trackable::Trackable;

/// Calls a layer on symbols, which creates its weights and returns the symbol of its result. Every layer and model, including
/// custom ones, has these methods.
///
/// To share a layer between several calls, put it in an [`Arc`]:
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use std::sync::Arc;
/// use wgrad::{self as tf, Trackable};
/// use tf::keras::{Functional, Input, LayerExt, layers::Dense};
/// let (a, b) = (Input::new([8]), Input::new([8]));
/// let shared = Arc::new(Dense::new(4));
/// let (ya, yb) = (shared.clone().on(&a)?, shared.on(&b)?);
/// let model = Functional::new([&a, &b], ya.multiply(&yb)?)?;
/// assert_eq!(model.count_params(), 8 * 4 + 4);
/// # Ok(())
/// # }
/// ```
pub trait LayerExt: Trackable + Sized + 'static {
    /// Calls the layer on `x`.
    ///
    /// # Errors
    /// The layer's errors for an input of this shape and dtype.
    fn on(self, x: &SymbolicTensor) -> Result<SymbolicTensor>
    where
        Self: Layer,
    {
        one(connect(Operation::new(None, Of::<Self, Tensor, Tensor>::new(self)), vec![x.clone()])?)
    }

    /// Same as [`LayerExt::on`], with a name, which no other layer of the model may have.
    ///
    /// # Errors
    /// Same as [`LayerExt::on`].
    fn on_named(self, name: &str, x: &SymbolicTensor) -> Result<SymbolicTensor>
    where
        Self: Layer,
    {
        one(connect(
            Operation::new(Some(name), Of::<Self, Tensor, Tensor>::new(self)),
            vec![x.clone()],
        )?)
    }

    /// Calls the layer on one symbol or several, and returns all its results: `merge.on_all([&a, &b])`.
    ///
    /// # Errors
    /// Same as [`LayerExt::on`].
    fn on_all<X, Y>(self, xs: impl Symbols) -> Result<Y::Symbols>
    where
        Self: Layer<X, Y>,
        X: Inputs + ?Sized + 'static,
        Y: Results + 'static,
    {
        several::<Y>(connect(Operation::new(None, Of::<Self, X, Y>::new(self)), xs.symbols())?)
    }

    /// Same as [`LayerExt::on_all`], with a name, which no other layer of the model may have.
    ///
    /// # Errors
    /// Same as [`LayerExt::on`].
    fn on_all_named<X, Y>(self, name: &str, xs: impl Symbols) -> Result<Y::Symbols>
    where
        Self: Layer<X, Y>,
        X: Inputs + ?Sized + 'static,
        Y: Results + 'static,
    {
        several::<Y>(connect(
            Operation::new(Some(name), Of::<Self, X, Y>::new(self)),
            xs.symbols(),
        )?)
    }
}

impl<L: Trackable + 'static> LayerExt for L {}

fn one(mut results: Vec<SymbolicTensor>) -> Result<SymbolicTensor> {
    results.pop().ok_or_else(|| Error::Shape("the layer has no result.".into()))
}

fn several<Y: Results>(results: Vec<SymbolicTensor>) -> Result<Y::Symbols> {
    let count = results.len();
    Y::from_list(results).ok_or_else(|| Error::Shape(message!("the layer has {count} results.")))
}

/// Creates the weights of `layer` for inputs such as `x`.
pub(crate) fn build(layer: &dyn Layer, x: &SymbolicTensor) -> Result<()> {
    probe::results(&Borrowed(layer), std::slice::from_ref(x), None).map(drop)
}

/// A layer that is called once.
struct Borrowed<'a>(&'a dyn Layer);

impl Callable for Borrowed<'_> {
    fn call(
        &self,
        inputs: &[Tensor],
        _: &[Option<Tensor>],
        cx: Context<'_>,
    ) -> Result<Vec<Masked>> {
        Tensor::with(inputs, |x| Ok(vec![(self.0.call(x, cx)?, None)]))
    }

    fn part(&self) -> &dyn Trackable {
        &self.0
    }

    #[cfg(feature = "json")]
    fn called(&self) -> Result<super::operation::Called> {
        self.0.get_config().map(super::operation::Called::Layer)
    }
}

/// A layer created from a config, as an operation called `name`.
#[cfg(feature = "json")]
pub(crate) fn operation_of(name: &str, layer: crate::keras::layers::AnyLayer) -> Arc<Operation> {
    use crate::keras::layers::AnyLayer;
    match layer {
        AnyLayer::One(layer) => {
            Arc::new(Operation::new(Some(name), Of::<_, Tensor, Tensor>::new(layer)))
        }
        AnyLayer::Many(layer) => {
            Arc::new(Operation::new(Some(name), Of::<_, [Tensor], Tensor>::new(layer)))
        }
        AnyLayer::Recurrent(layer) => {
            Arc::new(Operation::new(Some(name), super::keywords::RecurrentCall { layer }))
        }
        AnyLayer::Attention(layer) => {
            Arc::new(Operation::new(Some(name), Of::<_, [Tensor], Tensor>::new(layer)))
        }
    }
}

/// Calls an operation on symbols.
pub(super) fn connect<C: Callable + 'static>(
    operation: Operation<C>,
    inputs: Vec<SymbolicTensor>,
) -> Result<Vec<SymbolicTensor>> {
    connect_shared(Arc::new(operation), inputs, None)
}

/// Same as [`connect`], for an operation that may be shared.
pub(crate) fn connect_shared(
    operation: Arc<Operation>,
    inputs: Vec<SymbolicTensor>,
    mask: Option<SymbolicTensor>,
) -> Result<Vec<SymbolicTensor>> {
    let (Name::Given(name) | Name::Base(name)) = &operation.name;
    if inputs.is_empty() {
        return Err(Error::Shape(message!(
            "layer '{name}': it was called on no symbols; it needs at least one."
        )));
    }
    let outputs = in_layer(name, probe::results(&operation.callable, &inputs, mask.as_ref()))?;
    let specs = outputs.clone();
    let node = Node::new(Origin::Call { operation, inputs, mask, outputs });
    let symbol = |(output, spec)| SymbolicTensor::new(node.clone(), output, spec);
    Ok(specs.into_iter().enumerate().map(symbol).collect())
}

/// A [`Layer`] of any input and output types.
pub(crate) struct Of<L, X: ?Sized, Y> {
    layer: L,
    types: PhantomData<fn(&X) -> Y>,
}

impl<L, X: ?Sized, Y> Of<L, X, Y> {
    pub(crate) fn new(layer: L) -> Self {
        Of { layer, types: PhantomData }
    }
}

impl<L: Layer<X, Y>, X: Inputs + ?Sized, Y: Results> Callable for Of<L, X, Y> {
    fn call(
        &self,
        inputs: &[Tensor],
        masks: &[Option<Tensor>],
        cx: Context<'_>,
    ) -> Result<Vec<Masked>> {
        let mask = common_mask(masks)?;
        let (y, mask) = X::with(inputs, |x| {
            let cx = cx.with_mask(mask.as_ref());
            self.layer.call_with_mask(x, if X::SEVERAL { cx.with_masks(masks) } else { cx })
        })?;
        // The mask belongs to the first result; states have none.
        let mut masks = vec![mask].into_iter();
        Ok(y.into_list().into_iter().map(|y| (y, masks.next().flatten())).collect())
    }

    fn part(&self) -> &dyn Trackable {
        &self.layer
    }

    #[cfg(feature = "json")]
    fn called(&self) -> Result<super::operation::Called> {
        let config = self.layer.get_config()?;
        let form = super::keywords::call_form(&self.layer);
        Ok(super::operation::Called::Layer(super::keywords::in_a_call(config, form, X::SEVERAL)))
    }

    #[cfg(feature = "json")]
    fn takes_list(&self) -> bool {
        X::SEVERAL && !super::keywords::takes_arguments(super::keywords::call_form(&self.layer))
    }

    #[cfg(feature = "json")]
    fn arguments(&self, tensors: Vec<Value>) -> Result<(Value, Map<String, Value>)> {
        super::keywords::written(
            super::keywords::call_form(&self.layer),
            X::SEVERAL,
            tensors,
            &|| self.layer.get_config(),
        )
    }
}

/// The conjunction of the masks of the inputs that have one.
fn common_mask(masks: &[Option<Tensor>]) -> Result<Option<Tensor>> {
    let mut known = masks.iter().flatten();
    let Some(first) = known.next() else { return Ok(None) };
    known
        .filter(|mask| mask.shape() == first.shape())
        .try_fold(Some(first.clone()), |all, mask| all.map(|all| all.logical_and(mask)).transpose())
}
