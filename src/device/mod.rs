//! One GPU as `wgpu` shows it: adapters and limits, buffers, transfers, pipelines, submission, faults, profiles.
//!
//! This room knows bytes and kernels, but no op, no tensor and no layer: those are above it.

pub(crate) mod adapter;
mod board;
mod cooperative;
mod faults;
mod foreign;
mod kernel_timer;
#[cfg(any(test, all(feature = "kernel-hooks", not(target_family = "wasm"))))]
mod known_adapters;
mod launch;
mod limits;
mod pipeline;
mod pipeline_cache;
pub(crate) mod platform;
mod pool;
mod profile;
#[cfg(feature = "kernel-hooks")]
mod rewriter;
mod safely_dropped;
mod shader_source;
mod shelf;
mod stats;
mod submit;
mod transfer;
mod trusted;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub use adapter::{AdapterInfo, AdapterKind, Backend, DeviceOptions};
pub(crate) use cooperative::Cooperative;
pub use cooperative::MatmulPrecision;
#[cfg(all(feature = "kernel-hooks", not(target_family = "wasm")))]
pub(crate) use known_adapters::KnownAdapter;
#[cfg(any(test, all(feature = "kernel-hooks", not(target_family = "wasm"))))]
pub(crate) use known_adapters::distinct_adapters;
pub(crate) use launch::Launch;
pub(crate) use limits::{COLUMN_FOURS, COLUMN_THREADS, Caps};
pub(crate) use pipeline::{Pipeline, Pipelines};
pub(crate) use pool::{Buffer, Pool};
pub use profile::{Profile, ProfiledKernel};
pub(crate) use safely_dropped::SafelyDropped;
pub(crate) use shader_source::{Access, ShaderSource};
pub(crate) use shelf::Shelf;
pub use stats::DeviceStats;
pub(crate) use stats::{Counter, Counters};
pub(crate) use transfer::{Arriving, Staging};

use crate::error::{DeviceFault, Error, Result, message};
use faults::Faults;

/// A device, its queue and everything that the plans on it share.
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
    timer: kernel_timer::KernelTimer,
    /// Done once the device shall never be destroyed.
    immortal: std::sync::Once,
}

impl Gpu {
    pub(crate) async fn open(options: &DeviceOptions) -> Result<Self> {
        let (adapter, device, queue) = adapter::open(options).await?;
        if platform::SHOWS_ALL_ADAPTERS {
            limits::check(&device.limits(), platform::TRY_ANOTHER_ADAPTER)?;
        }
        let mut gpu = Gpu::new(&adapter, device, queue, options);
        #[cfg(feature = "kernel-hooks")]
        rewriter::override_caps(&mut gpu.caps)?;
        if gpu.info.name.is_empty() {
            gpu.info.name = platform::adapter_name();
        }
        Ok(gpu)
    }

    /// Takes over a device that an application made.
    pub(crate) fn shared(
        adapter: &wgpu::Adapter,
        device: wgpu::Device,
        queue: wgpu::Queue,
    ) -> Result<Self> {
        limits::check(&device.limits(), limits::ASK_FOR_MORE)?;
        let gpu = Gpu::new(adapter, device, queue, &DeviceOptions::default());
        gpu.share();
        gpu.ask()?;
        Ok(gpu)
    }

    fn new(
        adapter: &wgpu::Adapter,
        device: wgpu::Device,
        queue: wgpu::Queue,
        options: &DeviceOptions,
    ) -> Self {
        let raw = adapter.get_info();
        let info = AdapterInfo::new(&raw);
        let limits = device.limits();
        let mut caps = Caps::new(&info, device.features(), &limits);
        if platform::has_subgroups(&device) {
            caps.subgroups = Some([raw.subgroup_min_size, raw.subgroup_max_size]);
        }
        caps.cooperative = Cooperative::declared(adapter, device.features());
        caps.precision = options.matmul_precision;
        if is_set("WGRAD_PORTABLE") {
            caps.forget_the_adapter();
        }
        caps.threads = options.threads.map_or(caps.threads, |threads| threads.max(1));
        let faults = Faults::watch(&device, &queue);
        Gpu {
            pool: Arc::new(Pool::new(device.clone(), faults.clone(), options.memory_limit)),
            pipelines: Pipelines::new(&device, &adapter.get_info()),
            counters: Counters::default(),
            transfer: transfer::Transfer::new(&faults),
            in_flight: submit::InFlight::default(),
            timer: kernel_timer::KernelTimer::default(),
            immortal: std::sync::Once::new(),
            device,
            queue,
            info,
            caps,
            faults,
        }
    }

    /// The first error that the driver has reported and no call has returned; a lost device stays lost.
    pub(crate) fn check(&self) -> Result<()> {
        self.faults.check()
    }

    /// As [`Gpu::check`], for calls that reach the device: also sees a loss that nobody has reported yet.
    pub(crate) fn ask(&self) -> Result<()> {
        self.faults.ask()
    }

    /// Refuses the call of a thread that is ending and has dropped what wgpu needs.
    pub(crate) fn check_thread(&self) -> Result<()> {
        check_thread(|| drop(self.faults.poll(wgpu::PollType::Poll)))
    }

    /// The error that a call should return for `error`: after a loss, the loss.
    pub(crate) fn judge(&self, error: Error) -> Error {
        self.faults.judge(error)
    }

    /// Notes that the driver may refuse commands of an application, too, from now on.
    pub(crate) fn share(&self) {
        self.faults.share();
    }

    /// Whether an application may use the device and its buffers.
    pub(crate) fn is_shared(&self) -> bool {
        self.faults.is_shared()
    }

    /// Waits until the device is gone, and returns why.
    pub(crate) async fn loss(&self) -> String {
        self.faults.loss().await
    }

    /// Gives the device back to the driver, with everything on it.
    pub(crate) fn destroy(&self) {
        // The driver's own report comes later.
        self.faults.lose();
        self.device.destroy();
    }

    /// Keeps the device from being destroyed where its driver would crash then: NVIDIA's 580.159, on an H100, after
    /// kernels with cooperative matrices. Buffers and pipelines are given back all the same.
    pub(crate) fn outlive_cooperative_kernels(&self) {
        if self.info.driver.starts_with("NVIDIA") {
            self.immortal.call_once(|| std::mem::forget(self.device.clone()));
        }
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
            // The tensor has no elements, but ops also multiply the other sizes.
            Some(bytes) if shape.contains(&0) && bytes <= MOST => Ok(()),
            _ if shape.contains(&0) => Err(Error::Shape(message!(
                "{op}: a tensor of shape {shape} has no elements, and its other sizes multiply to more than {MOST} bytes. \
                 Use smaller ones."
            ))),
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

/// As [`Gpu::check_thread`], with the call of wgpu that a thread does first.
pub(crate) fn check_thread(touch: impl FnOnce()) -> Result<()> {
    match platform::keeps_thread_locals(touch) {
        true => Ok(()),
        false => Err(Error::Device(
            DeviceFault::Thread,
            "Device: this thread is ending and has dropped thread-local values that the driver's library needs. Read and \
             upload before it ends, or in another thread, not in the Drop of a thread-local value."
                .into(),
        )),
    }
}

/// The sizes of a tensor without elements may stand for so many bytes. Ops add and multiply a few sizes, and the
/// results stay below what `usize` holds.
const MOST: u64 = usize::MAX as u64 / 4;

/// Whether an environment variable is set and neither empty nor 0.
pub(crate) fn is_set(name: &str) -> bool {
    platform::env_var(name).is_some_and(|value| value != "0" && !value.is_empty())
}

/// Whether kernels are rewritten before they are compiled, so that what is kept of other runs does not belong to them, nor
/// what is found out now to other runs.
pub(crate) fn kernels_are_rewritten() -> bool {
    #[cfg(feature = "kernel-hooks")]
    return rewriter::is_active();
    #[cfg(not(feature = "kernel-hooks"))]
    false
}

/// A number that no other buffer, tensor or variable of this process has had.
pub(crate) fn fresh_id() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}
