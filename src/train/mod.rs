//! What a training run leaves behind: checkpoints in TensorFlow's format.

// Until checkpoints and their readers are there.
#[allow(dead_code, unused_imports)]
mod bundle;

pub use bundle::DataType;
