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
    /// The run that should have computed it failed.
    Failed(Error),
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

    /// The state, for access without copying it.
    pub(super) fn lock(&self) -> MutexGuard<'_, ValueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
