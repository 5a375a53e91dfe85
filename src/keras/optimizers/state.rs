//! The state that an optimizer stores between steps.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::memory::Memory;
use super::options::{Options, StepStage, Within};
use super::pace::Pace;
use super::{LearningRate, Step};
use crate::dtype::f32_text;
use crate::eager::RunCounter;
use crate::error::{Error, Result, message};
use crate::host_array::HostDType;
use crate::tensor::Tensor;
use crate::trackable::{HostState, NamedArray, Parts, Slot, SlotOwner, Trackable};

/// An optimizer's options, learning rate, count of steps and slots.
#[derive(Debug)]
pub struct OptimizerState {
    options: Mutex<Arc<Options>>,
    pace: Arc<Pace>,
    memory: Mutex<Memory>,
    /// A step holds this lock until its end, so that steps of two threads run one after the other. It is separate from
    /// `memory`'s lock, so a formula may read the learning rate.
    turn: Mutex<()>,
}

impl OptimizerState {
    /// Creates a state before the first step; messages call the optimizer `name`.
    pub fn new(name: impl Into<String>, learning_rate: impl Into<LearningRate>) -> Self {
        OptimizerState {
            options: Mutex::new(Arc::new(Options::new(name.into()))),
            pace: Arc::new(Pace::new(learning_rate.into())),
            memory: Mutex::default(),
            turn: Mutex::default(),
        }
    }

    /// Returns the optimizer's name.
    pub fn name(&self) -> String {
        self.options().name.clone()
    }

    pub(super) fn options(&self) -> Arc<Options> {
        lock(&self.options).clone()
    }

    /// Changes the options.
    pub(super) fn set(&self, change: impl FnOnce(&mut Options)) {
        change(Arc::make_mut(&mut lock(&self.options)));
    }

    /// Records an error if an option is out of its range; the next step reports it.
    pub(super) fn require(&self, option: &str, value: f64, within: Within) {
        self.set(|options| options.require(option, value, within));
    }

    pub(super) fn set_gradients(&self, gradients: u64) {
        self.pace.lock().gradients = gradients.max(1);
    }

    /// How often gradients were applied.
    pub(super) fn made(&self) -> u64 {
        self.pace.lock().made
    }

    pub(super) fn set_made(&self, made: u64) {
        self.pace.lock().made = made;
    }

    /// The count of applied gradients, for functions that apply gradients in each run.
    pub(super) fn counter(&self) -> Arc<dyn RunCounter> {
        self.pace.clone()
    }

    pub(super) fn iterations(&self) -> u64 {
        self.pace.lock().steps()
    }

    pub(super) fn set_iterations(&self, iterations: u64) {
        let mut count = self.pace.lock();
        count.made = iterations.saturating_mul(count.gradients);
    }

    pub(super) fn learning_rate(&self) -> f32 {
        self.pace.now().rate()
    }

    pub(super) fn has_schedule(&self) -> bool {
        self.pace.lock().rate.is_schedule()
    }

    pub(super) fn set_learning_rate(&self, learning_rate: f32) -> Result<()> {
        let mut count = self.pace.lock();
        if count.rate.is_schedule() {
            drop(count);
            return Err(Error::Check(message!(
                "{}: the learning rate follows a schedule, so it cannot be set to {}. Make the optimizer \
                 with a number, or let the schedule give that rate.",
                self.name(),
                f32_text(learning_rate)
            )));
        }
        count.rate = learning_rate.into();
        Ok(())
    }

    /// Returns the next step.
    pub(super) fn step(&self) -> Result<Step> {
        let count = self.pace.now();
        let name = || self.name();
        if count.made == u64::MAX {
            return Err(Error::Checkpoint(message!(
                "{}: {} steps were made, and the count cannot be larger. Set the count with set_iterations.",
                name(),
                count.made
            )));
        }
        count.rate.check()?;
        let learning_rate = count.rate();
        if !(learning_rate >= 0.0 && learning_rate.is_finite()) {
            return Err(Error::Index(message!(
                "{}: the learning rate after {} steps is {}; it must be a number, at least 0. Set another, or fix \
                 the schedule.",
                name(),
                count.made,
                f32_text(learning_rate)
            )));
        }
        Ok(Step { number: count.steps() + 1, learning_rate, pace: self.pace.clone() })
    }

    pub(super) fn turn(&self) -> MutexGuard<'_, ()> {
        lock(&self.turn)
    }

    pub(super) fn memory(&self) -> MutexGuard<'_, Memory> {
        lock(&self.memory)
    }

    pub(super) fn memory_cell(&self) -> &Mutex<Memory> {
        &self.memory
    }

    /// Whether an option scales the loss.
    pub(in crate::keras) fn scales_loss(&self) -> bool {
        self.options().stage(StepStage::Scale).is_some()
    }

    /// Whether only some calls change the variables.
    pub(in crate::keras) fn accumulates(&self) -> bool {
        self.pace.lock().gradients > 1
    }

    pub(super) fn scale_loss(&self, loss: &Tensor) -> Result<Tensor> {
        let options = self.options();
        match options.stage(StepStage::Scale) {
            Some(stage) => stage.scale_loss(&options, loss),
            None => Ok(loss.clone()),
        }
    }

    /// The gradient with respect to `loss` from which the backward pass starts, unless it is 1: the scale, if `loss` is
    /// not scaled yet.
    pub(super) fn seed(&self, loss: &Tensor) -> Result<Option<Tensor>> {
        let options = self.options();
        options.stage(StepStage::Scale).map_or(Ok(None), |stage| stage.seed(&options, loss))
    }

    pub(super) fn finalize(&self, variables: &dyn Trackable) -> Result<()> {
        let options = self.options();
        match options.stage(StepStage::Average) {
            Some(stage) => stage.finalize(&options.name, &self.memory, variables),
            None => Ok(()),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Trackable for OptimizerState {
    fn track(&self, parts: &mut Parts<'_>) {
        parts.number("iterations", || self.made(), |made| self.set_made(made));
        // The rate of a schedule follows from the count.
        if !self.has_schedule() {
            parts.state("learning_rate", &Rate(self));
        }
        parts.slots(self);
    }
}

struct Rate<'a>(&'a OptimizerState);

impl HostState for Rate<'_> {
    fn form(&self) -> (HostDType, Option<&'static [usize]>) {
        (HostDType::F32, Some(&[]))
    }

    fn get(&self) -> Result<Vec<u8>> {
        Ok(self.0.learning_rate().to_le_bytes().into())
    }

    fn set(&self, bytes: &[u8]) -> Result<()> {
        // Only called if the rate is not a schedule.
        self.0.set_learning_rate(f32::from_le_bytes(bytes.try_into().unwrap_or_default()))
    }
}

impl SlotOwner for OptimizerState {
    fn slots(&self) -> Vec<(u64, String, Slot)> {
        self.memory().all()
    }

    fn listed(&self) -> Vec<u64> {
        self.memory().listed()
    }

    fn leave(&self, of: u64, name: &str, value: NamedArray<'static>) {
        self.memory().leave(of, name, value);
    }
}
