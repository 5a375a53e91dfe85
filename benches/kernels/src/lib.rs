//! Compiles the kernels that wgrad writes for a GPU with AMD's compiler, and estimates how well they would use a GPU. No card
//! is needed: nothing runs, and the driver compiles for hardware that is not present.
//!
//! `programs` lists what to compile, `compiler` calls the driver, `assembly` parses its output, `model` estimates.

pub mod assembly;
pub mod compiler;
pub mod model;
pub mod programs;

use anyhow::{Context, Result};
use wgrad::interop::DeviceExt;
use wgrad::{Device, PlannedKernel};

use programs::Program;

/// The kernels of a program's last plan, for a GPU with no more than WebGPU's guaranteed limits, except for the number of
/// buffers if `WGRAD_PORTABLE` is a number above 8.
///
/// # Errors
/// If the program fails, or `WGRAD_PORTABLE` is not set: without it, the device that runs nothing counts as a processor.
pub fn kernels(program: &Program) -> Result<Vec<PlannedKernel>> {
    if std::env::var_os("WGRAD_PORTABLE").is_none() {
        anyhow::bail!("WGRAD_PORTABLE=1 is not set, so kernels would be those of a processor");
    }
    let device = idle_device()?;
    let held = device.scope(|| -> wgrad::Result<_> {
        let held = (program.run)()?;
        device.flush()?;
        Ok(held)
    });
    // The planner leaves out values that are not held.
    let held = held.with_context(|| program.name.clone())?;
    let plan = device.last_plan().context("a program has a plan")?;
    drop(held);
    Ok(plan.kernels().to_vec())
}

/// A device that runs and compiles nothing, with the limits that every browser guarantees, and all the buffers that
/// `WGRAD_PORTABLE` leaves it.
fn idle_device() -> Result<Device> {
    let mut descriptor = wgpu::InstanceDescriptor::new_without_display_handle();
    descriptor.backends = wgpu::Backends::NOOP;
    descriptor.backend_options.noop.enable = true;
    let instance = wgpu::Instance::new(descriptor);
    let adapter = pollster::block_on(instance.request_adapter(&Default::default()))?;
    let all = adapter.limits();
    let descriptor = wgpu::DeviceDescriptor {
        required_features: adapter.features() & wgpu::Features::SHADER_F16,
        required_limits: wgpu::Limits {
            max_storage_buffers_per_shader_stage: all.max_storage_buffers_per_shader_stage,
            max_bindings_per_bind_group: all.max_bindings_per_bind_group,
            max_buffers_and_acceleration_structures_per_shader_stage: all
                .max_buffers_and_acceleration_structures_per_shader_stage,
            ..Default::default()
        },
        ..Default::default()
    };
    let (device, queue) = pollster::block_on(adapter.request_device(&descriptor))?;
    Ok(Device::from_wgpu(&adapter, device, queue)?)
}
