//! TensorFlow's checkpoints: files, names, what is restored, damaged files.

#![allow(clippy::unwrap_used)]

#[path = "../support/folder.rs"]
#[allow(dead_code)] // Which modules use it depends on the features.
mod folder;
#[path = "../support/mutations.rs"]
mod mutations;
#[path = "../support/peak.rs"]
#[allow(dead_code)] // Which modules use it depends on the features.
mod peak;
#[path = "../support/root.rs"]
#[allow(dead_code)] // Which modules use it depends on the features.
mod root;

mod files;
mod fuzz;
mod manager;
mod save_and_restore;
