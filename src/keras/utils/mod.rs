//! Keras's `utils`: datasets from folders of files.

mod directory;
#[cfg(feature = "image-files")]
mod image_dataset;
mod text_dataset;

pub use directory::{DirectoryDataset, Subset};
#[cfg(feature = "image-files")]
pub use image_dataset::{ColorMode, ImageDatasetOptions, image_dataset_from_directory};
pub use text_dataset::{TextDatasetOptions, text_dataset_from_directory};

#[cfg(feature = "preprocessing")]
pub use super::layers::{Cross, Feature, FeatureSpace};
