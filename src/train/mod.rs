//! The results of a training run: checkpoints in TensorFlow's format.

mod bundle;
mod checkpoint;
#[cfg(not(target_family = "wasm"))]
mod manager;
mod reader;
#[cfg(not(target_family = "wasm"))]
mod state_file;
#[cfg(not(target_family = "wasm"))]
mod state_text;

#[cfg(feature = "saved-model")]
pub(crate) use bundle::BundleReader;
#[cfg(all(any(feature = "keras", feature = "saved-model"), not(target_family = "wasm")))]
pub(crate) use bundle::index_path;
#[cfg(all(feature = "keras", not(target_family = "wasm")))]
pub(crate) use bundle::{BundleFiles, remove as remove_bundle};
#[cfg(feature = "saved-model")]
pub(crate) use checkpoint::StoredObjects;
pub use checkpoint::{Checkpoint, CheckpointBytes, CheckpointPath, RestoreStatus, Snapshot};
#[cfg(all(feature = "saved-model", not(target_family = "wasm")))]
pub(crate) use checkpoint::{ObjectsToStore, StoredVariable};
#[cfg(not(target_family = "wasm"))]
pub use manager::{Best, CheckpointManager, CheckpointSaveOptions};
pub use reader::CheckpointReader;
#[cfg(not(target_family = "wasm"))]
pub use reader::{list_variables, load_checkpoint, load_variable};
#[cfg(all(feature = "keras", not(target_family = "wasm")))]
pub(crate) use state_file::update_checkpoint_state;
#[cfg(not(target_family = "wasm"))]
pub use state_file::{CheckpointState, get_checkpoint_state, latest_checkpoint};
