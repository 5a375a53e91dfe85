//! Rewrites a compute shader in WGSL so that it computes as badly as WGSL lets a driver compute, or as drivers do.
//!
//! [`rewrite`] takes a text and a [`Driver`], which is a choice of [`Latitude`]s, and returns a text that gives on an
//! exact driver what the original may give on that one. The program `wgrad-hostile` does the same for a process that
//! starts it (`src/main.rs`). A text with something that the rewriter does not know is an error.
//!
//! The text goes through naga's representation of shaders: `copier.rs` walks through it, `rules.rs` puts calls of
//! functions in place of operations, `algebra.rs` does what compilers do with sums and products, `operations.rs` writes
//! the functions. `subgroups.rs` is about another latitude: how many invocations a subgroup has.

mod algebra;
mod bounds;
mod builder;
mod copier;
mod error;
mod knowledge;
mod latitude;
mod library;
mod maps;
mod module;
mod operations;
mod replacement;
mod rules;
mod subgroups;
mod tests_of_bits;

pub use error::{Error, Result};
pub use latitude::{Driver, Latitude};
pub use module::Rewriter;
pub use replacement::Replacement;
pub use subgroups::Subgroups;

/// Rewrites one text. A [`Rewriter`] does it faster for many.
///
/// # Errors
/// If the text is not valid, or holds something that the rewriter does not know.
pub fn rewrite(text: &str, driver: &Driver) -> Result<String> {
    Rewriter::new(driver.clone())?.rewrite(text)
}
