//! The crate's only `unsafe` blocks: they create shader modules without the counter that ends endless loops, start
//! pipelines from an earlier process's cache, and request a feature that wgpu calls experimental.
//!
//! wgpu adds to every loop a counter that breaks it after 2^64 iterations. In the inner loop of a matmul that costs a
//! quarter of the speed and doubles the compile time (measured on lavapipe: 16.7 against 22.9 GFLOP/s at 512 x 512 x
//! 512, 130 against 70 ms). Bounds checks stay on.
#![allow(unsafe_code)]

use super::platform;

pub(super) fn create_shader_module(
    device: &wgpu::Device,
    label: &str,
    wgsl: &str,
) -> wgpu::ShaderModule {
    let descriptor = wgpu::ShaderModuleDescriptor {
        label: Some(label),
        source: wgpu::ShaderSource::Wgsl(platform::standard(wgsl)),
    };
    let checks = wgpu::ShaderRuntimeChecks {
        force_loop_bounding: false,
        ..wgpu::ShaderRuntimeChecks::checked()
    };
    // SAFETY: the only check that is disabled guards against endless loops, which drivers may compile to undefined
    // behaviour. All texts come from this crate, and all their loops are `for` loops that count to a number read before
    // they begin (`tests/tidy.rs` rejects `loop` and `while`). Those of a saved plan (`plan/saved.rs`) come from a file that
    // this crate wrote to the cache folder, with a checksum; as below, only the user can forge one.
    unsafe { device.create_shader_module_trusted(descriptor, checks) }
}

/// A cache that starts with `data`, which an earlier cache has returned for this device's adapter.
pub(super) fn create_pipeline_cache(
    device: &wgpu::Device,
    data: Option<&[u8]>,
) -> wgpu::PipelineCache {
    let descriptor = wgpu::PipelineCacheDescriptor {
        label: Some("wgrad"),
        data,
        // wgpu ignores data of another driver version.
        fallback: true,
    };
    // SAFETY: `data` must come from `PipelineCache::get_data`. The caller has read it from a file that this crate wrote
    // for the same adapter and verified its checksum; wgpu compares the driver's own key. A forged file could pass, but
    // the folder is writable only by the user, like the programs that the user runs.
    unsafe { device.create_pipeline_cache(&descriptor) }
}

/// Enables experimental features; cooperative matrices are the only one requested.
pub(super) fn experimental_features() -> wgpu::ExperimentalFeatures {
    // SAFETY: wgpu asks to acknowledge that the feature may have defects that are undefined behaviour. One shader uses
    // it (`shaders/gemm_cooperative.wgsl`): its small matrices are within its own arrays, at constant positions, and
    // naga's validator checks it in the tests. It runs only after a device has computed a known product with it
    // correctly.
    unsafe { wgpu::ExperimentalFeatures::enabled() }
}
