//! [`Weight`]: a variable that a layer creates at its first input, which determines its shape.

use std::sync::OnceLock;

use super::loading::{Draw, draw_later, is_loading};
use super::trial::settle;
use super::{Constraint, DTypePolicy, Initializer, Regularizer};
use crate::eager;
use crate::error::{Error, Result, message};
use crate::random;
use crate::random::replicated::for_all;
use crate::shape::Shape;
use crate::tensor::Tensor;
use crate::trackable::{Parts, Slot, Trackable, to_tensor_if_exact, value};
use crate::variable::Variable;

/// A weight of a layer: its initializer, whether it is trainable, and its regularizer and constraint. The layer creates the
/// variable at its first input, which determines the shape.
///
/// If a checkpoint is restored before that, the weight holds the restored value until then. A clone is another handle to the
/// same weight.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::{self as tf, Tensor, keras::{Initializer, Weight}};
/// let kernel = Weight::new().initializer(Initializer::HeNormal);
/// let x = Tensor::ones([5, 3])?;
/// let y = x.matmul(kernel.get(&x, [3, 2])?)?; // made here
/// assert_eq!(y.shape(), [5, 2]);
/// let error = kernel.get(&Tensor::ones([5, 4])?, [4, 2]).unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "the input is [5, 4], for which a weight has to be [4, 2]; the first input was [5, 3], and its weight is [3, 2]. \
///      Give the layer inputs of one size, or make a new layer."
/// );
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Weight {
    pub(super) initializer: Initializer,
    pub(super) regularizer: Option<Regularizer>,
    pub(super) constraint: Option<Constraint>,
    policy: DTypePolicy,
    slot: Slot,
    /// The shape of the input at which the variable was created.
    first: std::sync::Arc<OnceLock<Shape>>,
}

/// Up to this many elements, uploading is faster than computing on the device: enough for a bias, but not for a kernel.
const SMALL: usize = 1 << 14;

impl Default for Weight {
    fn default() -> Self {
        Weight::new()
    }
}

impl Weight {
    /// Creates a trainable weight with a Glorot uniform initializer.
    pub fn new() -> Self {
        Weight {
            initializer: Initializer::GlorotUniform,
            regularizer: None,
            constraint: None,
            policy: DTypePolicy::default(),
            slot: Slot::new(true),
            first: Default::default(),
        }
    }

    /// Creates a trainable weight that starts at 0.
    pub fn zeros() -> Self {
        Weight::new().initializer(Initializer::Zeros)
    }

    /// Creates a trainable weight that starts at 1.
    pub fn ones() -> Self {
        Weight::new().initializer(Initializer::Ones)
    }

    /// Sets the initializer.
    pub fn initializer(mut self, initializer: Initializer) -> Self {
        self.initializer = initializer;
        self
    }

    /// Sets whether the weight is trainable. A weight that the layer itself assigns, such as a moving mean, must not be.
    pub fn trainable(self, trainable: bool) -> Self {
        Weight { slot: Slot::new(trainable), first: Default::default(), ..self }
    }

    /// Sets the penalty on the weight, which [`Trackable::regularization_loss`] includes.
    pub fn regularizer(mut self, regularizer: impl Into<Option<Regularizer>>) -> Self {
        self.regularizer = regularizer.into();
        self
    }

    /// Sets the constraint that each step of an optimizer applies to the weight. It must be set before the first input.
    pub fn constraint(mut self, constraint: impl Into<Option<Constraint>>) -> Self {
        self.constraint = constraint.into();
        self
    }

    /// Sets the dtype in which the weight is stored, and the dtype in which [`Weight::get`] returns it.
    pub fn dtype(mut self, policy: DTypePolicy) -> Self {
        self.policy = policy;
        self
    }

    /// Returns the value of [`Weight::variable`], in the dtype of `x` (in that of the policy if `x` is not float).
    ///
    /// # Errors
    /// Same as [`Weight::variable`].
    pub fn get(&self, x: &Tensor, shape: impl Into<Shape>) -> Result<Tensor> {
        let value = self.get_or_make(x, shape.into())?.read();
        let dtype = if x.dtype().is_float() { x.dtype() } else { self.policy.compute_dtype() };
        if value.dtype() == dtype { Ok(value) } else { value.cast(dtype) }
    }

    /// Returns the variable, which must have this shape. The first call creates it, on the device of `x`.
    ///
    /// # Errors
    /// [`Error::Shape`] if it was created with another shape; [`Error::Checkpoint`] if the value that was loaded for it has
    /// another shape or dtype; [`Error::Device`] if the device is out of memory.
    pub fn variable(&self, x: &Tensor, shape: impl Into<Shape>) -> Result<&Variable> {
        self.get_or_make(x, shape.into())
    }

    /// Casts `x` to the policy's compute dtype. A tensor that is not float is returned unchanged.
    ///
    /// # Errors
    /// [`Error::DType`] if the adapter has no `f16`.
    pub fn autocast(&self, x: &Tensor) -> Result<Tensor> {
        self.policy.autocast(x)
    }

    /// Returns true if `set_trainable(false)` has frozen the weight.
    pub fn frozen(&self) -> bool {
        self.slot.frozen()
    }

    fn get_or_make(&self, x: &Tensor, shape: Shape) -> Result<&Variable> {
        let variable = match self.slot.variable() {
            Some(variable) => variable,
            None => {
                let mut later = None;
                let made = self.slot.get_or_make(|left| {
                    let dtype = self.policy.variable_dtype();
                    if left.is_none() && is_loading() && self.initializer.constant().is_none() {
                        later = Some(Draw {
                            initializer: self.initializer.clone(),
                            generator: random::global().split(),
                            device: x.device().clone(),
                        });
                        let _ = self.first.set(x.shape().into());
                        let zeros = || Tensor::zeros(&shape)?.cast(dtype);
                        return x.device().scope(|| eager::lifted(zeros));
                    }
                    let from = x.device().waiting();
                    let make = || match left {
                        Some(left) => to_tensor_if_exact(left, &shape, dtype),
                        None => self.start(&shape)?.cast(dtype),
                    };
                    let value = for_all(|| x.device().scope(|| eager::lifted(make)))?;
                    // Computed now, so that it is not lost if the pending step fails.
                    settle(&value, from)?;
                    let _ = self.first.set(x.shape().into());
                    Ok(value)
                })?;
                if let Some(draw) = later {
                    draw_later(made, draw)?;
                }
                if let Some(constraint) = &self.constraint {
                    made.set_constraint(constraint.0.call.clone());
                }
                made
            }
        };
        match *variable.shape() == *shape {
            true => Ok(variable),
            false => Err(self.size_error(x, &shape, variable)),
        }
    }

    fn start(&self, shape: &Shape) -> Result<Tensor> {
        let Some(value) = self.initializer.constant() else {
            // Each weight draws from a separate stream, so its size does not change what the next weight draws.
            return self.initializer.init(shape, &random::global().split());
        };
        match shape.checked_elements() {
            // Uploaded, so the device computes nothing.
            Some(elements) if elements <= SMALL => {
                Tensor::from_slice(&vec![value; elements], shape)
            }
            _ => Tensor::full(shape, value),
        }
    }

    fn size_error(&self, x: &Tensor, shape: &Shape, variable: &Variable) -> Error {
        let first = self.first.get().map_or(Default::default(), |first| format!("{first:?}"));
        Error::Shape(message!(
            "the input is {:?}, for which a weight has to be {shape:?}; the first input was {first}, and its weight is \
             {:?}. Give the layer inputs of one size, or make a new layer.",
            x.shape(),
            variable.shape()
        ))
    }
}

impl Trackable for Weight {
    fn track(&self, parts: &mut Parts<'_>) {
        match &self.regularizer {
            None => parts.slot(&self.slot),
            Some(regularizer) => parts.penalized(&self.slot, &|value| regularizer.call(value)),
        }
    }

    value!();
}
