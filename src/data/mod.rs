//! Data sets: readers, the real MNIST, a generator of digits; and the batches that a model is trained on.
//!
//! The code runs on the host only, and makes tensors a batch at a time.

mod batch;
mod cardinality;
pub mod codec;
mod columns;
#[cfg(feature = "csv")]
pub mod csv;
mod dataset;
#[cfg(all(feature = "download", not(target_family = "wasm")))]
mod download;
pub mod drawn_digits;
#[cfg(feature = "tfrecord")]
pub mod example;
mod files;
pub mod idx;
mod images;
mod item;
mod iterator;
pub mod mnist;
mod model_data;
mod node;
#[cfg(feature = "npy")]
pub mod npy;
mod pool;
mod seed;
mod sources;
mod stages;
#[cfg(feature = "tfrecord")]
pub mod tfrecord;
#[cfg(target_family = "wasm")]
mod turn;

pub use batch::{Batch, IntoBatch, IntoTensors};
pub use cardinality::Cardinality;
pub use columns::{Column, IntoColumns};
pub use dataset::Dataset;
pub use files::{
    CompressionType, FixedLengthRecordOptions, FixedLengthRecordReader, TextLineReader,
};
#[cfg(not(target_family = "wasm"))]
pub use files::{
    FileDataset, FixedLengthRecordDataset, IntoFiles, ListFilesOptions, TextLineDataset,
};
pub use item::{IntoItem, Item, ItemSpec, Scalar};
pub use iterator::{DatasetIter, IteratorState};
pub(crate) use model_data::{Arrays, BatchSource, Batches, Kind};
pub use model_data::{IntoModelData, ModelData};
pub use sources::{TensorSlices, range};
pub use stages::{BatchOptions, MapOptions, ShuffleOptions, ToTensors};
#[cfg(all(feature = "tfrecord", not(target_family = "wasm")))]
pub use tfrecord::TfRecordDataset;

/// Lets the dataset choose how much runs at the same time, or ahead (`tf.data.AUTOTUNE`).
pub const AUTOTUNE: usize = usize::MAX;
