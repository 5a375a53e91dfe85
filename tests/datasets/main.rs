//! Datasets: stages, files, what order and contents they promise.

#![allow(clippy::unwrap_used)]

#[path = "../support/datasets.rs"]
mod datasets;
#[path = "../support/folder.rs"]
#[allow(dead_code)] // Which modules use it depends on the features.
mod folder;
#[path = "../support/mutations.rs"]
mod mutations;
#[path = "../support/peak.rs"]
#[allow(dead_code)] // Which modules use it depends on the features.
mod peak;
#[path = "../support/root.rs"]
#[allow(dead_code)] // Which modules use it depends on the features.
mod root;

mod dataset;
#[cfg(feature = "image-files")]
mod directories;
mod files;
#[cfg(all(feature = "csv", feature = "gzip", feature = "npy", feature = "tfrecord"))]
mod fuzz;
#[cfg(feature = "npy")]
mod npy;
mod property;
mod stages;
#[cfg(all(feature = "csv", feature = "gzip"))]
mod text;
#[cfg(all(feature = "tfrecord", feature = "gzip"))]
mod tfrecord;
