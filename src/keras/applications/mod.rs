//! Known networks, with the names that Keras gives their layers: `tf.keras.applications`.
//!
//! A function builds each network with random weights, or with those of a file that its option
//! [`weights`](ApplicationOptions::weights) names: Keras's own files, or safetensors files as torchvision's and Hugging Face's
//! weights are published. [The guide](crate::docs::applications) has the table of names.
//!
//! ```
//! # fn main() -> wgrad::Result<()> {
//! use wgrad as tf;
//! use tf::Tensor;
//! use tf::keras::applications::{ApplicationOptions, Pooling, mobilenet_v2};
//! use tf::keras::{INFERENCE, Layer};
//!
//! let options = ApplicationOptions::new().include_top(false).input_shape([32, 32, 3]).pooling(Pooling::Avg);
//! let model = mobilenet_v2::mobilenet_v2(&options)?;
//! let images = mobilenet_v2::preprocess_input(&Tensor::full([1, 32, 32, 3], 255.0)?)?;
//! assert_eq!(model.call(&images, INFERENCE)?.shape(), [1, 1280]);
//! # Ok(())
//! # }
//! ```
//!
//! The networks are built from the crate's layers only; a program gets the code of those that it calls.

pub mod bert;
#[cfg(any(feature = "json", feature = "safetensors"))]
mod config_json;
mod decoding;
pub mod densenet;
pub mod efficientnet;
pub mod gpt2;
mod images;
mod key_values;
pub mod lenet;
pub mod llama;
mod loading;
pub mod mobilenet_v2;
pub mod mobilenet_v3;
mod names;
mod options;
mod predictions;
#[cfg(all(feature = "safetensors", not(target_family = "wasm")))]
mod published;
pub mod resnet;
mod sampling;
mod shared;
mod transformer;
pub mod unet;
pub mod vgg16;
pub mod vit;

pub use bert::{Bert, BertConfig};
pub use decoding::{BatchGeneration, CausalLm, Generation};
pub use gpt2::{Gpt2, Gpt2Config};
pub use images::{Scaling, preprocess_input};
pub use key_values::KeyValues;
pub use llama::{Llama, LlamaConfig};
pub use names::WeightNames;
pub use options::{ApplicationOptions, Arrangement, Pooling};
#[cfg(not(target_family = "wasm"))]
pub use predictions::decode_predictions;
pub use predictions::{ClassNames, Prediction, decode_predictions_async};
pub use sampling::GenerateOptions;
pub use vit::{Vit, VitConfig};
