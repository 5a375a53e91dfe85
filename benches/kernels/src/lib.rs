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

/// The kernels of a program's last plan, for a GPU with no more than WebGPU's guaranteed limits.
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

/// A device that runs and compiles nothing, with the limits that every browser guarantees.
fn idle_device() -> Result<Device> {
    let mut descriptor = wgpu::InstanceDescriptor::new_without_display_handle();
    descriptor.backends = wgpu::Backends::NOOP;
    descriptor.backend_options.noop.enable = true;
    let instance = wgpu::Instance::new(descriptor);
    let adapter = pollster::block_on(instance.request_adapter(&Default::default()))?;
    let descriptor = wgpu::DeviceDescriptor {
        required_features: adapter.features() & wgpu::Features::SHADER_F16,
        ..Default::default()
    };
    let (device, queue) = pollster::block_on(adapter.request_device(&descriptor))?;
    Ok(Device::from_wgpu(&adapter, device, queue)?)
}
