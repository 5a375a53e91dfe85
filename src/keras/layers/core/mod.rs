//! The layers that most models are made of.

mod dense;

pub use dense::Dense;
