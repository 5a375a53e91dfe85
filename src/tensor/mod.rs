//! The handle [`Tensor`]: a value that never changes, on one device.
//!
//! The handle is cheap to clone. `ops` computes with tensors; this module creates, reads and prints them.

mod array;
#[cfg(not(target_family = "wasm"))]
mod blocking;
mod create;
mod display;
mod element;
mod host_array;
mod operators;
mod read;

use std::sync::Arc;

pub use create::{HostOptions, Nested, constant, fill, range, range_of};
pub use element::{Element, HostElement};
pub use operators::Operand;
pub(crate) use operators::Varying;

use crate::device::fresh_id;
use crate::dtype::DType;
use crate::graph::{Spec, Value};
use crate::runtime::Device;

/// An n-dimensional array on a device. Its value never changes: ops return new tensors.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// let a = tf::constant([[1.0, 2.0], [3.0, 4.0]])?;
/// let b = a.matmul(&a)? + 1.0;
/// assert_eq!(b.shape(), [2, 2]);
/// assert_eq!(b.to_vec::<f32>()?, [8.0, 11.0, 16.0, 23.0]);
/// # Ok(())
/// # }
/// ```
///
/// # Accuracy
///
/// A ULP (unit in the last place) is one unit of the result's last digit; a correctly rounded result is at most half a ULP off.
/// The functions use only additions, multiplications, divisions and square roots, so their errors depend little on the driver;
/// `docs/accuracy.md` lists the measured errors. A device may flush numbers below 1.2e-38 (2^-126) to 0.
#[derive(Clone)]
pub struct Tensor {
    /// Tapes identify the tensor by this number. Clones share it.
    id: u64,
    value: Arc<Value>,
    device: Device,
}

impl Tensor {
    pub(crate) fn new(device: Device, value: Arc<Value>) -> Self {
        Tensor { id: fresh_id(), value, device }
    }

    /// A tensor like `other`, whose value could not be computed.
    #[cfg(not(target_family = "wasm"))]
    pub(crate) fn failed(other: &Tensor, error: crate::error::Error) -> Self {
        Tensor::failed_on(&other.device, other, error)
    }

    /// As [`Tensor::failed`], on another device.
    #[cfg(not(target_family = "wasm"))]
    pub(crate) fn failed_on(device: &Device, other: &Tensor, error: crate::error::Error) -> Self {
        let state = crate::graph::ValueState::Failed(error);
        Tensor::new(device.clone(), Value::new(other.value.op, other.spec().clone(), state))
    }

    /// The same value under a new identity; observers are not notified. Programs use
    /// [`stop_gradient`](Tensor::stop_gradient).
    pub(crate) fn detached(&self) -> Self {
        Tensor { id: fresh_id(), ..self.clone() }
    }

    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    pub(crate) fn value(&self) -> &Arc<Value> {
        &self.value
    }

    pub(crate) fn spec(&self) -> &Spec {
        &self.value.spec
    }

    /// The shape: the sizes of the axes, outermost first; empty for a scalar.
    pub fn shape(&self) -> &[usize] {
        &self.value.spec.shape
    }

    /// The dtype.
    pub fn dtype(&self) -> DType {
        self.value.spec.dtype
    }

    /// The number of axes.
    pub fn rank(&self) -> usize {
        self.shape().len()
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.value.spec.elements()
    }

    /// True if the tensor has no elements: an axis has size 0.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The device that holds the tensor.
    pub fn device(&self) -> &Device {
        &self.device
    }
}
