//! Weights of other libraries: options for
//! [`Trackable::load_weights_with`](crate::Trackable::load_weights_with) and
//! [`save_weights_with`](crate::Trackable::save_weights_with), and files whose tensors are read one by one.
//!
//! [The guide](crate::docs::weights) describes the conversion from and to Keras, PyTorch, NumPy and Hugging
//! Face.

#[cfg(feature = "npy")]
mod npz;

#[cfg(all(feature = "npy", not(target_family = "wasm")))]
pub use npz::{load_npz, save_npz};
#[cfg(feature = "npy")]
pub use npz::{weights_from_npz, weights_to_npz_async};

pub use crate::trackable::weights::{LoadOptions, SafetensorsFile, SaveOptions, TensorInfo};
