//! Trial calls: a layer is called on zeros to create its weights and to find the shapes of its results.
//!
//! In a trial, the device computes only the initial values of weights.

use std::cell::{Cell, RefCell};

use crate::error::Result;
use crate::graph::ValueState;
use crate::runtime::Device;
use crate::tape::unrecorded;
use crate::tensor::Tensor;
use crate::variable::unassigned;

thread_local! {
    /// The number of nested trials running on this thread.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
    /// The device on which they have created weights.
    static MADE: RefCell<Option<Device>> = const { RefCell::new(None) };
}

/// Runs `f` without recording it on tapes and without changing variables. The result must not hold a tensor, or the
/// device would compute it.
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

/// Whether a trial is running on this thread.
pub(super) fn in_trial() -> bool {
    DEPTH.get() > 0
}

/// Computes `start`, the initial value of a weight, so that it is not lost if the pending step fails; in a trial, this
/// happens at the end of the trial. The `from` ops that were pending before those of `start` remain pending, so that a
/// first step is one flush, like every other.
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
