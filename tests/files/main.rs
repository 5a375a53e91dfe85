//! Files of weights, models and summaries, also damaged and hostile ones.

#![allow(clippy::unwrap_used)]

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
