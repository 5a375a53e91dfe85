//! Pre-made models: boosted trees as scikit-learn grows them, linear models and networks, files, wrong data.

#![allow(clippy::unwrap_used)]

#[path = "../support/mod.rs"]
mod support;

mod golden;
mod networks;
mod trees;
