//! Helpers for the programs whose tests are in a folder. Each uses some of them.

#![allow(dead_code)]

pub mod child;
pub mod compare;
pub mod datasets;
pub mod driver;
#[cfg(all(feature = "json", feature = "preprocessing", feature = "saved-model"))]
pub mod exported_fronts;
pub mod folder;
#[cfg(feature = "saved-model")]
pub mod node_tests;
pub mod numbers;
pub mod root;
#[cfg(feature = "saved-model")]
pub mod saved_models;
#[cfg(all(feature = "keras", feature = "saved-model", feature = "signal"))]
pub mod written_models;
