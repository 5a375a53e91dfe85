//! The state that an optimizer keeps between steps.

use std::collections::HashSet;
use std::hash::BuildHasherDefault;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::error::{Error, Result, message};
use crate::graph::{HashIndex, Mixer};
use crate::sorted::sorted_by_key;
use crate::trackable::{HostState, NamedArray, Parts, Slot, SlotOwner, Trackable};
use crate::variable::Variable;

use super::{LearningRate, Step};

/// An optimizer's name, learning rate, count of steps and slots.
#[derive(Debug)]
pub struct OptimizerState {
    name: String,
    pace: Arc<Pace>,
    memory: Mutex<Memory>,
    /// A step holds this lock to its end, so that two threads' steps come one after the other. It is not `memory`'s
    /// lock, so a formula may ask for the learning rate.
    turn: Mutex<()>,
}

/// The count of steps made and the learning rate, shared with the functions that compute a step's numbers from them.
#[derive(Debug)]
pub(super) struct Pace(Mutex<(u64, LearningRate)>);

impl Pace {
    /// The count, and the learning rate of the next step.
    pub(super) fn now(&self) -> (u64, f32) {
        // A schedule of the program's own may do anything, so it runs without the lock.
        let (made, rate) = self.lock().clone();
        (made, rate.at(made))
    }

    fn lock(&self) -> MutexGuard<'_, (u64, LearningRate)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The slots of a variable, with their names.
type Slots = Vec<(String, Slot)>;

#[derive(Debug)]
pub(super) struct Memory {
    /// The slots of each variable, by its identity, in the order in which the variables came.
    kept: Vec<(u64, Slots)>,
    /// Finds the place in `kept` by a variable's identity.
    places: HashIndex,
    /// The identities of the slots that this step has made.
    new: HashSet<u64, BuildHasherDefault<Mixer>>,
    /// The variables whose lack of a gradient was logged.
    pub(super) warned: HashSet<u64, BuildHasherDefault<Mixer>>,
}

impl OptimizerState {
    /// A state before the first step; messages call the optimizer `name`.
    pub fn new(name: impl Into<String>, learning_rate: impl Into<LearningRate>) -> Self {
        let memory = Memory {
            kept: Vec::new(),
            places: HashIndex::default(),
            new: HashSet::default(),
            warned: HashSet::default(),
        };
        let pace = Arc::new(Pace(Mutex::new((0, learning_rate.into()))));
        OptimizerState {
            name: name.into(),
            pace,
            memory: Mutex::new(memory),
            turn: Mutex::default(),
        }
    }

    /// The optimizer's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn iterations(&self) -> u64 {
        self.pace.lock().0
    }

    pub(super) fn set_iterations(&self, iterations: u64) {
        self.pace.lock().0 = iterations;
    }

    pub(super) fn learning_rate(&self) -> f32 {
        self.pace.now().1
    }

    pub(super) fn set_learning_rate(&self, learning_rate: f32) -> Result<()> {
        let mut pace = self.pace.lock();
        if pace.1.is_schedule() {
            return Err(Error::Check(message!(
                "{}: the learning rate follows a schedule, so it cannot be set to {learning_rate}. Make the optimizer \
                 with a number, or let the schedule give that rate.",
                self.name
            )));
        }
        pace.1 = learning_rate.into();
        Ok(())
    }

    /// The step that comes next.
    pub(super) fn step(&self) -> Result<Step> {
        let (made, learning_rate) = self.pace.now();
        let number = made.checked_add(1).ok_or_else(|| {
            Error::Checkpoint(message!(
                "{}: {made} steps were made, and there is no number for another. Set the count with set_iterations.",
                self.name
            ))
        })?;
        Ok(Step { number, learning_rate, pace: self.pace.clone() })
    }

    pub(super) fn turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Trackable for OptimizerState {
    fn track(&self, parts: &mut Parts<'_>) {
        parts.number("iterations", || self.iterations(), |made| self.set_iterations(made));
        // A schedule follows from the count.
        if !self.pace.lock().1.is_schedule() {
            parts.state("learning_rate", &Rate(self));
        }
        parts.slots(self);
    }
}

struct Rate<'a>(&'a OptimizerState);

impl HostState for Rate<'_> {
    fn form(&self) -> (&'static str, &'static [usize]) {
        ("F32", &[])
    }

    fn get(&self) -> Vec<u8> {
        self.0.learning_rate().to_le_bytes().into()
    }

    fn set(&self, bytes: &[u8]) {
        // The walk comes here only if this is no schedule.
        let _ = self.0.set_learning_rate(f32::from_le_bytes(bytes.try_into().unwrap_or_default()));
    }
}

impl SlotOwner for OptimizerState {
    fn slots(&self) -> Vec<(u64, String, Slot)> {
        let memory = self.memory();
        let of = |(of, slots): &(u64, Slots)| {
            let slot = |(name, slot): &(String, Slot)| (*of, name.clone(), slot.clone());
            slots.iter().map(slot).collect::<Vec<_>>()
        };
        memory.kept.iter().flat_map(of).collect()
    }

    fn leave(&self, of: u64, name: &str, value: NamedArray<'static>) {
        let _ = self.memory().slot(of, name).leave(value);
    }
}

impl Memory {
    /// The slots of `variable`; new ones start at the values that a checkpoint left for them, or at 0.
    pub(super) fn slots(&mut self, names: &[&str], variable: &Variable) -> Result<Vec<Variable>> {
        let mut slots = Vec::with_capacity(names.len());
        for name in names {
            let slot = self.slot(variable.id(), name).clone();
            let made = slot.get_or_make(|left| match left {
                Some(left) => {
                    let start = variable.peek();
                    start.device().scope(|| left.to_tensor(variable.shape(), variable.dtype()))
                }
                None => {
                    self.new.insert(slot.id());
                    variable.peek().zeros_like()
                }
            })?;
            slots.push(made.clone());
        }
        // A checkpoint may have left them in another order.
        let place = self.places.get(&variable.id()).map_or(0, |place| *place as usize);
        if let Some((_, kept)) = self.kept.get_mut(place) {
            if kept.iter().zip(names).any(|((known, _), name)| known != name) {
                let place =
                    |(known, _): &(String, Slot)| names.iter().position(|name| name == known);
                *kept = sorted_by_key(std::mem::take(kept), place);
            }
        }
        Ok(slots)
    }

    /// The slot `name` of the variable `of`; its own variable may not exist yet.
    fn slot(&mut self, of: u64, name: &str) -> &Slot {
        let next = self.kept.len();
        let place = *self.places.entry(of).or_insert(next as u32) as usize;
        if place == next {
            self.kept.push((of, Slots::new()));
        }
        let slots = &mut self.kept[place].1;
        let at = slots.iter().position(|(known, _)| known == name).unwrap_or_else(|| {
            slots.push((name.to_string(), Slot::new(false)));
            slots.len() - 1
        });
        &slots[at].1
    }

    /// Keeps all slots for good: a step begins, or has succeeded.
    pub(super) fn keep(&mut self) {
        self.new.clear();
    }

    /// Drops the slots that this step has made: the device may never have computed their values.
    pub(super) fn forget(&mut self) {
        for (_, slots) in &mut self.kept {
            slots.retain(|(_, slot)| !self.new.contains(&slot.id()));
        }
        self.new.clear();
    }
}
