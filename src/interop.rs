//! Shares the device and buffers of an application that uses wgpu itself, without a copy.
//!
//! All public items that use a type of wgpu are here, including wgpu itself. A new version of wgpu changes its types, so this
//! module may change in a minor version of this crate; no other module does. `docs/embedding.md` shows how an application and a
//! network alternate.
//!
//! ```
//! # fn main() -> wgrad::Result<()> {
//! use wgrad::interop::{DeviceExt, TensorExt};
//! use wgrad::{Device, Tensor};
//! let device = Device::new()?;
//! let x = device.scope(|| Tensor::ones([2, 3]))?;
//! assert!(x.buffer()?.size() >= 24);
//! assert!(device.wgpu().0.limits().max_storage_buffers_per_shader_stage >= 4);
//! # Ok(())
//! # }
//! ```

use crate::dtype::DType;
use crate::error::{DeviceFault, Error, Result, message};
use crate::graph::Spec;
use crate::ops;
use crate::runtime::Device;
use crate::shape::Shape;
use crate::tensor::Tensor;

/// The version of wgpu whose devices and buffers this crate shares.
pub use wgpu;

/// Connects a [`Device`] with wgpu's.
pub trait DeviceExt: Sized {
    /// Shares a device that the application has created, with its limits and features. Kernels need the limits of
    /// `wgpu::Limits::downlevel_defaults()`; higher limits let them do more at once.
    ///
    /// wgrad replaces the device's handlers for uncaptured errors and for loss. Clone this handle to get others; a
    /// second call for the same device would replace the handlers of the first.
    ///
    /// [`TensorExt::from_buffer`] explains how to share buffers.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use wgrad::interop::{DeviceExt, wgpu};
    /// use wgrad::{Device, Tensor};
    /// let instance = wgpu::Instance::new(wgpu::InstanceDescriptor::new_without_display_handle());
    /// let adapter = pollster::block_on(instance.request_adapter(&Default::default()))?;
    /// let (raw, queue) = pollster::block_on(adapter.request_device(&wgpu::DeviceDescriptor {
    ///     required_limits: adapter.limits(),
    ///     ..Default::default()
    /// }))?;
    /// let device = Device::from_wgpu(&adapter, raw, queue)?;
    /// let sum = device.scope(|| Tensor::ones([2, 3])?.reduce_sum(()))?;
    /// assert_eq!(sum.item::<f32>()?, 6.0);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Device`] with every limit that is too small for kernels, its value and what is needed, or if the device
    /// is lost.
    fn from_wgpu(adapter: &wgpu::Adapter, device: wgpu::Device, queue: wgpu::Queue)
    -> Result<Self>;

    /// wgpu's device and queue, for applications that share them.
    fn wgpu(&self) -> (&wgpu::Device, &wgpu::Queue);
}

impl DeviceExt for Device {
    fn from_wgpu(
        adapter: &wgpu::Adapter,
        device: wgpu::Device,
        queue: wgpu::Queue,
    ) -> Result<Self> {
        Device::shared(adapter, device, queue)
    }

    fn wgpu(&self) -> (&wgpu::Device, &wgpu::Queue) {
        self.raw()
    }
}

/// Connects a [`Tensor`] with wgpu's buffers.
pub trait TensorExt: Sized {
    /// Makes a tensor over an application's buffer, without a copy: the elements in row-major order from the buffer's
    /// start.
    ///
    /// The buffer must belong to this device ([`DeviceExt::wgpu`]), have the usages `STORAGE`, `COPY_SRC` and
    /// `COPY_DST`, and hold whole vectors of four elements: the tensor's bytes, rounded up to a multiple of 16. It may
    /// be longer; take a slice of a tensor over the whole buffer for a part that does not begin at its start. The
    /// application must have made the buffer: one from [`buffer`](TensorExt::buffer) is not allowed.
    ///
    /// wgrad only reads it. The application writes it in two steps, because earlier ops may still be waiting to read it:
    ///
    /// 1. [`into_buffer`](TensorExt::into_buffer) sends those ops to the queue, ahead of what the application submits next, and
    ///    checks that nothing else holds the value. ([`buffer`](TensorExt::buffer) and [`Device::flush`] send them too, but
    ///    then the tensor, its clones, reshaped tensors and the values on tapes change with the buffer: gradients would be
    ///    wrong.)
    /// 2. After the write, `from_buffer` makes a new tensor for the new value.
    ///
    /// A program may make several tensors over one buffer; it must drop all but the last before `into_buffer`.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad::interop::{DeviceExt, TensorExt, wgpu};
    /// use wgrad::{DType, Device, Tensor};
    /// let device = Device::new()?;
    /// let (raw, queue) = device.wgpu();
    /// let buffer = raw.create_buffer(&wgpu::BufferDescriptor {
    ///     label: Some("the application's"),
    ///     size: 16,
    ///     usage: wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::COPY_DST,
    ///     mapped_at_creation: false,
    /// });
    /// queue.write_buffer(&buffer, 0, bytemuck::cast_slice(&[1f32, 2.0, 3.0, 4.0]));
    /// let x = Tensor::from_buffer(&device, buffer, [4], DType::F32)?;
    /// let y = &x * 10.0;                                     // waits
    ///
    /// let buffer = x.into_buffer()?;                         // y is on its way
    /// queue.write_buffer(&buffer, 0, bytemuck::cast_slice(&[5f32, 6.0, 7.0, 8.0]));   // or a pass that writes it
    /// let x = Tensor::from_buffer(&device, buffer, [4], DType::F32)?;
    ///
    /// assert_eq!(y.to_vec::<f32>()?, [10.0, 20.0, 30.0, 40.0]);
    /// assert_eq!(x.to_vec::<f32>()?, [5.0, 6.0, 7.0, 8.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Device`] if the buffer is too small, lacks a usage, belongs to another device, is destroyed or mapped
    /// (in a browser a later call reports these three), if the tensor is beyond the adapter's limits, or if the device
    /// is lost.
    fn from_buffer(
        device: &Device,
        buffer: wgpu::Buffer,
        shape: impl Into<Shape>,
        dtype: DType,
    ) -> Result<Self>;

    /// The wgpu buffer that holds the value, in row-major order, for an application to read. Work that the application
    /// submits after this call finds the value there.
    ///
    /// The application must not write a buffer that wgrad has made. Such a buffer holds the value only while the tensor
    /// (or a clone) lives; afterwards wgrad uses it for other values. The application may write its own buffers as
    /// [`from_buffer`](TensorExt::from_buffer) explains: this call sends the ops that are waiting to read them to the queue.
    ///
    /// # Errors
    /// [`Error::Device`] if computing the value or an op that waited to read it failed, or if the device is lost.
    fn buffer(&self) -> Result<wgpu::Buffer>;

    /// Takes the application's buffer back from a tensor of [`from_buffer`](TensorExt::from_buffer), so that the
    /// application may write it. The call sends the ops that are waiting to read it to the queue, ahead of what the application
    /// submits next, and checks that nothing else holds the value.
    ///
    /// # Errors
    /// [`Error::Device`] if a clone, a reshaped tensor, a variable or a tape holds the value, if the buffer is wgrad's
    /// own, if an op that waited failed, or if the device is lost. The call consumes the tensor even then.
    fn into_buffer(self) -> Result<wgpu::Buffer>;
}

impl TensorExt for Tensor {
    fn from_buffer(
        device: &Device,
        buffer: wgpu::Buffer,
        shape: impl Into<Shape>,
        dtype: DType,
    ) -> Result<Self> {
        let spec = Spec::new(shape, dtype);
        ops::check_dtype(device, "from_buffer", dtype)?;
        device.check_size("from_buffer", &spec)?;
        let usages = wgpu::BufferUsages::STORAGE
            | wgpu::BufferUsages::COPY_SRC
            | wgpu::BufferUsages::COPY_DST;
        if buffer.size() < spec.bytes() || !buffer.usage().contains(usages) {
            return Err(Error::Device(
                DeviceFault::Buffer,
                message!(
                    "from_buffer: the application's buffer of {} bytes with {:?} cannot hold a {dtype} tensor of shape \
                     {}. Make it with {} bytes or more and {usages:?}.",
                    buffer.size(),
                    buffer.usage(),
                    spec.shape,
                    spec.bytes()
                ),
            ));
        }
        device.check_buffer(&buffer, spec.bytes())?;
        let value = device.adopt(spec, buffer);
        Ok(Tensor::new(device.clone(), value))
    }

    fn buffer(&self) -> Result<wgpu::Buffer> {
        Ok(self.device().buffer(self.value())?.raw().clone())
    }

    fn into_buffer(self) -> Result<wgpu::Buffer> {
        let (value, device) = (self.value().clone(), self.device().clone());
        // Nothing else may hold the value.
        drop(self);
        device.release(value)
    }
}
