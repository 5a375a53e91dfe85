//! [`Optimizer`]: steps downhill along gradients.
//!
//! An optimizer is a formula for one variable; everything around it (slots, the count of steps, what happens when
//! a step fails) is here. What varies from step to step is a number that the formula asks the [`Step`] for, so every
//! step runs the same plan. Schedules of the learning rate are the program's: call `set_learning_rate`.

mod adam;
mod rmsprop;
mod sgd;
mod state;
mod step;

pub use adam::Adam;
pub use rmsprop::RmsProp;
pub use sgd::Sgd;
pub use state::OptimizerState;
use state::Pace;

use std::sync::Arc;

use crate::error::Result;
use crate::tape::GradientTape;
use crate::tensor::{Operand, Tensor, Varying};
use crate::trackable::Trackable;

/// Changes variables so that a loss falls.
///
/// A new one gives its state, its slots' names and the formula; the rest follows:
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// use tf::keras::optimizers::{Optimizer, OptimizerState, Step};
///
/// /// `w -= lr sign(g)`.
/// #[derive(tf::Trackable)]
/// struct SignDescent(#[track(flatten)] OptimizerState);
///
/// impl Optimizer for SignDescent {
///     fn state(&self) -> &OptimizerState {
///         &self.0
///     }
///     fn slot_names(&self) -> Vec<&'static str> {
///         vec![]
///     }
///     fn update(&self, step: &Step, w: &tf::Tensor, g: &tf::Tensor, _: &[tf::Tensor])
///         -> tf::Result<(tf::Tensor, Vec<tf::Tensor>)>
///     {
///         Ok((w.subtract(g.sign()?.multiply(step.learning_rate())?)?, vec![]))
///     }
/// }
///
/// let w = tf::Variable::new(&tf::constant(2.0)?);
/// let optimizer = SignDescent(OptimizerState::new("sign", 0.5));
/// let tape = tf::GradientTape::new();
/// let loss = &w * &w;
/// optimizer.minimize(&loss, tape, &w)?;
/// assert_eq!(w.read().item::<f32>()?, 1.5);
/// # Ok(())
/// # }
/// ```
pub trait Optimizer: Trackable {
    /// Learning rate, count of steps and slots.
    fn state(&self) -> &OptimizerState;

    /// The names of the tensors that are kept for each variable; they start at 0.
    fn slot_names(&self) -> Vec<&'static str>;

    /// The variable's new value and its slots', from the value `w`, the gradient `g` and the slots as they are, all
    /// of one shape.
    ///
    /// # Errors
    /// Those of the ops it calls.
    fn update(
        &self,
        step: &Step,
        w: &Tensor,
        g: &Tensor,
        slots: &[Tensor],
    ) -> Result<(Tensor, Vec<Tensor>)>;

    /// Makes a step: `grads[i]` belongs to the trainable variable `i` of `variables` (a model, or a list of variables);
    /// where it is `None` the variable stays, with a warning.
    ///
    /// The device's stream is flushed. If anything goes wrong, variables, slots and the count of steps are as they
    /// were before, so that training can go on.
    ///
    /// # Errors
    /// [`Error::Shape`](crate::Error::Shape) if numbers or shapes differ; [`Error::Gradient`](crate::Error::Gradient)
    /// if there is no gradient at all; [`Error::Device`](crate::Error::Device) if the step could not be run.
    fn apply_gradients(&self, grads: &[Option<Tensor>], variables: &dyn Trackable) -> Result<()> {
        step::run(self, grads.to_vec(), &step::Trainable::of(variables))
    }

    /// Makes a step down the gradient of `loss`, which `tape` has recorded, with all trainable variables of `variables`:
    /// a model, or a list of variables.
    ///
    /// # Errors
    /// As [`GradientTape::gradient`] and [`Optimizer::apply_gradients`].
    fn minimize(&self, loss: &Tensor, tape: GradientTape, variables: &dyn Trackable) -> Result<()> {
        let variables = step::Trainable::of(variables);
        // The gradients are handed over, so that none is kept beyond its use in the step.
        step::run(self, tape.gradient(loss, &variables.list)?, &variables)
    }

    /// Makes the slots of all trainable variables of `variables` now and not at the first step.
    ///
    /// # Errors
    /// [`Error::Device`](crate::Error::Device) if there is no memory.
    fn build(&self, variables: &dyn Trackable) -> Result<()> {
        step::build(self.state(), &self.slot_names(), &variables.trainable_variables())
    }

    /// How many steps were made.
    fn iterations(&self) -> u64 {
        self.state().iterations()
    }

    /// Sets how many steps were made, for instance to what a checkpoint says.
    fn set_iterations(&self, iterations: u64) {
        self.state().set_iterations(iterations);
    }

    /// The size of steps.
    fn learning_rate(&self) -> f32 {
        self.state().learning_rate()
    }

    /// Sets the size of the steps from now on.
    fn set_learning_rate(&self, learning_rate: f32) {
        self.state().set_learning_rate(learning_rate);
    }
}

/// What a step's formula may depend on beside tensors: numbers that vary from step to step.
#[derive(Debug)]
pub struct Step {
    /// Which step this is, from 1.
    number: u64,
    learning_rate: f32,
    /// Whom the next step's numbers come from.
    pace: Arc<Pace>,
}

impl Step {
    /// The number that `f` makes of the step's number, from 1, and the learning rate. It is computed at each step; what
    /// else `f` holds must stay as it is, and it must not look at the optimizer.
    ///
    /// The step's number stays at 2^31 - 1 when that many were made.
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
                let (made, learning_rate) = pace.now();
                let (t, learning_rate) = at(made.saturating_add(1), learning_rate);
                f(t, learning_rate).into()
            }
        }))
    }

    /// The learning rate at this step.
    pub fn learning_rate(&self) -> Operand {
        self.scalar(|_, learning_rate| learning_rate)
    }
}
