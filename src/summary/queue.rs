//! [`Queue`]: summaries between the program and a writer.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use web_time::Instant;

use super::batch::Entry;
use crate::error::{Error, Result, message};

/// The maximum number of bytes of summaries in a queue, including unread tensors; beyond it a call waits until the writer
/// has caught up. A larger summary must be alone in the queue.
pub(super) const MOST_BYTES: usize = 64 << 20;
/// The maximum number of summaries in a queue.
pub(super) const MOST_ENTRIES: usize = 16_384;

/// Summaries between the program and a writer.
pub(crate) struct Queue {
    state: Mutex<State>,
    /// Signals work for the writer's thread.
    pub(super) work: Condvar,
    /// Signals that the writer's thread has done work.
    pub(super) done: Condvar,
    /// The number of summaries that wakes the writer's thread.
    pub(super) max_queue: usize,
    /// Whether a thread takes the waiting summaries; otherwise the program does.
    threaded: bool,
}

pub(super) struct State {
    pub(super) entries: VecDeque<Entry>,
    /// The bytes of the entries, and of those that the thread works on.
    pub(super) bytes: usize,
    /// When the first of the entries arrived.
    pub(super) since: Instant,
    /// The errors since the last call.
    pub(super) error: Option<Error>,
    /// The number of flushes that were requested, and of those that are done.
    pub(super) asked: u64,
    pub(super) served: u64,
    /// True if the writer is closed, or its thread has ended.
    pub(super) closed: bool,
}

impl Queue {
    pub(super) fn new(max_queue: usize, threaded: bool) -> Self {
        let state = State {
            entries: VecDeque::new(),
            bytes: 0,
            since: Instant::now(),
            error: None,
            asked: 0,
            served: 0,
            closed: false,
        };
        let (work, done) = (Condvar::new(), Condvar::new());
        Queue { state: Mutex::new(state), work, done, max_queue: max_queue.max(1), threaded }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends a summary; then returns errors since the last call.
    pub(super) fn put(&self, entry: Entry) -> Result<()> {
        let bytes = entry.bytes();
        let mut state = self.state();
        let full = |state: &State| {
            state.bytes > 0
                && (state.bytes.saturating_add(bytes) > MOST_BYTES
                    || state.entries.len() >= MOST_ENTRIES)
        };
        while self.threaded && full(&state) && !state.closed {
            state.asked += 1;
            self.work.notify_one();
            state = self.done.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.closed {
            return Err(state.error.take().unwrap_or_else(closed));
        }
        if state.entries.is_empty() {
            state.since = Instant::now();
        }
        state.entries.push_back(entry);
        state.bytes = state.bytes.saturating_add(bytes);
        if state.entries.len() == 1 || state.entries.len() == self.max_queue {
            self.work.notify_one();
        }
        state.error.take().map_or(Ok(()), Err)
    }

    /// Waits until all earlier summaries are written; then returns errors.
    pub(super) fn flush(&self) -> Result<()> {
        let mut state = self.state();
        state.asked += 1;
        let own = state.asked;
        self.work.notify_one();
        while state.served < own && !state.closed {
            state = self.done.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        match state.error.take() {
            Some(error) => Err(error),
            None if state.served < own => Err(closed()),
            None => Ok(()),
        }
    }

    /// All waiting summaries, for a program that writes them itself.
    pub(super) fn take(&self) -> Vec<Entry> {
        let mut state = self.state();
        state.bytes = 0;
        state.entries.drain(..).collect()
    }
}

fn closed() -> Error {
    Error::Data(message!(
        "summary: the writer is closed. Keep it until the last summary is written, or make a new one."
    ))
}
