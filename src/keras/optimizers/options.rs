//! [`Options`]: the options that every optimizer has besides its formula, and [`Stage`], which applies them in a step.
//!
//! A step calls stages through pointers, so a program contains the code of only those stages that it sets.

use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Step;
use super::memory::{ACCUMULATOR, AVERAGE, Memory, Start};
use crate::dtype::float_text;
use crate::error::{DeviceFault, Error, Result, message};
use crate::tensor::Tensor;
use crate::trackable::{self, Trackable};
use crate::variable::Variable;

/// The options of all optimizers, with Keras's names.
#[derive(Debug, Clone)]
pub(super) struct Options {
    pub(super) name: String,
    /// What is wrong with the options; the next step reports it.
    wrong: Option<String>,
    pub(super) weight_decay: f64,
    pub(super) excluded: Excluded,
    /// The option that clips gradients.
    clip: Option<&'static str>,
    pub(super) ema_momentum: f64,
    pub(super) ema_overwrite_frequency: Option<u64>,
    pub(super) loss_scale_factor: f64,
    pub(super) gradient_accumulation_steps: u64,
    stages: [Option<Arc<dyn Stage>>; 6],
}

/// The variables that do not decay.
#[derive(Debug, Clone, Default)]
pub(super) struct Excluded {
    /// Strings, one of which the name of an excluded variable contains.
    pub(super) names: Vec<String>,
    /// The identities of excluded variables.
    pub(super) variables: Vec<u64>,
}

/// The stages in the order in which they change a step.
#[derive(Debug, Clone, Copy)]
pub(super) enum StepStage {
    /// Which formula a variable has.
    Kinds,
    Scale,
    Accumulate,
    Clip,
    Decay,
    Average,
}

impl Options {
    pub(super) fn new(name: String) -> Self {
        Options {
            name,
            wrong: None,
            weight_decay: 0.0,
            excluded: Excluded::default(),
            clip: None,
            ema_momentum: 0.99,
            ema_overwrite_frequency: None,
            loss_scale_factor: 1.0,
            gradient_accumulation_steps: 1,
            stages: Default::default(),
        }
    }

    /// Records an error if `option` is out of its range.
    pub(super) fn require(&mut self, option: &str, value: f64, within: Within) {
        if !within.holds(value) {
            let value = float_text(value);
            self.refuse(format!("{option} is {value}; it must be {}", within.words()));
        }
    }

    pub(super) fn refuse(&mut self, what: String) {
        self.wrong.get_or_insert(what);
    }

    pub(super) fn check(&self) -> Result<()> {
        match &self.wrong {
            None => Ok(()),
            Some(wrong) => Err(Error::Index(message!("{}: {wrong}.", self.name))),
        }
    }

    pub(super) fn set(&mut self, place: StepStage, stage: Option<Arc<dyn Stage>>) {
        self.stages[place as usize] = stage;
    }

    /// Sets the option that clips; a second option of another kind is refused.
    pub(super) fn clip(&mut self, option: &'static str, limit: f64, stage: Arc<dyn Stage>) {
        self.require(option, limit, Within::Positive);
        if let Some(other) = self.clip.replace(option).filter(|other| *other != option) {
            self.refuse(format!("{other} and {option} are both set; set only one of them"));
        }
        self.set(StepStage::Clip, Some(stage));
    }

    pub(super) fn stage(&self, place: StepStage) -> Option<&dyn Stage> {
        self.stages[place as usize].as_deref()
    }

    /// The slots of the options for every variable.
    pub(super) fn slots(&self) -> Vec<&'static str> {
        let slots = [(StepStage::Average, AVERAGE), (StepStage::Accumulate, ACCUMULATOR)];
        slots
            .into_iter()
            .filter(|(at, _)| self.stage(*at).is_some())
            .map(|(_, name)| name)
            .collect()
    }

    pub(super) fn stages(&self) -> impl DoubleEndedIterator<Item = &dyn Stage> {
        self.stages.iter().filter_map(Option::as_deref)
    }
}

/// The permitted range of an option.
#[derive(Debug, Clone, Copy)]
pub(super) enum Within {
    /// `0 <= x < 1`
    Share,
    /// `0 <= x <= 1`
    Unit,
    /// `0 < x <= 1`
    SomeUnit,
    NotNegative,
    NotPositive,
    Positive,
    Finite,
}

impl Within {
    fn holds(self, x: f64) -> bool {
        match self {
            Within::Share => (0.0..1.0).contains(&x),
            Within::Unit => (0.0..=1.0).contains(&x),
            Within::SomeUnit => x > 0.0 && x <= 1.0,
            Within::NotNegative => x >= 0.0 && x.is_finite(),
            Within::NotPositive => x <= 0.0 && x.is_finite(),
            Within::Positive => x > 0.0 && x.is_finite(),
            Within::Finite => x.is_finite(),
        }
    }

    fn words(self) -> &'static str {
        match self {
            Within::Share => "at least 0 and below 1",
            Within::Unit => "from 0 to 1",
            Within::SomeUnit => "above 0 and at most 1",
            Within::NotNegative => "a number, at least 0",
            Within::NotPositive => "a number, at most 0",
            Within::Positive => "a number above 0",
            Within::Finite => "a number",
        }
    }
}

/// Variables with their gradients.
pub(super) type Pairs<'v> = Vec<(&'v Variable, Tensor)>;

/// A variable and its new value.
pub(super) type Change = (Variable, Tensor);

/// The effect of an option on a step.
pub(super) trait Stage: Debug + Send + Sync {
    /// Learns the variables before the step creates slots for them.
    fn begin(&self, _: &Options, _: &Trainable<'_>) -> Result<()> {
        Ok(())
    }

    /// The weight decay of a variable, if it differs from that of the options.
    fn decay(&self, _: &Variable) -> Option<f64> {
        None
    }

    /// Changes gradients before the formula uses them.
    fn gradients<'v>(&self, _: &mut Round<'_>, pairs: Pairs<'v>) -> Result<Pairs<'v>> {
        Ok(pairs)
    }

    /// Changes the value of the variable before the formula uses it.
    fn start(&self, _: &Round<'_>, _: &Variable, value: Tensor) -> Result<Tensor> {
        Ok(value)
    }

    /// Changes the results of the formulas, and adds to them.
    fn changes(&self, _: &mut Round<'_>) -> Result<()> {
        Ok(())
    }

    /// Makes final adjustments to all changes of the step.
    fn settle(&self, _: &mut Round<'_>) -> Result<()> {
        Ok(())
    }

    /// Assigns the final values to the variables after training.
    fn finalize(&self, _: &str, _: &Mutex<Memory>, _: &dyn Trackable) -> Result<()> {
        Ok(())
    }

    /// Returns the loss from which to compute gradients.
    fn scale_loss(&self, _: &Options, loss: &Tensor) -> Result<Tensor> {
        Ok(loss.clone())
    }

    /// The gradient with respect to `loss` from which the backward pass starts, unless it is 1.
    fn seed(&self, _: &Options, _: &Tensor) -> Result<Option<Tensor>> {
        Ok(None)
    }
}

/// The variables that a step changes, and the part that owns them.
pub(super) struct Trainable<'a> {
    pub(super) root: &'a dyn Trackable,
    pub(super) list: Vec<Variable>,
}

impl<'a> Trainable<'a> {
    pub(super) fn find(root: &'a dyn Trackable) -> Self {
        Trainable { root, list: root.trainable_variables() }
    }

    /// The name of a variable, for a message.
    pub(super) fn name(&self, variable: &Variable) -> String {
        let named = trackable::named_trainable(self.root);
        let found = named.into_iter().find(|(_, known)| known.id() == variable.id());
        found.map_or_else(|| "variable".to_string(), |(name, _)| name)
    }
}

/// A step in progress.
pub(super) struct Round<'a> {
    pub(super) options: &'a Options,
    pub(super) step: Step,
    /// How often gradients were applied before this step.
    pub(super) made: u64,
    pub(super) variables: &'a Trainable<'a>,
    pub(super) memory: &'a Mutex<Memory>,
    pub(super) changes: Vec<Change>,
    /// A boolean that decides whether the device applies the changes, once a stage has computed it.
    pub(super) wanted: Option<Tensor>,
}

impl Round<'_> {
    pub(super) fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The slots of `variable`, on its device.
    pub(super) fn slots(
        &self,
        names: &[&str],
        variable: &Variable,
        start: &Start<'_>,
    ) -> Result<Vec<Variable>> {
        let slots = self.memory().slots(names, variable, start)?;
        for (name, slot) in names.iter().zip(&slots) {
            self.check_device(name, slot, variable)?;
        }
        Ok(slots)
    }

    /// The slot of a stage for `variable`; it starts at 0.
    pub(super) fn slot(&self, name: &str, variable: &Variable) -> Result<Variable> {
        let mut slots = self.slots(&[name], variable, &|_, of| super::constant_slot(of, 0.0))?;
        Ok(slots.remove(0))
    }

    /// The indices of the changes by their variables' identities.
    pub(super) fn places(&self) -> HashMap<u64, usize> {
        self.changes.iter().enumerate().map(|(at, (variable, _))| (variable.id(), at)).collect()
    }

    fn check_device(&self, name: &str, slot: &Variable, variable: &Variable) -> Result<()> {
        let (kept, wanted) = (slot.peek(), variable.peek());
        if kept.device() == wanted.device() {
            return Ok(());
        }
        Err(Error::Device(
            DeviceFault::Mismatch,
            message!(
                "{}: the slot '{name}' of '{}' is on {} and its variable on {}. Assign values on the new device to \
                 the optimizer's variables too, or make a new optimizer.",
                self.options.name,
                self.variables.name(variable),
                kept.device().named(),
                wanted.device().named()
            ),
        ))
    }
}
