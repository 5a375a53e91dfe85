//! A device for measurements of the host alone.

use wgrad::Device;
use wgrad::interop::DeviceExt;

/// A device that runs nothing, so that only the host's work remains.
pub fn idle_device() -> Device {
    let mut descriptor = wgpu::InstanceDescriptor::new_without_display_handle();
    descriptor.backends = wgpu::Backends::NOOP;
    descriptor.backend_options.noop.enable = true;
    let instance = wgpu::Instance::new(descriptor);
    let adapter = pollster::block_on(instance.request_adapter(&Default::default())).unwrap();
    let (device, queue) = pollster::block_on(adapter.request_device(&Default::default())).unwrap();
    Device::from_wgpu(&adapter, device, queue).unwrap()
}
