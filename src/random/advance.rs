//! How draws and splits advance a stream.

use std::sync::{Arc, Mutex};

use super::philox::{counter_words, key_words, philox};
use super::replicated;
use super::state::{State, lock};

/// The stream reserves this many counters for each number drawn, as TensorFlow does.
const PER_NUMBER: u128 = 256;

/// Advances a stream by `numbers` draws and returns the state before them.
pub(super) fn take(state: &Arc<Mutex<State>>, numbers: usize) -> State {
    if let Some(state) = replicated::take(state, numbers as u128 * PER_NUMBER) {
        return state;
    }
    let mut state = lock(state);
    let before = *state;
    state.counter = state.counter.wrapping_add(numbers as u128 * PER_NUMBER);
    before
}

/// The start of a generator that is split from this one, which advances.
pub(super) fn split(state: &Arc<Mutex<State>>) -> State {
    let State { counter, key } = take(state, 1);
    let mixed = philox(counter_words(counter), key_words(key));
    State {
        counter: u128::from(mixed[2]) | u128::from(mixed[3]) << 32,
        key: u64::from(mixed[0]) | u64::from(mixed[1]) << 32,
    }
}
