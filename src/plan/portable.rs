//! Plans as data, for programs without this crate: the kernels that run on every device of WebGPU.

use std::sync::Arc;

use super::tuner::Choice;
use super::{BufferRef, Fusion, Plan, Step, plan};
use crate::device::{Access, Caps};
use crate::error::Result;
use crate::graph::Graph;

/// Kernels, the buffers that they use, and the order in which they run.
pub(crate) struct PortablePlan {
    pub(crate) kernels: Vec<PortableKernel>,
    /// The dispatches of a run.
    pub(crate) steps: Vec<PortableStep>,
    /// The bytes of the buffers between the kernels.
    pub(crate) slots: Vec<u64>,
    /// The buffers of the wanted nodes, in their order.
    pub(crate) outputs: Vec<BufferRef>,
    /// Whether kernels may use `f16`.
    pub(crate) f16: bool,
}

/// A WGSL module whose entry point is `main`. Its bindings are in group 0, in the order of `accesses`.
pub(crate) struct PortableKernel {
    pub(crate) wgsl: Arc<str>,
    pub(crate) accesses: Vec<Access>,
}

/// A dispatch.
pub(crate) struct PortableStep {
    pub(crate) label: String,
    /// The index of its kernel.
    pub(crate) kernel: usize,
    pub(crate) workgroups: [u32; 3],
    pub(crate) bindings: Vec<PortableBinding>,
}

/// What a dispatch binds.
pub(crate) enum PortableBinding {
    /// The first `bytes` of a buffer.
    Storage { buffer: BufferRef, bytes: u64 },
    /// A uniform buffer with these words.
    Uniform(Vec<u32>),
}

impl PortablePlan {
    /// Plans `graph`, whose key has been computed. Tensors may be larger than `caps` allows: [`PortablePlan::largest_binding`].
    ///
    /// # Errors
    /// Those of a plan that cannot run, because a loop would be too long.
    pub(crate) fn new(graph: &Graph, caps: &Caps) -> Result<Self> {
        let mut plan = plan(graph, caps, Fusion::Full, &Choice::Unasked);
        if let Some(error) = plan.refused {
            return Err(error);
        }
        plan.params.update(&graph.nodes);
        let mut kernels: Vec<PortableKernel> = Vec::new();
        let mut known = crate::graph::HashIndex::default();
        let words = &plan.params.words;
        let mut step = |step: &Step| {
            // Equal texts are one allocation.
            let next = kernels.len() as u32;
            let kernel = *known.entry(step.source.wgsl.as_ptr() as usize as u64).or_insert(next);
            if kernel == next {
                let accesses = step.source.accesses.clone();
                kernels.push(PortableKernel { wgsl: step.source.wgsl.clone(), accesses });
            }
            PortableStep {
                label: step.label().to_string(),
                kernel: kernel as usize,
                workgroups: step.grid,
                bindings: bindings(step, words),
            }
        };
        let steps = plan.steps.iter().map(&mut step).collect();
        let Plan { slots, outputs, .. } = plan;
        Ok(PortablePlan {
            kernels,
            steps,
            slots: slots.iter().map(|slot| slot.bytes).collect(),
            outputs: outputs.iter().map(|(_, buffer)| *buffer).collect(),
            f16: caps.f16,
        })
    }

    /// The bytes of the largest range of a buffer that a dispatch binds.
    pub(crate) fn largest_binding(&self) -> u64 {
        let bytes =
            self.steps.iter().flat_map(|step| &step.bindings).map(|binding| match binding {
                PortableBinding::Storage { bytes, .. } => *bytes,
                PortableBinding::Uniform(_) => 0,
            });
        bytes.max().unwrap_or(0)
    }

    /// The most storage buffers that a kernel binds.
    pub(crate) fn most_storage_buffers(&self) -> usize {
        let storage = |kernel: &PortableKernel| {
            kernel.accesses.iter().filter(|access| !matches!(access, Access::Uniform)).count()
        };
        self.kernels.iter().map(storage).max().unwrap_or(0)
    }
}

fn bindings(step: &Step, words: &[u32]) -> Vec<PortableBinding> {
    let mut storage = step.binds.iter();
    let mut ranges = step.params.iter();
    let binding = |access: &Access| match access {
        Access::Uniform => ranges.next().map(|(at, bytes)| {
            let (start, end) = ((at / 4) as usize, ((at + bytes) / 4) as usize);
            PortableBinding::Uniform(words[start..end].to_vec())
        }),
        Access::Read | Access::Write => {
            storage.next().map(|&(buffer, bytes)| PortableBinding::Storage { buffer, bytes })
        }
    };
    step.source.accesses.iter().filter_map(binding).collect()
}
