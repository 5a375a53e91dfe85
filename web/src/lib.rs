//! wgrad's JavaScript API: the crate `wgrad` as an ES module with types.
//!
//! Every class here is a handle to the type of the same name in `wgrad`; nothing is computed here. A call that waits for the
//! device returns a `Promise` and holds no borrow of its object meanwhile, so callbacks may use everything. On targets other
//! than wasm the crate is empty.
#![cfg(target_family = "wasm")]

mod args;
#[cfg(feature = "ops")]
mod batches;
#[cfg(feature = "ops")]
mod browser;
#[cfg(feature = "ops")]
mod checkpoint;
mod config;
mod device;
mod error;
#[cfg(feature = "ops")]
mod fit;
#[cfg(feature = "ops")]
mod function;
#[cfg(feature = "ops")]
mod grads;
#[cfg(feature = "models")]
mod graph_model;
#[cfg(feature = "ops")]
mod idle;
mod images;
mod layer;
mod losses;
#[cfg(feature = "ops")]
mod make;
#[cfg(feature = "ops")]
// Most models of other programs have several files, and only they are searched for.
#[cfg_attr(not(feature = "models"), allow(dead_code))]
mod model_files;
#[cfg(feature = "ops")]
mod ops;
mod optimizer;
mod panics;
mod profile;
mod random;
#[cfg(feature = "ops")]
mod saved;
mod sequential;
#[cfg(feature = "models")]
mod several;
#[cfg(feature = "ops")]
mod shapes;
#[cfg(feature = "ops")]
mod storage;
#[cfg(feature = "ops")]
mod tape;
mod tensor;
#[cfg(feature = "ops")]
mod tidy;
mod types;
#[cfg(feature = "ops")]
mod values;
mod variable;
mod weights;
#[cfg(feature = "ops")]
mod words;

#[cfg(feature = "ops")]
pub use batches::Batches;
#[cfg(feature = "ops")]
pub use checkpoint::Checkpoint;
pub use device::{Device, Plan};
#[cfg(feature = "ops")]
pub use fit::early_stopping;
#[cfg(feature = "ops")]
pub use function::tf_function;
#[cfg(feature = "ops")]
pub use grads::{grad, grads, value_and_grad, value_and_grads, variable_grads};
#[cfg(feature = "models")]
pub use graph_model::{GraphModel, load_graph_model};
pub use images::Images;
#[cfg(feature = "ops")]
pub use layer::layers;
pub use panics::on_panic;
pub use profile::Profiler;
pub use random::set_seed;
#[cfg(feature = "ops")]
pub use random::{random_normal, random_uniform};
#[cfg(feature = "ops")]
pub use saved::load_model;
pub use sequential::Sequential;
#[cfg(feature = "ops")]
pub use tape::{GradientTape, value_and_gradients};
pub use tensor::Tensor;
#[cfg(feature = "ops")]
pub use tidy::tidy;
pub use variable::Variable;

use wasm_bindgen::prelude::*;

/// Runs when the module is loaded.
#[wasm_bindgen(start, private, skip_typescript)]
fn start() {
    panics::install();
}
