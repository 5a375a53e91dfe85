//! Models without the program that made them: functions exported as models that run without this crate, and TensorFlow's
//! SavedModels, loaded and written.

mod budget;
mod graph_def;
mod load;
mod model;
pub(crate) mod onnx;
mod rust_source;
mod save;
mod saved_function;
mod spec;
mod traced;
mod webgpu;

pub use load::{LoadOptions, SavedModel, import_graph_def, load, load_with};
pub use save::save;
pub use saved_function::{Outputs, SavedFunction, SavedValue};
pub use spec::SavedSpec;
pub use traced::Signature;

/// The names of TensorFlow's ops that loaded graphs may have, sorted.
pub fn supported_ops() -> Vec<&'static str> {
    graph_def::op_names()
}
