//! Generators that the closure of a function makes, splits or resets: each run does it again, as the closure would.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::advance::split;
use super::state::{State, lock};
use crate::eager::{self, RunCounter};
use crate::error::Result;

/// What the closure does with a generator.
pub(super) enum Change {
    Start(State),
    Split {
        from: Arc<Mutex<State>>,
        /// What the trace has split, for the first run.
        first: Mutex<Option<State>>,
    },
    Reset(State),
}

impl Change {
    pub(super) fn split(from: Arc<Mutex<State>>, first: State) -> Self {
        Change::Split { from, first: Mutex::new(Some(first)) }
    }
}

/// A [`Change`] in a function's program.
struct Repeated {
    state: Arc<Mutex<State>>,
    handle: Weak<()>,
    change: Change,
    before: Mutex<Option<State>>,
}

/// Lets each run of the function that is traced make the change.
pub(super) fn repeat(state: &Arc<Mutex<State>>, handle: &Arc<()>, change: Change) {
    let (state, handle) = (state.clone(), Arc::downgrade(handle));
    let counter: Arc<dyn RunCounter> =
        Arc::new(Repeated { state, handle, change, before: Mutex::default() });
    eager::advances(&counter);
}

impl RunCounter for Repeated {
    fn advance(&self) -> Result<Option<u64>> {
        if !self.needed() {
            return Ok(None);
        }
        let next = match &self.change {
            Change::Start(state) | Change::Reset(state) => *state,
            Change::Split { from, first } => {
                let first = first.lock().unwrap_or_else(PoisonError::into_inner).take();
                first.unwrap_or_else(|| split(from))
            }
        };
        let before = std::mem::replace(&mut *lock(&self.state), next);
        *self.before.lock().unwrap_or_else(PoisonError::into_inner) = Some(before);
        Ok(None)
    }

    fn step_back(&self) {
        if let Some(before) = self.before.lock().unwrap_or_else(PoisonError::into_inner).take() {
            *lock(&self.state) = before;
        }
    }

    /// A generator that outlives its first call, as a layer's does, is made only once.
    fn needed(&self) -> bool {
        matches!(self.change, Change::Reset(_)) || self.handle.strong_count() == 0
    }
}
