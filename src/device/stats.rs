//! Counters of what a device has done, for tests, tuning and the curious.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// What a device has done since it was opened, and the memory it holds now. Sizes are bytes.
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
    /// Ops called.
    pub nodes: u64,
    /// How often the device has turned the waiting ops into a plan and run it.
    pub flushes: u64,
    /// Kernels launched.
    pub kernels: u64,
    /// Command buffers handed to the queue.
    pub submits: u64,
    /// Flushes whose plan the device knew already.
    pub plan_hits: u64,
    /// Flushes that had to be planned.
    pub plan_misses: u64,
    /// Plans that the device keeps. When they hold too many bytes, the least useful ones go.
    pub plans: u64,
    /// About how many bytes of host memory these plans hold, at most 256 MiB.
    pub plan_bytes: u64,
    /// Time spent making plans, without compiling their kernels.
    pub planning: Duration,
    /// Pipelines compiled.
    pub pipelines: u64,
    /// Bind groups made.
    pub bind_groups: u64,
    /// Values read back to the host.
    pub reads: u64,
    /// Bytes uploaded.
    pub uploaded_bytes: u64,
    /// Device buffers created.
    pub buffers: u64,
    /// Bytes in buffers that a tensor or a running plan holds; sizes are rounded up by a quarter at most, so
    /// that buffers can be reused. What one plan takes while it runs is
    /// [`PlanReport::buffer_bytes`](crate::PlanReport::buffer_bytes); between runs plans hold nothing.
    pub live_bytes: u64,
    /// Bytes in freed buffers that wait for reuse. [`Device::trim`](crate::Device::trim) gives them back.
    pub pooled_bytes: u64,
    /// Bytes that the last plan needs between its kernels, beside its results: values that never live at the same time
    /// share memory. The plan takes these bytes only while it runs.
    pub arena_bytes: u64,
    /// The most bytes that were ever held at once, live and pooled together.
    pub peak_bytes: u64,
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
