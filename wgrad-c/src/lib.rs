//! wgrad's C API. `include/wgrad.h` is generated from this crate, and `docs/c.md` explains it.
//!
//! Every function returns a [`wgrad_status`](status::wgrad_status) and passes its results through pointers. Objects are handles in a
//! table (`handles`), so a handle that was freed, or one of another kind, is an error. No panic leaves a function (`border`).

#![cfg(not(target_family = "wasm"))]
#![allow(non_camel_case_types)] // The names are C's.

mod arguments;
mod border;
pub mod checkpoint;
pub mod dataset;
pub mod device;
pub mod dlpack;
pub mod function;
mod handles;
pub mod model;
pub mod native;
pub mod op;
pub mod optimizer;
pub mod status;
pub mod tape;
pub mod tensor;
pub mod training;
pub mod variable;
