//! Compute pipelines, compiled once for each WGSL text.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::kernel::{Access, Source};
use super::stats::Counter;
use super::{Gpu, trusted};
use crate::error::Result;

pub(crate) struct Pipeline {
    pub(super) raw: wgpu::ComputePipeline,
    pub(crate) layout: wgpu::BindGroupLayout,
}

pub(crate) struct Pipelines {
    by_text: Mutex<HashMap<Arc<str>, Arc<Pipeline>>>,
}

impl Pipelines {
    pub(super) fn new() -> Self {
        Pipelines { by_text: Mutex::new(HashMap::new()) }
    }
}

impl Gpu {
    /// The pipeline of `source`, compiled at its first use.
    pub(crate) fn pipeline(&self, source: &Source) -> Result<Arc<Pipeline>> {
        let mut known = self.pipelines.by_text.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pipeline) = known.get(&source.wgsl) {
            return Ok(pipeline.clone());
        }
        let pipeline = Arc::new(self.compile(source)?);
        known.insert(source.wgsl.clone(), pipeline.clone());
        self.counters.add(Counter::Pipelines, 1);
        Ok(pipeline)
    }

    fn compile(&self, source: &Source) -> Result<Pipeline> {
        let module = trusted::create_shader_module(&self.device, &source.label, &source.wgsl);
        let entry = |binding: usize, ty: wgpu::BufferBindingType| wgpu::BindGroupLayoutEntry {
            binding: binding as u32,
            visibility: wgpu::ShaderStages::COMPUTE,
            ty: wgpu::BindingType::Buffer { ty, has_dynamic_offset: false, min_binding_size: None },
            count: None,
        };
        let entries: Vec<_> = source
            .accesses
            .iter()
            .enumerate()
            .map(|(i, access)| {
                let ty = match access {
                    Access::Read => wgpu::BufferBindingType::Storage { read_only: true },
                    Access::Write => wgpu::BufferBindingType::Storage { read_only: false },
                    Access::Uniform => wgpu::BufferBindingType::Uniform,
                };
                entry(i, ty)
            })
            .collect();
        let layout = self.device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor {
            label: Some(&source.label),
            entries: &entries,
        });
        let pipeline_layout = self.device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
            label: Some(&source.label),
            bind_group_layouts: &[Some(&layout)],
            immediate_size: 0,
        });
        let raw = self.device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: Some(&source.label),
            layout: Some(&pipeline_layout),
            module: &module,
            entry_point: Some("main"),
            compilation_options: wgpu::PipelineCompilationOptions {
                // Kernels write workgroup memory before they read it.
                zero_initialize_workgroup_memory: false,
                ..Default::default()
            },
            cache: None,
        });
        self.check()?;
        Ok(Pipeline { raw, layout })
    }
}
