//! TensorFlow, Keras and TensorBoard read what wgrad writes, and say what they read. `cargo xtask judge` runs these tests.

#![allow(clippy::unwrap_used)]

#[path = "../support/mod.rs"]
mod support;

#[cfg(feature = "keras-files")]
mod applications;
mod checkpoints;
mod control_flow;
#[cfg(all(feature = "gzip", feature = "npy", feature = "tfrecord"))]
mod datasets;
#[cfg(feature = "estimator")]
mod estimators;
#[cfg(all(feature = "preprocessing", feature = "json", feature = "saved-model"))]
mod exported_fronts;
#[cfg(all(feature = "keras-files", feature = "npy"))]
mod keras_files;
#[cfg(feature = "saved-model")]
mod onnx;
#[cfg(all(feature = "keras-files", feature = "preprocessing"))]
mod preprocessing;
#[cfg(feature = "saved-model")]
mod saved_models;
mod saver;
#[cfg(feature = "summary")]
mod summary;
#[cfg(all(feature = "keras-files", feature = "saved-model"))]
mod tfjs;
#[cfg(all(feature = "keras", feature = "saved-model", feature = "signal"))]
mod written_models;
