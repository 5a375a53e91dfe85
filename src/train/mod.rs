//! What a training run leaves behind: checkpoints in TensorFlow's format.
