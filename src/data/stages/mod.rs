//! The stages that transform elements; each file adds its methods to [`Dataset`](super::Dataset).

mod batch;
mod bucket;
mod cache;
#[cfg(not(target_family = "wasm"))]
mod cache_file;
mod choose;
mod concatenate;
mod filter;
mod ignore_errors;
mod interleave;
mod map;
mod padded_batch;
mod prefetch;
mod ragged_batch;
mod repeat;
#[cfg(not(target_family = "wasm"))]
mod save;
mod scan;
mod shuffle;
mod stage;
mod take;
mod take_while;
mod to_tensors;
mod unbatch;
mod window;
mod zip;

pub use batch::BatchOptions;
pub use bucket::BucketOptions;
pub use choose::{
    ChooseOptions, SampleOptions, choose_from_datasets, choose_from_datasets_with,
    sample_from_datasets, sample_from_datasets_with,
};
pub use ignore_errors::IgnoreErrorsOptions;
pub use interleave::{InterleaveOptions, IntoDataset};
pub use map::MapOptions;
pub use padded_batch::PaddedBatchOptions;
pub use ragged_batch::RaggedItem;
#[cfg(not(target_family = "wasm"))]
pub use save::DatasetSaveOptions;
pub use shuffle::ShuffleOptions;
pub use to_tensors::ToTensors;
pub use window::{Window, WindowOptions};
pub use zip::{ZipDatasets, zip};
