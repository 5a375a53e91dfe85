//! Trial calls: a layer is called in a trace to create its weights and to find the shapes of its results.
//!
//! In a trial, the device computes only the initial values of weights.

use std::cell::RefCell;

use crate::eager;
use crate::error::Result;
use crate::graph::ValueState;
use crate::runtime::Device;
use crate::tensor::Tensor;

thread_local! {
    /// The device on which trials have created weights.
    static MADE: RefCell<Option<Device>> = const { RefCell::new(None) };
}

/// Runs `f` without recording it on tapes, without changing variables, and without computing anything but what `f` reads
/// and stores.
pub(super) fn trial<R>(f: impl FnOnce() -> Result<R>) -> Result<R> {
    let result = eager::unobserved(|| eager::traced(f));
    if !in_trial() {
        if let Some(device) = MADE.take() {
            device.flush()?;
        }
    }
    result
}

/// Whether a trial is running on this thread.
pub(super) fn in_trial() -> bool {
    eager::in_trace()
}

/// Computes `start`, the initial value of a weight, so that it is not lost if the pending step fails; in a trial, this
/// happens at the end of the trial. The `from` ops that were pending before those of `start` remain pending, so that a
/// first step is one flush, like every other.
pub(super) fn settle(start: &Tensor, from: usize) -> Result<()> {
    let device = start.device();
    let waits = || matches!(start.value().state(), ValueState::Waiting(_));
    if in_trial() {
        MADE.set(waits().then(|| device.clone()).or_else(|| MADE.take()));
        return Ok(());
    }
    if waits() {
        device.flush_behind(from)?;
    }
    // An initializer may have flushed by itself.
    if waits() { device.flush() } else { Ok(()) }
}
