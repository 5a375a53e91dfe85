//! What Keras calls the parts of its models and optimizers in TensorFlow's checkpoints, where that is not wgrad's name.
//!
//! The names are those that `tf.train.Checkpoint` writes for Keras 3.15, and `layer_with_weights-0` of Keras 2.

use std::borrow::Cow;

/// How the parts of a model are numbered.
pub(super) enum Numbered {
    /// No parts are.
    No,
    /// Layers, of which the first has this number in `_operations`, which lies below this name.
    Layers { below: Option<&'static str>, first: usize },
}

/// How Keras numbers the parts of what is of this kind.
pub(super) fn numbered(kind: &str) -> Numbered {
    match kind {
        // An input layer comes first.
        "Sequential" => Numbered::Layers { below: Some("_functional"), first: 1 },
        "Functional" => Numbered::Layers { below: None, first: 0 },
        _ => Numbered::No,
    }
}

/// Further names of the part `name` of what is of this kind.
pub(super) fn aliases(kind: &str, name: &str) -> Option<Cow<'static, str>> {
    let alias = match (kind, name) {
        ("TimeDistributed", _) => "layer",
        ("Bidirectional", name) if name.starts_with("forward_") => "forward_layer",
        ("Bidirectional", name) if name.starts_with("backward_") => "backward_layer",
        ("MultiHeadAttention" | "GroupedQueryAttention", "query") => "_query_dense",
        ("MultiHeadAttention" | "GroupedQueryAttention", "key") => "_key_dense",
        ("MultiHeadAttention" | "GroupedQueryAttention", "value") => "_value_dense",
        ("MultiHeadAttention" | "GroupedQueryAttention", "attention_output") => "_output_dense",
        ("Nadam", "u_product") => "_u_product",
        (_, name) if name.ends_with("_cell") => "cell",
        // `Dense._kernel`, `Embedding._embeddings`.
        (_, "kernel") => "_kernel",
        (_, "embeddings") => "_embeddings",
        _ => return None,
    };
    Some(alias.into())
}

/// The optimizer's own numbers.
pub(super) const ITERATIONS: &str = "_iterations";
pub(super) const LEARNING_RATE: &str = "_learning_rate";
/// The list of the variables that the optimizer trains.
pub(super) const TRAINABLE: &str = "_trainable_variables";
/// The list of all variables of the optimizer.
pub(super) const VARIABLES: &str = "_variables";

/// The slots of Adafactor, whose lists Keras does not track. A variable that is no matrix has numbers in place of the first two.
pub(super) const ADAFACTOR: [&str; 3] = ["r", "c", "velocity"];

/// The name of the list in which an optimizer of this kind keeps the slot `slot`.
pub(super) fn list_of(kind: &str, slot: &str) -> Cow<'static, str> {
    let list = match (kind, slot) {
        ("Sgd", "momentum") => "momentums",
        ("Adamax", "momentum") => "_m",
        ("Adamax", "norm") => "_u",
        (_, "velocity") => "_velocities",
        (_, "average") => "_model_variables_moving_average",
        (_, "gradient_accumulator") => "_accumulated_gradients",
        (_, slot) => return format!("_{slot}s").into(),
    };
    list.into()
}

/// The slot that an optimizer of this kind keeps in the list `list`.
pub(super) fn slot_of(kind: &str, list: &str) -> Option<String> {
    const KNOWN: [&str; 5] = ["momentum", "velocity", "norm", "average", "gradient_accumulator"];
    if let Some(known) = KNOWN.into_iter().find(|slot| list_of(kind, slot) == list) {
        return Some(known.to_string());
    }
    let slot = list.strip_prefix('_')?.strip_suffix('s')?;
    (list != VARIABLES && list != TRAINABLE && list != ITERATIONS).then(|| slot.to_string())
}

/// The slot that Keras 2 calls `slot` in its optimizers.
pub(super) fn slot_of_keras_2<'a>(kind: &str, slot: &'a str) -> &'a str {
    match (kind, slot) {
        ("Adamax", "v") => "norm",
        (_, "m") => "momentum",
        (_, "v" | "rms") => "velocity",
        (_, "vhat") => "velocity_hat",
        (_, "mg") => "average_gradient",
        ("Adadelta", "accum_grad") => "accumulated_grad",
        ("Adadelta", "accum_var") => "accumulated_delta_var",
        (_, slot) => slot,
    }
}

/// In which order `_variables` has an optimizer's slots: groups, and within a group variable by variable.
pub(super) fn group(kind: &str, slot: &str) -> usize {
    match (kind, slot) {
        (_, "average") => 0,
        (_, "gradient_accumulator") => 1,
        ("RmsProp", "momentum") | (_, "velocity_hat") => 3,
        ("RmsProp", "average_gradient") => 4,
        _ => 2,
    }
}
