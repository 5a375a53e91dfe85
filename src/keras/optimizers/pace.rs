//! [`Step`]: the numbers that vary from step to step, and [`Pace`], their source.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::LearningRate;
use crate::eager::RunCounter;
use crate::error::Result;
use crate::tensor::{Operand, Varying};

/// The count of applied gradients and the learning rate, shared with the functions that compute a step's numbers from them.
#[derive(Debug)]
pub(super) struct Pace(Mutex<Count>);

#[derive(Debug, Clone)]
pub(super) struct Count {
    /// How often gradients were applied.
    pub(super) made: u64,
    pub(super) rate: LearningRate,
    /// How many applications of gradients make a step.
    pub(super) gradients: u64,
}

impl Count {
    /// The number of steps.
    pub(super) fn steps(&self) -> u64 {
        self.made / self.gradients
    }

    /// The learning rate of the next application of gradients, which a schedule counts, as in Keras.
    pub(super) fn rate(&self) -> f32 {
        self.rate.at(self.made)
    }
}

impl Pace {
    pub(super) fn new(rate: LearningRate) -> Self {
        Pace(Mutex::new(Count { made: 0, rate, gradients: 1 }))
    }

    /// Returns a copy: a custom schedule may do anything, so it must not be called while the lock is held.
    pub(super) fn now(&self) -> Count {
        self.lock().clone()
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Count> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RunCounter for Pace {
    fn advance(&self) -> Result<Option<u64>> {
        let mut count = self.lock();
        let before = count.made;
        count.made = before.saturating_add(1);
        Ok(Some(before))
    }

    fn step_back(&self) {
        let mut count = self.lock();
        count.made = count.made.saturating_sub(1);
    }
}

/// The numbers that vary from step to step, for an optimizer's formula.
#[derive(Debug)]
pub struct Step {
    /// The number of this step, from 1.
    pub(super) number: u64,
    pub(super) learning_rate: f32,
    /// The source of the next step's numbers.
    pub(super) pace: Arc<Pace>,
}

impl Step {
    /// Returns the number that `f` computes from the step's number (from 1) and the learning rate. Each step computes it again.
    /// Other values that `f` captures must not change, and `f` must not use the optimizer.
    ///
    /// The step's number saturates at 2^31 - 1.
    ///
    /// ```
    /// # use wgrad as tf;
    /// # fn update(step: &tf::keras::optimizers::Step, m: &tf::Tensor) -> tf::Result<tf::Tensor> {
    /// let beta = 0.9_f64;
    /// let corrected = m.multiply(step.scalar(move |t, lr| lr / (1.0 - beta.powi(t))))?;
    /// # Ok(corrected)
    /// # }
    /// ```
    pub fn scalar(&self, f: impl Fn(i32, f64) -> f64 + Send + Sync + 'static) -> Operand {
        let at = |number, learning_rate: f32| {
            (i32::try_from(number).unwrap_or(i32::MAX), f64::from(learning_rate))
        };
        let (t, learning_rate) = at(self.number, self.learning_rate);
        let now = f(t, learning_rate);
        Operand::Varying(Varying::new(now, || {
            let pace = self.pace.clone();
            move || {
                let count = pace.now();
                let (t, learning_rate) = at(count.steps().saturating_add(1), count.rate());
                f(t, learning_rate).into()
            }
        }))
    }

    /// Returns the learning rate at this step.
    pub fn learning_rate(&self) -> Operand {
        self.scalar(|_, learning_rate| learning_rate)
    }
}
