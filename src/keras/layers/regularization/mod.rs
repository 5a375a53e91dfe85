//! Layers that make training harder, so that a model does better afterwards.

mod dropout;

pub use dropout::Dropout;
