//! Collects the faults that the driver reports outside any call: validation errors, a lack of memory, a lost device.
//!
//! Nothing here panics or aborts, as wgpu would do by default; the next call that encounters the fault returns it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use futures_channel::oneshot;

use super::platform::{OPEN_ANOTHER_DEVICE, Probe};
use crate::error::{DeviceFault, Error, Result, message};

pub(super) struct Faults {
    reports: Arc<Reports>,
    probe: Probe,
}

/// The reports of wgpu's handlers. The device holds the handlers, so they must not hold the device.
#[derive(Default)]
struct Reports {
    lost: OnceLock<String>,
    /// The callers that wait for the loss.
    mourners: Mutex<Vec<oneshot::Sender<()>>>,
    pending: Mutex<Option<Error>>,
    /// An application submits its own commands, or owns buffers.
    shared: AtomicBool,
}

impl Faults {
    /// Starts to collect the faults of `device`.
    pub(super) fn watch(device: &wgpu::Device, queue: &wgpu::Queue) -> Arc<Self> {
        let reports = Arc::new(Reports::default());
        let on_lost = reports.clone();
        device.set_device_lost_callback(move |reason, message| {
            on_lost.lose(match message.is_empty() {
                true => DESTROYED.to_string(),
                false => format!("{reason:?}: {message}"),
            });
        });
        let on_error = reports.clone();
        device.on_uncaptured_error(Arc::new(move |error: wgpu::Error| on_error.record(&error)));
        Arc::new(Faults { reports, probe: Probe::new(device, queue) })
    }

    /// Records that the device is lost; only the first reason is stored.
    pub(super) fn lose(&self) {
        self.reports.lose(DESTROYED.to_string());
    }

    /// Records that the driver may also refuse commands of an application.
    pub(super) fn share(&self) {
        self.reports.shared.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_shared(&self) -> bool {
        self.reports.shared.load(Ordering::Relaxed)
    }

    /// Waits until the device is lost, and returns the reason.
    pub(super) async fn loss(&self) -> String {
        let receiver = {
            let mut mourners = lock(&self.reports.mourners);
            let (sender, receiver) = oneshot::channel();
            // The list is locked, so no loss can occur in between.
            if self.reports.lost.get().is_none() {
                mourners.retain(|mourner| !mourner.is_canceled());
                mourners.push(sender);
            }
            receiver
        };
        // If the device is already lost, the sender is dropped at once.
        let _ = receiver.await;
        self.reports.lost.get().cloned().unwrap_or_default()
    }

    fn check_lost(&self) -> Result<()> {
        self.reports.lost.get().map_or(Ok(()), |reason| Err(lost(reason)))
    }

    /// Returns the first error that the driver has reported and no call has returned yet; a lost device stays lost.
    pub(super) fn check(&self) -> Result<()> {
        self.check_lost()?;
        let Some(error) = lock(&self.reports.pending).take() else { return Ok(()) };
        // A refused command may be the first sign of a loss, which wgpu reports when the device is polled.
        let _ = self.poll(wgpu::PollType::Poll);
        self.look();
        self.check_lost()?;
        log::error!("{error}");
        Err(error)
    }

    /// As [`Faults::check`], for calls that reach the device: also detects a loss that has not been reported yet.
    pub(super) fn ask(&self) -> Result<()> {
        self.look();
        self.check()
    }

    /// The error that a call should return for `error`: after a loss, the loss.
    pub(super) fn judge(&self, error: Error) -> Error {
        self.look();
        self.check_lost().err().unwrap_or(error)
    }

    /// Checks whether the device is lost. wgpu silently refuses the commands of a destroyed device, and reports the
    /// loss when it is polled after its last work is done.
    fn look(&self) {
        if self.reports.lost.get().is_none() && !self.probe.answers() {
            let _ = self.poll(wgpu::PollType::Poll);
            self.lose();
        }
    }

    /// Polls the device. An error means that the awaited work will never be done.
    pub(super) fn poll(&self, how: wgpu::PollType) -> Result<wgpu::PollStatus, String> {
        self.probe.poll(how)
    }
}

impl Reports {
    fn lose(&self, reason: String) {
        let _ = self.lost.set(reason);
        for mourner in std::mem::take(&mut *lock(&self.mourners)) {
            // A dropped receiver is not waiting.
            let _ = mourner.send(());
        }
    }

    fn record(&self, error: &wgpu::Error) {
        let fault = match error {
            wgpu::Error::OutOfMemory { .. } => out_of_memory("the adapter's memory is used up"),
            other => Error::Device(
                DeviceFault::Validation,
                message!("Device: the driver refused a command: {other}. {}", self.whose()),
            ),
        };
        // The first fault is the cause; later ones are mostly its consequences.
        lock(&self.pending).get_or_insert(fault);
    }

    fn whose(&self) -> &'static str {
        match self.shared.load(Ordering::Relaxed) {
            true => {
                "The application shares this device: if the command is its own, or it has destroyed or mapped the buffer \
                 of a tensor, fix it there. Otherwise this is a bug in wgrad or in the driver; please \
                 report it with the text above."
            }
            false => {
                "This is a defect in wgrad or in the driver; please report it with the text above."
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
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

const DESTROYED: &str = "Destroyed: the program released it";

fn lost(reason: &str) -> Error {
    Error::Device(
        DeviceFault::Lost,
        message!(
            "Device: the device is lost ({reason}); its tensors are gone. Make a new one with {OPEN_ANOTHER_DEVICE} \
             and continue from values kept on the host."
        ),
    )
}
