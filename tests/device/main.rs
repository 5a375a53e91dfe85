//! Devices: options, limits, faults, memory, inspection, tuning.

#![allow(clippy::unwrap_used)]

#[path = "../support/mod.rs"]
mod support;

mod copies;
mod debugging;
mod device;
#[cfg(feature = "saved-model")]
mod exported_source;
mod faults;
mod functions;
mod inspect;
mod memory;
mod pacing;
#[cfg(feature = "saved-plans")]
mod saved_plans;
mod sessions;
mod tuner;
