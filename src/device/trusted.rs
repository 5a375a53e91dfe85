//! The crate's only `unsafe` block: shader modules without the counter that ends endless loops.
//!
//! wgpu adds to every loop a counter that breaks it after 2^64 turns. In the inner loop of a matmul that
//! costs a quarter of the speed and doubles the time a driver compiles (measured on lavapipe: 16.7 against
//! 22.9 GFLOP/s at 512 x 512 x 512, 130 against 70 ms). Bounds checks stay on.
#![allow(unsafe_code)]

pub(super) fn create_shader_module(
    device: &wgpu::Device,
    label: &str,
    wgsl: &str,
) -> wgpu::ShaderModule {
    let descriptor = wgpu::ShaderModuleDescriptor {
        label: Some(label),
        source: wgpu::ShaderSource::Wgsl(wgsl.into()),
    };
    let checks = wgpu::ShaderRuntimeChecks {
        force_loop_bounding: false,
        ..wgpu::ShaderRuntimeChecks::checked()
    };
    // SAFETY: the only check that is turned off guards against loops without end, which drivers may
    // compile to undefined behaviour. All texts come from this crate, and all their loops are `for` loops
    // that count to a number read before they begin (`tests/tidy.rs` refuses `loop` and `while`).
    unsafe { device.create_shader_module_trusted(descriptor, checks) }
}
