//! [accuracy]: docs::accuracy
//! [applications]: docs::applications
//! [architecture]: docs::architecture
//! [autodiff]: docs::autodiff
//! [benchmarks]: docs::benchmarks
//! [c]: docs::c
//! [contributing]: docs::contributing
//! [devices]: docs::devices
//! [distribute]: docs::distribute
//! [embedding]: docs::embedding
//! [estimators]: docs::estimators
//! [features]: docs::features
//! [guide]: docs::guide
//! [how-it-runs]: docs::how_it_runs
//! [hub]: docs::hub
//! [keras]: docs::keras_for_wgrad
//! [portability]: docs::portability
//! [preprocessing]: docs::preprocessing
//! [tensorboard]: docs::tensorboard
//! [tuning]: docs::tuning
//! [web]: docs::web
//! [weights]: docs::weights
//!
#![doc = include_str!("../README.md")]
// Without higher rooms, some code of lower rooms has no user; the build with all features finds what has none at all.
#![cfg_attr(
    not(all(
        feature = "checkpoint",
        feature = "download",
        feature = "estimator",
        feature = "inventory",
        feature = "json",
        feature = "keras-files",
        feature = "kernel-hooks",
        feature = "linalg",
        feature = "npy",
        feature = "preprocessing",
        feature = "signal",
        feature = "summary"
    )),
    allow(dead_code, unused_imports)
)]

// The derive macro writes `::wgrad`, here as elsewhere.
extern crate self as wgrad;

#[cfg(test)]
#[path = "../tests/support/compare.rs"]
mod compare;
#[cfg(all(feature = "keras", not(target_family = "wasm")))]
pub mod compat;
#[cfg(not(target_family = "wasm"))]
pub mod config;
#[cfg(feature = "data")]
pub mod data;
pub mod debugging;
mod device;
#[cfg(not(target_family = "wasm"))]
pub mod distribute;
#[cfg(doc)]
pub mod docs;
mod dtype;
mod eager;
mod error;
#[cfg(feature = "estimator")]
pub mod estimator;
mod files;
mod function;
mod graph;
#[cfg(feature = "keras-files")]
mod hdf5;
mod host_array;
#[cfg(all(feature = "keras", feature = "safetensors", not(target_family = "wasm")))]
pub mod hub;
#[cfg(feature = "image")]
pub mod image;
pub mod interop;
#[cfg(feature = "keras")]
// The parts of checkpoints are compiled where nothing saves or resumes, too.
#[cfg_attr(target_family = "wasm", allow(dead_code))]
pub mod keras;
mod ops;
mod plan;
pub mod prelude;
pub mod random;
mod runtime;
#[cfg(feature = "saved-model")]
// What only models that are written need is compiled where nothing is written, too.
#[cfg_attr(target_family = "wasm", allow(dead_code))]
pub mod saved_model;
/// Models in ONNX's format.
#[cfg(feature = "saved-model")]
pub mod onnx {
    pub use crate::saved_model::onnx::{
        OnnxModel, external_files, load_from_bytes, load_from_bytes_with, supported_ops,
    };
    #[cfg(not(target_family = "wasm"))]
    pub use crate::saved_model::onnx::{OnnxSaveOptions, load, save, save_with};
}
/// Models in TensorFlow.js's formats.
#[cfg(feature = "saved-model")]
pub mod tfjs {
    #[cfg(not(target_family = "wasm"))]
    pub use crate::saved_model::tfjs::load_graph_model;
    #[cfg(all(feature = "keras-files", not(target_family = "wasm")))]
    pub use crate::saved_model::tfjs::load_layers_model;
    #[cfg(feature = "keras-files")]
    pub use crate::saved_model::tfjs::load_layers_model_from_bytes;
    pub use crate::saved_model::tfjs::{is_graph_model, load_graph_model_from_bytes, weight_files};
}
mod shape;
#[cfg(feature = "summary")]
pub mod summary;
mod support;
mod tape;
mod tensor;
#[cfg(feature = "tokenizers")]
pub mod text;
mod trackable;
#[cfg(feature = "checkpoint")]
pub mod train;
mod variable;
mod warnings;
#[cfg(feature = "safetensors")]
pub mod weights;
mod wgsl;

#[cfg(not(target_family = "wasm"))]
pub use config::device;
pub use device::{
    AdapterInfo, AdapterKind, Backend, DeviceOptions, DeviceStats, MatmulPrecision, MemoryInfo,
    Profile, ProfiledKernel,
};
pub use dtype::{DType, Scalar};
pub use error::{DeviceFault, Error, IoError, Message, Result};
pub use files::io;
#[cfg(not(target_family = "wasm"))]
pub use function::{
    Branch, TensorArray, TensorArrayIndex, WhileLoopOptions, case, cond, foldl, foldr, host_call,
    map_fn, scan, switch_case, vectorized_map, while_loop, while_loop_with,
};
pub use function::{
    ConcreteFunction, Function, FunctionArguments, FunctionOptions, IntoFunction, Nest, TensorSpec,
    function, function_with,
};
pub use half::{bf16, f16};
pub use host_array::{ArrayElement, HostArray, HostDType};
/// The version of ndarray whose arrays this crate takes and returns.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::{Tensor, ndarray::arr2};
/// let x = Tensor::from_array(&arr2(&[[1.0_f32, 2.0], [3.0, 4.0]]))?;
/// assert_eq!(x.reduce_sum(0)?.to_array::<f32>()?, wgrad::ndarray::arr1(&[4.0, 6.0]).into_dyn());
/// # Ok(())
/// # }
/// ```
pub use ndarray;
#[doc(hidden)]
pub use ops::inventory;
pub use ops::linalg;
#[cfg(feature = "signal")]
pub use ops::signal;
pub use ops::{
    AttentionOptions, EmbeddingLookupOptions, FusedBatchNormOptions, GruOptions,
    LocalResponseNormalizationOptions, LstmOptions, NormalizationOptions, Recurrence,
    SimpleRnnOptions, gru, gru_cell, lstm, lstm_cell, scaled_dot_product_attention, simple_rnn,
    simple_rnn_cell,
};
pub use ops::{
    AverageLossOptions, BincountOptions, ClipByGlobalNormOptions, ConfusionMatrixOptions,
    Conv1dOptions, Conv1dTransposeOptions, Conv2dOptions, Conv2dTransposeOptions, Conv3dOptions,
    Conv3dTransposeOptions, ConvolutionOptions, CumsumOptions, Edges, EluOptions, GatherOptions,
    GeluOptions, Indexing, Indices, L2NormalizeOptions, LogPoissonLossOptions, MatmulOptions,
    MaxPoolWithArgmaxOptions, NanToNumOptions, NormOrder, OneHotOptions, PadMode, Padding,
    Pool1dOptions, Pool2dOptions, Pool3dOptions, PoolOptions, PoolingType, ReverseSequenceOptions,
    Side, SortOptions, TensordotAxes, add_n, broadcast_static_shape, clip_by_global_norm,
    clip_by_global_norm_with, compute_average_loss, compute_average_loss_with, concat,
    confusion_matrix, confusion_matrix_with, einsum, eye_of, global_norm, l2_loss, linspace,
    linspace_with, log_poisson_loss, log_poisson_loss_with, meshgrid, meshgrid_with,
    normalize_moments, one_hot, one_hot_with, polyval, scatter_nd,
    sigmoid_cross_entropy_with_logits, softmax_cross_entropy_with_logits,
    sparse_softmax_cross_entropy_with_logits, stack, sufficient_statistics,
    weighted_cross_entropy_with_logits, where_,
};
pub use plan::{PlanReport, PlannedKernel, TunedOp, TunedVariant, Tuning, TuningReport};
pub use runtime::{Device, DeviceScope, Profiler};
pub use shape::{Axes, Axis, Shape, Sizes};
pub use tape::{
    GradientOptions, GradientTape, JacobianOptions, PersistentTape, Sources, Targets,
    TensorOrVariable, UnconnectedGradients, Watchable, custom_gradient,
    custom_gradient_with_variables, recompute_grad,
};
pub use tensor::{
    Element, HostElement, HostOptions, Nested, Operand, Tensor, constant, fill, range, range_of,
};
pub use trackable::{
    Class, Layout, NamedArray, Parts, PyTorchParameter, SummaryOptions, Trackable,
};
pub use variable::{Variable, VariableAggregation, VariableOptions, VariableSynchronization};

/// Derivatives beyond [`GradientTape`]: gradient functions, second-order derivatives, forward-mode differentiation, and
/// numeric gradient checks. Covers TensorFlow's `tf.autodiff` and the gradient functions of its early eager mode.
pub mod autodiff {
    pub use crate::tape::{
        ForwardAccumulator, Tensors, VariableGradients, gradients_function, hessian, hvp,
        implicit_gradients, implicit_value_and_gradients, value_and_gradients_function,
    };
    #[cfg(not(target_family = "wasm"))]
    pub use crate::tape::{
        GradientCheck, GradientCheckOptions, gradient_check, gradient_check_with,
    };
}
