//! What Keras calls the parts of its models and optimizers in TensorFlow's checkpoints, where that is not wgrad's name. What
//! holds for one class alone, the class itself declares ([`Class`]).
//!
//! The names are those that `tf.train.Checkpoint` writes for Keras 3.15, and `layer_with_weights-0` of Keras 2.

use std::borrow::Cow;

use crate::trackable::slot_names::known;
use crate::trackable::{Class, Role};

/// How the parts of a model are numbered.
pub(super) enum Numbered {
    /// They have no numbers.
    No,
    /// Layers, of which the first has this number in `_operations`, which is below this name.
    Layers { below: Option<&'static str>, first: usize },
}

/// How Keras numbers the parts of an object of this class.
pub(super) fn numbered(class: Option<&Class>) -> Numbered {
    match class.map(|class| class.role) {
        // An input layer comes first.
        Some(Role::Sequential) => Numbered::Layers { below: Some("_functional"), first: 1 },
        Some(Role::Functional) => Numbered::Layers { below: None, first: 0 },
        _ => Numbered::No,
    }
}

/// The optimizer's own numbers.
pub(super) const ITERATIONS: &str = "_iterations";
pub(super) const LEARNING_RATE: &str = "_learning_rate";
/// The list of the variables that the optimizer trains.
pub(super) const TRAINABLE: &str = "_trainable_variables";
/// The list of all variables of the optimizer.
pub(super) const VARIABLES: &str = "_variables";

/// The name of the list in which an optimizer of this class stores the slot `slot`.
pub(super) fn list_of(class: Option<&'static Class>, slot: &str) -> Cow<'static, str> {
    let mut named = known(class).filter(|names| names.slot == slot);
    match named.find_map(|names| names.list) {
        Some(list) => list.into(),
        None => format!("_{slot}s").into(),
    }
}

/// The slot that an optimizer of this class stores in the list `list`.
pub(super) fn slot_of(class: Option<&'static Class>, list: &str) -> Option<String> {
    if let Some(known) = known(class).find(|names| list_of(class, names.slot) == list) {
        return Some(known.slot.to_string());
    }
    let slot = list.strip_prefix('_')?.strip_suffix('s')?;
    (list != VARIABLES && list != TRAINABLE && list != ITERATIONS).then(|| slot.to_string())
}

/// The slot that Keras 2 calls `slot` in its optimizers.
pub(super) fn slot_of_keras_2<'a>(class: Option<&'static Class>, slot: &'a str) -> &'a str {
    known(class).find(|names| names.keras_2 == Some(slot)).map_or(slot, |names| names.slot)
}
