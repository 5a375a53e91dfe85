//! [`Schedule`]: learning rates that change from step to step.
//!
//! The host computes them, and a step takes the number as a runtime scalar, so every step runs the same plan.

/// A learning rate for each step: a type of the program's own, or a function of the count of steps.
pub trait Schedule: Send + Sync {
    /// The learning rate of the step that comes after `step` steps.
    fn at(&self, step: u64) -> f64;
}

impl<F: Fn(u64) -> f64 + Send + Sync> Schedule for F {
    fn at(&self, step: u64) -> f64 {
        self(step)
    }
}
