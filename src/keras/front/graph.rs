//! [`Front`]: the layers on the host in front of a model, in the order in which they are computed.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::HostInputs;
use super::symbol::{FrontInput, FrontLayer, HostSymbol, Origin};
use crate::error::{Error, Result, message};
use crate::host_array::HostArray;
#[cfg(all(feature = "json", feature = "saved-model"))]
use crate::keras::layers::Table;

/// The values are numbered: the inputs first, then the result of each call.
#[derive(Debug, Clone, Default)]
pub(super) struct Front {
    pub(super) inputs: Vec<FrontInput>,
    pub(super) calls: Vec<Call>,
    /// The value that each input of the model gets.
    pub(super) feeds: Vec<usize>,
}

/// A [`Front`] for writers of other formats, which know its layers by their configs.
#[cfg(all(feature = "json", feature = "saved-model"))]
#[derive(Debug)]
pub(crate) struct HostGraph {
    pub(crate) inputs: Vec<FrontInput>,
    pub(crate) calls: Vec<HostCall>,
    /// The value that each input of the model gets.
    pub(crate) feeds: Vec<usize>,
}

/// A call of a layer of a [`HostGraph`].
#[cfg(all(feature = "json", feature = "saved-model"))]
#[derive(Debug)]
pub(crate) struct HostCall {
    pub(crate) config: crate::keras::Config,
    /// The words by index, special ones included.
    pub(crate) vocabulary: Option<HostArray<'static>>,
    /// The values that the layer takes.
    pub(crate) from: Vec<usize>,
}

/// A call of a layer.
#[derive(Debug, Clone)]
pub(super) struct Call {
    pub(super) layer: FrontLayer,
    /// The layer's name in a file, if it has one.
    #[cfg_attr(not(feature = "json"), allow(dead_code))]
    pub(super) name: Option<String>,
    /// The values that the layer takes.
    pub(super) from: Vec<usize>,
}

impl Front {
    /// # Errors
    /// Those of the layers whose options contradict each other, found with a batch of no examples.
    #[cfg(all(feature = "json", feature = "saved-model"))]
    pub(super) fn host_graph(&self) -> Result<HostGraph> {
        let empty = self.inputs.iter().map(|input| input.empty());
        let empty = empty.collect::<Result<Vec<_>>>()?;
        let named = self.inputs.iter().zip(&empty);
        self.run(
            &named.fold(Table::new(), |table, (input, array)| table.column(&input.name, array)),
        )?;
        let call = |call: &Call| {
            let (config, vocabulary) = match &call.layer {
                FrontLayer::One(layer) => (layer.describe()?, layer.vocabulary_array()?),
                FrontLayer::Crossing(layer) => (layer.describe()?, None),
            };
            Ok(HostCall { config, vocabulary, from: call.from.clone() })
        };
        Ok(HostGraph {
            inputs: self.inputs.clone(),
            calls: self.calls.iter().map(call).collect::<Result<_>>()?,
            feeds: self.feeds.clone(),
        })
    }

    /// The front of a stack of layers.
    pub(super) fn of_stack() -> Self {
        let shape = vec![None, Some(1)];
        let input = FrontInput { name: "input_layer".into(), shape, dtype: "string".into() };
        Front { inputs: vec![input], calls: Vec::new(), feeds: vec![0] }
    }

    /// Adds a layer behind those of a stack.
    pub(super) fn push(&mut self, layer: FrontLayer, name: Option<String>) {
        let last = self.inputs.len() + self.calls.len() - 1;
        self.calls.push(Call { layer, name, from: vec![last] });
        self.feeds = vec![last + 1];
    }

    /// The front of a model with these inputs; `fed` has symbols for some of them.
    pub(super) fn new(inputs: Vec<FrontInput>, fed: &[(&str, &HostSymbol)]) -> Result<Self> {
        let wrong = |what: String| Error::Data(message!("FrontModel: functional: {what}"));
        let names = || inputs.iter().map(|input| &*input.name).collect::<Vec<_>>().join(", ");
        let mut symbols: HashMap<&str, &HostSymbol> = HashMap::new();
        for (name, symbol) in fed {
            if !inputs.iter().any(|input| input.name == *name) {
                return Err(wrong(format!("the model has no input '{name}'; it has {}.", names())));
            }
            if symbols.insert(name, symbol).is_some() {
                return Err(wrong(format!("the input '{name}' is fed twice.")));
            }
        }
        // The inputs of the whole, in the order in which the model's inputs need them.
        let mut front = Front::default();
        let mut places: HashMap<u64, usize> = HashMap::new();
        let mut own = Vec::new();
        for input in &inputs {
            match symbols.get(&*input.name) {
                None => {
                    own.push(Some(front.inputs.len()));
                    front.inputs.push(input.clone());
                }
                Some(symbol) => {
                    own.push(None);
                    for node in &symbol.nodes {
                        let Origin::Input(input) = &node.origin else { continue };
                        if let Entry::Vacant(place) = places.entry(node.id) {
                            place.insert(front.inputs.len());
                            front.inputs.push(input.clone());
                        }
                    }
                }
            }
        }
        let mut known = std::collections::HashSet::new();
        if let Some(twice) = front.inputs.iter().find(|input| !known.insert(&*input.name)) {
            return Err(wrong(format!("two inputs are called '{}'.", twice.name)));
        }
        for (input, own) in inputs.iter().zip(own) {
            if let Some(place) = own {
                front.feeds.push(place);
                continue;
            }
            let nodes = symbols.get(&*input.name).map_or(&[][..], |symbol| &symbol.nodes);
            for node in nodes {
                let Origin::Call { layer, from } = &node.origin else { continue };
                if places.contains_key(&node.id) {
                    continue;
                }
                let from = from.iter().filter_map(|id| places.get(id).copied()).collect();
                places.insert(node.id, front.inputs.len() + front.calls.len());
                front.calls.push(Call { layer: layer.clone(), name: None, from });
            }
            let value = nodes.last().and_then(|node| places.get(&node.id));
            front.feeds.push(value.copied().unwrap_or_default());
        }
        Ok(front)
    }

    /// Whether the values are indices; for those of inputs, their dtype decides.
    pub(super) fn are_indices(&self, value: usize) -> Result<bool> {
        let Some(at) = value.checked_sub(self.inputs.len()) else {
            return Ok(!self.inputs.get(value).is_some_and(|input| input.dtype.contains("float")));
        };
        match self.calls.get(at).map(|call| &call.layer) {
            Some(FrontLayer::One(layer)) => Ok(layer.cardinality()?.is_some()),
            Some(FrontLayer::Crossing(layer)) => Ok(layer.makes_indices()),
            None => Ok(true),
        }
    }

    /// The arrays that the model's inputs get.
    pub(super) fn run<X: HostInputs + ?Sized>(&self, x: &X) -> Result<Vec<HostArray<'static>>> {
        let names: Vec<&str> = self.inputs.iter().map(|input| &*input.name).collect();
        let arrays = x.host_arrays(&names)?;
        let mut values: Vec<HostArray<'_>> = Vec::with_capacity(arrays.len() + self.calls.len());
        let mut rows = None;
        for (array, input) in arrays.into_iter().zip(&self.inputs) {
            if input.dtype == "string" && array.strings().is_none() {
                return Err(Error::DType(message!(
                    "FrontModel: the input '{}' is {:?} of {}; it must be strings. Pass strings, or use layers for numbers.",
                    input.name,
                    array.shape(),
                    array.dtype()
                )));
            }
            // As in Keras: one value for each example may be without its axis.
            let array = match array.shape() {
                &[rows] if input.shape.len() == 2 && input.shape[1] == Some(1) => {
                    array.with_shape([rows, 1])
                }
                _ => array,
            };
            let count = array.shape().first().copied();
            match rows {
                Some((known, name)) if Some(known) != count => {
                    return Err(Error::Shape(message!(
                        "FrontModel: the input '{name}' has {known} examples, and '{}' is {:?}. All inputs must have the same number.",
                        input.name,
                        array.shape()
                    )));
                }
                None => rows = count.map(|count| (count, &input.name)),
                _ => {}
            }
            values.push(array);
        }
        for call in &self.calls {
            let made = match (&call.layer, &call.from[..]) {
                (FrontLayer::One(layer), [from, ..]) => layer.call_host(&values[*from])?,
                (FrontLayer::One(layer), []) => {
                    return Err(Error::Data(message!("{}: it has no input.", layer.kind())));
                }
                (FrontLayer::Crossing(layer), from) => {
                    let inputs: Vec<HostArray<'_>> =
                        from.iter().map(|from| values[*from].view()).collect();
                    layer.call_host(&inputs)?
                }
            };
            values.push(made);
        }
        // The last use of a value moves it.
        let mut uses = vec![0_usize; values.len()];
        self.feeds.iter().for_each(|feed| uses[*feed] += 1);
        let mut left: Vec<Option<HostArray<'_>>> = values.into_iter().map(Some).collect();
        let mut made = Vec::with_capacity(self.feeds.len());
        for feed in &self.feeds {
            uses[*feed] -= 1;
            let value = match uses[*feed] {
                0 => left[*feed].take().map(HostArray::into_owned),
                _ => left[*feed].as_ref().map(|value| value.view().into_owned()),
            };
            made.extend(value);
        }
        Ok(made)
    }
}
