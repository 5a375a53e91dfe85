//! Data sets: readers, the real MNIST, a generator of digits; and the batches that a model is trained on.
//!
//! The code runs on the host only, and makes tensors a batch at a time.

mod batch;
mod batches;
mod cardinality;
pub mod codec;
mod columns;
mod dataset;
#[cfg(all(feature = "download", not(target_family = "wasm")))]
mod download;
pub mod drawn_digits;
pub mod idx;
mod images;
mod item;
mod iterator;
pub mod mnist;
mod node;
mod pool;
mod seed;
mod source;
mod sources;
mod stages;

pub use batch::{Batch, IntoBatch, IntoTensors};
pub use batches::Batches;
pub use cardinality::Cardinality;
pub use columns::{Column, IntoColumns};
pub use dataset::Dataset;
pub use item::{IntoItem, Item, ItemSpec, Scalar};
pub use iterator::{DatasetIter, IteratorState};
pub(crate) use source::{Arrays, Begin, Kind, Pass};
pub use source::{IntoSource, Source};
pub use sources::{TensorSlices, range};
pub use stages::{BatchOptions, MapOptions, ShuffleOptions, ToTensors};

/// Lets the dataset choose how much runs at the same time, or ahead (`tf.data.AUTOTUNE`).
pub const AUTOTUNE: usize = usize::MAX;
