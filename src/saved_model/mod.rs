//! Models without the program that made them: functions exported as models that run without this crate, and TensorFlow's
//! SavedModels, loaded and written.

mod budget;
mod control_flow;
mod graph_def;
#[cfg(feature = "keras-files")]
mod keras_model;
#[cfg(feature = "keras")]
mod layer;
mod load;
mod loaded;
#[cfg(not(target_family = "wasm"))]
mod model;
mod model_files;
pub(crate) mod onnx;
#[cfg(not(target_family = "wasm"))]
mod rust_source;
#[cfg(not(target_family = "wasm"))]
mod save;
mod saved_function;
mod spec;
pub(crate) mod tfjs;
#[cfg(not(target_family = "wasm"))]
mod traced;
mod waiting;
#[cfg(not(target_family = "wasm"))]
mod webgpu;

#[cfg(all(feature = "keras-files", not(target_family = "wasm")))]
pub use keras_model::load_keras_model;
#[cfg(feature = "keras-files")]
pub use keras_model::load_keras_model_from_bytes;
#[cfg(feature = "keras")]
pub use layer::SavedModelLayer;
pub use load::{LoadOptions, import_graph_def_from_bytes, load_from_bytes, remaining_files};
#[cfg(not(target_family = "wasm"))]
pub use load::{import_graph_def, load, load_with};
pub use loaded::SavedModel;
#[cfg(all(feature = "json", feature = "preprocessing", not(target_family = "wasm")))]
#[doc(hidden)]
pub use save::FrontPlan;
#[cfg(not(target_family = "wasm"))]
pub use save::save;
pub use saved_function::{Outputs, SavedFunction, SavedValue};
pub use spec::SavedSpec;
#[cfg(not(target_family = "wasm"))]
pub use traced::Signature;

/// The names of TensorFlow's ops that loaded graphs may have, sorted.
pub fn supported_ops() -> Vec<&'static str> {
    graph_def::op_names()
}
