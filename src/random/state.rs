//! [`State`]: a position in a Philox stream.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::philox::{counter_words, key_words, philox, words};
use crate::graph::RuntimeScalars;

#[derive(Debug, Clone, Copy)]
pub(super) struct State {
    pub(super) counter: u128,
    pub(super) key: u64,
}

/// The stream reserves this many counters for each number drawn, as TensorFlow does.
const PER_NUMBER: u128 = 256;

pub(super) fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Advances a stream by `numbers` draws and returns the state before them.
pub(super) fn take(state: &Mutex<State>, numbers: usize) -> State {
    let mut state = lock(state);
    let before = *state;
    state.counter = state.counter.wrapping_add(numbers as u128 * PER_NUMBER);
    before
}

/// The start of a generator that is split from this one, which advances.
pub(super) fn split(state: &Mutex<State>) -> State {
    let State { counter, key } = take(state, 1);
    let mixed = philox(counter_words(counter), key_words(key));
    State {
        counter: u128::from(mixed[2]) | u128::from(mixed[3]) << 32,
        key: u64::from(mixed[0]) | u64::from(mixed[1]) << 32,
    }
}

impl State {
    pub(super) const fn from_words([low, high, key]: [u64; 3]) -> Self {
        State { counter: low as u128 | (high as u128) << 64, key }
    }

    pub(super) fn words(self) -> RuntimeScalars {
        words(key_words(self.key), counter_words(self.counter))
    }
}
