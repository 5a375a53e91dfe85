//! Files of weights, models and summaries, also damaged and hostile ones.

#![allow(clippy::unwrap_used)]

#[path = "../support/mutations.rs"]
mod mutations;
#[path = "../support/mod.rs"]
mod support;

#[cfg(all(feature = "csv", feature = "image-files", feature = "summary", feature = "tfrecord"))]
mod hostile;
#[cfg(feature = "keras-files")]
mod hostile_hdf5;
#[cfg(feature = "image-files")]
mod hostile_images;
#[cfg(all(feature = "keras-files", feature = "npy"))]
mod keras;
mod pytorch;
#[cfg(feature = "summary")]
mod summary;
#[cfg(feature = "summary")]
mod summary_fuzz;
mod weights;
#[cfg(all(feature = "keras-files", feature = "npy"))]
mod weights_fuzz;
mod weights_on_disk;
