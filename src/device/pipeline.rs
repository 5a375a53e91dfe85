//! Compute pipelines, compiled once for each WGSL text.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::pipeline_cache::PipelineCache;
use super::shader_source::{Access, ShaderSource};
use super::stats::Counter;
use super::{Gpu, platform, trusted};
use crate::error::Result;
use crate::support::mixer::Mixer;

pub(crate) struct Pipeline {
    pub(super) raw: wgpu::ComputePipeline,
    pub(crate) layout: wgpu::BindGroupLayout,
}

pub(crate) struct Pipelines {
    by_text: Mutex<ByText>,
    /// Layouts, by how a kernel uses each binding. Pipelines share them, because a change of layout is an eighth of
    /// wgpu's work for a dispatch.
    layouts: Mutex<Vec<(Vec<Access>, Layout)>>,
    /// The driver's compiled kernels, stored for the next process.
    kept: Option<PipelineCache>,
}

type ByText = HashMap<Arc<str>, Arc<Pipeline>, BuildHasherDefault<Mixer>>;

#[derive(Clone)]
struct Layout {
    group: wgpu::BindGroupLayout,
    pipeline: wgpu::PipelineLayout,
}

impl Pipelines {
    pub(super) fn new(device: &wgpu::Device, adapter: &wgpu::AdapterInfo) -> Self {
        let kept = PipelineCache::open(device, adapter);
        Pipelines { by_text: Mutex::default(), layouts: Mutex::default(), kept }
    }

    fn layout(&self, device: &wgpu::Device, accesses: &[Access]) -> Layout {
        let mut layouts = self.layouts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, layout)) = layouts.iter().find(|(known, _)| *known == accesses) {
            return layout.clone();
        }
        let entry = |(binding, access): (usize, &Access)| {
            let ty = match access {
                Access::Uniform => wgpu::BufferBindingType::Uniform,
                _ => wgpu::BufferBindingType::Storage { read_only: *access == Access::Read },
            };
            wgpu::BindGroupLayoutEntry {
                binding: binding as u32,
                visibility: wgpu::ShaderStages::COMPUTE,
                ty: wgpu::BindingType::Buffer {
                    ty,
                    has_dynamic_offset: false,
                    min_binding_size: None,
                },
                count: None,
            }
        };
        let entries: Vec<wgpu::BindGroupLayoutEntry> =
            accesses.iter().enumerate().map(entry).collect();
        let group = device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor {
            label: Some("wgrad"),
            entries: &entries,
        });
        let pipeline = device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
            label: Some("wgrad"),
            bind_group_layouts: &[Some(&group)],
            immediate_size: 0,
        });
        let layout = Layout { group, pipeline };
        layouts.push((accesses.to_vec(), layout.clone()));
        layout
    }

    /// The layout of a bind group.
    pub(super) fn layout_of(
        &self,
        device: &wgpu::Device,
        accesses: &[Access],
    ) -> wgpu::BindGroupLayout {
        self.layout(device, accesses).group
    }

    fn kept(&self) -> Option<&PipelineCache> {
        // The constant lets the compiler omit this code for browsers.
        self.kept.as_ref().filter(|_| platform::HAS_FILES)
    }

    fn known(&self) -> MutexGuard<'_, ByText> {
        self.by_text.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Gpu {
    /// True if this device has already compiled `source`.
    pub(crate) fn has_pipeline(&self, source: &ShaderSource) -> bool {
        self.pipelines.known().contains_key(&source.wgsl)
    }

    /// The pipelines of `sources`, in order. New ones are compiled in parallel on all processors.
    pub(crate) fn pipelines(&self, sources: &[&ShaderSource]) -> Result<Vec<Arc<Pipeline>>> {
        let mut missing: Vec<&ShaderSource> = Vec::new();
        {
            let known = self.pipelines.known();
            for source in sources {
                let new = !known.contains_key(&source.wgsl);
                if new && !missing.iter().any(|other| other.wgsl == source.wgsl) {
                    missing.push(source);
                }
            }
        }
        // If one fails to compile, none is stored: the driver does not reliably report which one failed.
        let compiled = platform::map_on_threads(&missing, |source| self.compile(source));
        let compiled = compiled.into_iter().collect::<Result<Vec<Pipeline>>>()?;
        self.check()?;
        let mut known = self.pipelines.known();
        for (source, pipeline) in missing.iter().zip(compiled) {
            known.insert(source.wgsl.clone(), Arc::new(pipeline));
        }
        let all = sources.iter().map(|source| known[&source.wgsl].clone()).collect();
        drop(known);
        if !missing.is_empty() {
            self.counters.add(Counter::Pipelines, missing.len() as u64);
            if let Some(kept) = self.pipelines.kept() {
                kept.save();
            }
        }
        Ok(all)
    }

    /// Leaves the check for faults to the caller. The first fault is the cause: a check here could return it in another thread,
    /// and only a consequence in the thread whose kernel is wrong.
    fn compile(&self, source: &ShaderSource) -> Result<Pipeline> {
        #[cfg(feature = "kernel-hooks")]
        let source = &super::rewriter::rewritten(source)?;
        let module = trusted::create_shader_module(&self.device, &source.label, &source.wgsl);
        let layout = self.pipelines.layout(&self.device, &source.accesses);
        let raw = self.device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: Some(&source.label),
            layout: Some(&layout.pipeline),
            module: &module,
            entry_point: Some("main"),
            compilation_options: wgpu::PipelineCompilationOptions {
                // Kernels write workgroup memory before they read it.
                zero_initialize_workgroup_memory: false,
                ..Default::default()
            },
            cache: self.pipelines.kept().map(PipelineCache::raw),
        });
        Ok(Pipeline { raw, layout: layout.group })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::DeviceOptions;

    fn source(body: &str) -> ShaderSource {
        let wgsl = format!(
            "@group(0) @binding(0) var<storage, read_write> y: array<f32>;\n\
             @group(0) @binding(1) var<uniform> p: vec4<u32>;\n\
             @compute @workgroup_size(1) fn main() {{ y[p.x] = {body}; }}\n"
        );
        ShaderSource {
            label: "test".into(),
            wgsl: wgsl.into(),
            accesses: vec![Access::Write, Access::Uniform],
        }
    }

    #[test]
    fn many_are_compiled_at_once_and_each_text_once() {
        let gpu = pollster::block_on(Gpu::open(&DeviceOptions::default())).unwrap();
        let texts: Vec<ShaderSource> = (0..20).map(|i| source(&format!("{}.5", i % 10))).collect();
        let texts: Vec<&ShaderSource> = texts.iter().collect();
        let pipelines = gpu.pipelines(&texts).unwrap();
        for i in 0..10 {
            assert!(Arc::ptr_eq(&pipelines[i], &pipelines[i + 10]));
            assert!(!Arc::ptr_eq(&pipelines[i], &pipelines[(i + 1) % 10]));
        }
        assert_eq!(gpu.stats().pipelines, 10);
        // In the order of the request, although compiled in any order.
        let turned: Vec<&ShaderSource> = texts.iter().rev().copied().collect();
        let again = gpu.pipelines(&turned).unwrap();
        assert!(again.iter().rev().zip(&pipelines).all(|(a, b)| Arc::ptr_eq(a, b)));
        assert_eq!(gpu.stats().pipelines, 10);
    }

    #[test]
    fn a_text_that_does_not_compile_is_an_error_and_none_is_kept() {
        let gpu = pollster::block_on(Gpu::open(&DeviceOptions::default())).unwrap();
        let good: Vec<ShaderSource> = (0..6).map(|i| source(&format!("{i}.0"))).collect();
        let bad = source("no_such_function(1.0)");
        let mut all: Vec<&ShaderSource> = good.iter().collect();
        all.insert(3, &bad);
        // Threads race for the error.
        for _ in 0..10 {
            let error = gpu.pipelines(&all).map(|_| ()).unwrap_err().to_string();
            assert!(error.contains("no_such_function"), "{error}");
            assert_eq!(gpu.stats().pipelines, 0);
        }
        all.remove(3);
        assert_eq!(gpu.pipelines(&all).unwrap().len(), 6);
        assert!(gpu.check().is_ok(), "the error was reported once");
    }
}
