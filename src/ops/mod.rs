//! The ops on tensors.
//!
//! There are three kinds of op; a new op uses the first suitable one: a composed op (`composed.rs`), a row of a table
//! (`unary.rs`, `binary.rs`, `reduce.rs`), or a separate file that contains the shape rule, the lowering, the gradient
//! and the tests.

mod activations;
mod argmax;
mod attention;
mod binary;
mod blocks;
mod broadcast;
mod cast;
#[cfg(test)]
mod catalog;
mod composed;
mod concat;
mod confusion_matrix;
mod conv2d;
mod convolution;
mod copy_to_device;
mod counted;
#[cfg(not(target_family = "wasm"))]
mod counted_blocking;
mod custom_gradient;
mod depthwise_conv2d;
mod dilation2d;
mod einsum;
mod embedding;
mod fill;
mod fold_words;
mod gather;
mod histogram;
#[cfg(feature = "image")]
pub mod image;
#[doc(hidden)]
pub mod inventory;
mod iota;
pub mod linalg;
mod losses;
mod matmul;
mod nextafter;
mod normalization;
mod norms;
mod pad;
mod pool;
mod radix;
mod random;
mod ranges;
mod rearrange;
mod recurrent;
mod reduce;
#[cfg(test)]
mod reference;
pub(crate) mod registry;
mod repeat;
mod reshape;
mod reverse;
mod roll;
mod scan;
mod scatter_nd;
mod scatter_rows;
mod searchsorted;
mod segment_extreme;
mod segment_sum;
mod segments;
mod select;
mod sequences;
#[cfg(feature = "signal")]
pub mod signal;
mod slice;
mod sort;
mod special;
mod split_k;
#[cfg(test)]
mod table_tests;
mod top_k;
mod transpose;
mod unary;
mod vectorize;

use smallvec::SmallVec;

pub use activations::EluOptions;
pub use attention::{AttentionOptions, scaled_dot_product_attention};
pub use composed::{
    GeluOptions, NanToNumOptions, OneHotOptions, add_n, eye_of, one_hot, one_hot_with, stack,
};
pub(crate) use composed::{arange, arange_of, eye};
pub use concat::concat;
pub use confusion_matrix::{ConfusionMatrixOptions, confusion_matrix, confusion_matrix_with};
pub use conv2d::{Conv2dOptions, Edges, Padding};
pub use convolution::{
    Conv1dOptions, Conv1dTransposeOptions, Conv2dTransposeOptions, Conv3dOptions,
    Conv3dTransposeOptions, ConvolutionOptions,
};
pub use counted::BincountOptions;
pub(crate) use custom_gradient::{DEPTH_OF_RULES, Results, Rule, after, with_gradient};
pub use einsum::{TensordotAxes, einsum};
pub use embedding::EmbeddingLookupOptions;
#[cfg(not(target_family = "wasm"))]
pub(crate) use fill::will_be_ones;
pub(crate) use fill::{fill, fill_varying};
pub use gather::GatherOptions;
pub use losses::{
    AverageLossOptions, LogPoissonLossOptions, compute_average_loss, compute_average_loss_with,
    l2_loss, log_poisson_loss, log_poisson_loss_with, sigmoid_cross_entropy_with_logits,
    softmax_cross_entropy_with_logits, sparse_softmax_cross_entropy_with_logits,
    weighted_cross_entropy_with_logits,
};
pub use matmul::MatmulOptions;
pub use normalization::{
    FusedBatchNormOptions, LocalResponseNormalizationOptions, NormalizationOptions,
};
pub use norms::{
    ClipByGlobalNormOptions, L2NormalizeOptions, NormOrder, clip_by_global_norm,
    clip_by_global_norm_with, global_norm, normalize_moments, sufficient_statistics,
};
pub use pad::PadMode;
pub use pool::{
    MaxPoolWithArgmaxOptions, Pool1dOptions, Pool2dOptions, Pool3dOptions, PoolOptions, PoolingType,
};
pub(crate) use random::{Distribution, multinomial, philox_random, philox_random_of};
pub use ranges::{
    Indexing, ReverseSequenceOptions, linspace, linspace_with, meshgrid, meshgrid_with,
};
pub use recurrent::{
    GruOptions, LstmOptions, Recurrence, SimpleRnnOptions, gru, gru_cell, lstm, lstm_cell,
    simple_rnn, simple_rnn_cell,
};
pub(crate) use recurrent::{SequenceStep, Steps};
pub use reshape::broadcast_static_shape;
pub use scan::CumsumOptions;
pub use scatter_nd::scatter_nd;
pub use searchsorted::Side;
pub use select::where_;
use select::where_ as select;
pub use sequences::polyval;
pub use slice::Indices;
pub use sort::SortOptions;
pub(crate) use vectorize::Trace;

use crate::dtype::DType;
use crate::error::{Error, Result, message};
use crate::graph::{Op, Spec};
use crate::runtime::Device;
use crate::shape::Shape;
use crate::tensor::Tensor;

/// Unwraps a result of `infer`, which has succeeded for the same shapes before and cannot fail. Unlike `expect`, this
/// does not include the code that formats all errors for debugging.
fn inferred<T>(found: Result<T>) -> T {
    found.unwrap_or_else(|error| unreachable!("infer has let through: {error}"))
}

/// An op with its gradient.
pub(crate) trait Operation: Op {
    /// Specifies what the tape stores for the gradient rule, or why the op has no gradient.
    fn keep(&self) -> Keep;

    /// Computes the gradients of the inputs from that of the result; trailing inputs without one may be omitted. The
    /// tape sums gradients over axes that were broadcast, so rules need not.
    fn grad(&self, back: &Backward) -> Result<Grads>;
}

/// The values of the forward call that a gradient rule needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keep {
    Nothing,
    Inputs,
    Output,
    Both,
    /// The op passes no gradient on, for this reason: in TensorFlow the gradient is None. An op whose gradient is only
    /// missing in wgrad returns an error with [`refuse`], so that no part of a sum is lost.
    NoGradient(&'static str),
}

pub(crate) type Grads = SmallVec<[Option<Tensor>; 3]>;

/// One call, as the argument of its gradient rule.
pub(crate) struct Backward<'a> {
    pub(crate) inputs: &'a [KeptInput],
    pub(crate) output: Option<&'a Tensor>,
    /// The gradient of the result.
    pub(crate) dy: &'a Tensor,
    /// Whether the tape needs the gradient of input `i`.
    pub(crate) needs: &'a dyn Fn(usize) -> bool,
}

/// An input as a tape stores it.
pub(crate) struct KeptInput {
    /// The tape identifies the tensor by this number.
    pub(crate) id: u64,
    pub(crate) spec: Spec,
    /// The tensor, if the rule needs it.
    pub(crate) kept: Option<Tensor>,
}

impl Backward<'_> {
    /// Input `i`, which the tape has stored.
    pub(crate) fn x(&self, i: usize) -> &Tensor {
        self.inputs[i].kept.as_ref().expect("the op declares that it keeps its inputs")
    }

    /// The shape and dtype of input `i`.
    pub(crate) fn spec(&self, i: usize) -> &Spec {
        &self.inputs[i].spec
    }

    /// The result, which the tape has stored.
    pub(crate) fn y(&self) -> &Tensor {
        self.output.expect("the op declares that it keeps its output")
    }

    pub(crate) fn needs(&self, i: usize) -> bool {
        (self.needs)(i)
    }

    /// Computes those gradients of the first two inputs that the tape needs.
    pub(crate) fn both(
        &self,
        da: &dyn Fn() -> Result<Tensor>,
        db: &dyn Fn() -> Result<Tensor>,
    ) -> Result<Grads> {
        let mut grads = Grads::new();
        for (i, grad) in [da, db].into_iter().enumerate() {
            grads.push(if self.needs(i) { Some(grad()?) } else { None });
        }
        Ok(grads)
    }
}

/// The gradient of the first input, if the others have none.
pub(crate) fn only(dx: Tensor) -> Result<Grads> {
    let mut grads = Grads::new();
    grads.push(Some(dx));
    Ok(grads)
}

/// Never called: the op has no gradient.
pub(crate) fn no_grads(_: &Backward) -> Result<Grads> {
    Ok(Grads::new())
}

/// For a differentiable op whose gradient is not implemented: requesting it returns an error instead of an incomplete
/// gradient.
pub(crate) fn refuse(op: &str, why: &str, remedy: &str) -> Result<Grads> {
    Err(Error::Gradient(message!(
        "{op}: it has no gradient here: {why}; {remedy}, or stop_gradient() what it is called with."
    )))
}

/// Sums a gradient over the axes along which an input of `shape` was broadcast. If a rule returned a smaller gradient,
/// this broadcasts it to the shape.
pub(crate) fn unbroadcast(grad: &Tensor, shape: &Shape) -> Result<Tensor> {
    if grad.spec().shape == *shape {
        return Ok(grad.clone());
    }
    let lead = grad.rank().saturating_sub(shape.len());
    let mut axes = Vec::new();
    for (axis, &size) in grad.shape().iter().enumerate() {
        if axis < lead || (shape[axis - lead] == 1 && size != 1) {
            axes.push(axis as i64);
        }
    }
    let summed = if axes.is_empty() { grad.clone() } else { grad.reduce_sum(&axes[..])? };
    if summed.len() == shape.elements() {
        return summed.reshape_to(shape.clone());
    }
    // A rule's result may be smaller than the input if one number represents a whole tensor.
    let zero = fill(grad.device(), "BroadcastTo", shape.clone(), 0.into(), grad.dtype())?;
    summed.add(&zero)
}

/// Shows a row by its method's name, which occurs once in its table.
macro_rules! known_by_method {
    ($row:ty) => {
        impl std::fmt::Debug for $row {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.method)
            }
        }
    };
}
use known_by_method;

/// Returns an error for `f16` if the adapter lacks it.
pub(crate) fn check_dtype(device: &Device, op: &str, dtype: DType) -> Result<()> {
    if dtype == DType::F16 && !device.caps().f16 {
        return Err(Error::DType(message!(
            "{op}: {} has no f16 (the feature SHADER_F16). Use f32 on this adapter.",
            device.adapter()
        )));
    }
    Ok(())
}

/// Returns an error for dtypes other than the allowed ones.
pub(crate) fn expect_dtype(op: &str, spec: &Spec, allowed: &[DType]) -> Result<()> {
    if allowed.contains(&spec.dtype) {
        return Ok(());
    }
    Err(Error::DType(message!(
        "{op}: the dtype {} is not supported here; use {}. Cast the tensor first.",
        spec.dtype,
        fitting(&|dtype| allowed.contains(&dtype))
    )))
}

/// The error for a tensor whose dtype the op is not defined for.
fn not_defined(op: &str, x: &Spec, takes: &dyn Fn(DType) -> bool) -> Error {
    Error::DType(message!(
        "{op}: not defined for {} (the tensor is {}); use {}. Cast the tensor first.",
        x.dtype,
        x.shape,
        fitting(takes)
    ))
}

/// The names of the supported dtypes, for a message.
fn fitting(takes: &dyn Fn(DType) -> bool) -> String {
    let names: Vec<&str> =
        DType::ALL.into_iter().filter(|dtype| takes(*dtype)).map(DType::name).collect();
    names.join(", ")
}

/// Returns an error for inputs of different dtypes.
pub(crate) fn same_dtype(op: &str, a: &Spec, b: &Spec) -> Result<()> {
    if a.dtype == b.dtype {
        return Ok(());
    }
    Err(Error::DType(message!(
        "{op}: a is {} {} and b is {} {}; both must have one dtype. Cast one of them: x.cast(DType::{:?}).",
        a.dtype,
        a.shape,
        b.dtype,
        b.shape,
        a.dtype
    )))
}

/// The float dtypes, which have gradients.
pub(crate) const FLOATS: &[DType] = &[DType::F32, DType::F16];
/// The dtypes that arithmetic is defined for.
pub(crate) const NUMERIC: &[DType] = &[DType::F32, DType::F16, DType::I32, DType::U32];
