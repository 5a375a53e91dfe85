//! Leaving the interpreter, so that its other threads run, and entering it again.
//!
//! CPython ends a thread that enters while the interpreter ends, through frames of Rust that cannot be unwound, and the driver's
//! own clean-up frees what a thread computes with. So the end waits for threads that compute, and they stay outside.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use pyo3::prelude::*;

/// The interpreter ends.
static ENDING: AtomicBool = AtomicBool::new(false);
/// How often threads have left the interpreter without having returned to it.
static OUTSIDE: AtomicUsize = AtomicUsize::new(0);
/// How long the end of the interpreter waits for them.
const PATIENCE: Duration = Duration::from_secs(5);

thread_local! {
    /// This thread's share of `OUTSIDE`.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
    /// This thread has left the interpreter, and not entered it again.
    static IS_OUTSIDE: Cell<bool> = const { Cell::new(false) };
    /// This thread ends the interpreter, which may call this module until it has ended.
    static ENDS_IT: Cell<bool> = const { Cell::new(false) };
}

/// Counts this thread while it exists: also while a function that it calls outside enters the interpreter, as a thread that
/// switches there would be ended too.
struct Counted;

impl Counted {
    fn new() -> Self {
        OUTSIDE.fetch_add(1, Ordering::SeqCst);
        DEPTH.set(DEPTH.get() + 1);
        Self
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        OUTSIDE.fetch_sub(1, Ordering::SeqCst);
        DEPTH.set(DEPTH.get() - 1);
    }
}

/// The side of this thread while it exists; then the former one again.
struct Side(bool);

impl Side {
    fn set(is_outside: bool) -> Self {
        Self(IS_OUTSIDE.replace(is_outside))
    }
}

impl Drop for Side {
    fn drop(&mut self) {
        IS_OUTSIDE.set(self.0);
    }
}

/// Does not return if the interpreter ends. A thread inside has the interpreter's lock, and must go on.
fn stay_outside_at_the_end() {
    if IS_OUTSIDE.get() && ENDING.load(Ordering::SeqCst) && !ENDS_IT.get() {
        OUTSIDE.fetch_sub(DEPTH.get(), Ordering::SeqCst);
        loop {
            thread::park();
        }
    }
}

/// Releases the interpreter's lock.
pub trait Release {
    /// Like `Python::detach`: calls `f` while other threads may use the interpreter.
    fn released<T: Send, F: Send + FnOnce() -> T>(self, f: F) -> T;
}

impl Release for Python<'_> {
    fn released<T: Send, F: Send + FnOnce() -> T>(self, f: F) -> T {
        let _counted = Counted::new();
        self.detach(|| {
            let _side = Side::set(true);
            let made = f();
            stay_outside_at_the_end();
            made
        })
    }
}

/// Like `Python::attach`: calls `f` with the interpreter.
pub fn attached<T>(f: impl for<'py> FnOnce(Python<'py>) -> T) -> T {
    stay_outside_at_the_end();
    Python::attach(|py| {
        let _side = Side::set(false);
        f(py)
    })
}

/// Called when an interpreter imports the module.
pub fn begin() {
    ENDING.store(false, Ordering::SeqCst);
}

/// Called by the thread that ends the interpreter, before it does.
#[pyfunction]
pub fn at_exit(py: Python<'_>) {
    ENDS_IT.set(true);
    ENDING.store(true, Ordering::SeqCst);
    let own = DEPTH.get();
    py.detach(|| {
        let end = Instant::now() + PATIENCE;
        while OUTSIDE.load(Ordering::SeqCst) > own && Instant::now() < end {
            thread::sleep(Duration::from_millis(1));
        }
    });
}

/// Called in the child after a fork, which has none of the other threads.
pub fn after_fork() {
    OUTSIDE.store(DEPTH.get(), Ordering::SeqCst);
}
