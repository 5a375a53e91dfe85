//! [`State`]: a position in a Philox stream.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::philox::{counter_words, key_words, words};
use crate::graph::RuntimeScalars;

#[derive(Debug, Clone, Copy)]
pub(super) struct State {
    pub(super) counter: u128,
    pub(super) key: u64,
}

pub(super) fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    pub(super) const fn from_words([low, high, key]: [u64; 3]) -> Self {
        State { counter: low as u128 | (high as u128) << 64, key }
    }

    pub(super) fn words(self) -> RuntimeScalars {
        words(key_words(self.key), counter_words(self.counter))
    }
}
