//! Lists every op: its names, its call by name, the dtypes that it accepts, the cases that check its gradient, and
//! calls that use its kernels. Tests and `docs/ops.md` iterate over the list.
//!
//! An op's file has its entries in a constant `ENTRIES`; the rows of a table generate theirs. The library never refers
//! to the list, and it is compiled with the feature `inventory` only. It is not a stable API: it may change in every
//! version.

mod args;
mod cases;

pub use args::{Answer, Args, Stop, Value, one};
pub use cases::{ANY, Case, Cases, Input, POSITIVE, Values};

use crate::dtype::DType;
use crate::error::Result;
use crate::tensor::Tensor;

/// The kind of an op, which determines where its code is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpKind {
    /// A row of a table: an expression in WGSL.
    Row,
    /// Made of other ops.
    Composed,
    /// A separate file, with a lowering or a shader.
    Kernel,
}

/// The status of an op's gradient, for tests and documentation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gradient {
    /// It has one, which the op's cases check.
    Checked,
    /// It has one, which the named test checks in place of cases.
    CheckedBy(&'static str),
    /// It has none, for this reason.
    None(&'static str),
}

/// Makes a tensor of small whole numbers, of a shape and a dtype.
pub type Make<'a> = &'a dyn Fn(&[usize], DType) -> Tensor;

/// A call whose kernels are inspected, with one of the op's dtypes.
pub type KernelCall = fn(Make, DType) -> Result<Vec<Tensor>>;

/// Calls whose loops have about the given number of iterations for each result.
pub type LoopCall = fn(Make, usize) -> Result<Vec<Tensor>>;

/// An op.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    /// The method of [`Tensor`], or the function.
    pub name: &'static str,
    /// Its other forms: short ones, and those with options.
    pub forms: &'static [&'static str],
    /// TensorFlow's and Keras's names; the first is the one to look up.
    pub tensorflow: &'static [&'static str],
    pub kind: OpKind,
    pub gradient: Gradient,
    /// The dtypes that the op accepts.
    pub dtypes: &'static [DType],
    /// The call, with TensorFlow's names of arguments.
    pub call: fn(&Args) -> Answer,
    /// Functions of the op whose gradients the tests check.
    pub cases: fn(&mut Cases),
    /// Calls that use each of its kernels, with sizes around those of vectors and tiles.
    pub kernels: &'static [KernelCall],
    /// Calls with its longest loops.
    pub loops: &'static [LoopCall],
}

impl Entry {
    /// An op of this kind, for floats, with a gradient.
    pub const fn new(
        kind: OpKind,
        name: &'static str,
        tensorflow: &'static [&'static str],
        call: fn(&Args) -> Answer,
    ) -> Self {
        Entry {
            name,
            forms: &[],
            tensorflow,
            kind,
            gradient: Gradient::Checked,
            dtypes: super::FLOATS,
            call,
            cases: |_| {},
            kernels: &[],
            loops: &[],
        }
    }

    pub const fn gradient(self, gradient: Gradient) -> Self {
        Entry { gradient, ..self }
    }

    pub const fn forms(self, forms: &'static [&'static str]) -> Self {
        Entry { forms, ..self }
    }

    pub const fn takes(self, dtypes: &'static [DType]) -> Self {
        Entry { dtypes, ..self }
    }

    pub const fn cases(self, cases: fn(&mut Cases)) -> Self {
        Entry { cases, ..self }
    }

    pub const fn kernels(self, kernels: &'static [KernelCall]) -> Self {
        Entry { kernels, ..self }
    }

    pub const fn loops(self, loops: &'static [LoopCall]) -> Self {
        Entry { loops, ..self }
    }

    /// The cases of this op alone.
    pub fn own_cases(&self) -> Vec<Case> {
        let mut cases = Cases::default();
        (self.cases)(&mut cases);
        cases.0
    }
}

/// All ops, file by file.
#[cfg(any(test, feature = "inventory"))]
pub fn all() -> impl Iterator<Item = &'static Entry> {
    ALL.iter().copied().flatten()
}

/// The op with this TensorFlow name.
#[cfg(any(test, feature = "inventory"))]
pub fn find(tensorflow: &str) -> Option<&'static Entry> {
    all().find(|entry| entry.tensorflow.contains(&tensorflow))
}

/// The dtypes of a row, by the kinds of registers for which it has WGSL.
pub(super) const fn row_takes(float: bool, int: bool, bool: bool) -> &'static [DType] {
    match (float, int, bool) {
        (true, true, true) => &[DType::F32, DType::F16, DType::I32, DType::U32, DType::Bool],
        (true, true, false) => super::NUMERIC,
        (true, false, false) => super::FLOATS,
        (false, true, false) => &[DType::I32, DType::U32],
        (false, _, _) => &[DType::Bool],
        (true, false, true) => &[DType::F32, DType::F16, DType::Bool],
    }
}

/// The entries of every file of ops. `tests/ops/inventory.rs` finds missing files.
#[cfg(any(test, feature = "inventory"))]
static ALL: &[&[Entry]] = &[
    super::unary::ENTRIES,
    super::binary::ENTRIES,
    super::binary::DIVIDE,
    super::blocks::ENTRIES,
    super::reduce::ENTRIES,
    super::composed::ENTRIES,
    super::losses::ENTRIES,
    #[cfg(feature = "linalg")]
    super::linalg::ENTRIES,
    super::linalg::band_part::ENTRIES,
    #[cfg(feature = "linalg")]
    super::linalg::cholesky::ENTRIES,
    super::linalg::diagonals::ENTRIES,
    #[cfg(feature = "linalg")]
    super::linalg::lu::ENTRIES,
    #[cfg(feature = "linalg")]
    super::linalg::qr::ENTRIES,
    #[cfg(feature = "linalg")]
    super::linalg::solve::ENTRIES,
    #[cfg(feature = "linalg")]
    super::linalg::svd::ENTRIES,
    #[cfg(feature = "linalg")]
    super::linalg::triangular_solve::ENTRIES,
    super::special::ENTRIES,
    super::sequences::ENTRIES,
    super::activations::ENTRIES,
    super::norms::ENTRIES,
    super::nextafter::ENTRIES,
    super::confusion_matrix::ENTRIES,
    super::argmax::ENTRIES,
    super::attention::ENTRIES,
    super::broadcast::ENTRIES,
    super::cast::ENTRIES,
    super::concat::ENTRIES,
    super::conv2d::ENTRIES,
    super::copy_to_device::ENTRIES,
    super::convolution::ENTRIES,
    super::convolution::TRANSPOSED,
    #[cfg(not(target_family = "wasm"))]
    super::counted_blocking::ENTRIES,
    super::scan::ENTRIES,
    super::depthwise_conv2d::ENTRIES,
    super::dilation2d::ENTRIES,
    super::einsum::ENTRIES,
    super::embedding::ENTRIES,
    super::gather::ENTRIES,
    #[cfg(feature = "image")]
    super::image::ENTRIES,
    #[cfg(feature = "image")]
    super::image::PATCHES,
    #[cfg(feature = "image")]
    super::image::COLOR,
    #[cfg(feature = "image")]
    super::image::QUALITY,
    #[cfg(feature = "image")]
    super::image::RESIZE,
    #[cfg(feature = "image")]
    super::image::SAMPLE,
    super::histogram::ENTRIES,
    super::matmul::ENTRIES,
    super::normalization::ENTRIES,
    super::pad::ENTRIES,
    super::pool::ENTRIES,
    super::pool::RANKS,
    super::pool::ADAPTIVE,
    super::ranges::ENTRIES,
    super::repeat::ENTRIES,
    super::rearrange::ENTRIES,
    super::recurrent::ENTRIES,
    super::reshape::ENTRIES,
    super::reverse::ENTRIES,
    super::roll::ENTRIES,
    super::scatter_nd::ENTRIES,
    super::searchsorted::ENTRIES,
    super::segment_sum::ENTRIES,
    super::segments::ENTRIES,
    super::select::ENTRIES,
    #[cfg(feature = "signal")]
    super::signal::ENTRIES,
    #[cfg(feature = "signal")]
    super::signal::DCT,
    #[cfg(feature = "signal")]
    super::signal::FRAMES,
    #[cfg(feature = "signal")]
    super::signal::MEL,
    #[cfg(feature = "signal")]
    super::signal::PAIRS,
    #[cfg(feature = "signal")]
    super::signal::WINDOWS,
    super::slice::ENTRIES,
    super::sort::ENTRIES,
    super::top_k::ENTRIES,
    super::transpose::ENTRIES,
];
