//! From a graph to kernels: which nodes share one, which buffers live where, which WGSL, which parameters.
//!
//! A plan is made once for a structure and kept; running it again costs a look-up, the bind groups it has
//! kept, and an encode. The planner asks an op to lower itself and knows none by name.

mod body;
mod cache;
mod cluster;
mod code;
mod epilogue;
mod map;
mod memory;
mod planner;
mod rows;
mod space;
mod view;

use std::collections::VecDeque;
use std::sync::Arc;

use smallvec::SmallVec;

pub(crate) use cache::PlanCache;
pub(crate) use planner::plan;

use crate::device::{Access, Buffer, Counter, Gpu, Launch, Pipeline, Source, Staging};
use crate::error::Result;
use crate::graph::Node;

/// A graph made ready to run on one device.
pub(crate) struct Plan {
    steps: Vec<Step>,
    slots: Vec<Slot>,
    /// Where each wanted node's result lies, by node index.
    outputs: Vec<(u32, Place)>,
    params: Params,
}

/// One dispatch.
pub(crate) struct Step {
    source: Source,
    grid: [u32; 3],
    /// Storage bindings in order: what is bound and how many bytes of it.
    binds: SmallVec<[(Place, u64); 4]>,
    /// The step's parts of the parameter buffer, in the order of its uniforms: offset and bytes.
    params: SmallVec<[(u64, u64); 2]>,
    pipeline: Option<Arc<Pipeline>>,
    /// Bind groups by the ids of the buffers they name, the latest first.
    bind_groups: VecDeque<(SmallVec<[u64; 4]>, wgpu::BindGroup)>,
}

/// A buffer as the plan knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// A value from outside.
    Leaf(u32),
    /// A buffer taken from the pool for the run.
    Slot(u32),
}

struct Slot {
    bytes: u64,
    /// The buffers of the last runs. An output that replaces its predecessor alternates between two.
    recent: VecDeque<u64>,
}

/// The parameters of all steps in one buffer, uploaded when a word has changed.
#[derive(Default)]
struct Params {
    words: Vec<u32>,
    /// Which of them are words of nodes: position, node, word.
    varying: Vec<(usize, u32, usize)>,
    buffer: Option<Arc<Buffer>>,
}

/// Bind groups that a step keeps. Loops settle into few combinations of buffers.
const BIND_GROUPS: usize = 4;
/// Buffers that a slot remembers.
const RECENT: usize = 3;

impl Plan {
    /// Encodes and submits the plan. `reads` are places whose contents are copied out afterwards. Returns
    /// the buffers of the outputs, in the order of [`Plan::outputs`].
    pub(crate) fn run(
        &mut self,
        gpu: &Gpu,
        nodes: &[Node],
        leaves: &[Arc<Buffer>],
        reads: &[(u32, &Staging)],
    ) -> Result<(Vec<Arc<Buffer>>, wgpu::SubmissionIndex)> {
        self.params.refresh(gpu, nodes)?;
        let slots = self.take_slots(gpu)?;
        let buffer = |place: Place| match place {
            Place::Leaf(i) => &leaves[i as usize],
            Place::Slot(i) => &slots[i as usize],
        };
        let params = self.params.buffer.as_ref();
        let mut launches = Vec::with_capacity(self.steps.len());
        for step in &mut self.steps {
            // A plan without parameters has no steps.
            let Some(params) = params else { break };
            launches.push(step.launch(gpu, params, buffer)?);
        }
        let outputs: Vec<Arc<Buffer>> =
            self.outputs.iter().map(|(_, place)| buffer(*place).clone()).collect();
        let reads: Vec<(Arc<Buffer>, &Staging)> = reads
            .iter()
            .filter_map(|(node, staging)| {
                let at = self.outputs.iter().position(|(n, _)| n == node)?;
                Some((outputs[at].clone(), *staging))
            })
            .collect();
        let index = gpu.submit(&launches, &reads)?;
        Ok((outputs, index))
    }

    /// The kernels' texts, for tests that validate them.
    #[cfg(test)]
    pub(crate) fn sources(&self) -> impl Iterator<Item = &Source> + '_ {
        self.steps.iter().map(|step| &step.source)
    }

    pub(crate) fn outputs(&self) -> impl Iterator<Item = u32> + '_ {
        self.outputs.iter().map(|(node, _)| *node)
    }

    fn take_slots(&mut self, gpu: &Gpu) -> Result<Vec<Arc<Buffer>>> {
        let mut buffers = Vec::with_capacity(self.slots.len());
        for slot in &mut self.slots {
            let buffer = gpu.pool.acquire(slot.bytes, slot.recent.make_contiguous())?;
            if slot.recent.front() != Some(&buffer.id()) {
                slot.recent.retain(|id| *id != buffer.id());
                slot.recent.push_front(buffer.id());
                slot.recent.truncate(RECENT);
            }
            buffers.push(buffer);
        }
        Ok(buffers)
    }
}

impl Step {
    fn launch<'a>(
        &mut self,
        gpu: &Gpu,
        params: &Buffer,
        buffer: impl Fn(Place) -> &'a Arc<Buffer>,
    ) -> Result<Launch> {
        let pipeline = match &self.pipeline {
            Some(pipeline) => pipeline.clone(),
            None => self.pipeline.insert(gpu.pipeline(&self.source)?).clone(),
        };
        let ids: SmallVec<[u64; 4]> =
            self.binds.iter().map(|(place, _)| buffer(*place).id()).collect();
        let known = self.bind_groups.iter().position(|(key, _)| *key == ids);
        let bind_group = match known {
            Some(0) => self.bind_groups[0].1.clone(),
            Some(i) => {
                self.bind_groups.swap(0, i);
                self.bind_groups[0].1.clone()
            }
            None => {
                let group = self.bind(gpu, &pipeline, params, &buffer);
                self.bind_groups.push_front((ids, group.clone()));
                self.bind_groups.truncate(BIND_GROUPS);
                group
            }
        };
        Ok(Launch { pipeline, bind_group, grid: self.grid })
    }

    fn bind<'a>(
        &self,
        gpu: &Gpu,
        pipeline: &Pipeline,
        params: &Buffer,
        buffer: &impl Fn(Place) -> &'a Arc<Buffer>,
    ) -> wgpu::BindGroup {
        let range = |buffer, offset, bytes| {
            let size = std::num::NonZeroU64::new(bytes);
            wgpu::BindingResource::Buffer(wgpu::BufferBinding { buffer, offset, size })
        };
        let mut storage =
            self.binds.iter().map(|(place, bytes)| range(buffer(*place).raw(), 0, *bytes));
        let mut uniforms = self.params.iter().map(|(at, bytes)| range(params.raw(), *at, *bytes));
        let accesses = self.source.accesses.iter().enumerate();
        let entries: Vec<wgpu::BindGroupEntry> = accesses
            .filter_map(|(i, access)| {
                let resource = match access {
                    Access::Uniform => uniforms.next(),
                    _ => storage.next(),
                };
                resource.map(|resource| wgpu::BindGroupEntry { binding: i as u32, resource })
            })
            .collect();
        gpu.counters.add(Counter::BindGroups, 1);
        gpu.device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: Some(&self.source.label),
            layout: &pipeline.layout,
            entries: &entries,
        })
    }
}

impl Params {
    /// Brings the words of this run into the buffer; a run with the same words as the last uploads nothing.
    fn refresh(&mut self, gpu: &Gpu, nodes: &[Node]) -> Result<()> {
        let mut changed = self.words.len()..0;
        let mut of_node = (u32::MAX, crate::graph::Words::new());
        for &(at, node, word) in &self.varying {
            if of_node.0 != node {
                of_node = (node, nodes[node as usize].op.words());
            }
            if self.words[at] != of_node.1[word] {
                self.words[at] = of_node.1[word];
                changed = changed.start.min(at)..changed.end.max(at + 1);
            }
        }
        if self.words.is_empty() {
            return Ok(());
        }
        let buffer = match &self.buffer {
            Some(buffer) => buffer,
            None => {
                changed = 0..self.words.len();
                self.buffer.insert(gpu.uniform_buffer(4 * self.words.len() as u64)?)
            }
        };
        if !changed.is_empty() {
            let bytes = bytemuck::cast_slice(&self.words[changed.clone()]);
            gpu.queue.write_buffer(buffer.raw(), 4 * changed.start as u64, bytes);
        }
        Ok(())
    }
}
