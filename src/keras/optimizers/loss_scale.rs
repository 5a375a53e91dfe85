//! The stages that scale the loss, so that small gradients in `f16` do not become 0: by a fixed number, or by the dynamic scale
//! of [`LossScaleOptimizer`].

use std::sync::{Arc, Mutex, PoisonError};

use super::options::{Options, Pairs, Round, Stage, StepStage, Within};
use super::{Optimizer, OptimizerState, Step};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::host_array::HostArray;
use crate::ops::where_;
use crate::tensor::Tensor;
use crate::trackable::{Class, NamedArray, Role, Slot, Trackable, to_tensor_if_exact};
use crate::variable::Variable;

/// `loss_scale_factor`
#[derive(Debug, Default)]
pub(super) struct Factor(Scaled);

impl Stage for Factor {
    fn gradients<'v>(&self, round: &mut Round<'_>, pairs: Pairs<'v>) -> Result<Pairs<'v>> {
        let factor = round.options.loss_scale_factor;
        pairs.into_iter().map(|(variable, g)| Ok((variable, g.divide(factor)?))).collect()
    }

    fn scale_loss(&self, options: &Options, loss: &Tensor) -> Result<Tensor> {
        self.0.remember(options, wide(loss)?.multiply(options.loss_scale_factor)?)
    }

    fn seed(&self, options: &Options, loss: &Tensor) -> Result<Option<Tensor>> {
        self.0.seed(options, loss, self)
    }
}

/// The identities of the losses that were scaled last.
#[derive(Debug, Default)]
struct Scaled(Mutex<Vec<u64>>);

impl Scaled {
    /// The number of scaled losses to remember until the first of them is minimized.
    const KEPT: usize = 16;

    fn remember(&self, options: &Options, loss: Tensor) -> Result<Tensor> {
        options.check()?;
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.truncate(Scaled::KEPT - 1);
        known.insert(0, loss.id());
        Ok(loss)
    }

    /// The scale as the gradient to start from, unless the loss is scaled already.
    fn seed(&self, options: &Options, loss: &Tensor, stage: &dyn Stage) -> Result<Option<Tensor>> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(&loss.id());
        match known {
            true => Ok(None),
            false => stage.scale_loss(options, &loss.ones_like()?)?.cast(loss.dtype()).map(Some),
        }
    }
}

/// A scaled loss easily exceeds the range of `f16`.
fn wide(loss: &Tensor) -> Result<Tensor> {
    if loss.dtype() == DType::F16 { loss.cast(DType::F32) } else { Ok(loss.clone()) }
}

/// What checkpoints know of it.
static CLASS: Class = Class::new("LossScaleOptimizer").role(Role::OuterOptimizer);

/// Lets another optimizer train a model that computes in `f16` (`mixed_float16`): the loss is multiplied by a scale, and
/// the gradients are divided by it, so that small ones do not become 0 on their way.
///
/// A step with an infinite or NaN gradient only halves the scale. After 2,000 finite steps in a row, the scale doubles. The
/// device decides this, and nothing is read back. The host therefore counts all steps: a schedule and Adam's bias correction
/// also count the steps that changed nothing.
///
/// [`Optimizer::minimize`] scales the loss automatically. If you compute the gradients with a tape, scale the loss while the
/// tape records:
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// use tf::keras::optimizers::{LossScaleOptimizer, Optimizer, Sgd};
/// let w = tf::Variable::new(tf::constant(3.0)?);
/// let optimizer = LossScaleOptimizer::new(Sgd::new(0.1));
/// let tape = tf::GradientTape::new();
/// let loss = optimizer.scale_loss(&(&w * &w))?;
/// let grads = [tape.gradient(&loss, &w)?];
/// optimizer.apply_gradients(&grads, &w)?;
/// assert!((w.read().item::<f32>()? - 2.4).abs() < 1e-6);
///
/// // A step that cannot be made changes the scale alone.
/// optimizer.apply_gradients(&[Some(tf::constant(f32::INFINITY)?)], &w)?;
/// assert!((w.read().item::<f32>()? - 2.4).abs() < 1e-6);
/// assert_eq!(optimizer.dynamic_scale()?.item::<f32>()?, 16384.0);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Trackable)]
#[track(class = &CLASS)]
pub struct LossScaleOptimizer<O: Optimizer = Box<dyn Optimizer>> {
    inner_optimizer: O,
    #[track(flatten)]
    scale: Arc<DynamicScale>,
}

#[derive(Debug, Trackable)]
struct DynamicScale {
    dynamic_scale: Slot,
    /// The finite steps since the scale last changed.
    step_counter: Slot,
    initial_scale: f64,
    dynamic_growth_steps: u32,
    #[track(skip)]
    scaled: Scaled,
}

impl<O: Optimizer> LossScaleOptimizer<O> {
    /// Creates an optimizer that scales the loss for `inner_optimizer`, and replaces its `loss_scale_factor`: by 2^15
    /// initially, and by twice as much after 2,000 finite steps.
    pub fn new(inner_optimizer: O) -> Self {
        Self::with(inner_optimizer, 32768.0, 2000)
    }

    /// Sets the initial scale.
    pub fn initial_scale(self, initial_scale: f64) -> Self {
        let growth = self.scale.dynamic_growth_steps;
        Self::with(self.inner_optimizer, initial_scale, growth)
    }

    /// Sets after how many finite steps in a row the scale doubles.
    pub fn dynamic_growth_steps(self, dynamic_growth_steps: u32) -> Self {
        let initial_scale = self.scale.initial_scale;
        Self::with(self.inner_optimizer, initial_scale, dynamic_growth_steps)
    }

    /// Returns the scale of the next step.
    ///
    /// # Errors
    /// [`Error::Device`](crate::Error::Device) if the device is out of memory.
    pub fn dynamic_scale(&self) -> Result<Tensor> {
        match self.scale.dynamic_scale.variable() {
            Some(scale) => Ok(scale.read()),
            None => start(self.scale.dynamic_scale.left().as_ref(), DType::F32),
        }
    }

    fn with(inner_optimizer: O, initial_scale: f64, dynamic_growth_steps: u32) -> Self {
        let scale = Arc::new(DynamicScale {
            dynamic_scale: starting_at(ndarray::arr0(initial_scale as f32).into()),
            step_counter: starting_at(ndarray::arr0(0i32).into()),
            initial_scale,
            dynamic_growth_steps,
            scaled: Scaled::default(),
        });
        let state = inner_optimizer.state();
        state.require("initial_scale", initial_scale, Within::Positive);
        state.require("dynamic_growth_steps", dynamic_growth_steps.into(), Within::Positive);
        state.set(|options| options.set(StepStage::Scale, Some(scale.clone())));
        LossScaleOptimizer { inner_optimizer, scale }
    }
}

impl<O: Optimizer> Optimizer for LossScaleOptimizer<O> {
    fn state(&self) -> &OptimizerState {
        self.inner_optimizer.state()
    }

    fn slot_names(&self, variable: &Variable) -> Vec<&'static str> {
        self.inner_optimizer.slot_names(variable)
    }

    fn slot_start(&self, name: &str, variable: &Variable) -> Result<Tensor> {
        self.inner_optimizer.slot_start(name, variable)
    }

    fn update(
        &self,
        step: &Step,
        w: &Tensor,
        g: &Tensor,
        slots: &[Tensor],
    ) -> Result<(Tensor, Vec<Tensor>)> {
        self.inner_optimizer.update(step, w, g, slots)
    }
}

impl DynamicScale {
    /// The scale and the count, on the device of the given tensor.
    fn variables(&self, near: &Tensor) -> Result<(&Variable, &Variable)> {
        let device = near.device();
        let scale = &self.dynamic_scale;
        let scale = scale.get_or_make(|left| device.scope(|| start(left, DType::F32)))?;
        let count = &self.step_counter;
        let count = count.get_or_make(|left| device.scope(|| start(left, DType::I32)))?;
        Ok((scale, count))
    }
}

/// A slot with this initial value, unless a checkpoint provides another. It can therefore be saved before the first step.
fn starting_at(value: HostArray<'static>) -> Slot {
    let slot = Slot::new(false);
    slot.leave(NamedArray::new("start", value));
    slot
}

fn start(left: Option<&NamedArray<'_>>, dtype: DType) -> Result<Tensor> {
    let left =
        left.ok_or_else(|| Error::Checkpoint("LossScaleOptimizer: its scale is gone.".into()))?;
    to_tensor_if_exact(left, &[], dtype)
}

impl Stage for DynamicScale {
    fn gradients<'v>(&self, round: &mut Round<'_>, pairs: Pairs<'v>) -> Result<Pairs<'v>> {
        let Some((_, first)) = pairs.first() else { return Ok(pairs) };
        let scale = self.variables(first)?.0.read_stopped();
        let mut finite = first.is_finite()?.reduce_all(())?;
        for (_, grad) in &pairs[1..] {
            finite = finite.logical_and(grad.is_finite()?.reduce_all(())?)?;
        }
        round.wanted = Some(finite);
        let unscaled = |g: &Tensor| g.divide(scale.cast(g.dtype())?);
        pairs.iter().map(|(variable, g)| Ok((*variable, unscaled(g)?))).collect()
    }

    fn settle(&self, round: &mut Round<'_>) -> Result<()> {
        let Some(finite) = round.wanted.take() else { return Ok(()) };
        for (variable, value) in &mut round.changes {
            *value = where_(&finite, value, &variable.read_stopped())?;
        }
        let (scale_of, count_of) = self.variables(&finite)?;
        let (scale, count) = (scale_of.read_stopped(), count_of.read_stopped());
        let grows = count.greater_equal(i64::from(self.dynamic_growth_steps) - 1)?;
        // The scale remains finite and above 0, so that later steps can succeed.
        let more = scale.multiply(2.0)?.minimum(2f32.powi(127))?;
        let less = scale.multiply(0.5)?.maximum(f32::MIN_POSITIVE)?;
        let next = where_(&finite, &where_(&grows, &more, &scale)?, &less)?;
        let none = count.zeros_like()?;
        let counted = where_(&finite.logical_and(grows.logical_not()?)?, &count.add(1)?, &none)?;
        round.changes.extend([(scale_of.clone(), next), (count_of.clone(), counted)]);
        Ok(())
    }

    fn scale_loss(&self, options: &Options, loss: &Tensor) -> Result<Tensor> {
        let scale = self.variables(loss)?.0.read();
        let loss = wide(loss)?;
        self.scaled.remember(options, loss.multiply(scale.cast(loss.dtype())?)?)
    }

    fn seed(&self, options: &Options, loss: &Tensor) -> Result<Option<Tensor>> {
        self.scaled.seed(options, loss, self)
    }
}
