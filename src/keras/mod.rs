//! Keras: layers, models, losses, metrics, optimizers, and the training of models.
//!
//! The module builds only on tensors, variables and gradient tapes: it contains no shaders and no buffers, and a
//! program could write every layer with [`Tensor`](crate::Tensor)'s methods. [`Model`] provides `compile` and `fit`;
//! you can also write a custom training loop:
//!
//! ```
//! # fn main() -> wgrad::Result<()> {
//! use wgrad as tf;
//! use tf::keras::{Activation, Layer, Loss, Sequential, TRAINING, layers::Dense, losses};
//! use tf::keras::optimizers::{Optimizer, Sgd};
//!
//! let model = Sequential::new()
//!     .add(Dense::new(8).activation(Activation::Relu))
//!     .add(Dense::new(2));
//! let loss_of = losses::SparseCategoricalCrossentropy::new().from_logits(true);
//! let optimizer = Sgd::new(0.5);
//! let x = tf::constant([[0.0, 1.0], [1.0, 0.0]])?;
//! let y = tf::constant([0, 1])?;
//! let mut last = f32::INFINITY;
//! for _ in 0..3 {
//!     let tape = tf::GradientTape::new();
//!     let loss = loss_of.call(&y, &model.call(&x, TRAINING)?)?;
//!     optimizer.minimize(&loss, tape, &model)?;
//!     assert!(loss.item::<f32>()? < last);
//!     last = loss.item()?;
//! }
//! # Ok(())
//! # }
//! ```

pub mod activations;
pub mod applications;
pub mod callbacks;
#[cfg(feature = "json")]
mod config;
pub mod constraints;
mod context;
#[cfg(not(target_family = "wasm"))]
pub mod datasets;
mod dtype_policy;
#[cfg(feature = "preprocessing")]
mod front;
mod function;
mod functional;
pub mod initializers;
pub mod layers;
mod lists;
pub(crate) mod loading;
pub mod losses;
pub mod metrics;
mod operations;
pub mod optimizers;
mod pad_sequences;
#[cfg(feature = "json")]
pub(crate) mod python_json;
pub mod regularizers;
#[cfg(feature = "json")]
pub mod saving;
mod sequential;
#[cfg(not(target_family = "wasm"))]
mod share;
mod training;
mod trial;
#[cfg(not(target_family = "wasm"))]
pub mod utils;
mod weight;

pub use activations::Activation;
#[cfg(feature = "json")]
pub use config::{Config, ConfigValue};
pub use constraints::Constraint;
pub use context::{Context, INFERENCE, Losses, TRAINING};
pub use dtype_policy::{DTypePolicy, dtype_policy, set_dtype_policy};
#[cfg(feature = "preprocessing")]
pub use front::{FrontBatch, FrontModel, Fronted, HostInputs, HostSymbol, IntoFrontData};
#[cfg(all(feature = "json", feature = "preprocessing", feature = "saved-model"))]
pub(crate) use front::{HostCall, HostGraph, host_graph_of_plan};
#[cfg(all(feature = "json", feature = "preprocessing"))]
#[doc(hidden)]
pub use front::{front_into_json, front_of_json};
pub use functional::{
    Functional, Input, LayerExt, PartialShape, Results, SymbolicOperand, SymbolicTensor, Symbols,
};
pub use initializers::Initializer;
pub use layers::Layer;
pub use lists::{Inputs, Outputs};
pub use losses::Loss;
pub use metrics::Metric;
pub use pad_sequences::{End, PadSequencesOptions, pad_sequences};
pub use regularizers::Regularizer;
#[cfg(feature = "json")]
pub use saving::CustomObjects;
pub use sequential::Sequential;
pub use training::{
    Choice, CompileOptions, EvaluateOptions, FitOptions, History, IntoLoss, IntoLosses, IntoMetric,
    IntoMetrics, IntoOptimizer, Logs, Model, Output, OutputLosses, PredictOptions, StepLogs,
    StopSignal, Trainer, Verbose,
};
pub use weight::Weight;
