//! What a training run leaves behind: checkpoints in TensorFlow's format.

// Until the readers of single tensors are there.
#[allow(dead_code, unused_imports)]
mod bundle;
mod checkpoint;

pub use bundle::DataType;
pub use checkpoint::{Checkpoint, CheckpointBytes, CheckpointPath, RestoreStatus, Snapshot};
