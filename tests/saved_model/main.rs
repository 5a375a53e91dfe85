//! SavedModels that TensorFlow and Keras wrote: their results and gradients are TensorFlow's (tests/data/saved_model), and broken ones
//! are errors.

#![cfg(all(feature = "saved-model", feature = "keras"))]
#![allow(clippy::unwrap_used)]

#[path = "../support/mod.rs"]
mod support;

mod errors;
mod functions;
mod onnx;
mod page;
mod results;
