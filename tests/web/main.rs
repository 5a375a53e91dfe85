//! What browsers and native programs compute alike: training runs, and files that one side writes and the other reads.

#![allow(clippy::unwrap_used)]

#[path = "../support/mod.rs"]
mod support;

#[cfg(feature = "saved-model")]
mod exported;
mod native_half;
mod recorded;

/// Tests seed the single global generator, so only one that does runs at a time.
fn alone() -> std::sync::MutexGuard<'static, ()> {
    static ALONE: std::sync::Mutex<()> = std::sync::Mutex::new(());
    ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
