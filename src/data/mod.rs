//! Data sets: readers, the real MNIST, a generator of digits; and the batches for training a model.
//!
//! The code runs on the host only, and makes tensors one batch at a time.

mod batch;
mod cardinality;
pub mod codec;
#[cfg(not(target_family = "wasm"))]
pub(crate) mod collection;
mod columns;
#[cfg(feature = "csv")]
pub mod csv;
mod dataset;
#[cfg(all(feature = "download", not(target_family = "wasm")))]
pub(crate) mod download;
pub mod drawn_digits;
#[cfg(not(target_family = "wasm"))]
mod element_file;
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
pub use item::{IntoItem, Item, ItemScalar, ItemSpec, PadTo, PaddedShapes, same_rows};
pub use iterator::{DatasetIter, IteratorState};
pub(crate) use model_data::{Arrays, BatchSource, Batches, DataKind, Origin};
pub use model_data::{IntoModelData, ModelData};
pub use sources::{RandomOptions, TensorSlices, random, range};
#[cfg(not(target_family = "wasm"))]
pub use stages::DatasetSaveOptions;
pub use stages::{
    BatchOptions, BucketOptions, ChooseOptions, IgnoreErrorsOptions, InterleaveOptions,
    IntoDataset, MapOptions, PaddedBatchOptions, RaggedItem, SampleOptions, ShuffleOptions,
    ToTensors, Window, WindowOptions, ZipDatasets, choose_from_datasets, choose_from_datasets_with,
    sample_from_datasets, sample_from_datasets_with, zip,
};
#[cfg(all(feature = "tfrecord", not(target_family = "wasm")))]
pub use tfrecord::TfRecordDataset;

/// Derives [`Item`](trait@Item) for a struct of elements.
///
/// For a struct `Pet` it generates two structs with the same field names and the same visibility: `PetBatch` holds a batch of
/// each field, and `PetPadding` the values with which [`Dataset::padded_batch_with`] pads each. `#[item(crate = path)]`
/// specifies the path of `wgrad` if it is not `::wgrad`.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::data::{Dataset, Item};
///
/// #[derive(Clone, Item)]
/// struct Pet {
///     age: f32,
///     name: String,
/// }
///
/// let pets = vec![Pet { age: 3.0, name: "Rex".into() }, Pet { age: 1.5, name: "Mia".into() }];
/// let pets = Dataset::from_tensor_slices(pets)?;
/// assert_eq!(pets.element_spec().to_string(), "Pet { age: f32, name: string }");
/// let batch: PetBatch = pets.batch(2).iter().next().expect("one batch")?;
/// assert_eq!(batch.age.sum(), 4.5);
/// assert_eq!(batch.name[1], "Mia");
/// # Ok(())
/// # }
/// ```
pub use wgrad_derive::Item;

/// Lets the dataset choose how many elements it makes at the same time, or ahead (`tf.data.AUTOTUNE`).
pub const AUTOTUNE: usize = usize::MAX;
