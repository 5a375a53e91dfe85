//! WGSL as data: what a text calls, costs and gives is found once, when it is read, and decided on nowhere else.
//!
//! - `formula.rs`: what one function of a generated kernel computes, as a row of a table or an op's `lower` writes it;
//! - `prelude.rs`: the functions that kernels share, and the linker that adds those that a module calls;
//! - `declarations.rs`: what a module declares, each name once;
//! - `template.rs`: shaders with lines that are repeated or left out;
//! - `file.rs`: shader files as a program holds them;
//! - `reader.rs`: the reader of formulas and functions, which no one else asks.

mod declarations;
mod file;
mod formula;
mod prelude;
mod reader;
mod template;

pub(crate) use declarations::Declarations;
pub(crate) use file::{code, shader};
pub(crate) use formula::Formula;
pub(crate) use prelude::link;
pub(crate) use template::expand;
