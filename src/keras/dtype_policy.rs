//! [`DTypePolicy`]: the dtype in which layers compute, and the dtype of their weights.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::optimizers::{LossScaleOptimizer, Optimizer};
use crate::dtype::DType;
use crate::error::Result;
use crate::tensor::Tensor;

/// The dtype in which a layer computes, and the dtype of its weights. A layer uses the policy that is set when the layer is
/// created, or the one that its `dtype` method sets.
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

    /// Layers compute in `f16` and store their weights in `f32`. Small gradients vanish in `f16`, so the loss should be scaled,
    /// as `compile` does under this policy ([`set_dtype_policy`]). Create a model's last layer, whose result the loss reads,
    /// with [`DTypePolicy::FLOAT32`].
    pub const MIXED_FLOAT16: DTypePolicy =
        DTypePolicy { compute: DType::F16, variable: DType::F32 };

    /// Returns the dtype in which layers compute.
    pub fn compute_dtype(&self) -> DType {
        self.compute
    }

    /// Returns the dtype of layers' weights.
    pub fn variable_dtype(&self) -> DType {
        self.variable
    }

    /// Returns Keras's name: `float32`, `float16` or `mixed_float16`.
    pub fn name(&self) -> &'static str {
        match (self.compute, self.variable) {
            (DType::F16, DType::F16) => "float16",
            (DType::F16, _) => "mixed_float16",
            _ => "float32",
        }
    }

    /// Casts `x` to the dtype in which layers compute. A tensor that is not float is returned unchanged.
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
    /// The policy of layers that are created now ([`set_dtype_policy`]).
    fn default() -> Self {
        *GLOBAL.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The input of a model: bytes, as pixels are uploaded, are cast to `f32`, as in Keras's models. The values do not change.
pub(crate) fn bytes_as_floats(x: &Tensor) -> Result<Tensor> {
    match x.dtype() {
        DType::U8 => x.cast(DType::F32),
        _ => Ok(x.clone()),
    }
}

/// Integers and truth values as `f32`, for layers that multiply them with weights, as Keras promotes them.
pub(crate) fn integers_as_floats(x: &Tensor) -> Result<Tensor> {
    match x.dtype().is_float() {
        true => Ok(x.clone()),
        false => x.cast(DType::F32),
    }
}

/// Wraps an optimizer in one that scales the loss.
type Scale = fn(Arc<dyn Optimizer>) -> Arc<dyn Optimizer>;

/// Set once the program sets a policy, so that programs that never do so do not contain this code.
static SCALE: OnceLock<Scale> = OnceLock::new();

/// Wraps the optimizer in one that scales the loss.
pub(super) fn scaling(optimizer: Arc<dyn Optimizer>) -> Arc<dyn Optimizer> {
    match SCALE.get() {
        Some(scale) => scale(optimizer),
        None => optimizer,
    }
}

/// Sets the policy of all layers created from now on, in all threads. The initial policy is `float32`. A model that is created
/// under `mixed_float16` is trained with a scaled loss: `compile` wraps its optimizer in a
/// [`LossScaleOptimizer`](super::optimizers::LossScaleOptimizer).
pub fn set_dtype_policy(policy: DTypePolicy) {
    SCALE.get_or_init(|| |optimizer| Arc::new(LossScaleOptimizer::new(optimizer)));
    *GLOBAL.lock().unwrap_or_else(PoisonError::into_inner) = policy;
}

/// Returns the policy of layers that are created now.
pub fn dtype_policy() -> DTypePolicy {
    DTypePolicy::default()
}
