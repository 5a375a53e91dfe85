//! A plain copy with raw wgpu, four floats per thread: the time for moving bytes on this adapter. It uses the device that wgrad
//! opens, so the adapter is the same.

use std::time::Duration;

use wgrad::Device;
use wgrad::interop::DeviceExt;
use wgrad::interop::wgpu;

use crate::Result;
use crate::child::{Job, Prepared, timed};
use crate::inputs;

/// Threads in a workgroup.
const GROUP: u32 = 256;

const SHADER: &str = "
@group(0) @binding(0) var<storage, read> source: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> target_: array<vec4<f32>>;

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let i = id.y * groups.x * 256u + id.x;
    if i < arrayLength(&source) {
        target_[i] = source[i];
    }
}
";

struct Copy {
    device: Device,
    pipeline: wgpu::ComputePipeline,
    bindings: wgpu::BindGroup,
    groups: [u32; 2],
    bytes: u64,
    target: wgpu::Buffer,
}

pub fn open(bytes: usize) -> Result<Job> {
    let device = Device::current()?;
    let info = device.adapter().clone();
    let (gpu, queue) = device.wgpu();
    let values = inputs::uniform(bytes / 4, 1);
    let buffer = |usage| {
        gpu.create_buffer(&wgpu::BufferDescriptor {
            label: Some("copied"),
            size: bytes as u64,
            usage: wgpu::BufferUsages::STORAGE | usage,
            mapped_at_creation: false,
        })
    };
    let source = buffer(wgpu::BufferUsages::COPY_DST);
    let target = buffer(wgpu::BufferUsages::COPY_SRC);
    let raw: Vec<u8> = values.iter().flat_map(|x| x.to_le_bytes()).collect();
    queue.write_buffer(&source, 0, &raw);
    let module = gpu.create_shader_module(wgpu::ShaderModuleDescriptor {
        label: Some("copy"),
        source: wgpu::ShaderSource::Wgsl(SHADER.into()),
    });
    let pipeline = gpu.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
        label: Some("copy"),
        layout: None,
        module: &module,
        entry_point: Some("main"),
        compilation_options: wgpu::PipelineCompilationOptions::default(),
        cache: None,
    });
    let bindings = gpu.create_bind_group(&wgpu::BindGroupDescriptor {
        label: Some("copy"),
        layout: &pipeline.get_bind_group_layout(0),
        entries: &[
            wgpu::BindGroupEntry { binding: 0, resource: source.as_entire_binding() },
            wgpu::BindGroupEntry { binding: 1, resource: target.as_entire_binding() },
        ],
    });
    let all = u32::try_from(bytes / 16)?.div_ceil(GROUP);
    let x = all.min(gpu.limits().max_compute_workgroups_per_dimension);
    let groups = [x, all.div_ceil(x)];
    let work =
        Copy { device: device.clone(), pipeline, bindings, groups, bytes: bytes as u64, target };
    Ok(Job {
        adapter: info.name,
        driver: info.driver,
        api: info.backend.to_string(),
        version: "copy".to_owned(),
        work: Box::new(work),
    })
}

impl Copy {
    fn copy(&self) -> Result<()> {
        let (gpu, queue) = self.device.wgpu();
        let mut encoder = gpu.create_command_encoder(&Default::default());
        let mut pass = encoder.begin_compute_pass(&Default::default());
        pass.set_pipeline(&self.pipeline);
        pass.set_bind_group(0, &self.bindings, &[]);
        pass.dispatch_workgroups(self.groups[0], self.groups[1], 1);
        drop(pass);
        queue.submit([encoder.finish()]);
        gpu.poll(wgpu::PollType::wait_indefinitely())?;
        Ok(())
    }
}

impl Prepared for Copy {
    fn run(&mut self) -> Result<Duration> {
        Ok(timed(|| self.copy())?.0)
    }

    fn check(&mut self) -> Result<Vec<f64>> {
        self.copy()?;
        let (gpu, queue) = self.device.wgpu();
        let read = gpu.create_buffer(&wgpu::BufferDescriptor {
            label: Some("read"),
            size: self.bytes,
            usage: wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        });
        let mut encoder = gpu.create_command_encoder(&Default::default());
        encoder.copy_buffer_to_buffer(&self.target, 0, &read, 0, self.bytes);
        queue.submit([encoder.finish()]);
        read.slice(..).map_async(wgpu::MapMode::Read, |_| {});
        gpu.poll(wgpu::PollType::wait_indefinitely())?;
        let bytes = read.slice(..).get_mapped_range()?;
        let copied = bytes.chunks_exact(4).map(|x| f32::from_le_bytes([x[0], x[1], x[2], x[3]]));
        if !copied.eq(inputs::uniform(self.bytes as usize / 4, 1)) {
            return Err("the copy differs from its source".into());
        }
        Ok(Vec::new())
    }

    fn device_bytes(&self) -> Option<u64> {
        Some(2 * self.bytes)
    }
}
