//! [`Functional`]: a model of the layers between symbols, which can branch, merge and be shared.
//!
//! `symbol` defines the symbols, `calls` calls layers on them, `probe` finds the shapes, `network` orders the layers between
//! inputs and outputs and runs them. Layers do not depend on any of this.

mod arithmetic;
mod calls;
#[cfg(feature = "json")]
mod config;
mod input;
#[cfg(feature = "json")]
mod keywords;
mod network;
mod operation;
#[cfg(feature = "json")]
mod operators;
mod probe;
mod symbol;
mod symbols;

use std::sync::Arc;

pub use arithmetic::SymbolicOperand;
pub use calls::LayerExt;
pub use input::Input;
pub use symbol::{PartialShape, SymbolicTensor};
pub use symbols::{Results, Symbols};

use super::dtype_policy::bytes_as_floats;
use super::layers::Layer;
use super::{Context, Model, Trainer};
use crate::dtype::DType;
use crate::error::{Error, Result, message};
use crate::tensor::Tensor;
use crate::trackable::{Class, Described, Origin, Parts, Role, Trackable, shape_text};
pub(crate) use calls::build;
#[cfg(feature = "json")]
pub(crate) use calls::{Of, connect_shared, operation_of};
#[cfg(feature = "json")]
pub(crate) use keywords::{AttentionCall, MASKS, QUERIES};
#[cfg(feature = "json")]
pub(crate) use operation::Operation;
#[cfg(feature = "json")]
pub(crate) use operators::{Argument, Constant, dtype_named, keras_op};

use network::{Link, Network, NetworkLayer};
#[cfg(not(feature = "json"))]
use operation::Operation;
use operation::{Callable, Masked};

/// A model of the layers between symbols: any number of inputs and outputs, shared layers, models inside models.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::{self as tf, Tensor, Trackable};
/// use tf::keras::{Activation, Functional, INFERENCE, Input, Layer, LayerExt, layers::Dense};
/// let x = Input::new([16]);
/// let hidden = Dense::new(16).activation(Activation::Relu).on(&x)?;
/// let skip = hidden.add(&x)?;
/// let model = Functional::new(&x, Dense::new(2).on(&skip)?)?;
/// assert_eq!(model.call(&Tensor::ones([5, 16])?, INFERENCE)?.shape(), [5, 2]);
/// assert_eq!(model.named_variables()[0].0, "dense/kernel");
///
/// // The layers up to `hidden`, with the same weights.
/// let features = Functional::new(&x, &hidden)?;
/// assert_eq!(features.call(&Tensor::ones([5, 16])?, INFERENCE)?.shape(), [5, 16]);
/// # Ok(())
/// # }
/// ```
///
/// Layers have Keras's names, `dense`, `dense_1`, numbered within the model in the order of their first calls, or the names set
/// by [`LayerExt::on_named`]. Weights are created by the calls on symbols. A clone is another handle to the same model.
#[derive(Clone)]
pub struct Functional {
    name: String,
    network: Arc<Network>,
    trainer: Arc<Trainer>,
}

impl std::fmt::Debug for Functional {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Functional")
            .field("name", &self.name)
            .field("inputs", &self.network.inputs)
            .field("outputs", &self.network.outputs)
            .finish_non_exhaustive()
    }
}

impl Functional {
    /// Creates a model of the layers between `inputs` and `outputs`. Each of these is an [`Input`], a symbol in the middle of
    /// another model, or several of them, as in `Functional::new([&a, &b], &y)`. As in Keras, an input that no output depends
    /// on is allowed: calls must pass it, and it is ignored.
    ///
    /// # Errors
    /// [`Error::Shape`] if an output depends on another input; [`Error::Data`] if two layers have the same name.
    pub fn new(inputs: impl Symbols, outputs: impl Symbols) -> Result<Self> {
        let network = Network::new(inputs.symbols(), outputs.symbols())?;
        let (network, trainer) = (Arc::new(network), Arc::default());
        Ok(Functional { name: "functional".to_string(), network, trainer })
    }

    /// Sets the name that [`summary`](Trackable::summary) and diagrams show. Default: `functional`.
    pub fn with_name(mut self, name: &str) -> Self {
        self.name = name.to_string();
        self
    }

    /// Returns the model's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the symbols of the inputs.
    pub fn inputs(&self) -> &[SymbolicTensor] {
        &self.network.inputs
    }

    /// Returns the symbols of the outputs.
    pub fn outputs(&self) -> &[SymbolicTensor] {
        &self.network.outputs
    }

    /// Returns the names of the layers that produce the outputs.
    pub fn output_names(&self) -> Vec<&str> {
        self.named(&self.network.output_links)
    }

    /// Returns the names of the inputs.
    pub fn input_names(&self) -> Vec<&str> {
        self.named(&self.network.input_links)
    }

    fn named(&self, links: &[Link]) -> Vec<&str> {
        links.iter().map(|link| &*self.network.layers[link.layer].name).collect()
    }

    /// Returns the layers with their names, in Keras's order: the farther from the outputs, the earlier. Inputs are not
    /// included.
    pub fn layers(&self) -> impl Iterator<Item = (&str, &dyn Trackable)> {
        self.network.layers.iter().filter_map(|layer| {
            let operation = layer.operation.as_ref()?;
            Some((&*layer.name, operation.callable.part()))
        })
    }

    /// Returns the layer called `name`, for instance to freeze it or to read its weights.
    ///
    /// # Errors
    /// [`Error::Data`] if there is none.
    pub fn get_layer(&self, name: &str) -> Result<&dyn Trackable> {
        self.layers()
            .find(|(known, _)| *known == name)
            .map(|(_, part)| part)
            .ok_or_else(|| self.unknown(name))
    }

    /// Returns the results of the first call of the layer called `name`. They can be the outputs of another model.
    ///
    /// # Errors
    /// [`Error::Data`] if there is none.
    pub fn layer_outputs(&self, name: &str) -> Result<&[SymbolicTensor]> {
        let layer = self.network.layers.iter().find(|layer| layer.name == name);
        let call = layer.and_then(|layer| layer.calls.first());
        call.map(|call| &call.outputs[..]).ok_or_else(|| self.unknown(name))
    }

    fn unknown(&self, name: &str) -> Error {
        let names: Vec<&str> = self.network.layers.iter().map(|layer| &*layer.name).collect();
        Error::Data(message!(
            "Functional: the model has no layer called '{name}'. Its layers are {}.",
            names.join(", ")
        ))
    }

    /// Calls the model on the symbols `xs`, as a part of another model that shares the layers, and returns the symbols of its
    /// results.
    ///
    /// # Errors
    /// [`Error::Shape`] or [`Error::DType`] if they do not fit the inputs.
    pub fn on_all(self, xs: impl Symbols) -> Result<Vec<SymbolicTensor>> {
        calls::connect(Operation::new(None, Nested(self)), xs.symbols())
    }

    /// Same as [`Functional::on_all`], with a name, which no other layer of the outer model may have.
    ///
    /// # Errors
    /// Same as [`Functional::on_all`].
    pub fn on_all_named(self, name: &str, xs: impl Symbols) -> Result<Vec<SymbolicTensor>> {
        calls::connect(Operation::new(Some(name), Nested(self)), xs.symbols())
    }

    /// The model as a layer of another one, called `name`.
    #[cfg(feature = "json")]
    pub(crate) fn into_operation(self, name: &str) -> Arc<Operation> {
        Arc::new(Operation::new(Some(name), Nested(self)))
    }

    fn run(
        &self,
        inputs: &[Tensor],
        masks: &[Option<Tensor>],
        cx: Context<'_>,
    ) -> Result<Vec<Masked>> {
        let bytes =
            |(at, x): (usize, &Tensor)| match self.inputs().get(at).map(SymbolicTensor::dtype) {
                Some(DType::F32) => bytes_as_floats(x),
                _ => Ok(x.clone()),
            };
        let inputs: Vec<Tensor> = inputs.iter().enumerate().map(bytes).collect::<Result<_>>()?;
        self.check(&inputs)?;
        self.network.run(&inputs, masks, cx)
    }

    /// Checks that `inputs` fit the symbols.
    fn check(&self, inputs: &[Tensor]) -> Result<()> {
        let wanted = self.inputs();
        if inputs.len() != wanted.len() {
            return Err(Error::Shape(message!(
                "Functional: the model has {} and was called with {}. Its inputs are {}.",
                counted(wanted.len(), "input"),
                counted(inputs.len(), "tensor"),
                self.input_names().join(", ")
            )));
        }
        for (at, (x, symbol)) in inputs.iter().zip(wanted).enumerate() {
            let name = || self.input_names().get(at).copied().unwrap_or("?").to_string();
            let fits =
                |(size, want): (&usize, &Option<usize>)| want.is_none_or(|want| want == *size);
            if x.rank() != symbol.rank() || !x.shape().iter().zip(symbol.shape()).all(fits) {
                return Err(Error::Shape(message!(
                    "Functional: the input '{}' is {:?}; it must be {}, where None is any size.{}",
                    name(),
                    x.shape(),
                    shape_text(symbol.shape()),
                    match x.rank() + 1 == symbol.rank() {
                        true => " For a batch of one example use expand_dims(0).",
                        false => "",
                    }
                )));
            }
            if x.dtype() != symbol.dtype() {
                return Err(Error::DType(message!(
                    "Functional: the input '{}' is {}; it must be {}. Cast it.",
                    name(),
                    x.dtype(),
                    symbol.dtype()
                )));
            }
        }
        Ok(())
    }

    fn described(&self, layer: &NetworkLayer) -> Described {
        let shapes = |links: &[Link]| {
            let shape = |link: &Link| {
                let call = &self.network.layers[link.layer].calls[link.call];
                call.outputs.get(link.output).map_or(Vec::new(), |y| y.shape().to_vec())
            };
            links.iter().map(shape).collect()
        };
        let from = |link: &Link| Origin {
            name: self.network.layers[link.layer].name.clone(),
            call: link.call,
            output: link.output,
        };
        let calls = &layer.calls;
        let last = calls.last();
        Described {
            inputs: calls.first().map_or(Vec::new(), |call| shapes(&call.inputs)),
            outputs: last.map_or(Vec::new(), |call| {
                call.outputs.iter().map(|y| y.shape().to_vec()).collect()
            }),
            from: calls
                .iter()
                .flat_map(|call| call.inputs.iter().chain(&call.mask))
                .map(from)
                .collect(),
            number: None,
        }
    }
}

/// `1 input`, `2 inputs`.
fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// An input of a model in its summary.
struct InputLayer;

impl Trackable for InputLayer {
    fn track(&self, _parts: &mut Parts<'_>) {}

    fn kind(&self) -> &'static str {
        "InputLayer"
    }

    fn class(&self) -> Option<&'static Class> {
        static CLASS: Class = Class::new("InputLayer").role(Role::Input);
        Some(&CLASS)
    }
}

impl Trackable for Functional {
    fn track(&self, parts: &mut Parts<'_>) {
        let numbers = std::cell::OnceCell::new();
        for (at, layer) in self.network.layers.iter().enumerate() {
            let part: &dyn Trackable = match &layer.operation {
                Some(operation) => operation.callable.part(),
                None => &InputLayer,
            };
            parts.add_described(&layer.name, part, &|| Described {
                number: numbers.get_or_init(|| self.network.keras_numbers()).get(at).copied(),
                ..self.described(layer)
            });
        }
    }

    fn title(&self) -> String {
        self.name.clone()
    }

    fn identity(&self) -> (usize, usize) {
        (Arc::as_ptr(&self.network).addr(), size_of::<Network>())
    }

    fn class(&self) -> Option<&'static Class> {
        static CLASS: Class = Class::new("Functional").role(Role::Functional);
        Some(&CLASS)
    }
}

impl Layer for Functional {
    #[cfg(feature = "json")]
    fn get_config(&self) -> Result<super::Config> {
        config::config(self)
    }

    fn call(&self, x: &Tensor, cx: Context<'_>) -> Result<Tensor> {
        self.call_with_mask(x, cx).map(|(y, _)| y)
    }

    fn compute_mask(&self, x: &Tensor, mask: Option<&Tensor>) -> Result<Option<Tensor>> {
        self.call_with_mask(x, super::INFERENCE.with_mask(mask)).map(|(_, mask)| mask)
    }

    fn call_with_mask(&self, x: &Tensor, cx: Context<'_>) -> Result<(Tensor, Option<Tensor>)> {
        let mut results = self.run(std::slice::from_ref(x), &[cx.mask().cloned()], cx)?;
        match (results.pop(), results.len()) {
            (Some(result), 0) => Ok(result),
            (_, others) => Err(Error::Shape(message!(
                "Functional: the model has {} outputs, and one tensor was requested. Call it with a list, \
                 model.call(&[x], cx), which returns a list.",
                others + 1
            ))),
        }
    }
}

impl Layer<[Tensor], Vec<Tensor>> for Functional {
    #[cfg(feature = "json")]
    fn get_config(&self) -> Result<super::Config> {
        config::config(self)
    }

    fn call(&self, xs: &[Tensor], cx: Context<'_>) -> Result<Vec<Tensor>> {
        let masks = vec![cx.mask().cloned(); usize::from(xs.len() == 1)];
        Ok(self.run(xs, &masks, cx)?.into_iter().map(|(y, _)| y).collect())
    }
}

impl<const N: usize> Layer<[Tensor; N], Vec<Tensor>> for Functional {
    #[cfg(feature = "json")]
    fn get_config(&self) -> Result<super::Config> {
        config::config(self)
    }

    fn call(&self, xs: &[Tensor; N], cx: Context<'_>) -> Result<Vec<Tensor>> {
        Layer::<[Tensor], Vec<Tensor>>::call(self, &xs[..], cx)
    }
}

/// The model accepts and returns lists of any length: `model.fit(([a, b], y), ..)`.
impl Model<[Tensor], Vec<Tensor>> for Functional {
    fn trainer(&self) -> &Trainer {
        &self.trainer
    }

    fn output_names(&self) -> Vec<String> {
        Functional::output_names(self).into_iter().map(String::from).collect()
    }

    fn call_all(
        &self,
        inputs: &[Tensor],
        cx: Context<'_>,
    ) -> Result<(Vec<Tensor>, Option<Tensor>)> {
        let (tensors, mut masks): (Vec<_>, Vec<_>) = self.run(inputs, &[], cx)?.into_iter().unzip();
        let mask = if masks.len() == 1 { masks.pop().flatten() } else { None };
        Ok((tensors, mask))
    }
}

/// A model as a layer of another one, in which each input and output has its own mask.
struct Nested(Functional);

impl Callable for Nested {
    fn call(
        &self,
        inputs: &[Tensor],
        masks: &[Option<Tensor>],
        cx: Context<'_>,
    ) -> Result<Vec<Masked>> {
        self.0.run(inputs, masks, cx)
    }

    fn part(&self) -> &dyn Trackable {
        &self.0
    }

    #[cfg(feature = "json")]
    fn called(&self) -> Result<operation::Called> {
        config::config(&self.0).map(operation::Called::Layer)
    }

    #[cfg(feature = "json")]
    fn takes_list(&self) -> bool {
        self.0.inputs().len() > 1
    }
}
