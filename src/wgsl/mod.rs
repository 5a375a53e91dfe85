//! WGSL as data: reading a text finds what it calls, costs and returns, once, and nothing else looks into texts.
//!
//! - `formula.rs`: the body of one function of a generated kernel, as a row of a table or an op's `lower` writes it;
//! - `prelude.rs`: the functions that kernels share, and the linker that adds those that a module calls;
//! - `declarations.rs`: the declarations of a module, each name once;
//! - `template.rs`: shaders with lines that the host repeats or leaves out;
//! - `known_texts.rs`: texts that were made before;
//! - `file.rs`: shader files as a program holds them;
//! - `expression.rs`: formulas as arithmetic;
//! - `reader.rs`: the reader of formulas and functions, which only this room uses.

mod declarations;
mod expression;
mod file;
mod formula;
mod known_texts;
mod prelude;
mod reader;
mod template;

pub(crate) use declarations::Declarations;
pub(crate) use expression::Arithmetic;
pub(crate) use file::{code, shader};
pub(crate) use formula::Formula;
pub(crate) use prelude::link;
pub(crate) use template::expand;
