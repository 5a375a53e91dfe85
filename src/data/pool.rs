//! [`Jobs`]: closures that run on a pool of threads; their results are returned in order or as they finish.
//!
//! A caller that waits for a job that no thread has begun runs it itself. So a pipeline inside a pipeline cannot block the
//! pool, and a target without threads needs no other code.

use std::any::Any;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::error::{Error, Result, message};

/// The number of threads that work at the same time; 1 on targets without threads.
pub(crate) fn width() -> usize {
    #[cfg(not(target_family = "wasm"))]
    return rayon_core::current_num_threads().max(1);
    #[cfg(target_family = "wasm")]
    1
}

/// Calls a closure of the user; a panic becomes an error.
pub(crate) fn guarded<R>(stage: &str, call: impl FnOnce() -> Result<R>) -> Result<R> {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|panic| Err(panicked(stage, &*panic)))
}

fn panicked(stage: &str, panic: &(dyn Any + Send)) -> Error {
    let text = panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_string())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "it did not say why".into());
    Error::Data(message!("{stage}: the closure panicked: {text}"))
}

/// Jobs that run, and results that have not been fetched.
#[derive(Clone)]
pub(crate) struct Jobs<R> {
    shared: Arc<Shared<R>>,
}

struct Shared<R> {
    slots: Mutex<Slots<R>>,
    changed: Condvar,
}

struct Slots<R> {
    queue: VecDeque<(u64, Slot<R>)>,
    next: u64,
    /// The calls of [`Shared::work`] that the pool has not begun.
    #[cfg(not(target_family = "wasm"))]
    calls: usize,
}

enum Slot<R> {
    Waiting(Box<dyn FnOnce() -> R + Send>),
    Running,
    Done(R),
}

impl<R: Send + 'static> Jobs<R> {
    pub(crate) fn new() -> Self {
        let slots = Mutex::new(Slots {
            queue: VecDeque::new(),
            next: 0,
            #[cfg(not(target_family = "wasm"))]
            calls: 0,
        });
        Jobs { shared: Arc::new(Shared { slots, changed: Condvar::new() }) }
    }

    /// The number of jobs whose results have not been fetched.
    pub(crate) fn len(&self) -> usize {
        self.shared.lock().queue.len()
    }

    /// Adds a closure, which must not panic.
    pub(crate) fn push(&self, job: impl FnOnce() -> R + Send + 'static) {
        let mut slots = self.shared.lock();
        slots.push(Slot::Waiting(Box::new(job)));
        // A call runs any job, so there are never more calls than jobs: calls whose jobs the waiting thread ran serve later
        // jobs.
        #[cfg(not(target_family = "wasm"))]
        if slots.calls < slots.queue.len() {
            slots.calls += 1;
            drop(slots);
            let shared = self.shared.clone();
            rayon_core::spawn(move || shared.work());
        }
    }

    /// Adds a result.
    pub(crate) fn push_done(&self, result: R) {
        self.shared.lock().push(Slot::Done(result));
    }

    /// The result of the oldest job, or, if the order does not matter, of one that is done; `None` without jobs.
    pub(crate) fn pop(&self, in_order: bool) -> Option<R> {
        let mut slots = self.shared.lock();
        loop {
            if slots.queue.is_empty() {
                return None;
            }
            let reach = if in_order { 1 } else { slots.queue.len() };
            let done = (0..reach).find(|at| matches!(slots.queue[*at].1, Slot::Done(_)));
            if let Some((_, Slot::Done(result))) = done.and_then(|at| slots.queue.remove(at)) {
                return Some(result);
            }
            slots = match slots.claim() {
                Some((id, job)) => {
                    drop(slots);
                    self.shared.finish(id, job());
                    self.shared.lock()
                }
                None => self.shared.changed.wait(slots).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }
}

impl<R> Shared<R> {
    fn lock(&self) -> MutexGuard<'_, Slots<R>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a job, if one is waiting.
    #[cfg(not(target_family = "wasm"))]
    fn work(&self) {
        let mut slots = self.lock();
        slots.calls -= 1;
        let claimed = slots.claim();
        drop(slots);
        if let Some((id, job)) = claimed {
            self.finish(id, job());
        }
    }

    fn finish(&self, id: u64, result: R) {
        let mut slots = self.lock();
        if let Some(slot) = slots.queue.iter_mut().find(|(found, _)| *found == id) {
            slot.1 = Slot::Done(result);
        }
        self.changed.notify_all();
    }
}

impl<R> Slots<R> {
    fn push(&mut self, slot: Slot<R>) {
        self.queue.push_back((self.next, slot));
        self.next += 1;
    }

    /// The oldest job that no thread has begun.
    #[allow(clippy::type_complexity)]
    fn claim(&mut self) -> Option<(u64, Box<dyn FnOnce() -> R + Send>)> {
        let waiting = self.queue.iter_mut().find(|(_, slot)| matches!(slot, Slot::Waiting(_)));
        let (id, slot) = waiting?;
        match std::mem::replace(slot, Slot::Running) {
            Slot::Waiting(job) => Some((*id, job)),
            other => {
                *slot = other;
                None
            }
        }
    }
}

impl<R> Drop for Jobs<R> {
    /// Jobs that no thread has begun never run.
    fn drop(&mut self) {
        self.shared.lock().queue.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn results_come_in_order_or_all_of_them() {
        for in_order in [true, false] {
            let jobs = Jobs::new();
            for i in 0..100u64 {
                jobs.push(move || i * i);
            }
            let mut results: Vec<u64> = std::iter::from_fn(|| jobs.pop(in_order)).collect();
            if !in_order {
                results.sort_unstable();
            }
            assert_eq!(results, (0..100u64).map(|i| i * i).collect::<Vec<_>>());
        }
    }

    #[test]
    fn jobs_that_their_waiter_runs_leave_nothing_in_the_pool() {
        let jobs = Jobs::new();
        for i in 0..10_000u64 {
            jobs.push(move || i);
            jobs.push(move || i + 1);
            assert_eq!((jobs.pop(true), jobs.pop(true)), (Some(i), Some(i + 1)));
            assert!(jobs.shared.lock().calls <= 2);
        }
    }

    #[test]
    fn jobs_inside_jobs_do_not_block_the_pool() {
        let outer = Jobs::new();
        for i in 0..4 * width() as u64 {
            outer.push(move || {
                let inner = Jobs::new();
                for k in 0..10 {
                    inner.push(move || i * k);
                }
                std::iter::from_fn(|| inner.pop(true)).sum::<u64>()
            });
        }
        let sums: Vec<u64> = std::iter::from_fn(|| outer.pop(true)).collect();
        assert_eq!(sums, (0..4 * width() as u64).map(|i| 45 * i).collect::<Vec<_>>());
    }

    #[test]
    fn dropped_jobs_do_not_begin() {
        let begun = Arc::new(AtomicUsize::new(0));
        let jobs = Jobs::new();
        for _ in 0..10_000 {
            let begun = begun.clone();
            jobs.push(move || {
                begun.fetch_add(1, Ordering::Relaxed);
                std::thread::sleep(std::time::Duration::from_millis(1));
            });
        }
        drop(jobs);
        let after_drop = begun.load(Ordering::Relaxed);
        assert!(after_drop < 10_000, "all ran");
    }

    #[test]
    fn a_panic_is_an_error() {
        let error = guarded("map", || -> Result<()> { panic!("no {}", 7) }).unwrap_err();
        assert_eq!(error.to_string(), "map: the closure panicked: no 7");
    }
}
