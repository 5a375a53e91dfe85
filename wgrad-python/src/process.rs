//! Processes that were forked: a device belongs to the process that opened it.

use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::prelude::*;

use crate::error::raise;
use crate::interpreter;

/// A call has used a device.
static USED: AtomicBool = AtomicBool::new(false);
/// This process is a copy of one that had used a device.
static COPIED: AtomicBool = AtomicBool::new(false);

/// Called in the child after a fork.
#[pyfunction]
pub fn after_fork() {
    interpreter::after_fork();
    if USED.load(Ordering::Relaxed) {
        COPIED.store(true, Ordering::Relaxed);
    }
}

/// Called before the device is used. In a forked process, waiting for the parent's device would never end.
pub fn check() -> PyResult<()> {
    USED.store(true, Ordering::Relaxed);
    match COPIED.load(Ordering::Relaxed) {
        false => Ok(()),
        true => Err(raise(wgrad::Error::Trace(
            "this process was forked from one that had used a device, which does not survive this. Start processes with \
             multiprocessing.get_context('spawn'), or fork before the first tensor."
                .into(),
        ))),
    }
}
