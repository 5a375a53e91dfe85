//! Activations as layers of their own.

mod activate;

pub use activate::Activate;
