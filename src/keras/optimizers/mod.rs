//! [`Optimizer`]: updates variables with the gradients of a loss.
//!
//! An optimizer is a formula for one variable. This module does everything around it: slots, the count of steps, and the
//! rollback of a failed step. A formula reads the numbers that vary from step to step from the [`Step`], so every step runs the
//! same plan. A program schedules the learning rate with a [`Schedule`](schedules::Schedule), or by calling
//! `set_learning_rate`.

mod accumulation;
mod adadelta;
mod adafactor;
mod adagrad;
mod adam;
mod adamax;
mod averaging;
mod clipping;
#[cfg(feature = "json")]
mod from_config;
mod ftrl;
mod lamb;
mod learning_rate;
mod lion;
mod loss_scale;
mod memory;
mod muon;
mod nadam;
mod names;
mod options;
mod pace;
mod pointers;
mod rmsprop;
pub mod schedules;
mod setters;
mod sgd;
mod state;
mod step;
mod weight_decay;

pub use adadelta::Adadelta;
pub use adafactor::Adafactor;
pub use adagrad::Adagrad;
pub use adam::{Adam, AdamW};
pub use adamax::Adamax;
#[cfg(feature = "json")]
pub use from_config::from_config;
pub use ftrl::Ftrl;
pub use lamb::Lamb;
pub use learning_rate::LearningRate;
pub use lion::Lion;
pub use loss_scale::LossScaleOptimizer;
pub use muon::Muon;
pub use nadam::Nadam;
pub use names::get;
pub use pace::Step;
pub use rmsprop::RmsProp;
pub use sgd::Sgd;
pub use state::OptimizerState;

use std::sync::Arc;

use crate::dtype::DType;
use crate::error::{Error, Result, message};
use crate::tape::GradientTape;
use crate::tensor::Tensor;
use crate::trackable::Trackable;
use crate::variable::Variable;
use options::{Options, StepStage, Trainable, Within};

/// Updates variables to minimize a loss.
///
/// A custom optimizer provides its state, the names of its slots and the formula:
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
///     fn slot_names(&self, _: &tf::Variable) -> Vec<&'static str> {
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
    /// Returns the options, the learning rate, the count of steps and the slots.
    fn state(&self) -> &OptimizerState;

    /// Returns the names of the slots: the tensors that the optimizer stores for a variable.
    fn slot_names(&self, variable: &Variable) -> Vec<&'static str>;

    /// Returns the initial value of the slot `name` of a variable. The default is zeros of the variable's shape.
    ///
    /// # Errors
    /// [`Error::Device`] if the device is out of memory.
    fn slot_start(&self, _name: &str, variable: &Variable) -> Result<Tensor> {
        constant_slot(variable, 0.0)
    }

    /// Computes the new values of the variable and its slots from the value `w`, the gradient `g` and the current slots.
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

    /// Performs a step: `grads[i]` belongs to the trainable variable `i` of `variables` (a model, or a list of variables). A
    /// variable whose gradient is `None` does not change, and a warning reports it.
    ///
    /// The call flushes the device's stream. After an error, variables, slots and the count of steps are unchanged, so that
    /// training can continue.
    ///
    /// # Errors
    /// [`Error::Shape`] if the number of gradients or their shapes do not match the variables; [`Error::Gradient`] if there is
    /// no gradient at all; [`Error::Device`] if the step could not be run.
    fn apply_gradients(&self, grads: &[Option<Tensor>], variables: &dyn Trackable) -> Result<()> {
        step::run(self, grads.to_vec(), &Trainable::find(variables))
    }

    /// Performs a step with the gradients of `loss`, which `tape` has recorded, for all trainable variables of `variables` (a
    /// model, or a list of variables). An optimizer that scales losses scales this one, unless [`Optimizer::scale_loss`]
    /// already has.
    ///
    /// # Errors
    /// The errors of [`GradientTape::gradient`] and [`Optimizer::apply_gradients`].
    fn minimize(&self, loss: &Tensor, tape: GradientTape, variables: &dyn Trackable) -> Result<()> {
        let variables = Trainable::find(variables);
        let seed = self.state().seed(loss)?;
        let seed = seed.as_ref().map(|seed| [seed]);
        let seed = seed.as_ref().map(|seed| &seed[..]);
        // The step takes ownership of the gradients, so that each is freed after its use.
        step::run(self, tape.gradient_from(loss, seed, &variables.list)?, &variables)
    }

    /// Calls `loss` on a tape, and performs a step with its gradients for all trainable variables of `variables`, including
    /// those created by the call. Returns the loss before the step.
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
    /// The errors of [`Optimizer::minimize`] and of `loss`.
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

    /// Creates the slots of all trainable variables of `variables` now rather than at the first step.
    ///
    /// # Errors
    /// [`Error::Device`] if the device is out of memory.
    fn build(&self, variables: &dyn Trackable) -> Result<()> {
        step::build(self, &Trainable::find(variables))
    }

    /// Returns the number of steps; with `gradient_accumulation_steps`, of those that changed the variables.
    fn iterations(&self) -> u64 {
        self.state().iterations()
    }

    /// Sets the number of steps, for instance to that of a checkpoint.
    fn set_iterations(&self, iterations: u64) {
        self.state().set_iterations(iterations);
    }

    /// Returns the learning rate of the next step.
    fn learning_rate(&self) -> f32 {
        self.state().learning_rate()
    }

    /// Sets the learning rate of the steps from now on.
    ///
    /// # Errors
    /// [`Error::Check`] if the optimizer has a schedule.
    fn set_learning_rate(&self, learning_rate: f32) -> Result<()> {
        self.state().set_learning_rate(learning_rate)
    }

    /// Multiplies the loss by the scale by which the step will divide the gradients. Call it while the tape records. Returns
    /// the loss unchanged if the optimizer does not scale losses.
    ///
    /// # Errors
    /// The errors of the multiplication.
    fn scale_loss(&self, loss: &Tensor) -> Result<Tensor> {
        self.state().scale_loss(loss)
    }

    /// Sets the trainable variables of `variables` to their averages at the end of a training with [`Optimizer::use_ema`].
    /// Without that option, nothing changes.
    ///
    /// # Errors
    /// [`Error::Check`] if the optimizer has performed no step with one of them.
    fn finalize_variable_values(&self, variables: &dyn Trackable) -> Result<()> {
        self.state().finalize(variables)
    }

    /// Returns the optimizer's name in messages.
    fn name(&self) -> String {
        self.state().name()
    }

    /// Sets the optimizer's name in messages.
    fn with_name(self, name: impl Into<String>) -> Self
    where
        Self: Sized,
    {
        self.state().set(|options| options.name = name.into());
        self
    }

    /// Sets the weight decay: each step first subtracts `learning_rate weight_decay w` from a weight `w`.
    fn weight_decay(self, weight_decay: f64) -> Self
    where
        Self: Sized,
    {
        self.state().set(|options| weight_decay::set(options, weight_decay));
        self
    }

    /// Excludes variables from weight decay whose names (paths such as `dense/bias`) contain one of these strings.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad::{self as tf, Trackable};
    /// use tf::keras::{Layer, TRAINING, layers::Dense};
    /// use tf::keras::optimizers::{AdamW, Optimizer};
    /// let layer = Dense::new(1);
    /// let adamw = AdamW::new(0.5).weight_decay(0.5).exclude_from_weight_decay(["bias"]);
    /// let tape = tf::GradientTape::new();
    /// let loss = layer.call(&tf::constant([[0.0]])?, TRAINING)?.reduce_sum(())?;
    /// let before = layer.trainable_variables()[0].read();
    /// adamw.minimize(&loss, tape, &layer)?;
    /// // The kernel has lost a quarter; the bias made a step of Adam, and nothing else.
    /// let kernel = layer.trainable_variables()[0].read().item::<f32>()?;
    /// assert!((kernel - 0.75 * before.reduce_sum(())?.item::<f32>()?).abs() < 1e-6);
    /// assert!((layer.trainable_variables()[1].read().reduce_sum(())?.item::<f32>()? + 0.5).abs() < 1e-5);
    /// # Ok(())
    /// # }
    /// ```
    fn exclude_from_weight_decay<N: Into<String>>(
        self,
        var_names: impl IntoIterator<Item = N>,
    ) -> Self
    where
        Self: Sized,
    {
        let names = var_names.into_iter().map(Into::into);
        self.state()
            .set(|options| weight_decay::exclude(options, |excluded| excluded.names.extend(names)));
        self
    }

    /// Excludes these variables from weight decay: those that a layer has at the time of the call, or a list.
    fn exclude_variables_from_weight_decay(self, variables: &dyn Trackable) -> Self
    where
        Self: Sized,
    {
        let ids = variables.variables().into_iter().map(|variable| variable.id());
        self.state().set(|options| {
            weight_decay::exclude(options, |excluded| excluded.variables.extend(ids))
        });
        self
    }

    /// Scales each gradient whose norm is above `clipnorm` down to that norm.
    fn clipnorm(self, clipnorm: f64) -> Self
    where
        Self: Sized,
    {
        let stage = Arc::new(clipping::ByNorm(clipnorm));
        self.state().set(|options| options.clip("clipnorm", clipnorm, stage));
        self
    }

    /// Clips each element of a gradient to `-clipvalue` to `clipvalue`.
    fn clipvalue(self, clipvalue: f64) -> Self
    where
        Self: Sized,
    {
        let stage = Arc::new(clipping::ByValue(clipvalue));
        self.state().set(|options| options.clip("clipvalue", clipvalue, stage));
        self
    }

    /// Scales all gradients down together if their norm, as one vector, is above `global_clipnorm`.
    fn global_clipnorm(self, global_clipnorm: f64) -> Self
    where
        Self: Sized,
    {
        let stage = Arc::new(clipping::ByGlobalNorm(global_clipnorm));
        self.state().set(|options| options.clip("global_clipnorm", global_clipnorm, stage));
        self
    }

    /// Sets whether the optimizer maintains a moving average of each weight. [`Optimizer::finalize_variable_values`] assigns
    /// these averages to the weights.
    fn use_ema(self, use_ema: bool) -> Self
    where
        Self: Sized,
    {
        self.state().set(|options| {
            options.set(StepStage::Average, use_ema.then(|| Arc::new(averaging::Averaging) as _));
        });
        self
    }

    /// Sets the momentum of the moving average, from 0 to 1. Default: 0.99.
    fn ema_momentum(self, ema_momentum: f64) -> Self
    where
        Self: Sized,
    {
        self.state().set(|options| {
            options.require("ema_momentum", ema_momentum, Within::Unit);
            options.ema_momentum = ema_momentum;
        });
        self
    }

    /// Sets after how many steps the averages also replace the weights during training.
    fn ema_overwrite_frequency(self, ema_overwrite_frequency: u64) -> Self
    where
        Self: Sized,
    {
        self.state().set(|options| {
            let often = ema_overwrite_frequency;
            options.require("ema_overwrite_frequency", often as f64, Within::Positive);
            options.ema_overwrite_frequency = (often > 0).then_some(often);
        });
        self
    }

    /// Sets the number by which [`Optimizer::scale_loss`] multiplies the loss, and by which a step divides the gradients.
    fn loss_scale_factor(self, loss_scale_factor: f64) -> Self
    where
        Self: Sized,
    {
        self.state().set(|options| {
            options.require("loss_scale_factor", loss_scale_factor, Within::Positive);
            options.loss_scale_factor = loss_scale_factor;
            options.set(StepStage::Scale, Some(Arc::new(loss_scale::Factor::default())));
        });
        self
    }

    /// Accumulates gradients: variables change only once for every `gradient_accumulation_steps` (at least 2) times that
    /// gradients are applied, by the mean of these gradients. A schedule counts each application of gradients,
    /// [`Optimizer::iterations`] only the changes.
    fn gradient_accumulation_steps(self, gradient_accumulation_steps: u64) -> Self
    where
        Self: Sized,
    {
        let several = gradient_accumulation_steps;
        self.state().set(|options: &mut Options| {
            if several < 2 {
                options.refuse(format!(
                    "gradient_accumulation_steps is {several}; it must be at least 2"
                ));
            }
            options.gradient_accumulation_steps = several.max(1);
            options.set(StepStage::Accumulate, Some(Arc::new(accumulation::Accumulation)));
        });
        self.state().set_gradients(several);
        self
    }
}

setters::options_of_all! {
    [] Adadelta;
    [] Adafactor;
    [] Adagrad;
    [] Adam;
    [] AdamW;
    [] Adamax;
    [] Ftrl;
    [] Lamb;
    [] Lion;
    [O: Optimizer] LossScaleOptimizer<O>;
    [] Muon;
    [] Nadam;
    [] RmsProp;
    [] Sgd;
}

/// The slots as an array, for a formula.
fn slots<'a, const N: usize>(
    optimizer: &OptimizerState,
    slots: &'a [Tensor],
) -> Result<&'a [Tensor; N]> {
    slots.try_into().map_err(|_| {
        Error::Shape(message!(
            "{}: update was given {} slots; it needs {N}.",
            optimizer.name(),
            slots.len()
        ))
    })
}

/// Slots up to this many bytes are uploaded from the host.
const UPLOADED: usize = 1 << 20;

/// A slot with a constant initial value. It is in memory like the slots of later steps, so that the first step runs the same
/// kernels; only a large slot is a constant of that step.
fn constant_slot(variable: &Variable, value: f64) -> Result<Tensor> {
    let start = variable.peek();
    let (dtype, count) = (variable.dtype(), start.len());
    if dtype == DType::F32 && dtype.bytes(count) <= UPLOADED as u64 {
        return start
            .device()
            .scope(|| Tensor::from_slice(&vec![value as f32; count], variable.shape()));
    }
    start.device().scope(|| Tensor::full(variable.shape(), value as f32))?.cast(variable.dtype())
}
