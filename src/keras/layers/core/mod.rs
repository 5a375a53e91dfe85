//! Core layers.

mod dense;
mod einsum_dense;
mod embedding;
mod identity;
mod lambda;
mod masking;

pub use dense::Dense;
pub use einsum_dense::{BiasAxes, EinsumDense, OutputShape};
pub use embedding::Embedding;
pub use identity::Identity;
pub use lambda::Lambda;
pub use masking::Masking;
