//! What the driver reports outside any call: validation errors, memory that ran out, a lost device.
//!
//! Nothing here panics or aborts, as wgpu would do by default; the next call that meets the fault gets it.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use futures::channel::oneshot;

use crate::error::{DeviceFault, Error, Result, message};

#[derive(Default)]
pub(super) struct Faults {
    lost: OnceLock<String>,
    /// Those who want to know of the loss when it happens.
    mourners: Mutex<Vec<oneshot::Sender<()>>>,
    pending: Mutex<Option<Error>>,
}

impl Faults {
    /// Starts to collect the faults of `device`.
    pub(super) fn watch(device: &wgpu::Device) -> Arc<Self> {
        let faults = Arc::new(Faults::default());
        let on_lost = faults.clone();
        device.set_device_lost_callback(move |reason, message| {
            on_lost.lose(format!("{reason:?}: {message}"));
        });
        let on_error = faults.clone();
        device.on_uncaptured_error(Arc::new(move |error: wgpu::Error| on_error.record(&error)));
        faults
    }

    /// The device is gone; the first reason counts.
    pub(super) fn lose(&self, reason: String) {
        let _ = self.lost.set(reason);
        let mourners =
            std::mem::take(&mut *self.mourners.lock().unwrap_or_else(PoisonError::into_inner));
        for mourner in mourners {
            // Who was dropped no longer wants to know.
            let _ = mourner.send(());
        }
    }

    /// Waits until the device is gone.
    pub(super) async fn loss(&self) -> String {
        let receiver = {
            let mut mourners = self.mourners.lock().unwrap_or_else(PoisonError::into_inner);
            let (sender, receiver) = oneshot::channel();
            // Looked at with the list locked, so that no loss comes between.
            if self.lost.get().is_none() {
                mourners.push(sender);
            }
            receiver
        };
        // A sender that is dropped stands for a loss that was there before.
        let _ = receiver.await;
        self.lost.get().cloned().unwrap_or_default()
    }

    pub(super) fn record(&self, error: &wgpu::Error) {
        let fault = match error {
            wgpu::Error::OutOfMemory { .. } => out_of_memory("the adapter's memory is used up"),
            other => Error::Device(
                DeviceFault::Validation,
                message!(
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
        message!(
            "Device: out of memory: {what}. Drop tensors that are no longer needed, use a smaller batch, \
             or raise the memory limit."
        ),
    )
}

#[cfg(not(target_family = "wasm"))]
const OPEN_ANOTHER: &str = "Device::new, give it to Device::set_default";
#[cfg(target_family = "wasm")]
const OPEN_ANOTHER: &str = "Device.open";

fn lost(reason: &str) -> Error {
    Error::Device(
        DeviceFault::Lost,
        message!(
            "Device: the device is lost ({reason}); its tensors are gone. Make a new one with {OPEN_ANOTHER} \
             and go on from values kept on the host."
        ),
    )
}
