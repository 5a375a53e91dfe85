//! Datasets: stages, files, images, what order and contents they promise.

#![allow(clippy::unwrap_used)]

#[path = "../support/mutations.rs"]
mod mutations;
#[path = "../support/mod.rs"]
mod support;

mod dataset;
#[cfg(feature = "image-files")]
mod directories;
mod files;
#[cfg(all(feature = "csv", feature = "gzip", feature = "npy", feature = "tfrecord"))]
mod fuzz;
#[cfg(feature = "image-files")]
mod images;
#[cfg(feature = "npy")]
mod npy;
mod property;
mod stages;
#[cfg(all(feature = "csv", feature = "gzip"))]
mod text;
#[cfg(all(feature = "tfrecord", feature = "gzip"))]
mod tfrecord;
