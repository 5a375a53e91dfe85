//! The numbers of a model's layers in Keras: their indices in `_operations`, which also contains the operations that compute
//! masks.
//!
//! A mask becomes an operation of a Keras model once a layer uses it: `Embedding(mask_zero=True)` before an `LSTM` adds a
//! `NotEqual`, and the layers after it have greater numbers. TensorFlow's checkpoints identify a layer only by its number.

use std::cmp::Reverse;
use std::collections::HashMap;

/// A result: the index of its call, and its index among the call's results.
pub(crate) type Output = (usize, usize);

/// A call of a layer, or an input of the model.
#[derive(Default)]
pub(crate) struct LayerCall {
    /// The index of the layer.
    pub(crate) layer: usize,
    /// Keras's class of the layer; `None` for an input, an operator, and a layer that Keras does not have.
    pub(crate) class: Option<&'static str>,
    /// Whether the layer creates a mask, if an option of its class decides that.
    pub(crate) makes_mask: bool,
    pub(crate) inputs: Vec<Output>,
    /// The mask that the program passes to the call.
    pub(crate) mask: Option<Output>,
    /// The ranks of the results, if they are known.
    pub(crate) ranks: Vec<usize>,
}

/// Keras's number of each layer, indexed by the layers' indices in `calls`. A call follows those whose results it uses.
pub(crate) fn keras_numbers(calls: &[LayerCall], outputs: &[Output]) -> Vec<usize> {
    let layers = calls.iter().map(|call| call.layer + 1).max().unwrap_or(0);
    let mut graph = Graph { nodes: Vec::with_capacity(calls.len()), operations: layers };
    // The node of each call, and the masks of results that have one.
    let mut node_of = Vec::with_capacity(calls.len());
    let mut masks: HashMap<Output, Mask> = HashMap::new();
    for (at, call) in calls.iter().enumerate() {
        let node = graph.call(call, &node_of, &masks);
        node_of.push(node);
        if let Some(mask) = graph.mask_of(call, calls, &node_of, &masks) {
            masks.insert((at, 0), mask);
        }
    }
    let outputs: Vec<usize> = outputs.iter().map(|(call, _)| node_of[*call]).collect();
    let places = graph.places(&outputs);
    (0..layers).map(|layer| places.get(&layer).copied().unwrap_or(layer)).collect()
}

/// The node that computes a mask, and the mask's rank.
#[derive(Clone, Copy)]
struct Mask {
    node: usize,
    rank: Option<usize>,
}

struct Node {
    operation: usize,
    parents: Vec<usize>,
}

/// Keras's calls of layers and operations.
struct Graph {
    nodes: Vec<Node>,
    operations: usize,
}

/// Classes that use the mask of their first argument: `call` has an argument `mask`.
const TAKE: [&str; 16] = [
    "LSTM",
    "GRU",
    "SimpleRNN",
    "RNN",
    "ConvLSTM1D",
    "ConvLSTM2D",
    "ConvLSTM3D",
    "Bidirectional",
    "TimeDistributed",
    "Softmax",
    "GlobalAveragePooling1D",
    "BatchNormalization",
    "Functional",
    "Sequential",
    "Lambda",
    "Model",
];

/// Classes whose result has the mask of the first input.
const PASS: [&str; 26] = [
    "Dense",
    "Identity",
    "Activation",
    "ReLU",
    "LeakyReLU",
    "PReLU",
    "ELU",
    "Softmax",
    "LayerNormalization",
    "GroupNormalization",
    "BatchNormalization",
    "UnitNormalization",
    "Dropout",
    "SpatialDropout1D",
    "SpatialDropout2D",
    "SpatialDropout3D",
    "AlphaDropout",
    "GaussianDropout",
    "GaussianNoise",
    "ActivityRegularization",
    "Rescaling",
    "Normalization",
    "TimeDistributed",
    "MultiHeadAttention",
    "GroupQueryAttention",
    "GroupedQueryAttention",
];

/// Classes whose result has the mask of the input if it is a sequence.
const SEQUENCES: [&str; 8] =
    ["LSTM", "GRU", "SimpleRNN", "RNN", "ConvLSTM1D", "ConvLSTM2D", "ConvLSTM3D", "Bidirectional"];

/// Classes that combine the masks of their inputs.
const JOIN: [&str; 6] = ["Add", "Subtract", "Multiply", "Average", "Maximum", "Minimum"];

impl Graph {
    /// Adds the node of a call, with the masks that it uses.
    fn call(
        &mut self,
        call: &LayerCall,
        node_of: &[usize],
        masks: &HashMap<Output, Mask>,
    ) -> usize {
        let class = call.class.unwrap_or_default();
        let mut parents: Vec<usize> = call.inputs.iter().map(|(call, _)| node_of[*call]).collect();
        // Calls on several tensors use masks, too, but Keras's graph does not contain them.
        let taken = call
            .inputs
            .first()
            .filter(|_| call.mask.is_none() && call.inputs.len() == 1 && TAKE.contains(&class));
        parents.extend(taken.and_then(|input| masks.get(input)).map(|mask| mask.node));
        parents.extend(call.mask.map(|(call, _)| node_of[call]));
        self.node(call.layer, parents)
    }

    /// The mask of a call's first result.
    fn mask_of(
        &mut self,
        call: &LayerCall,
        calls: &[LayerCall],
        node_of: &[usize],
        masks: &HashMap<Output, Mask>,
    ) -> Option<Mask> {
        let class = call.class?;
        let rank = |(at, output): &Output| calls[*at].ranks.get(*output).copied();
        let first = *call.inputs.first()?;
        let of_first = masks.get(&first).copied();
        match class {
            "Embedding" if call.makes_mask => {
                let node = self.operation(vec![node_of[first.0]]);
                Some(Mask { node, rank: rank(&first) })
            }
            "Masking" => {
                let differs = self.operation(vec![node_of[first.0]]);
                let node = self.operation(vec![differs]);
                Some(Mask { node, rank: rank(&first).map(|rank| rank.saturating_sub(1)) })
            }
            "Attention" | "AdditiveAttention" => {
                let mask = of_first?;
                Some(Mask { node: self.operation(vec![mask.node]), ..mask })
            }
            "Concatenate" => {
                if call.inputs.iter().all(|input| !masks.contains_key(input)) {
                    return None;
                }
                let mut joined = Vec::with_capacity(call.inputs.len());
                for input in &call.inputs {
                    let values = node_of[input.0];
                    joined.push(match masks.get(input) {
                        None => self.operation(vec![values]),
                        Some(mask) if mask.rank.is_some() && mask.rank < rank(input) => {
                            let wide = self.operation(vec![mask.node]);
                            let zeros = self.operation(vec![values]);
                            self.operation(vec![wide, zeros])
                        }
                        Some(mask) => mask.node,
                    });
                }
                let all = self.operation(joined);
                let node = self.operation(vec![all]);
                Some(Mask { node, rank: rank(&first).map(|rank| rank.saturating_sub(1)) })
            }
            class if JOIN.contains(&class) => {
                let all: Option<Vec<Mask>> =
                    call.inputs.iter().map(|input| masks.get(input).copied()).collect();
                let mut all = all?.into_iter();
                let mut mask = all.next()?;
                for other in all {
                    mask.node = self.operation(vec![mask.node, other.node]);
                }
                Some(mask)
            }
            class if SEQUENCES.contains(&class) => {
                let (before, behind) = (rank(&first), call.ranks.first().copied());
                of_first.filter(|_| before == behind)
            }
            class if PASS.contains(&class) => of_first,
            _ => None,
        }
    }

    /// Adds a call of a new operation.
    fn operation(&mut self, parents: Vec<usize>) -> usize {
        self.operations += 1;
        self.node(self.operations - 1, parents)
    }

    fn node(&mut self, operation: usize, parents: Vec<usize>) -> usize {
        self.nodes.push(Node { operation, parents });
        self.nodes.len() - 1
    }

    /// The indices of the operations that lead to `outputs`, in the order of Keras's `map_graph`: the farther from the outputs,
    /// the earlier; operations at the same distance are in the order in which a walk back from the outputs visits them.
    fn places(&self, outputs: &[usize]) -> HashMap<usize, usize> {
        let mut met: HashMap<usize, Option<usize>> = HashMap::new();
        let (mut known, mut order) = (vec![false; self.nodes.len()], Vec::new());
        for output in outputs {
            // Each node with the number of its parents that the walk has visited.
            let mut open: Vec<(usize, usize)> = vec![(*output, 0)];
            while let Some((node, seen)) = open.pop() {
                if seen == 0 {
                    if std::mem::replace(&mut known[node], true) {
                        continue;
                    }
                    let next = met.len();
                    met.entry(self.nodes[node].operation).or_insert(Some(next));
                }
                match self.nodes[node].parents.get(seen) {
                    Some(parent) => open.extend([(node, seen + 1), (*parent, 0)]),
                    None => order.push(node),
                }
            }
        }
        // Inputs that no output depends on: Keras adds them with depth 0, before the operations that the walk has visited at
        // that depth.
        for (node, _) in known.iter().enumerate().filter(|(_, known)| !**known) {
            if self.nodes[node].parents.is_empty() {
                met.insert(self.nodes[node].operation, None);
                order.push(node);
            }
        }
        let (mut nodes, mut depths) = (vec![0; self.nodes.len()], HashMap::new());
        for node in order.into_iter().rev() {
            let depth = depths.entry(self.nodes[node].operation).or_insert(0);
            *depth = nodes[node].max(*depth);
            for parent in &self.nodes[node].parents {
                nodes[*parent] = nodes[*parent].max(*depth + 1);
            }
        }
        let mut all: Vec<(usize, Option<usize>)> = met.into_iter().collect();
        all.sort_unstable_by_key(|(operation, met)| {
            (Reverse(depths.get(operation)), *met, *operation)
        });
        all.into_iter().enumerate().map(|(place, (operation, _))| (operation, place)).collect()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::Arc;

    use crate::error::Result;
    use crate::keras::layers::{
        Add, Attention, Concatenate, Conv1D, Dense, Dropout, Embedding, GlobalAveragePooling1D,
        Gru, LayerNormalization, Lstm, Masking, MultiHeadAttention, Multiply, Prelu,
        TimeDistributed, UnitNormalization,
    };
    use crate::keras::{Functional, Input, LayerExt, Sequential};
    use crate::tensor::Tensor;
    use crate::trackable::{Leaf, Parts, Trackable};

    /// The names and numbers of the layers of a model that have a number.
    fn numbers(model: &dyn Trackable) -> Vec<(String, usize)> {
        let mut found = Vec::new();
        let mut visit = |path: &str, leaf: Leaf<'_>| {
            if let Leaf::Part { described: Some(described), .. } = leaf {
                let inputs = path.starts_with("input_layer") || path.contains('/');
                found.extend(described().number.filter(|_| !inputs).map(|n| (path.to_string(), n)));
            }
        };
        model.track(&mut Parts::new(&mut visit));
        found.sort_by_key(|(_, number)| *number);
        found
    }

    fn check(model: &dyn Trackable, wanted: &[(&str, usize)]) {
        let wanted: Vec<(String, usize)> =
            wanted.iter().map(|(name, number)| (name.to_string(), *number)).collect();
        assert_eq!(numbers(model), wanted);
    }

    fn words() -> Embedding {
        Embedding::new(7, 3).mask_zero(true)
    }

    fn ids() -> Input {
        Input::new([5]).with_dtype(crate::dtype::DType::I32)
    }

    /// The expected numbers are those of `model._operations` in Keras 3.15.
    #[test]
    fn layers_have_keras_numbers_among_the_operations_of_masks() -> Result<()> {
        let model = Sequential::new().add(Masking::new()).add(Lstm::new(2)).add(Dense::new(2));
        check(&model, &[("masking", 2), ("lstm", 4), ("dense", 5)]);
        // No layer uses the mask.
        let model = Sequential::new().add(words()).add(Dense::new(2));
        check(&model, &[("embedding", 1), ("dense", 2)]);

        let (a, b, c) = (ids(), ids(), ids());
        let shared = Arc::new(words());
        let (x, y) = (shared.clone().on(&a)?, shared.clone().on(&b)?);
        let z = Add::new().on_all([&x, &y])?;
        let model = Functional::new([&a, &b], Lstm::new(2).on(&z)?)?;
        check(&model, &[("embedding", 2), ("add", 5), ("lstm", 7)]);
        let z = Multiply::new().on_all([&x, &y, &shared.on(&c)?])?;
        let model = Functional::new([&a, &b, &c], Lstm::new(2).on(&z)?)?;
        check(&model, &[("embedding", 5), ("multiply", 8), ("lstm", 10)]);

        let (x, y) = (words().on(&a)?, words().on(&b)?);
        let z = Lstm::new(2).on(&Concatenate::new().on_all([&x, &y])?)?;
        check(
            &Functional::new([&a, &b], z)?,
            &[("embedding", 2), ("embedding_1", 3), ("concatenate", 13), ("lstm", 15)],
        );
        let y = Embedding::new(7, 3).on(&b)?;
        let z = Lstm::new(2).on(&Concatenate::new().on_all([&x, &y])?)?;
        check(
            &Functional::new([&a, &b], z)?,
            &[("embedding", 1), ("embedding_1", 4), ("concatenate", 10), ("lstm", 12)],
        );

        let y = MultiHeadAttention::new(2, 3).on_all::<[Tensor], Tensor>([&x, &x])?;
        let y = LayerNormalization::new().on(&Add::new().on_all([&x, &y])?)?;
        let y = Dense::new(2).on(&GlobalAveragePooling1D::new().on(&y)?)?;
        let wanted = [
            ("embedding", 1),
            ("multi_head_attention", 2),
            ("add", 3),
            ("layer_normalization", 5),
            ("global_average_pooling1d", 7),
            ("dense", 8),
        ];
        check(&Functional::new(&a, y)?, &wanted);
        let y = Attention::new().on_all([&x, &words().on(&b)?])?;
        check(
            &Functional::new([&a, &b], GlobalAveragePooling1D::new().on(&y)?)?,
            &[
                ("embedding", 2),
                ("embedding_1", 3),
                ("attention", 5),
                ("global_average_pooling1d", 7),
            ],
        );

        let y = TimeDistributed::new(Dense::new(4)).on(&x)?;
        let y = Lstm::new(2).on(&Dropout::new(0.1).on(&y)?)?;
        check(
            &Functional::new(&a, y)?,
            &[("embedding", 1), ("time_distributed", 3), ("dropout", 4), ("lstm", 5)],
        );
        let y = Lstm::new(2).on(&Conv1D::new(4, 3).on(&x)?)?;
        check(&Functional::new(&a, y)?, &[("embedding", 1), ("conv1d", 2), ("lstm", 3)]);
        let y = Lstm::new(2).on(&x.add(Dense::new(3).on(&x)?)?)?;
        check(&Functional::new(&a, y)?, &[("embedding", 1), ("dense", 2), ("add", 3), ("lstm", 4)]);
        let y = UnitNormalization::new().on(&Prelu::new().on(&x)?)?;
        check(
            &Functional::new(&a, Lstm::new(2).on(&y)?)?,
            &[("embedding", 1), ("p_re_lu", 2), ("unit_normalization", 3), ("lstm", 5)],
        );

        let inner = Sequential::new().add(Dense::new(4));
        let inner = inner.add(Lstm::new(3).return_sequences(true));
        let y = Dense::new(2).on(&Gru::new(2).on(&inner.on(&x)?)?)?;
        check(
            &Functional::new(&a, y)?,
            &[("embedding", 1), ("sequential", 3), ("gru", 4), ("dense", 5)],
        );
        let inner = Sequential::new().add(words()).add(Lstm::new(3).return_sequences(true));
        let y = Dense::new(2).on(&Gru::new(2).on(&inner.on(&a)?)?)?;
        check(&Functional::new(&a, y)?, &[("sequential", 1), ("gru", 2), ("dense", 3)]);

        // Inputs that no output depends on precede the layers that end the model.
        let (unused, other) = (Input::new([4]), Input::new([3]));
        let y = Lstm::new(2).on(&words().on(&a)?)?;
        check(&Functional::new([&unused, &a, &other], y)?, &[("embedding", 1), ("lstm", 5)]);

        let x = Input::new([5, 3]);
        let (y, z) = (Dense::new(3).on(&x)?, Dense::new(3).on(&x)?);
        let (y, z) = (Lstm::new(2).on(&Masking::new().on(&y)?)?, Gru::new(2).on(&z)?);
        check(
            &Functional::new(&x, Add::new().on_all([&y, &z])?)?,
            &[("dense", 1), ("masking", 3), ("dense_1", 5), ("lstm", 6), ("gru", 7), ("add", 8)],
        );
        Ok(())
    }
}
