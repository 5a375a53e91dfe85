//! [`DTypePolicy`]: in which dtype layers compute, and in which they keep their weights.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::optimizers::{LossScaleOptimizer, Optimizer};
use crate::dtype::DType;
use crate::error::Result;
use crate::tensor::Tensor;

/// The dtype that a layer computes in, and that of its weights. A layer takes the policy that holds when it is made, or
/// the one that its `dtype` sets.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::{self as tf, DType, Trackable};
/// use tf::keras::{DTypePolicy, INFERENCE, Layer, layers::Dense};
/// # if tf::constant(1.0)?.cast(DType::F16).is_err() { return Ok(()) } // the adapter lacks it
/// let layer = Dense::new(2).dtype(DTypePolicy::MIXED_FLOAT16);
/// let y = layer.call(&tf::Tensor::ones([1, 3])?, INFERENCE)?;
/// assert_eq!(y.dtype(), DType::F16); // computed in half precision
/// assert_eq!(layer.variables()[0].dtype(), DType::F32); // trained in single precision
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DTypePolicy {
    compute: DType,
    variable: DType,
}

crate::trackable::plain!(DTypePolicy);

static GLOBAL: Mutex<DTypePolicy> = Mutex::new(DTypePolicy::FLOAT32);

impl DTypePolicy {
    /// All in `f32`.
    pub const FLOAT32: DTypePolicy = DTypePolicy { compute: DType::F32, variable: DType::F32 };

    /// All in `f16`.
    pub const FLOAT16: DTypePolicy = DTypePolicy { compute: DType::F16, variable: DType::F16 };

    /// Layers compute in `f16` and keep their weights in `f32`. Small gradients vanish in `f16`, so that the
    /// loss should be scaled, as `compile` has it under this policy ([`set_dtype_policy`]). A model's last layer, whose result the loss reads, is best made with
    /// [`DTypePolicy::FLOAT32`].
    pub const MIXED_FLOAT16: DTypePolicy =
        DTypePolicy { compute: DType::F16, variable: DType::F32 };

    /// The dtype that layers compute in.
    pub fn compute_dtype(&self) -> DType {
        self.compute
    }

    /// The dtype of layers' weights.
    pub fn variable_dtype(&self) -> DType {
        self.variable
    }

    /// Keras's name: `float32`, `float16` or `mixed_float16`.
    pub fn name(&self) -> &'static str {
        match (self.compute, self.variable) {
            (DType::F16, DType::F16) => "float16",
            (DType::F16, _) => "mixed_float16",
            _ => "float32",
        }
    }

    /// `x` in the dtype that layers compute in; what is not float stays as it is.
    ///
    /// # Errors
    /// [`Error::DType`](crate::Error::DType) if the adapter has no `f16`.
    pub fn autocast(&self, x: &Tensor) -> Result<Tensor> {
        match x.dtype().is_float() && x.dtype() != self.compute {
            true => x.cast(self.compute),
            false => Ok(x.clone()),
        }
    }
}

impl Default for DTypePolicy {
    /// The policy of layers that are made now ([`set_dtype_policy`]).
    fn default() -> Self {
        *GLOBAL.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The input of a model: pixels, which travel as bytes, become `f32`, as in Keras's models; the numbers stay as they are.
pub(crate) fn bytes_as_floats(x: &Tensor) -> Result<Tensor> {
    match x.dtype() {
        DType::U8 => x.cast(DType::F32),
        _ => Ok(x.clone()),
    }
}

/// Wraps an optimizer in one that scales the loss.
type Scale = fn(Arc<dyn Optimizer>) -> Arc<dyn Optimizer>;

/// Known once somebody sets a policy: a program that does not has no code of it.
static SCALE: OnceLock<Scale> = OnceLock::new();

/// The optimizer, in one that scales the loss for it.
pub(super) fn scaling(optimizer: Arc<dyn Optimizer>) -> Arc<dyn Optimizer> {
    match SCALE.get() {
        Some(scale) => scale(optimizer),
        None => optimizer,
    }
}

/// Sets the policy of all layers made from now on, in all threads: `float32` before the first call. A model that is made under
/// `mixed_float16` is trained with a scaled loss: `compile` wraps its optimizer in a
/// [`LossScaleOptimizer`](super::optimizers::LossScaleOptimizer).
pub fn set_dtype_policy(policy: DTypePolicy) {
    SCALE.get_or_init(|| |optimizer| Arc::new(LossScaleOptimizer::new(optimizer)));
    *GLOBAL.lock().unwrap_or_else(PoisonError::into_inner) = policy;
}

/// The policy of layers that are made now.
pub fn dtype_policy() -> DTypePolicy {
    DTypePolicy::default()
}
