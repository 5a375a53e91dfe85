//! Plans: which ops share kernels, and that sharing changes no result.

#![allow(clippy::unwrap_used)]

#[path = "../support/programs/mod.rs"]
mod programs;
#[path = "../support/mod.rs"]
mod support;

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

use support::driver;
