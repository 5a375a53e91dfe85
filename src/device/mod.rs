//! One GPU as `wgpu` shows it: adapters and limits, buffers, transfers, pipelines, submission, faults, profiles.
//!
//! This room knows bytes and kernels. It knows no op, no tensor and no layer: those are above it.

mod adapter;
#[cfg(target_family = "wasm")]
mod browser;
mod cooperative;
mod faults;
mod kernel;
mod pipeline;
mod pipeline_cache;
mod pool;
mod profile;
mod recorder;
mod stats;
mod submit;
pub(crate) mod table;
mod transfer;
mod trusted;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

#[cfg(not(target_family = "wasm"))]
pub(crate) use adapter::list as list_adapters;
pub use adapter::{AdapterInfo, DeviceOptions};
pub(crate) use cooperative::Cooperative;
pub use cooperative::MatmulPrecision;
pub(crate) use kernel::{Access, Source};
pub(crate) use pipeline::{Pipeline, Pipelines};
pub(crate) use pool::{Buffer, Pool};
pub use profile::{Profile, ProfiledKernel};
pub use stats::DeviceStats;
pub(crate) use stats::{Counter, Counters};
pub(crate) use submit::Launch;
pub(crate) use transfer::Staging;

use crate::error::{DeviceFault, Error, Result, message};
use faults::Faults;

/// A device, its queue and everything that is shared between the plans that run on it.
pub(crate) struct Gpu {
    pub(crate) device: wgpu::Device,
    pub(crate) queue: wgpu::Queue,
    pub(crate) info: AdapterInfo,
    pub(crate) caps: Caps,
    pub(crate) pool: Arc<Pool>,
    pub(crate) pipelines: Pipelines,
    pub(crate) counters: Counters,
    faults: Arc<Faults>,
    transfer: transfer::Transfer,
    in_flight: submit::InFlight,
    profiling: recorder::Profiling,
}

/// What kernels may count on: the limits and features that choose between variants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Caps {
    /// A driver that runs shaders on the processor: dispatches are dear, workgroup memory does not pay.
    pub(crate) cpu: bool,
    pub(crate) f16: bool,
    /// The least and the most threads that a subgroup may have, where kernels may use subgroups.
    pub(crate) subgroups: Option<[u32; 2]>,
    /// Small matrices that subgroups multiply.
    pub(crate) cooperative: Vec<Cooperative>,
    /// How precise products of `f32` tensors are to be.
    pub(crate) precision: MatmulPrecision,
    /// Threads of a workgroup, and bytes that they may share.
    pub(crate) workgroup: [u32; 2],
    /// Storage buffers one kernel may bind.
    pub(crate) storage_buffers: usize,
    /// Bytes one binding may cover.
    pub(crate) binding_bytes: u64,
    pub(crate) buffer_bytes: u64,
    /// Workgroups along one axis of a dispatch.
    pub(crate) groups: u32,
    pub(crate) uniform_alignment: u64,
}

impl Caps {
    fn new(info: &AdapterInfo, features: wgpu::Features, limits: &wgpu::Limits) -> Self {
        Caps {
            cpu: info.kind == wgpu::DeviceType::Cpu,
            f16: features.contains(wgpu::Features::SHADER_F16),
            subgroups: None,
            cooperative: Vec::new(),
            precision: MatmulPrecision::Strict,
            workgroup: [
                limits
                    .max_compute_invocations_per_workgroup
                    .min(limits.max_compute_workgroup_size_x),
                limits.max_compute_workgroup_storage_size,
            ],
            storage_buffers: limits.max_storage_buffers_per_shader_stage as usize,
            binding_bytes: limits.max_storage_buffer_binding_size,
            buffer_bytes: limits.max_buffer_size,
            groups: limits.max_compute_workgroups_per_dimension,
            uniform_alignment: u64::from(limits.min_uniform_buffer_offset_alignment),
        }
    }

    /// Threads of a subgroup, where all have the same size.
    pub(crate) fn subgroup(&self) -> Option<u32> {
        self.subgroups.filter(|[least, most]| least == most).map(|[size, _]| size)
    }

    /// Forgets what lies beyond any GPU in any browser (`WGRAD_PORTABLE=1`), so that kernels are made and chosen as
    /// there. Sizes of buffers stay the adapter's.
    fn forget_the_adapter(&mut self) {
        self.cpu = false;
        self.subgroups = None;
        self.cooperative.clear();
        self.storage_buffers =
            wgpu::Limits::default().max_storage_buffers_per_shader_stage as usize;
    }

    /// WebGPU's guaranteed minimum, which tests of lowering and generated code run under.
    #[cfg(test)]
    pub(crate) fn portable() -> Self {
        let info = AdapterInfo::for_tests();
        let features = wgpu::Features::SHADER_F16;
        Caps::new(&info, features, &wgpu::Limits::default())
    }
}

impl Gpu {
    pub(crate) async fn open(options: &DeviceOptions) -> Result<Self> {
        let (adapter, device, queue) = adapter::open(options).await?;
        let gpu = Gpu::new(&adapter, device, queue, options);
        #[cfg(target_family = "wasm")]
        let gpu = match gpu.info.name.is_empty() {
            true => {
                let info = AdapterInfo { name: browser::adapter_name().await, ..gpu.info };
                Gpu { info, ..gpu }
            }
            false => gpu,
        };
        Ok(gpu)
    }

    /// Takes over a device that an application made.
    pub(crate) fn new(
        adapter: &wgpu::Adapter,
        device: wgpu::Device,
        queue: wgpu::Queue,
        options: &DeviceOptions,
    ) -> Self {
        let raw = adapter.get_info();
        let info = AdapterInfo::new(&raw);
        let limits = device.limits();
        let mut caps = Caps::new(&info, device.features(), &limits);
        if device.features().contains(wgpu::Features::SUBGROUP) {
            caps.subgroups = Some([raw.subgroup_min_size, raw.subgroup_max_size]);
        }
        caps.cooperative = Cooperative::declared(adapter, device.features());
        caps.precision = options.matmul_precision;
        if is_set("WGRAD_PORTABLE") {
            caps.forget_the_adapter();
        }
        let faults = Faults::watch(&device);
        Gpu {
            pool: Arc::new(Pool::new(device.clone(), faults.clone(), options.memory_limit)),
            pipelines: Pipelines::new(&device, &adapter.get_info()),
            counters: Counters::default(),
            transfer: transfer::Transfer::new(device.clone()),
            in_flight: submit::InFlight::default(),
            profiling: recorder::Profiling::default(),
            device,
            queue,
            info,
            caps,
            faults,
        }
    }

    /// The first error the driver has reported and nobody has been told of; a lost device stays lost.
    pub(crate) fn check(&self) -> Result<()> {
        let checked = self.faults.check();
        if checked.as_ref().is_err_and(|error| !error.is_device_lost()) {
            // A refused command may be the first sign of a loss, which the driver tells when it is polled.
            let _ = self.device.poll(wgpu::PollType::Poll);
            self.faults.check_lost()?;
        }
        checked
    }

    /// Waits until the device is gone and tells why.
    pub(crate) async fn loss(&self) -> String {
        self.faults.loss().await
    }

    /// Gives the device back to the driver, with all that is on it.
    pub(crate) fn destroy(&self) {
        // Said at once, as the driver's own report comes later.
        self.faults.lose("Destroyed: the program has given it back".to_string());
        self.device.destroy();
    }

    /// Refuses a tensor that no binding of this adapter can cover.
    pub(crate) fn check_size(
        &self,
        op: &str,
        shape: &crate::shape::Shape,
        bytes: Option<u64>,
    ) -> Result<()> {
        let limit = self.caps.binding_bytes.min(self.caps.buffer_bytes);
        match bytes {
            Some(bytes) if bytes <= limit => Ok(()),
            _ => Err(Error::Device(
                DeviceFault::Limit,
                message!(
                    "{op}: a tensor of shape {shape} takes {} bytes, and {} binds at most {limit} bytes at once. \
                     Split it along an axis (a smaller batch), or use an adapter with larger limits.",
                    bytes.map_or("more than 2^64".to_string(), |b| b.to_string()),
                    self.info.name,
                ),
            )),
        }
    }

    pub(crate) fn stats(&self) -> DeviceStats {
        let mut stats = self.counters.read();
        self.pool.read_stats(&mut stats);
        stats
    }
}

/// An environment variable, where there are any.
pub(crate) fn env_var(name: &str) -> Option<String> {
    if cfg!(target_family = "wasm") { None } else { std::env::var(name).ok() }
}

/// Whether an environment variable is there and neither empty nor 0.
pub(crate) fn is_set(name: &str) -> bool {
    env_var(name).is_some_and(|value| value != "0" && !value.is_empty())
}

/// A number that no other buffer, tensor or variable of this process has had.
pub(crate) fn fresh_id() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}
