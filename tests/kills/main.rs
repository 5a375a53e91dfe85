//! Processes that are killed while they write, and disks that are full: what is on the disk afterwards.

#![allow(clippy::unwrap_used)]

#[path = "../support/mod.rs"]
mod support;

#[cfg(all(unix, feature = "summary"))]
mod summaries;
mod trainings;
#[cfg(all(
    unix,
    feature = "keras-files",
    feature = "npy",
    feature = "saved-model",
    feature = "tfrecord"
))]
mod writers;

/// Tests of which one process must get time to write before it is killed take turns.
#[allow(dead_code)] // Not every set of features has such tests.
fn alone() -> std::sync::MutexGuard<'static, ()> {
    static ALONE: std::sync::Mutex<()> = std::sync::Mutex::new(());
    ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
