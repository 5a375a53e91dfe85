//! Keras: layers, models, losses, metrics, optimizers, callbacks.

#![allow(clippy::unwrap_used)]

#[path = "../support/child.rs"]
#[allow(dead_code)] // Which modules use it depends on the features.
mod child;
#[path = "../support/numbers.rs"]
mod numbers;
#[path = "../support/root.rs"]
#[allow(dead_code)] // Which modules use it depends on the features.
mod root;

mod attention;
mod callbacks;
mod json;
mod keras_ops;
mod layers;
mod losses;
mod metrics;
mod mixed_precision;
mod models;
mod optimizers;
mod options;
mod recurrent;
