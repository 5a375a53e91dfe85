//! What the driver reports outside any call: validation errors, memory that ran out, a lost device.
//!
//! Nothing here panics or aborts, as wgpu would do by default; the next call that meets the fault gets it.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::error::{DeviceFault, Error, Result};

#[derive(Default)]
pub(super) struct Faults {
    lost: OnceLock<String>,
    pending: Mutex<Option<Error>>,
}

impl Faults {
    /// Starts to collect the faults of `device`.
    pub(super) fn watch(device: &wgpu::Device) -> Arc<Self> {
        let faults = Arc::new(Faults::default());
        let on_lost = faults.clone();
        device.set_device_lost_callback(move |reason, message| {
            let _ = on_lost.lost.set(format!("{reason:?}: {message}"));
        });
        let on_error = faults.clone();
        device.on_uncaptured_error(Arc::new(move |error: wgpu::Error| on_error.record(&error)));
        faults
    }

    pub(super) fn record(&self, error: &wgpu::Error) {
        let fault = match error {
            wgpu::Error::OutOfMemory { .. } => out_of_memory("the adapter's memory is used up"),
            other => Error::Device(
                DeviceFault::Validation,
                format!(
                    "Device: the driver refused a command: {other}. This is a defect in wgrad or in the driver; \
                     please report it with the text above."
                ),
            ),
        };
        log::error!("{fault}");
        // The first fault is the cause; those after it are mostly its consequences.
        self.pending.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(fault);
    }

    pub(super) fn check_lost(&self) -> Result<()> {
        self.lost.get().map_or(Ok(()), |reason| Err(lost(reason)))
    }

    pub(super) fn check(&self) -> Result<()> {
        self.check_lost()?;
        match self.pending.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }
}

pub(super) fn out_of_memory(what: &str) -> Error {
    Error::Device(
        DeviceFault::OutOfMemory,
        format!(
            "Device: out of memory: {what}. Drop tensors that are no longer needed, use a smaller batch, \
             or raise the memory limit."
        ),
    )
}

fn lost(reason: &str) -> Error {
    Error::Device(
        DeviceFault::Lost,
        format!(
            "Device: the device is lost ({reason}); its tensors are gone. Make a new one with Device::new, \
             give it to Device::set_default and go on from values kept on the host."
        ),
    )
}
