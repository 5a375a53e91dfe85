//! Copies of values from other devices.
//!
//! Between users of one device of the driver, a copy is a command. Otherwise it goes through a mapped buffer: the other device
//! submits the copy to the host behind its own work, and this device uploads the bytes when it runs the first work that reads
//! them, so that both compute meanwhile.

use std::sync::Arc;
#[cfg(not(target_family = "wasm"))]
use std::sync::Weak;

#[cfg(not(target_family = "wasm"))]
use super::flush::ready;
use super::{Device, DeviceState};
use crate::device::Buffer;
#[cfg(not(target_family = "wasm"))]
use crate::device::Staging;
use crate::error::Result;
#[cfg(not(target_family = "wasm"))]
use crate::graph::{Spec, Value, ValueState};

/// A value whose bytes are on their way to this device.
#[cfg(not(target_family = "wasm"))]
pub(super) struct Incoming {
    from: Device,
    staging: Staging,
    submitted: wgpu::SubmissionIndex,
    buffer: Arc<Buffer>,
    value: Weak<Value>,
}

/// At most this many values are on their way. Each takes memory of the host.
#[cfg(not(target_family = "wasm"))]
const INCOMING: usize = 32;

/// In a browser, nothing can wait for a value on its way, so there is none.
#[cfg(target_family = "wasm")]
impl Device {
    pub(super) fn land(&self, _: &mut DeviceState, _: &Arc<Buffer>) -> Result<()> {
        Ok(())
    }

    pub(super) fn land_all(&self, _: &mut DeviceState, _: &[Arc<Buffer>]) -> Result<()> {
        Ok(())
    }

    pub(super) fn land_incoming(&self, _: &mut DeviceState) -> Result<()> {
        Ok(())
    }
}

#[cfg(not(target_family = "wasm"))]
impl Device {
    /// A copy of `value`, which is on `from`. `op` names the call.
    pub(crate) fn copy_from(
        &self,
        op: &'static str,
        from: &Device,
        value: &Arc<Value>,
    ) -> Result<Arc<Value>> {
        let spec = value.spec.clone();
        self.check_size(op, &spec)?;
        self.0.gpu.ask()?;
        if self.0.gpu.is_sibling_of(&from.0.gpu) {
            let source = from.computed(value)?;
            let mut state = self.state();
            let buffer = self.room_for(&mut state, &spec)?;
            // A place on a board is smaller than the buffers of a pool.
            let bytes = ((spec.dtype.size() * spec.elements()) as u64).next_multiple_of(4);
            // Each holds its own work, and neither knows when the other's is sent.
            from.0.gpu.send_held()?;
            self.0.gpu.send_held()?;
            self.0.gpu.copy([(&*source, &*buffer)].into_iter(), bytes)?;
            return Ok(Device::arrived(op, spec, buffer));
        }
        let (staging, submitted) = from.start_read(value)?;
        let mut state = self.state();
        let buffer = self.room_for(&mut state, &spec)?;
        let copy = Device::arrived(op, spec, buffer.clone());
        let from = from.clone();
        let value = Arc::downgrade(&copy);
        state.incoming.push(Incoming { from, staging, submitted, buffer, value });
        if state.incoming.len() > INCOMING {
            let oldest = state.incoming[0].buffer.clone();
            self.land(&mut state, &oldest)?;
        }
        Ok(copy)
    }

    fn arrived(op: &'static str, spec: Spec, buffer: Arc<Buffer>) -> Arc<Value> {
        buffer.holds(op, spec.dtype, &spec.shape);
        Value::new(op, spec, ValueState::Ready(buffer))
    }

    /// The buffer of `value`, once all work that computes it is submitted.
    fn computed(&self, value: &Arc<Value>) -> Result<Arc<Buffer>> {
        self.0.gpu.check_thread()?;
        let mut state = self.state();
        if matches!(value.state(), ValueState::Waiting(_)) {
            self.flush_unasked(&mut state);
        }
        let buffer = ready(value).map_err(|error| self.reported(&mut state, error))?;
        self.land(&mut state, &buffer)?;
        Ok(buffer)
    }

    /// Before work that reads `buffer`: uploads the value in it, if it is on its way. Blocks until it has arrived.
    ///
    /// # Errors
    /// As [`Device::land_all`].
    pub(super) fn land(&self, state: &mut DeviceState, buffer: &Arc<Buffer>) -> Result<()> {
        self.land_all(state, std::slice::from_ref(buffer))
    }

    /// As [`Device::land`], for all values on their way.
    ///
    /// # Errors
    /// As [`Device::land_all`].
    pub(super) fn land_incoming(&self, state: &mut DeviceState) -> Result<()> {
        let all: Vec<Arc<Buffer>> =
            state.incoming.iter().map(|incoming| incoming.buffer.clone()).collect();
        self.land_all(state, &all)
    }

    /// As [`Device::land`], for several buffers.
    ///
    /// # Errors
    /// The error of a value that did not arrive; it has then failed.
    pub(super) fn land_all(&self, state: &mut DeviceState, needed: &[Arc<Buffer>]) -> Result<()> {
        let mut landed = Ok(());
        let mut at = 0;
        while at < state.incoming.len() {
            let incoming = &state.incoming[at];
            // Nothing can read the value any more, or ever.
            let dropped =
                incoming.value.strong_count() == 0 && Arc::strong_count(&incoming.buffer) == 1;
            if !dropped && !needed.iter().any(|buffer| Arc::ptr_eq(buffer, &incoming.buffer)) {
                at += 1;
                continue;
            }
            let Incoming { from, staging, submitted, buffer, value } = state.incoming.remove(at);
            if dropped {
                continue;
            }
            let gpu = &self.0.gpu;
            let uploaded =
                from.0.gpu.deliver(staging, submitted, |bytes| gpu.upload(&buffer, bytes));
            if let Err(error) = uploaded.and_then(|uploaded| uploaded) {
                if let Some(value) = value.upgrade() {
                    value.set(ValueState::Failed(error.clone()));
                }
                landed = landed.and(Err(error));
            }
        }
        landed
    }
}
