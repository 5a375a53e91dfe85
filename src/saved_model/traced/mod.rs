//! Functions as exporters see them: traced with several sizes (`traces.rs`), so that what depends on open ones shows
//! (`number.rs`, `sizes.rs`), and call by call (`site.rs`). `signature.rs` has the function and its names.

mod number;
mod signature;
mod site;
mod sizes;
mod traces;

pub(super) use number::{Number, Real};
pub use signature::Signature;
pub(super) use signature::{is_identifier, unique};
pub(super) use site::{Found, Site, field};
pub(super) use sizes::{Size, Sizes, neighbours};
pub(super) use traces::Traces;

use crate::function::TensorSpec;
use crate::graph::Spec;

/// The sizes that are the same in all traces.
pub(super) fn merged(specs: &[Spec]) -> TensorSpec {
    let size = |axis: usize| {
        let size = specs[0].shape[axis];
        specs.iter().all(|spec| spec.shape[axis] == size).then_some(size)
    };
    let sizes: Vec<Option<usize>> = (0..specs[0].shape.len()).map(size).collect();
    TensorSpec::new(sizes, specs[0].dtype)
}
