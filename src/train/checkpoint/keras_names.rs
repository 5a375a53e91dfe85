//! What Keras calls the parts of its models and optimizers in TensorFlow's checkpoints, where that is not wgrad's name. What
//! holds for one class alone, the class itself declares ([`Class`]).
//!
//! The names are those that `tf.train.Checkpoint` writes for Keras 3.15, and `layer_with_weights-0` of Keras 2.

use std::borrow::Cow;

use crate::trackable::{Class, Role, SlotNames};

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

/// The names of most optimizers' slots.
static SLOTS: [SlotNames; 7] = [
    SlotNames::new("momentum").keras_2("m"),
    SlotNames::new("velocity").list("_velocities").keras_2("v"),
    SlotNames::new("velocity").keras_2("rms"),
    SlotNames::new("average").list("_model_variables_moving_average").group(0),
    SlotNames::new("gradient_accumulator").list("_accumulated_gradients").group(1),
    SlotNames::new("velocity_hat").keras_2("vhat").group(3),
    SlotNames::new("average_gradient").keras_2("mg"),
];

/// The names that the class declares, then those of most optimizers.
fn known(class: Option<&'static Class>) -> impl Iterator<Item = &'static SlotNames> {
    class.into_iter().flat_map(|class| class.slots).chain(&SLOTS)
}

/// The slots that Keras tracks in no list of their own. A variable that is not a matrix has numbers in place of the first two.
pub(super) fn unlisted(class: Option<&'static Class>) -> &'static [&'static str] {
    class.map_or(&[], |class| class.unlisted_slots)
}

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

/// In which order `_variables` has an optimizer's slots: groups, and within a group variable by variable.
pub(super) fn group(class: Option<&'static Class>, slot: &str) -> usize {
    known(class).filter(|names| names.slot == slot).find_map(|names| names.group).unwrap_or(2)
}
