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

pub use checkpoint::{Checkpoint, CheckpointBytes, CheckpointPath, RestoreStatus, Snapshot};
#[cfg(not(target_family = "wasm"))]
pub use manager::{Best, CheckpointManager, CheckpointSaveOptions};
pub use reader::CheckpointReader;
#[cfg(not(target_family = "wasm"))]
pub use reader::{list_variables, load_checkpoint, load_variable};
#[cfg(not(target_family = "wasm"))]
pub use state_file::{CheckpointState, get_checkpoint_state, latest_checkpoint};
