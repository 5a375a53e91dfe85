//! Trial calls: a layer called on zeros that nobody reads makes its weights and tells the shapes of its results.
//!
//! The device computes nothing in them but what weights start with.

use std::cell::{Cell, RefCell};

use crate::error::Result;
use crate::graph::ValueState;
use crate::runtime::Device;
use crate::tape::unrecorded;
use crate::tensor::Tensor;
use crate::variable::unassigned;

thread_local! {
    /// How many trials are under way on this thread, one inside the other.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
    /// The device on which they have made weights.
    static MADE: RefCell<Option<Device>> = const { RefCell::new(None) };
}

/// Runs `f`, of which no tape hears and which changes no variable. What it returns must hold no tensor, or the device
/// would compute it.
pub(super) fn trial<R>(f: impl FnOnce() -> Result<R>) -> Result<R> {
    struct Leave;
    impl Drop for Leave {
        fn drop(&mut self) {
            DEPTH.set(DEPTH.get() - 1);
        }
    }
    DEPTH.set(DEPTH.get() + 1);
    let leave = Leave;
    let result = unrecorded(|| unassigned(f));
    drop(leave);
    if DEPTH.get() == 0 {
        if let Some(device) = MADE.take() {
            device.flush()?;
        }
    }
    result
}

/// Whether a trial is under way on this thread.
pub(super) fn in_trial() -> bool {
    DEPTH.get() > 0
}

/// Computes `start`, with which a weight starts, so that it is safe if the step that waits with it fails; in a trial,
/// once the zeros are gone. Its ops were called when `from` others waited on the device, and those go on waiting: a
/// first step is one flush like every other.
pub(super) fn settle(start: &Tensor, from: usize) -> Result<()> {
    let device = start.device();
    let waits = || matches!(start.value().state(), ValueState::Waiting(_));
    if DEPTH.get() > 0 {
        MADE.set(waits().then(|| device.clone()).or_else(|| MADE.take()));
        return Ok(());
    }
    if waits() {
        device.flush_behind(from)?;
    }
    // An initializer may have flushed by itself.
    if waits() { device.flush() } else { Ok(()) }
}
