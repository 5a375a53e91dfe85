//! A device and its buffers, shared with an application that uses wgpu itself.

use std::sync::Arc;

use super::flush::ReadValues;
use super::{Device, Value};
use crate::device::{Buffer, Gpu};
use crate::error::{DeviceFault, Error, Result, message};
use crate::graph::{Spec, ValueState};

impl Device {
    /// Shares a device that the application has created.
    pub(crate) fn shared(
        adapter: &wgpu::Adapter,
        device: wgpu::Device,
        queue: wgpu::Queue,
    ) -> Result<Self> {
        Ok(Device::with(Gpu::shared(adapter, device, queue)?, None))
    }

    /// wgpu's device and queue, for applications that share them.
    pub(crate) fn raw(&self) -> (&wgpu::Device, &wgpu::Queue) {
        let gpu = &self.0.gpu;
        gpu.share();
        (&gpu.device, &gpu.queue)
    }

    /// Returns an error if kernels cannot use `bytes` of an application's buffer.
    pub(crate) fn check_buffer(&self, buffer: &wgpu::Buffer, bytes: u64) -> Result<()> {
        let gpu = &self.0.gpu;
        gpu.ask()?;
        match gpu.refusal(buffer, bytes) {
            None => Ok(()),
            // The device may also be lost by now.
            Some(why) => Err(gpu.judge(Error::Device(
                DeviceFault::Buffer,
                message!(
                    "from_buffer: the buffer {why}. The application has to give one that was made on this device \
                     (Device::wgpu), is not mapped, and is not destroyed before its tensors are dropped."
                ),
            ))),
        }
    }

    /// A value in an application's buffer.
    pub(crate) fn adopt(&self, spec: Spec, buffer: wgpu::Buffer) -> Arc<Value> {
        Value::new("Buffer", spec, ValueState::Ready(Arc::new(Buffer::foreign(buffer))))
    }

    /// The buffer of `value`. This flushes first if the value waits, or if the application may write to the buffer and
    /// waiting ops may read it. Work that waits for its time is sent if it uses the buffer.
    pub(crate) fn buffer(&self, value: &Arc<Value>) -> Result<Arc<Buffer>> {
        self.0.gpu.share();
        let mut state = self.state();
        let flushed = match value.state() {
            ValueState::Ready(buffer) if buffer.is_pooled() => self.0.gpu.ask(),
            ValueState::Failed(_) => Ok(()),
            _ => self.flush_locked(&mut state, ReadValues::None, &[]).map(drop),
        };
        flushed
            .and_then(|()| self.own_buffer(value))
            .and_then(|buffer| self.0.gpu.send_held_for(&buffer).map(|()| buffer))
            .and_then(|buffer| self.land(&mut state, &buffer).map(|()| buffer))
            .map_err(|error| self.reported(&mut state, error))
    }

    /// Takes the application's buffer back from `value`, which must have no other holder.
    pub(crate) fn release(&self, value: Arc<Value>) -> Result<wgpu::Buffer> {
        let buffer = self.buffer(&value)?;
        let refused =
            |what| Err(Error::Device(DeviceFault::Buffer, message!("into_buffer: {what}")));
        if !buffer.is_pooled() {
            // The value holds one handle, this function the other.
            return match Arc::strong_count(&value) + Arc::strong_count(&buffer) {
                3 => Ok(buffer.raw().clone()),
                _ => refused(
                    "the buffer is still in use, by a clone of the tensor, a reshaped one, a variable or a tape. Drop \
                     them first; their values would change with the buffer.",
                ),
            };
        }
        refused(
            "the buffer is wgrad's own and serves other values when the tensor is dropped. Use Tensor::buffer to read it, \
             or have the application copy it to one of its own.",
        )
    }
}
