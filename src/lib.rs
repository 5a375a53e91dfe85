//! TensorFlow 2's eager mode on every GPU that WebGPU reaches.
//!
//! The rooms, from the top: `keras` (layers, optimizers, losses, metrics) and `data` stand on `tape` and
//! `tensor`; those on `ops`, which call through `eager`, the one door, into a [`Device`]'s stream; a flush makes
//! a `graph`, `plan` turns it into kernels, `device` runs them.
#![doc = include_str!("../README.md")]

pub mod data;
mod device;
mod dtype;
mod eager;
mod error;
#[cfg(unix)]
mod farewell;
mod files;
mod folders;
mod graph;
pub mod keras;
mod lists;
mod ops;
mod plan;
pub mod random;
mod runtime;
mod shape;
mod tape;
mod tensor;
mod variable;
mod wgsl;

pub use device::{
    AdapterInfo, DeviceOptions, DeviceStats, MatmulPrecision, Profile, ProfiledKernel,
};
pub use dtype::{DType, Scalar};
pub use error::{DeviceFault, Error, IoError, Message, Result};
pub use half::f16;
pub use ops::{
    Conv2dOptions, PadMode, Padding, Pool2dOptions, add_n, concat, eye_of, one_hot, select,
    sigmoid_cross_entropy_with_logits, softmax_cross_entropy_with_logits,
    sparse_softmax_cross_entropy_with_logits, stack,
};
pub use plan::{PlanReport, PlannedKernel, TunedOp, TunedVariant, Tuning, TuningReport};
pub use runtime::{Device, Profiler};
pub use shape::{Axes, Shape};
pub use tape::{GradientTape, PersistentTape, Sources, Targets, TensorOrVariable, Watchable};
pub use tensor::{Element, Nested, Operand, Tensor, constant};
pub use variable::Variable;
/// The version of wgpu whose devices and buffers can be shared.
pub use wgpu;

/// The examples of the guide pages are tests, too.
#[cfg(doctest)]
#[doc = include_str!("../docs/how-it-runs.md")]
struct HowItRuns;
