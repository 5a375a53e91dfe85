//! Plans: which ops share kernels, that sharing changes no result, and what planning and first runs cost.

#![allow(clippy::unwrap_used)]

#[path = "../support/programs/mod.rs"]
mod programs;
#[path = "../support/mod.rs"]
mod support;

mod bad_input;
mod first_runs;
mod kernels;
mod loops;
mod offsets;
mod planner_bounds;
mod random_programs;
mod regressions;
mod regrouping;
mod repetitions;
mod rolls;
mod sharing;
mod side_by_side;
mod training;

use support::driver;
