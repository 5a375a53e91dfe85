//! What Keras calls the slots of optimizers, and in which order it lists them.

use super::Class;

/// What Keras calls an optimizer's slot, where it is not the plural of wgrad's name.
#[derive(Debug)]
pub(crate) struct SlotNames {
    pub(crate) slot: &'static str,
    /// The list of Keras 3.
    pub(crate) list: Option<&'static str>,
    /// The slot of Keras 2.
    pub(crate) keras_2: Option<&'static str>,
    /// The group of `_variables` in which Keras lists it.
    pub(crate) group: Option<usize>,
}

impl SlotNames {
    pub(crate) const fn new(slot: &'static str) -> Self {
        SlotNames { slot, list: None, keras_2: None, group: None }
    }

    pub(crate) const fn list(mut self, list: &'static str) -> Self {
        self.list = Some(list);
        self
    }

    pub(crate) const fn keras_2(mut self, slot: &'static str) -> Self {
        self.keras_2 = Some(slot);
        self
    }

    pub(crate) const fn group(mut self, group: usize) -> Self {
        self.group = Some(group);
        self
    }
}

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
pub(crate) fn known(class: Option<&'static Class>) -> impl Iterator<Item = &'static SlotNames> {
    class.into_iter().flat_map(|class| class.slots).chain(&SLOTS)
}

/// The slots that Keras tracks in no list of their own. A variable that is not a matrix has numbers in place of the first two.
pub(crate) fn unlisted(class: Option<&'static Class>) -> &'static [&'static str] {
    class.map_or(&[], |class| class.unlisted_slots)
}

/// In which order `_variables` has an optimizer's slots: groups, and within a group variable by variable.
pub(crate) fn group(class: Option<&'static Class>, slot: &str) -> usize {
    known(class).filter(|names| names.slot == slot).find_map(|names| names.group).unwrap_or(2)
}
