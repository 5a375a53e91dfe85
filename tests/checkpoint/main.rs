//! TensorFlow's checkpoints: files, names, what is restored, damaged files, resumed trainings.

#![allow(clippy::unwrap_used)]

#[path = "../support/mutations.rs"]
mod mutations;
#[path = "../support/mod.rs"]
mod support;

mod files;
mod fuzz;
mod manager;
mod resume;
mod save_and_restore;
