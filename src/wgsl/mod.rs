//! WGSL as data: a text is analysed once for what it calls, costs and returns, and other modules do not parse it.
//!
//! - `formula.rs`: the body of one function of a generated kernel, as a row of a table or an op's `lower` writes it;
//! - `prelude.rs`: the functions that kernels share, and the linker that adds those that a module calls;
//! - `declarations.rs`: the declarations of a module, each name once;
//! - `template.rs`: shaders with lines that the host repeats or leaves out;
//! - `known_texts.rs`: a cache of generated texts;
//! - `file.rs`: shader files in the form that a program contains;
//! - `expression.rs`: formulas as arithmetic;
//! - `reader.rs`: the parser of formulas and functions, which only this module uses.

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
