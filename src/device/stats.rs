//! Counters of what a device has done, for tests and tuning.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Counters of what a device has done since it was opened, and the memory that it holds now. Sizes are in bytes.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::{Device, Tensor};
/// let before = Device::current()?.stats();
/// let x = Tensor::from_slice(&[1.0, 2.0], [2])?;
/// let y = (&x * 3.0).to_vec::<f32>()?;
/// assert_eq!(y, [3.0, 6.0]);
/// let after = Device::current()?.stats();
/// assert!(after.kernels > before.kernels);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeviceStats {
    /// The number of ops called.
    pub nodes: u64,
    /// The number of times that the device has planned and run the pending ops.
    pub flushes: u64,
    /// The number of kernels launched.
    pub kernels: u64,
    /// The number of command buffers submitted to the queue.
    pub submits: u64,
    /// The number of flushes whose plan was in the cache.
    pub plan_hits: u64,
    /// The number of flushes that needed a new plan.
    pub plan_misses: u64,
    /// The number of cached plans. When they take too many bytes, the least useful ones are evicted.
    pub plans: u64,
    /// Approximate host memory of the cached plans, at most 256 MiB.
    pub plan_bytes: u64,
    /// Time spent planning, without compiling kernels.
    pub planning: Duration,
    /// The number of pipelines compiled.
    pub pipelines: u64,
    /// The number of bind groups created.
    pub bind_groups: u64,
    /// The number of values read back to the host.
    pub reads: u64,
    /// Bytes uploaded.
    pub uploaded_bytes: u64,
    /// The number of device buffers created.
    pub buffers: u64,
    /// Bytes in buffers that a tensor or a running plan holds. Sizes are rounded up by at most a quarter so that buffers can be
    /// reused. [`PlanReport::buffer_bytes`](crate::PlanReport::buffer_bytes) reports what a single plan uses while it runs;
    /// between runs, plans hold no buffers.
    pub live_bytes: u64,
    /// Bytes in freed buffers that are kept for reuse. [`Device::trim`](crate::Device::trim) releases them.
    pub pooled_bytes: u64,
    /// Bytes that the last plan needs for values between its kernels, in addition to its results. Values that are never live at
    /// the same time share memory. The plan holds these bytes only while it runs.
    pub arena_bytes: u64,
    /// The peak number of bytes held at once, live and pooled together.
    pub peak_bytes: u64,
}

/// The memory of a device's tensors, in bytes; [`Device::memory_info`](crate::Device::memory_info) returns it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryInfo {
    /// Bytes that tensors and running plans hold. Freed memory that is kept for reuse
    /// ([`DeviceStats::pooled_bytes`]) does not count.
    pub current: u64,
    /// The most that `current` was since the device was opened, or since
    /// [`Device::reset_memory_stats`](crate::Device::reset_memory_stats).
    pub peak: u64,
}

/// The counters; those of memory are the pool's.
#[derive(Default)]
pub(crate) struct Counters([AtomicU64; 14]);

#[derive(Clone, Copy)]
pub(crate) enum Counter {
    Nodes,
    Flushes,
    Kernels,
    Submits,
    PlanHits,
    PlanMisses,
    /// Nanoseconds.
    Planning,
    Pipelines,
    BindGroups,
    Reads,
    UploadedBytes,
    ArenaBytes,
    Plans,
    PlanBytes,
}

impl Counters {
    pub(crate) fn add(&self, counter: Counter, n: u64) {
        self.0[counter as usize].fetch_add(n, Ordering::Relaxed);
    }

    /// Sets a counter that shows the present state.
    pub(crate) fn set(&self, counter: Counter, n: u64) {
        self.0[counter as usize].store(n, Ordering::Relaxed);
    }

    pub(super) fn read(&self) -> DeviceStats {
        let get = |counter: Counter| self.0[counter as usize].load(Ordering::Relaxed);
        DeviceStats {
            nodes: get(Counter::Nodes),
            flushes: get(Counter::Flushes),
            kernels: get(Counter::Kernels),
            submits: get(Counter::Submits),
            plan_hits: get(Counter::PlanHits),
            plan_misses: get(Counter::PlanMisses),
            plans: get(Counter::Plans),
            plan_bytes: get(Counter::PlanBytes),
            planning: Duration::from_nanos(get(Counter::Planning)),
            pipelines: get(Counter::Pipelines),
            bind_groups: get(Counter::BindGroups),
            reads: get(Counter::Reads),
            uploaded_bytes: get(Counter::UploadedBytes),
            arena_bytes: get(Counter::ArenaBytes),
            ..DeviceStats::default()
        }
    }
}
