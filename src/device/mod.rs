//! One GPU, accessed through `wgpu`: adapters and limits, buffers, transfers, pipelines, submission, faults, profiles.
//!
//! This module knows bytes and kernels, but not ops, tensors or layers, which are in the modules above it.

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
mod pacing;
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

pub(crate) use adapter::Adapter;
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
pub(crate) use stats::{Counter, Counters};
pub use stats::{DeviceStats, MemoryInfo};
#[cfg(not(target_family = "wasm"))]
pub(crate) use submit::EarlyRead;
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
    pub(crate) pipelines: Arc<Pipelines>,
    pub(crate) counters: Counters,
    faults: Arc<Faults>,
    transfer: transfer::Transfer,
    in_flight: submit::InFlight,
    timer: kernel_timer::KernelTimer,
    pacer: pacing::Pacer,
    /// Completed once the device must never be destroyed.
    immortal: std::sync::Once,
}

impl Gpu {
    pub(crate) async fn open(options: &DeviceOptions) -> Result<Self> {
        let adapters = adapter::list().await?;
        let at = adapter::choose_for(&adapters, options)?;
        Gpu::open_on(&adapters[at], options).await
    }

    /// Opens a device on `adapter`, whichever `options` names.
    pub(crate) async fn open_on(adapter: &Adapter, options: &DeviceOptions) -> Result<Self> {
        let (device, queue) = adapter::open(adapter).await?;
        if platform::SHOWS_ALL_ADAPTERS {
            limits::check(&device.limits(), platform::TRY_ANOTHER_ADAPTER)?;
        }
        let mut gpu = Gpu::new(&adapter.raw, device, queue, options);
        #[cfg(feature = "kernel-hooks")]
        rewriter::override_caps(&mut gpu.caps)?;
        if gpu.info.name.is_empty() {
            gpu.info.name = platform::adapter_name();
        }
        Ok(gpu)
    }

    /// Another user of the same driver's device: with memory, a limit and counters of its own. Both submit to one queue,
    /// share the compiled kernels, and are lost together.
    pub(crate) fn sibling(&self, memory_limit: Option<u64>) -> Self {
        let faults = &self.faults;
        Gpu {
            pool: Arc::new(Pool::new(self.device.clone(), faults.clone(), memory_limit)),
            pipelines: self.pipelines.clone(),
            counters: Counters::default(),
            transfer: transfer::Transfer::new(faults),
            in_flight: submit::InFlight::default(),
            timer: kernel_timer::KernelTimer::default(),
            pacer: pacing::Pacer::default(),
            immortal: std::sync::Once::new(),
            device: self.device.clone(),
            queue: self.queue.clone(),
            info: self.info.clone(),
            caps: self.caps.clone(),
            faults: faults.clone(),
        }
    }

    /// Whether both use one device of the driver, so that one command can use buffers of both.
    pub(crate) fn is_sibling_of(&self, other: &Gpu) -> bool {
        Arc::ptr_eq(&self.faults, &other.faults)
    }

    /// Uses a device that an application created.
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
        if let Some(value) = value_if_set("WGRAD_PORTABLE") {
            caps.forget_the_adapter(value.parse().ok());
        }
        caps.threads = options.threads.map_or(caps.threads, |threads| threads.max(1));
        let faults = Faults::watch(&device, &queue);
        Gpu {
            pool: Arc::new(Pool::new(device.clone(), faults.clone(), options.memory_limit)),
            pipelines: Arc::new(Pipelines::new(&device, &adapter.get_info())),
            counters: Counters::default(),
            transfer: transfer::Transfer::new(&faults),
            in_flight: submit::InFlight::default(),
            timer: kernel_timer::KernelTimer::default(),
            pacer: pacing::Pacer::default(),
            immortal: std::sync::Once::new(),
            device,
            queue,
            info,
            caps,
            faults,
        }
    }

    /// Returns the first error that the driver has reported and no call has returned yet; a lost device stays lost.
    pub(crate) fn check(&self) -> Result<()> {
        self.faults.check()
    }

    /// As [`Gpu::check`], for calls that reach the device: also detects a loss that has not been reported yet.
    pub(crate) fn ask(&self) -> Result<()> {
        self.faults.ask()
    }

    /// Returns an error in a thread that is ending and has dropped the thread-local values that wgpu needs.
    pub(crate) fn check_thread(&self) -> Result<()> {
        check_thread(|| drop(self.faults.poll(wgpu::PollType::Poll)))
    }

    /// The error that a call should return for `error`: after a loss, the loss.
    pub(crate) fn judge(&self, error: Error) -> Error {
        self.faults.judge(error)
    }

    /// Records that from now on the driver may also refuse commands of an application.
    pub(crate) fn share(&self) {
        self.faults.share();
    }

    /// Whether an application may use the device and its buffers.
    pub(crate) fn is_shared(&self) -> bool {
        self.faults.is_shared()
    }

    /// Waits until the device is lost, and returns the reason.
    pub(crate) async fn loss(&self) -> String {
        self.faults.loss().await
    }

    /// Returns the device, with everything on it, to the driver.
    pub(crate) fn destroy(&self) {
        // The driver's own report arrives later.
        self.faults.lose();
        self.device.destroy();
    }

    /// Prevents the device from being destroyed if its driver would crash: NVIDIA's 580.159, on an H100, after kernels
    /// with cooperative matrices. Buffers and pipelines are still released.
    pub(crate) fn outlive_cooperative_kernels(&self) {
        if self.info.driver.starts_with("NVIDIA") {
            self.immortal.call_once(|| std::mem::forget(self.device.clone()));
        }
    }

    /// Returns an error for a tensor that no binding of this adapter can cover.
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

/// As [`Gpu::check_thread`]; `touch` is the first call of wgpu that a thread makes.
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

/// The most bytes that the sizes of a tensor without elements may amount to, apart from the zero. Ops add and multiply
/// a few sizes, and the results must fit in `usize`.
const MOST: u64 = usize::MAX as u64 / 4;

/// Whether an environment variable is set and neither empty nor 0.
pub(crate) fn is_set(name: &str) -> bool {
    value_if_set(name).is_some()
}

/// The value of an environment variable, unless it is empty or 0.
fn value_if_set(name: &str) -> Option<String> {
    platform::env_var(name).filter(|value| value != "0" && !value.is_empty())
}

/// Whether kernels are rewritten before they are compiled. If so, cached data of other runs does not apply to them, and
/// the findings of this run do not apply to other runs.
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
