//! What a training run leaves behind: checkpoints in TensorFlow's format.

// Until all of it is called.
#[allow(dead_code, unused_imports)]
mod bundle;
mod checkpoint;
mod reader;
#[cfg(not(target_family = "wasm"))]
mod state_file;
#[cfg(not(target_family = "wasm"))]
mod state_text;

pub use bundle::DataType;
pub use checkpoint::{Checkpoint, CheckpointBytes, CheckpointPath, RestoreStatus, Snapshot};
pub use reader::{CheckpointArray, CheckpointReader};
#[cfg(not(target_family = "wasm"))]
pub use reader::{list_variables, load_checkpoint, load_variable};
#[cfg(not(target_family = "wasm"))]
#[allow(unused_imports)]
pub(crate) use state_file::update_checkpoint_state;
#[cfg(not(target_family = "wasm"))]
pub use state_file::{CheckpointState, get_checkpoint_state, latest_checkpoint};
