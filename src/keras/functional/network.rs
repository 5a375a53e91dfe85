//! [`Network`]: the layers between symbols, in the order in which they run.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::operation::{Masked, Name, Operation};
use super::symbol::{Node, Origin, SymbolicTensor};
use crate::error::{Error, Result, message};
use crate::keras::Context;
use crate::keras::layers::in_layer;
use crate::tensor::Tensor;
use crate::trackable::Class;

/// The layers between inputs and outputs.
pub(crate) struct Network {
    /// In Keras's order: the farther from the outputs, the earlier.
    pub(crate) layers: Vec<NetworkLayer>,
    steps: Vec<Step>,
    pub(crate) inputs: Vec<SymbolicTensor>,
    pub(crate) outputs: Vec<SymbolicTensor>,
    /// The position of each input among the layers, and the result that each output is.
    pub(crate) input_links: Vec<Link>,
    pub(crate) output_links: Vec<Link>,
    /// The indices of the outputs' values.
    results: Vec<usize>,
    /// The number of values that a run produces.
    values: usize,
}

/// A layer or an input, and its calls in program order.
pub(crate) struct NetworkLayer {
    pub(crate) name: String,
    /// None for an input.
    pub(crate) operation: Option<Arc<Operation>>,
    /// For an input, its index among the inputs.
    pub(crate) input: Option<usize>,
    pub(crate) calls: Vec<Call>,
}

/// A call of a layer.
#[derive(Default)]
pub(crate) struct Call {
    /// The operation of this call; none for an input.
    pub(crate) operation: Option<Arc<Operation>>,
    pub(crate) inputs: Vec<Link>,
    /// The mask passed to the call, if it is not the mask of the inputs.
    pub(crate) mask: Option<Link>,
    pub(crate) outputs: Vec<SymbolicTensor>,
}

/// A result of a call of a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Link {
    pub(crate) layer: usize,
    pub(crate) call: usize,
    pub(crate) output: usize,
}

/// A call in the order of execution.
struct Step {
    operation: Arc<Operation>,
    layer: usize,
    /// Which call of the layer.
    call: usize,
    inputs: Vec<usize>,
    mask: Option<usize>,
    /// The index of the first result; the others follow.
    first: usize,
    count: usize,
    /// The values that are not needed after this step.
    last: Vec<usize>,
}

/// An input of the model, or a call.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Item {
    Input(usize),
    Call(u64),
}

/// Items of one layer have one key.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum LayerKey {
    Input(usize),
    Layer((usize, usize)),
}

/// A walk from the outputs back to the inputs.
struct BackwardWalk<'a> {
    inputs: HashMap<(u64, usize), usize>,
    nodes: HashMap<u64, &'a Arc<Node>>,
    /// The items, each after those that it needs.
    order: Vec<Item>,
    /// The order in which the walk visited the layers; no number for an input that it did not visit.
    met: HashMap<LayerKey, Option<usize>>,
}

impl<'a> BackwardWalk<'a> {
    fn item(&self, symbol: &SymbolicTensor) -> Item {
        match self.inputs.get(&symbol.key()) {
            Some(&at) => Item::Input(at),
            None => Item::Call(symbol.0.node.id),
        }
    }

    fn layer(&self, item: Item) -> LayerKey {
        match item {
            Item::Input(at) => LayerKey::Input(at),
            Item::Call(id) => match self.nodes.get(&id).map(|node| &node.origin) {
                Some(Origin::Call { operation, .. }) => LayerKey::Layer(operation.identity()),
                _ => LayerKey::Layer((0, 0)),
            },
        }
    }

    fn needs(&self, item: Item) -> Vec<&'a SymbolicTensor> {
        match item {
            Item::Input(_) => Vec::new(),
            Item::Call(id) => {
                self.nodes.get(&id).map_or(Vec::new(), |node| node.inputs().collect())
            }
        }
    }

    fn back_from(inputs: &[SymbolicTensor], outputs: &'a [SymbolicTensor]) -> Result<Self> {
        let count = inputs.len();
        let inputs: HashMap<_, _> = inputs.iter().enumerate().map(|(i, x)| (x.key(), i)).collect();
        let mut walk =
            BackwardWalk { inputs, nodes: HashMap::new(), order: Vec::new(), met: HashMap::new() };
        let mut done: HashSet<Item> = HashSet::new();
        for (place, output) in outputs.iter().enumerate() {
            // Each item is popped twice: the second time, the items that it needs are in `order`.
            let mut open: Vec<(&SymbolicTensor, bool)> = vec![(output, false)];
            while let Some((symbol, ready)) = open.pop() {
                let item = walk.item(symbol);
                if ready {
                    walk.order.push(item);
                    continue;
                }
                if !done.insert(item) {
                    continue;
                }
                if let Item::Call(id) = item {
                    if let Origin::Input { name, .. } = &symbol.0.node.origin {
                        return Err(disconnected(place, name.as_deref(), symbol));
                    }
                    walk.nodes.insert(id, &symbol.0.node);
                }
                let (key, count) = (walk.layer(item), walk.met.len());
                walk.met.entry(key).or_insert(Some(count));
                open.push((symbol, true));
                open.extend(walk.needs(item).into_iter().rev().map(|input| (input, false)));
            }
        }
        // As in Keras, a model may have inputs that no output depends on. They precede the layers that end the model.
        for input in (0..count).map(Item::Input).filter(|input| !done.contains(input)) {
            walk.met.insert(walk.layer(input), None);
            walk.order.push(input);
        }
        Ok(walk)
    }

    /// The distance of each layer from the outputs. For a layer that is called several times, the farthest call counts.
    fn depths(&self) -> HashMap<LayerKey, usize> {
        let (mut items, mut layers) = (HashMap::new(), HashMap::new());
        for &item in self.order.iter().rev() {
            let layer = layers.entry(self.layer(item)).or_insert(0);
            let depth = (*layer).max(items.get(&item).copied().unwrap_or(0));
            *layer = depth;
            for input in self.needs(item) {
                let known = items.entry(self.item(input)).or_insert(0);
                *known = (*known).max(depth + 1);
            }
        }
        layers
    }
}

fn disconnected(place: usize, name: Option<&str>, input: &SymbolicTensor) -> Error {
    let what = match name {
        Some(name) => format!("the input '{name}'"),
        None => format!("an input {input} without a name"),
    };
    Error::Shape(message!(
        "Functional: output {place} depends on {what}, which is not among the model's inputs. Add it to the inputs."
    ))
}

impl Network {
    pub(super) fn new(inputs: Vec<SymbolicTensor>, outputs: Vec<SymbolicTensor>) -> Result<Self> {
        check_ends(&inputs, &outputs)?;
        let walk = BackwardWalk::back_from(&inputs, &outputs)?;
        let depths = walk.depths();
        let mut keys: Vec<(LayerKey, Option<usize>)> =
            walk.met.iter().map(|(key, met)| (*key, *met)).collect();
        keys.sort_by_key(|(key, met)| {
            let input = if let LayerKey::Input(at) = key { Some(*at) } else { None };
            (std::cmp::Reverse(depths.get(key).copied()), *met, input)
        });
        let places: HashMap<LayerKey, usize> =
            keys.iter().enumerate().map(|(place, (key, _))| (*key, place)).collect();

        let mut layers: Vec<NetworkLayer> = keys
            .iter()
            .map(|(key, _)| NetworkLayer {
                name: String::new(),
                operation: None,
                input: if let LayerKey::Input(at) = key { Some(*at) } else { None },
                calls: Vec::new(),
            })
            .collect();
        // A layer's calls are numbered in program order.
        let mut calls: Vec<(u64, usize)> = Vec::new();
        for &item in &walk.order {
            let layer = places[&walk.layer(item)];
            match item {
                Item::Input(at) => {
                    layers[layer]
                        .calls
                        .push(Call { outputs: vec![inputs[at].clone()], ..Call::default() });
                }
                Item::Call(id) => {
                    if let Origin::Call { operation, .. } = &walk.nodes[&id].origin {
                        let known = &mut layers[layer].operation;
                        // A shared layer has the name of its first handle.
                        if known.as_ref().is_none_or(|known| known.number > operation.number) {
                            *known = Some(operation.clone());
                        }
                    }
                    calls.push((id, layer));
                }
            }
        }
        calls.sort_unstable();
        let mut call_of: HashMap<u64, (usize, usize)> = HashMap::new();
        for &(id, layer) in &calls {
            let call = layers[layer].calls.len();
            layers[layer].calls.push(Call::default());
            call_of.insert(id, (layer, call));
        }
        let link = |symbol: &SymbolicTensor| match walk.item(symbol) {
            Item::Input(at) => Link { layer: places[&LayerKey::Input(at)], call: 0, output: 0 },
            Item::Call(id) => {
                let (layer, call) = call_of[&id];
                Link { layer, call, output: symbol.0.output }
            }
        };

        let mut value_of: HashMap<(Item, usize), usize> = HashMap::new();
        for at in 0..inputs.len() {
            value_of.insert((Item::Input(at), 0), at);
        }
        let value = |value_of: &HashMap<_, _>, symbol: &SymbolicTensor| -> usize {
            let item = walk.item(symbol);
            let output = if let Item::Input(_) = item { 0 } else { symbol.0.output };
            value_of[&(item, output)]
        };
        let mut values = inputs.len();
        let mut steps: Vec<Step> = Vec::new();
        for &item in &walk.order {
            let Item::Call(id) = item else { continue };
            let Origin::Call { operation, inputs, mask, outputs } = &walk.nodes[&id].origin else {
                continue;
            };
            let (layer, call) = call_of[&id];
            let known = &mut layers[layer].calls[call];
            known.operation = Some(operation.clone());
            known.inputs = inputs.iter().map(link).collect();
            known.mask = mask.as_ref().map(link);
            known.outputs = outputs
                .iter()
                .enumerate()
                .map(|(output, spec)| {
                    SymbolicTensor::new(walk.nodes[&id].clone(), output, spec.clone())
                })
                .collect();
            steps.push(Step {
                operation: operation.clone(),
                layer,
                call,
                inputs: inputs.iter().map(|x| value(&value_of, x)).collect(),
                mask: mask.as_ref().map(|x| value(&value_of, x)),
                first: values,
                count: outputs.len(),
                last: Vec::new(),
            });
            for output in 0..outputs.len() {
                value_of.insert((item, output), values);
                values += 1;
            }
        }
        let results: Vec<usize> = outputs.iter().map(|y| value(&value_of, y)).collect();
        note_last_uses(&mut steps, &results, values);
        let input_links = inputs.iter().map(link).collect();
        let output_links = outputs.iter().map(link).collect();
        drop(walk);
        let mut network =
            Network { layers, steps, inputs, outputs, input_links, output_links, results, values };
        network.name_layers()?;
        Ok(network)
    }

    /// Names the layers: by the program's names if it has set some, else by Keras's.
    fn name_layers(&mut self) -> Result<()> {
        // The number that orders the layers by age, whether the program has named the layer, and the name.
        let wanted = |layer: &NetworkLayer| -> (u64, bool, String) {
            match (&layer.operation, layer.input) {
                (Some(operation), _) => match &operation.name {
                    Name::Given(name) => (operation.number, true, name.clone()),
                    Name::Base(name) => (operation.number, false, name.clone()),
                },
                (None, at) => {
                    let node = &self.inputs[at.unwrap_or(0)].0.node;
                    match &node.origin {
                        Origin::Input { name: Some(name), .. } => (node.id, true, name.clone()),
                        _ => (node.id, false, "input_layer".to_string()),
                    }
                }
            }
        };
        let wanted: Vec<(u64, bool, String)> = self.layers.iter().map(wanted).collect();
        let mut taken: HashSet<String> = HashSet::new();
        for (_, _, name) in wanted.iter().filter(|(_, given, _)| *given) {
            if name.is_empty() || name.contains('/') {
                return Err(Error::Data(message!(
                    "Functional: a layer is called '{name}'; a name has at least one letter, and no '/', which separates \
                     names in paths."
                )));
            }
            if !taken.insert(name.clone()) {
                return Err(Error::Data(message!(
                    "Functional: two layers are called '{name}'. Give each layer a name of its own; to share one layer, \
                     put it into an Arc and call clones of that."
                )));
            }
        }
        let mut ages: Vec<usize> = (0..wanted.len()).collect();
        ages.sort_by_key(|&at| wanted[at].0);
        let mut counts: HashMap<&str, usize> = HashMap::new();
        for at in ages {
            let (_, given, name) = &wanted[at];
            if *given {
                self.layers[at].name = name.clone();
                continue;
            }
            let count = counts.entry(name).or_insert(0);
            self.layers[at].name = loop {
                let numbered = if *count == 0 { name.clone() } else { format!("{name}_{count}") };
                *count += 1;
                if taken.insert(numbered.clone()) {
                    break numbered;
                }
            };
        }
        Ok(())
    }

    /// Computes the results for `inputs`, and their masks.
    pub(super) fn run(
        &self,
        inputs: &[Tensor],
        masks: &[Option<Tensor>],
        cx: Context<'_>,
    ) -> Result<Vec<Masked>> {
        let mut values: Vec<Option<Masked>> = Vec::with_capacity(self.values);
        for (i, x) in inputs.iter().enumerate() {
            values.push(Some((x.clone(), masks.get(i).cloned().flatten())));
        }
        values.resize_with(self.values, || None);
        let lost = || {
            Error::Shape(
                "Functional: a layer returned fewer results than when it was added.".into(),
            )
        };
        for step in &self.steps {
            let (mut tensors, mut masks) = (Vec::new(), Vec::new());
            for &at in &step.inputs {
                let (x, mask) = values[at].as_ref().ok_or_else(lost)?;
                tensors.push(x.clone());
                masks.push(mask.clone());
            }
            if let Some(at) = step.mask {
                masks = vec![values[at].as_ref().map(|(mask, _)| mask.clone())];
            }
            for &at in &step.last {
                values[at] = None;
            }
            let results = step.operation.callable.call(&tensors, &masks, cx);
            let results = in_layer(&self.layers[step.layer].name, results)?;
            for (output, result) in results.into_iter().take(step.count).enumerate() {
                values[step.first + output] = Some(result);
            }
        }
        self.results.iter().map(|&at| values[at].clone().ok_or_else(lost)).collect()
    }

    /// Keras's number of each layer.
    pub(super) fn keras_numbers(&self) -> Vec<usize> {
        use crate::keras::operations::{LayerCall, keras_numbers};
        // Only checkpoints need them, and a web page without checkpoints has less code.
        if cfg!(not(feature = "checkpoint")) {
            return Vec::new();
        }
        let (mut calls, mut place) = (Vec::new(), HashMap::new());
        let ranks = |call: &Call| call.outputs.iter().map(SymbolicTensor::rank).collect();
        for (layer, known) in self.layers.iter().enumerate() {
            if let Some(call) = known.calls.first().filter(|_| known.input.is_some()) {
                place.insert((layer, 0), calls.len());
                calls.push(LayerCall { layer, ranks: ranks(call), ..LayerCall::default() });
            }
        }
        for step in &self.steps {
            let call = &self.layers[step.layer].calls[step.call];
            let callable = &step.operation.callable;
            let from = |link: &Link| (place[&(link.layer, link.call)], link.output);
            let call = LayerCall {
                layer: step.layer,
                class: callable.part().class().map(Class::name),
                makes_mask: callable.part().makes_mask(),
                inputs: call.inputs.iter().map(from).collect(),
                mask: call.mask.as_ref().map(from),
                ranks: ranks(call),
            };
            place.insert((step.layer, step.call), calls.len());
            calls.push(call);
        }
        let outputs = self.output_links.iter();
        let outputs: Vec<_> =
            outputs.map(|link| (place[&(link.layer, link.call)], link.output)).collect();
        keras_numbers(&calls, &outputs)
    }

    /// The symbol of a result.
    #[cfg(feature = "json")]
    pub(super) fn symbol(&self, link: &Link) -> &SymbolicTensor {
        &self.layers[link.layer].calls[link.call].outputs[link.output]
    }
}

fn check_ends(inputs: &[SymbolicTensor], outputs: &[SymbolicTensor]) -> Result<()> {
    if inputs.is_empty() || outputs.is_empty() {
        return Err(Error::Shape(message!(
            "Functional: the model has {} inputs and {} outputs; it needs at least one of each.",
            inputs.len(),
            outputs.len()
        )));
    }
    let mut seen = HashSet::new();
    match inputs.iter().position(|x| !seen.insert(x.key())) {
        None => Ok(()),
        Some(twice) => Err(Error::Shape(message!(
            "Functional: input {twice} ({}) is among the inputs twice. Name each input once.",
            inputs[twice]
        ))),
    }
}

/// Records for each step the values that no later step and no result needs.
fn note_last_uses(steps: &mut [Step], results: &[usize], values: usize) {
    let mut needed = vec![false; values];
    results.iter().for_each(|&at| needed[at] = true);
    for step in steps.iter_mut().rev() {
        for &at in step.inputs.iter().chain(&step.mask) {
            if !std::mem::replace(&mut needed[at], true) {
                step.last.push(at);
            }
        }
    }
}
