//! The differences between native targets and browsers: blocking, threads, adapters, the environment, files, the end of
//! a program.
//!
//! Both files define the same names, so that the rest of the crate is the same on every target. Code for only one of
//! them tests a constant such as [`MAY_BLOCK`], and the compiler removes the unreachable branch.

#[cfg(not(target_family = "wasm"))]
mod native;
#[cfg(not(target_family = "wasm"))]
pub(crate) use native::*;
#[cfg(target_family = "wasm")]
mod web;
#[cfg(target_family = "wasm")]
pub(crate) use web::*;
