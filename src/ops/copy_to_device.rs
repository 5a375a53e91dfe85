//! `to`: a tensor on another device.
//!
//! The copy is made at the call (`runtime/copies.rs`), so it is no node of a stream, and graphs in files have none; tapes are notified of it as
//! of every other op.

use std::fmt;

use super::inventory::{Entry, Gradient, OpKind, Stop};
use super::{Backward, Grads, Keep, Operation, check_dtype, only};
use crate::device::platform;
use crate::dtype::DType;
use crate::eager;
use crate::error::Result;
use crate::graph::attributes::Attribute;
use crate::graph::identity::Runtime;
use crate::graph::lower::{Lowering, LoweringContext};
use crate::graph::{Op, Spec};
use crate::runtime::Device;
use crate::tensor::Tensor;

impl Tensor {
    /// As [`Tensor::to`], on every target. In a browser, no gradient passes through the copy.
    ///
    /// # Errors
    /// As [`Tensor::to`].
    pub async fn to_async(&self, device: &Device) -> Result<Tensor> {
        #[cfg(not(target_family = "wasm"))]
        return self.to(device);
        #[cfg(target_family = "wasm")]
        {
            if self.device().same(device) {
                return Ok(self.clone());
            }
            check_dtype(device, NAME, self.dtype())?;
            let spec = self.spec().clone();
            let copy = match eager::release(self) {
                Ok(()) => {
                    let bytes = self.to_bytes_async().await?;
                    Tensor::new(device.clone(), device.upload(NAME, spec, &bytes)?)
                }
                // In a trace, there is nothing to copy.
                Err(_) if eager::in_trace() => eager::placeholder_on(device, spec),
                Err(error) => return Err(error),
            };
            Ok(self.copied(copy))
        }
    }

    /// The tensor on `device`: itself if it is there, otherwise a copy. Between virtual devices of one adapter the device
    /// copies, otherwise the bytes go through the host. The call does not wait for them: both devices compute until the other
    /// one needs the copy. The gradient goes back to the tensor's own device.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// let other = tf::Device::new()?;
    /// let x = tf::constant([1.0, 2.0])?;
    /// let tape = tf::GradientTape::new();
    /// tape.watch(&x)?;
    /// let y = x.to(&other)?.square()?;
    /// assert_eq!(y.device(), &other);
    /// let dx = tape.gradient(&y, &x)?.expect("y depends on x");
    /// assert_eq!((dx.device(), dx.to_vec::<f32>()?), (x.device(), vec![2.0, 4.0]));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::DType`](crate::Error::DType) if the device lacks `f16`; [`Error::Device`](crate::Error::Device) if a device
    /// is lost, or the other one is out of memory or has smaller limits.
    #[cfg(not(target_family = "wasm"))]
    pub fn to(&self, device: &Device) -> Result<Tensor> {
        if self.device().same(device) {
            return Ok(self.clone());
        }
        check_dtype(device, NAME, self.dtype())?;
        let copy = match eager::release(self) {
            Ok(()) => {
                let copy = device.copy_from(NAME, self.device(), self.value())?;
                Tensor::new(device.clone(), copy)
            }
            // In a trace, there is nothing to copy.
            Err(_) if eager::in_trace() => eager::placeholder_on(device, self.spec().clone()),
            Err(error) => return Err(error),
        };
        Ok(self.copied(copy))
    }

    /// `copy`, after the tapes have been notified of it.
    fn copied(&self, copy: Tensor) -> Tensor {
        eager::notify(CopyToDevice { from: Home(Runtime(self.device().clone())) }, self, &copy);
        copy
    }
}

const NAME: &str = "CopyToDevice";

#[derive(Debug, Attribute)]
#[op("CopyToDevice")]
pub(crate) struct CopyToDevice {
    #[attribute(skip)]
    from: Home,
}

/// The device of the input, which is not part of the op's identity.
struct Home(Runtime<Device>);

impl fmt::Debug for Home {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Home")
    }
}

impl Op for CopyToDevice {
    fn name(&self) -> &'static str {
        NAME
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Spec> {
        Ok(inputs[0].clone())
    }

    // On one device it is the same value.
    fn lower(&self, _: &LoweringContext) -> Lowering {
        Lowering::Alias
    }
}

impl Operation for CopyToDevice {
    fn keep(&self) -> Keep {
        match platform::MAY_BLOCK {
            true => Keep::Nothing,
            false => Keep::NoGradient("a browser cannot wait for a copy in a backward pass"),
        }
    }

    fn grad(&self, back: &Backward) -> Result<Grads> {
        #[cfg(not(target_family = "wasm"))]
        return only(back.dy.to(&self.from.0.0)?);
        #[cfg(target_family = "wasm")]
        only(back.dy.clone())
    }
}

/// The inventory of this file.
pub(super) const ENTRIES: &[Entry] =
    &[Entry::new(OpKind::Kernel, "to", &["tf.Tensor.gpu"], |_| Err(Stop::Lacks("device".into())))
        .forms(&["to_async"])
        .gradient(Gradient::CheckedBy("copy_to_device"))
        .takes(&DType::ALL)];
