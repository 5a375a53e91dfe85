//! [`Memory`]: an optimizer's slots, which are the variables that it stores for each trained variable.

use std::collections::HashSet;
use std::hash::BuildHasherDefault;

use crate::eager;
use crate::error::Result;
use crate::graph::{HashIndex, Mixer};
use crate::support::sort::sort_by_key;
use crate::tensor::Tensor;
use crate::trackable::{NamedArray, Slot, to_tensor_if_exact};
use crate::variable::Variable;

/// The slots of a variable, with their names.
type Slots = Vec<(String, Slot)>;

/// The slot of `use_ema`.
pub(super) const AVERAGE: &str = "average";
/// The slot of `gradient_accumulation_steps`.
pub(super) const ACCUMULATOR: &str = "gradient_accumulator";
/// The slots of options, which precede those of the formula.
const OPTIONS: [&str; 2] = [AVERAGE, ACCUMULATOR];

/// Returns the initial value of a variable's slot with this name.
pub(super) type Start<'a> = dyn Fn(&str, &Variable) -> Result<Tensor> + 'a;

#[derive(Debug, Default)]
pub(super) struct Memory {
    /// The slots of each variable, by its identity, in the order in which the variables were added.
    kept: Vec<(u64, Slots)>,
    /// Finds the index in `kept` by a variable's identity.
    places: HashIndex,
    /// Whether variables were added since [`Memory::arrange`].
    grown: bool,
    /// The identities of the slots that this step has created.
    new: HashSet<u64, BuildHasherDefault<Mixer>>,
    /// The variables whose lack of a gradient was logged.
    pub(super) warned: HashSet<u64, BuildHasherDefault<Mixer>>,
}

impl Memory {
    /// The slots of `variable`. New ones start at the values from a checkpoint, or else at those that `start` returns.
    pub(super) fn slots(
        &mut self,
        names: &[&str],
        variable: &Variable,
        start: &Start<'_>,
    ) -> Result<Vec<Variable>> {
        let mut slots = Vec::with_capacity(names.len());
        for name in names {
            let slot = self.slot(variable.id(), name).clone();
            let made = slot.get_or_make(|left| {
                // A function that is traced makes its slots once, before its first run.
                let begin = eager::lifted(|| start(name, variable))?;
                let Some(left) = left else {
                    self.new.insert(slot.id());
                    return Ok(begin);
                };
                begin.device().scope(|| to_tensor_if_exact(left, begin.shape(), begin.dtype()))
            })?;
            slots.push(made.clone());
        }
        // A checkpoint may have added them in another order.
        let place = self.places.get(&variable.id()).map_or(0, |place| *place as usize);
        if let Some((_, kept)) = self.kept.get_mut(place) {
            let place = |(known, _): &(String, Slot)| {
                let within = |list: &[&str]| list.iter().position(|name| name == known);
                let own = || within(names).map_or(0, |at| at + 1);
                within(&OPTIONS).unwrap_or_else(|| OPTIONS.len() + own())
            };
            sort_by_key(kept, place);
        }
        Ok(slots)
    }

    /// The slot `name` of `variable`, if it was created.
    pub(super) fn made(&self, name: &str, variable: &Variable) -> Option<Variable> {
        let place = self.places.get(&variable.id())?;
        let (_, slots) = self.kept.get(*place as usize)?;
        let (_, slot) = slots.iter().find(|(known, _)| known == name)?;
        slot.variable().cloned()
    }

    /// All slots: the identity of the variable, the name, the slot.
    pub(super) fn all(&self) -> Vec<(u64, String, Slot)> {
        let of = |(of, slots): &(u64, Slots)| {
            let slot = |(name, slot): &(String, Slot)| (*of, name.clone(), slot.clone());
            slots.iter().map(slot).collect::<Vec<_>>()
        };
        self.kept.iter().flat_map(of).collect()
    }

    /// Sets the initial value of the slot `name` of the variable `of`; the slot's variable may not exist yet.
    pub(super) fn leave(&mut self, of: u64, name: &str, value: NamedArray<'static>) {
        let _ = self.slot(of, name).leave(value);
    }

    fn slot(&mut self, of: u64, name: &str) -> &Slot {
        let next = self.kept.len();
        let place = *self.places.entry(of).or_insert(next as u32) as usize;
        if place == next {
            self.kept.push((of, Slots::new()));
            self.grown = true;
        }
        let slots = &mut self.kept[place].1;
        let at = slots.iter().position(|(known, _)| known == name).unwrap_or_else(|| {
            slots.push((name.to_string(), Slot::new(false)));
            slots.len() - 1
        });
        &slots[at].1
    }

    /// The variables in order, including those without slots.
    pub(super) fn listed(&self) -> Vec<u64> {
        self.kept.iter().map(|(of, _)| *of).collect()
    }

    /// Brings `variables` into their order, as in a Keras optimizer that was built with them: its lists in a checkpoint
    /// identify a variable only by its index. Other variables keep their positions.
    pub(super) fn arrange(&mut self, variables: &[Variable]) {
        let known = self.kept.len();
        for variable in variables {
            let next = self.kept.len() as u32;
            if *self.places.entry(variable.id()).or_insert(next) == next {
                self.kept.push((variable.id(), Slots::new()));
            }
        }
        if !self.grown && known == self.kept.len() {
            return;
        }
        self.grown = false;
        let mut seen: HashSet<u64, BuildHasherDefault<Mixer>> = HashSet::default();
        let order: Vec<u64> =
            variables.iter().map(Variable::id).filter(|id| seen.insert(*id)).collect();
        let mut places: Vec<usize> = order.iter().map(|id| self.places[id] as usize).collect();
        let mut entries: Vec<(u64, Slots)> =
            places.iter().map(|place| std::mem::take(&mut self.kept[*place])).collect();
        places.sort_unstable();
        for (place, entry) in places.into_iter().zip(entries.drain(..)) {
            self.places.insert(entry.0, place as u32);
            self.kept[place] = entry;
        }
    }

    /// Makes all slots permanent: a step begins, or has succeeded.
    pub(super) fn keep(&mut self) {
        self.new.clear();
    }

    /// Drops the slots that this step has created: the device may never have computed their values.
    pub(super) fn forget(&mut self) {
        for (_, slots) in &mut self.kept {
            slots.retain(|(_, slot)| !self.new.contains(&slot.id()));
        }
        self.new.clear();
    }
}
