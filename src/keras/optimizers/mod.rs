//! [`Optimizer`]: changes variables along the gradients of a loss.
//!
//! An optimizer is a formula for one variable. This room does everything around it: slots, the count of steps, and the
//! way back when a step fails. A formula asks the [`Step`] for numbers that vary from step to step, so every step runs
//! the same plan. A program schedules the learning rate with a [`Schedule`](schedules::Schedule), or by calling
//! `set_learning_rate`.

mod adam;
mod learning_rate;
mod rmsprop;
pub mod schedules;
mod sgd;
mod state;
mod step;

pub use adam::Adam;
pub use learning_rate::LearningRate;
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
/// A new optimizer gives its state, its slots' names and the formula; the rest follows:
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
    /// The learning rate, the count of steps and the slots.
    fn state(&self) -> &OptimizerState;

    /// The names of the tensors that the optimizer keeps for each variable; they start at 0.
    fn slot_names(&self) -> Vec<&'static str>;

    /// Computes the variable's new value and those of its slots from the value `w`, the gradient `g` and the present
    /// slots, all of one shape.
    ///
    /// # Errors
    /// The errors of the ops it calls.
    fn update(
        &self,
        step: &Step,
        w: &Tensor,
        g: &Tensor,
        slots: &[Tensor],
    ) -> Result<(Tensor, Vec<Tensor>)>;

    /// Makes a step: `grads[i]` belongs to the trainable variable `i` of `variables` (a model, or a list of variables).
    /// A variable whose gradient is `None` stays, and a warning says so.
    ///
    /// The call flushes the device's stream. If anything goes wrong, variables, slots and the count of steps are as
    /// they were before, so that training can go on.
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
        // The step takes the gradients over, so that none lives beyond its use.
        step::run(self, tape.gradient(loss, &variables.list)?, &variables)
    }

    /// Calls `loss` on a tape, and makes a step down its gradient with all trainable variables of `variables`, which may
    /// exist only since that call. Returns the loss before the step.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// use tf::keras::optimizers::{Optimizer, Sgd};
    /// let w = tf::Variable::new(&tf::constant(1.0)?);
    /// let sgd = Sgd::new(0.25);
    /// let loss = sgd.minimize_fn(|| Ok(&w * &w), &w)?;
    /// assert_eq!((loss.item::<f32>()?, w.read().item::<f32>()?), (1.0, 0.5));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Optimizer::minimize`], and those of `loss`.
    fn minimize_fn(
        &self,
        loss: impl FnOnce() -> Result<Tensor>,
        variables: &dyn Trackable,
    ) -> Result<Tensor>
    where
        Self: Sized,
    {
        let (tape, loss) = GradientTape::record(|_| loss())?;
        self.minimize(&loss, tape, variables)?;
        Ok(loss)
    }

    /// Makes the slots of all trainable variables of `variables` now rather than at the first step.
    ///
    /// # Errors
    /// [`Error::Device`](crate::Error::Device) if there is no memory.
    fn build(&self, variables: &dyn Trackable) -> Result<()> {
        step::build(self.state(), &self.slot_names(), &variables.trainable_variables())
    }

    /// The number of steps made.
    fn iterations(&self) -> u64 {
        self.state().iterations()
    }

    /// Sets the number of steps made, for instance to a checkpoint's.
    fn set_iterations(&self, iterations: u64) {
        self.state().set_iterations(iterations);
    }

    /// The learning rate of the next step.
    fn learning_rate(&self) -> f32 {
        self.state().learning_rate()
    }

    /// Sets the learning rate of the steps from now on.
    ///
    /// # Errors
    /// [`Error::Check`](crate::Error::Check) if the optimizer has a schedule.
    fn set_learning_rate(&self, learning_rate: f32) -> Result<()> {
        self.state().set_learning_rate(learning_rate)
    }
}

macro_rules! pointers {
    ($($pointer:ty),*) => {$(
        impl<O: Optimizer + ?Sized> Optimizer for $pointer {
            fn state(&self) -> &OptimizerState {
                (**self).state()
            }

            fn slot_names(&self) -> Vec<&'static str> {
                (**self).slot_names()
            }

            fn update(
                &self,
                step: &Step,
                w: &Tensor,
                g: &Tensor,
                slots: &[Tensor],
            ) -> Result<(Tensor, Vec<Tensor>)> {
                (**self).update(step, w, g, slots)
            }

            fn apply_gradients(
                &self,
                grads: &[Option<Tensor>],
                variables: &dyn Trackable,
            ) -> Result<()> {
                (**self).apply_gradients(grads, variables)
            }

            fn minimize(
                &self,
                loss: &Tensor,
                tape: GradientTape,
                variables: &dyn Trackable,
            ) -> Result<()> {
                (**self).minimize(loss, tape, variables)
            }

            fn build(&self, variables: &dyn Trackable) -> Result<()> {
                (**self).build(variables)
            }

            fn iterations(&self) -> u64 {
                (**self).iterations()
            }

            fn set_iterations(&self, iterations: u64) {
                (**self).set_iterations(iterations);
            }

            fn learning_rate(&self) -> f32 {
                (**self).learning_rate()
            }

            fn set_learning_rate(&self, learning_rate: f32) -> Result<()> {
                (**self).set_learning_rate(learning_rate)
            }
        }
    )*};
}
// An optimizer that a struct owns or shares: `Box<dyn Optimizer>`.
pointers!(&O, Box<O>, Arc<O>);

/// The numbers that vary from step to step, for an optimizer's formula.
#[derive(Debug)]
pub struct Step {
    /// The number of this step, from 1.
    number: u64,
    learning_rate: f32,
    /// The source of the next step's numbers.
    pace: Arc<Pace>,
}

impl Step {
    /// The number that `f` computes from the step's number (from 1) and the learning rate. Each step computes it anew;
    /// other values that `f` holds must not change, and `f` must not use the optimizer.
    ///
    /// The step's number stays at 2^31 - 1 once it gets there.
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
