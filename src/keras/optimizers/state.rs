//! What an optimizer remembers between steps.

use std::collections::{HashMap, HashSet};
use std::hash::BuildHasherDefault;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::error::{DeviceFault, Error, Result, message};
use crate::graph::Mixer;
use crate::variable::Variable;

use super::Step;

/// An optimizer's name, learning rate, count of steps and slots.
#[derive(Debug)]
pub struct OptimizerState {
    name: String,
    pace: Arc<Pace>,
    memory: Mutex<Memory>,
    /// Held for the whole of a step, so that two threads' steps come one after the other. Apart from `memory`, so
    /// that a formula may ask for the learning rate.
    turn: Mutex<()>,
}

/// The count of steps made and the learning rate, for all who compute a step's numbers from them.
#[derive(Debug)]
pub(super) struct Pace(Mutex<(u64, f32)>);

impl Pace {
    pub(super) fn now(&self) -> (u64, f32) {
        *self.lock()
    }

    fn lock(&self) -> MutexGuard<'_, (u64, f32)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug)]
pub(super) struct Memory {
    /// In the order in which the variables came, each with its own.
    slots: Vec<Vec<Variable>>,
    /// A variable's identity to its place in `slots`.
    places: HashMap<u64, usize, BuildHasherDefault<Mixer>>,
    /// Variables whose lack of a gradient was told.
    pub(super) warned: HashSet<u64, BuildHasherDefault<Mixer>>,
}

impl OptimizerState {
    /// A state before the first step. Slots' names begin with `name`.
    pub fn new(name: impl Into<String>, learning_rate: f32) -> Self {
        let memory =
            Memory { slots: Vec::new(), places: HashMap::default(), warned: HashSet::default() };
        let pace = Arc::new(Pace(Mutex::new((0, learning_rate))));
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

    pub(super) fn variables(&self) -> Vec<Variable> {
        self.memory().slots.iter().flatten().cloned().collect()
    }

    pub(super) fn iterations(&self) -> u64 {
        self.pace.now().0
    }

    pub(super) fn set_iterations(&self, iterations: u64) {
        self.pace.lock().0 = iterations;
    }

    pub(super) fn learning_rate(&self) -> f32 {
        self.pace.now().1
    }

    pub(super) fn set_learning_rate(&self, learning_rate: f32) {
        self.pace.lock().1 = learning_rate;
    }

    /// The step to be made now.
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

impl Memory {
    /// The slots of `variable`, made now if there are none.
    pub(super) fn slots(
        &mut self,
        optimizer: &str,
        names: &[&str],
        variable: &Variable,
    ) -> Result<Vec<Variable>> {
        if let Some(&place) = self.places.get(&variable.id()) {
            let slots = &self.slots[place];
            slots.iter().try_for_each(|slot| same_device(optimizer, slot, variable))?;
            return Ok(slots.clone());
        }
        let zeros = |name: &&str| {
            let name = format!("{optimizer}/{name}/{}", variable.name());
            Ok(Variable::untrainable(name, &variable.peek().zeros_like()?))
        };
        let slots: Vec<Variable> = names.iter().map(zeros).collect::<Result<_>>()?;
        self.places.insert(variable.id(), self.slots.len());
        self.slots.push(slots.clone());
        Ok(slots)
    }

    /// How many variables have slots; for [`Memory::forget_after`].
    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Drops the slots that were made after there were `len`.
    pub(super) fn forget_after(&mut self, len: usize) {
        self.slots.truncate(len);
        self.places.retain(|_, place| *place < len);
    }
}

fn same_device(optimizer: &str, slot: &Variable, variable: &Variable) -> Result<()> {
    let (kept, wanted) = (slot.peek(), variable.peek());
    if kept.device() == wanted.device() {
        return Ok(());
    }
    Err(Error::Device(
        DeviceFault::Mismatch,
        message!(
            "{optimizer}: the slot '{}' is on {:?} and its variable on {:?}. Assign values on the new device to the \
             optimizer's variables too, or make a new optimizer.",
            slot.name(),
            kept.device(),
            wanted.device()
        ),
    ))
}
