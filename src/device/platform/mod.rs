//! What a native target and a browser do differently: blocking, threads, adapters, the environment, files, the end of
//! a program.
//!
//! Both files offer the same names, so that the rest of the crate reads the same on every target. Where code only makes
//! sense on one of them it asks a constant such as [`MAY_BLOCK`], and the compiler leaves out what cannot be reached.

#[cfg(not(target_family = "wasm"))]
mod native;
#[cfg(not(target_family = "wasm"))]
pub(crate) use native::*;
#[cfg(target_family = "wasm")]
mod web;
#[cfg(target_family = "wasm")]
pub(crate) use web::*;
