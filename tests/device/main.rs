//! Devices: options, limits, faults, memory, inspection, tuning.

#![allow(clippy::unwrap_used)]

#[path = "../support/child.rs"]
#[allow(dead_code)] // Which modules use it depends on the features.
mod child;

mod debugging;
mod device;
mod faults;
mod inspect;
mod memory;
mod tuner;
