//! A value, which tensor handles point to. It waits in a stream, is ready in a buffer, or has failed.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Spec;
use crate::device::Buffer;
use crate::error::Error;

pub(crate) struct Value {
    /// The op that computed it, or how it was uploaded to the device.
    pub(crate) op: &'static str,
    pub(crate) spec: Spec,
    state: Mutex<ValueState>,
}

#[derive(Clone)]
pub(crate) enum ValueState {
    /// The node of this index in its device's stream will compute it.
    Waiting(u32),
    Ready(Arc<Buffer>),
    /// A call in a trace makes it, and nothing has run.
    Traced(Traced),
    /// The run that should have computed it failed.
    Failed(Error),
}

/// The position of a value in a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Traced {
    /// The number of the trace.
    pub(crate) trace: u64,
    /// The node that makes the value; `None` if it is a placeholder.
    pub(crate) node: Option<u32>,
}

impl Value {
    pub(crate) fn new(op: &'static str, spec: Spec, state: ValueState) -> Arc<Self> {
        Arc::new(Value { op, spec, state: Mutex::new(state) })
    }

    pub(crate) fn state(&self) -> ValueState {
        self.lock().clone()
    }

    pub(crate) fn set(&self, state: ValueState) {
        *self.lock() = state;
    }

    /// The value's position in a trace, if a trace makes it.
    pub(crate) fn traced(&self) -> Option<Traced> {
        match &*self.lock() {
            ValueState::Traced(traced) => Some(*traced),
            _ => None,
        }
    }

    /// The state, for access without copying it.
    pub(super) fn lock(&self) -> MutexGuard<'_, ValueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
