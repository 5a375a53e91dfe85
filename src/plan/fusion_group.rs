//! A fusion group: nodes that share a kernel.

use super::kernel_ir::KernelIr;
use super::repetition::Labels;
use crate::graph::Input;

/// Nodes that become one kernel, or two if a fold is long.
pub(super) struct FusionGroup<'a> {
    pub(super) members: Vec<u32>,
    /// The member that has custom kernels.
    pub(super) anchor: Option<u32>,
    /// `None` if the anchor's kernels have no epilogue.
    pub(super) ir: Option<KernelIr<'a>>,
    pub(super) outputs: Vec<u32>,
    /// The nodes and leaves that the kernels read.
    pub(super) reads: Vec<Input>,
    /// The turns that the members belong to.
    pub(super) labels: Labels,
}
