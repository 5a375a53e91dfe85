//! Programs in the manner of earlier versions of TensorFlow.

pub mod v1;
