//! [`FrozenFunction`]: a function whose variables are constants, with a plan that runs elsewhere; TensorFlow's frozen graph.

use crate::error::Error;
use crate::plan::portable::PortablePlan;
use crate::tensor::Tensor;

/// What a function computes, as data.
pub(crate) struct FrozenFunction {
    pub(crate) plan: PortablePlan,
    /// The values of the plan's leaves.
    pub(crate) leaves: Vec<FrozenValue>,
    /// The results.
    pub(crate) results: Vec<FrozenValue>,
}

/// The source of a leaf or a result.
pub(crate) enum FrozenValue {
    /// The argument of this number.
    Argument(usize),
    Captured(Tensor),
    /// The value of a variable.
    Variable(Tensor),
    /// The plan's output of this number. No leaf is one.
    Computed(usize),
}

/// Why a function cannot be frozen.
pub(crate) enum Unfreezable {
    /// Its runs differ from each other, for these reasons, which are clauses.
    Changes(Vec<String>),
    /// It cannot run, or its plan cannot.
    Failed(Error),
}
