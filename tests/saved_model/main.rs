//! SavedModels and ONNX models: those of others have their results and gradients (tests/data), those that are written here are read
//! again, and broken ones are errors.

#![cfg(all(feature = "saved-model", feature = "keras"))]
#![allow(clippy::unwrap_used)]

#[path = "../support/mod.rs"]
mod support;

mod errors;
#[cfg(all(feature = "json", feature = "preprocessing"))]
mod fronts;
mod functions;
#[cfg(feature = "keras-files")]
mod keras_2;
mod memory;
mod onnx;
mod page;
mod results;
#[cfg(feature = "keras-files")]
mod tfjs;
#[cfg(feature = "signal")]
mod written;
