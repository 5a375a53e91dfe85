//! [`LearningRate`]: a number, or a schedule with a rate for each step.

use std::fmt;
use std::sync::Arc;

use super::schedules::Schedule;
use crate::error::Result;

/// The learning rate of an optimizer: a number, or a built-in or custom [`Schedule`].
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// use tf::keras::optimizers::{Optimizer, Sgd};
/// let w = tf::Variable::new(tf::constant(1.0)?);
/// let sgd = Sgd::new(|step: u64| 1.0 / (1.0 + step as f64));
/// for _ in 0..2 {
///     sgd.apply_gradients(&[Some(tf::constant(0.5)?)], &w)?; // takes off a half, then a quarter
/// }
/// assert_eq!(w.read().item::<f32>()?, 0.25);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct LearningRate(Rate);

#[derive(Clone)]
enum Rate {
    Number(f32),
    Schedule(Arc<dyn Schedule>),
}

impl LearningRate {
    /// Returns the learning rate after `step` steps.
    pub fn at(&self, step: u64) -> f32 {
        match &self.0 {
            Rate::Number(rate) => *rate,
            Rate::Schedule(schedule) => schedule.at(step) as f32,
        }
    }

    pub(super) fn check(&self) -> Result<()> {
        match &self.0 {
            Rate::Number(_) => Ok(()),
            Rate::Schedule(schedule) => schedule.check(),
        }
    }

    pub(super) fn is_schedule(&self) -> bool {
        matches!(self.0, Rate::Schedule(_))
    }
}

impl From<f32> for LearningRate {
    fn from(rate: f32) -> Self {
        LearningRate(Rate::Number(rate))
    }
}

impl From<f64> for LearningRate {
    fn from(rate: f64) -> Self {
        LearningRate(Rate::Number(rate as f32))
    }
}

impl<S: Schedule + 'static> From<S> for LearningRate {
    fn from(schedule: S) -> Self {
        LearningRate(Rate::Schedule(Arc::new(schedule)))
    }
}

impl From<Arc<dyn Schedule>> for LearningRate {
    fn from(schedule: Arc<dyn Schedule>) -> Self {
        LearningRate(Rate::Schedule(schedule))
    }
}

impl From<Box<dyn Schedule>> for LearningRate {
    fn from(schedule: Box<dyn Schedule>) -> Self {
        LearningRate(Rate::Schedule(schedule.into()))
    }
}

impl fmt::Debug for LearningRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Rate::Number(rate) => rate.fmt(f),
            Rate::Schedule(_) => f.write_str("schedule"),
        }
    }
}
