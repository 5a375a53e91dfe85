//! Plans: which ops share kernels, and that sharing changes no result.

#![allow(clippy::unwrap_used)]

#[path = "../support/child.rs"]
#[allow(dead_code)] // Which modules use it depends on the features.
mod child;
#[path = "../support/driver.rs"]
mod driver;
#[path = "../support/programs/mod.rs"]
mod programs;

mod bad_input;
mod kernels;
mod loops;
mod offsets;
mod regressions;
mod regrouping;
mod repetitions;
mod rolls;
mod sharing;
mod side_by_side;
mod training;
