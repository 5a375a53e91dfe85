//! A fusion group: nodes that share a kernel.

use super::kernel_ir::KernelIr;
use super::repetition::Labels;
use crate::graph::Input;

/// Nodes that become one kernel, or two where a fold is long.
pub(super) struct FusionGroup<'a> {
    pub(super) members: Vec<u32>,
    /// The node with kernels of its own.
    pub(super) anchor: Option<u32>,
    /// `None` for kernels that nothing can be computed behind.
    pub(super) ir: Option<KernelIr<'a>>,
    pub(super) outputs: Vec<u32>,
    /// Values that the kernels read, nodes and leaves.
    pub(super) reads: Vec<Input>,
    /// The turns that its members belong to.
    pub(super) labels: Labels,
}
