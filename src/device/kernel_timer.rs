//! Times every kernel while a profile is recorded, with device timestamps before and after each dispatch.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use web_time::{Duration, Instant};

use super::launch::Launch;
use super::profile::{Clock, Profile, ProfiledKernel};
use super::{Gpu, Staging, platform};
use crate::error::{DeviceFault, Error, Result, message};

impl Clock {
    /// The best clock of the device.
    fn open(device: &wgpu::Device) -> Option<Self> {
        let features = device.features();
        let inside = wgpu::Features::TIMESTAMP_QUERY_INSIDE_PASSES;
        if features.contains(inside) && platform::MAY_BLOCK {
            Some(Clock::InsidePass)
        } else if features.contains(wgpu::Features::TIMESTAMP_QUERY) {
            Some(Clock::Pass)
        } else if platform::MAY_BLOCK {
            Some(Clock::Host)
        } else {
            // A browser can neither wait for each kernel nor time it precisely.
            None
        }
    }
}

/// The recording of a device, if one is under way.
#[derive(Default)]
pub(super) struct KernelTimer {
    /// The clock, or 0 while no profile is recorded: every submission looks here.
    clock: AtomicU8,
    recording: Mutex<Recording>,
}

#[derive(Default)]
struct Recording {
    /// Kernels whose times the host knows. Starts are ticks or nanoseconds since an arbitrary moment.
    kernels: Vec<Record>,
    /// Kernels whose times are still on the device.
    pending: Vec<(Vec<Record>, Timestamps)>,
    began: Option<Instant>,
}

struct Record {
    label: String,
    start: u64,
    end: u64,
    bytes: u64,
    flops: u64,
}

impl Record {
    fn new(launch: &Launch<'_>) -> Self {
        Record {
            label: launch.label.to_string(),
            start: 0,
            end: 0,
            bytes: launch.bytes,
            flops: launch.flops,
        }
    }
}

/// The timestamps of one submission.
pub(super) struct Timestamps {
    pub(super) queries: wgpu::QuerySet,
    resolved: wgpu::Buffer,
    staging: Staging,
}

/// Submissions whose timestamps may stay on the device before the host reads them.
const PENDING: usize = 32;

impl Timestamps {
    /// Kernels in one query set, two timestamps each. wgpu allows 4096 queries; a quarter of them keeps these buffers small.
    pub(super) const MOST: usize = wgpu::QUERY_SET_MAX_QUERIES as usize / 8;

    pub(super) fn new(gpu: &Gpu, kernels: usize) -> Result<Self> {
        let count = 2 * kernels as u32;
        let queries = gpu.device.create_query_set(&wgpu::QuerySetDescriptor {
            label: Some("wgrad profile"),
            ty: wgpu::QueryType::Timestamp,
            count,
        });
        let resolved = gpu.device.create_buffer(&wgpu::BufferDescriptor {
            label: Some("wgrad profile"),
            size: u64::from(count) * 8,
            usage: wgpu::BufferUsages::QUERY_RESOLVE | wgpu::BufferUsages::COPY_SRC,
            mapped_at_creation: false,
        });
        let staging = gpu.staging(8 * count as usize)?;
        Ok(Timestamps { queries, resolved, staging })
    }

    pub(super) fn resolve(&self, encoder: &mut wgpu::CommandEncoder, kernels: usize) {
        encoder.resolve_query_set(&self.queries, 0..2 * kernels as u32, &self.resolved, 0);
        let bytes = self.staging.copy_bytes();
        encoder.copy_buffer_to_buffer(&self.resolved, 0, self.staging.raw(), 0, bytes);
    }
}

impl KernelTimer {
    /// The clock to use, if a recording is under way.
    pub(super) fn clock(&self) -> Option<Clock> {
        match self.clock.load(Ordering::Relaxed) {
            0 => None,
            // A browser can have no other.
            _ if !platform::MAY_BLOCK => Some(Clock::Pass),
            1 => Some(Clock::InsidePass),
            2 => Some(Clock::Pass),
            _ => Some(Clock::Host),
        }
    }

    /// Records a kernel that ran from `began` until now.
    pub(super) fn measured(&self, launch: &Launch<'_>, began: Instant) {
        let mut recording = self.lock();
        let zero = *recording.began.get_or_insert(began);
        let start = began.saturating_duration_since(zero).as_nanos() as u64;
        let end = zero.elapsed().as_nanos() as u64;
        recording.kernels.push(Record { start, end, ..Record::new(launch) });
    }

    /// Records kernels whose times will be in `timestamps`.
    pub(super) fn timestamped(
        &self,
        gpu: &Gpu,
        launches: &[Launch<'_>],
        timestamps: Timestamps,
    ) -> Result<()> {
        let mut recording = self.lock();
        recording.pending.push((launches.iter().map(Record::new).collect(), timestamps));
        if recording.pending.len() < PENDING || !platform::MAY_BLOCK {
            return Ok(());
        }
        let pending = std::mem::take(&mut recording.pending);
        drop(recording);
        let known = pollster::block_on(read_timestamps(gpu, pending))?;
        self.lock().kernels.extend(known);
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Recording> {
        self.recording.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Gpu {
    /// Whether a profile is recorded.
    pub(super) fn is_profiling(&self) -> bool {
        self.timer.clock().is_some()
    }

    /// Begins to record every kernel that is submitted.
    pub(crate) fn start_profile(&self) -> Result<()> {
        let Some(clock) = Clock::open(&self.device) else {
            return Err(Error::Device(
                DeviceFault::Limit,
                message!("Device: {} has no timestamps, so kernels cannot be profiled.", self.info),
            ));
        };
        let begun =
            self.timer.clock.compare_exchange(0, clock as u8, Ordering::Relaxed, Ordering::Relaxed);
        begun.map(drop).map_err(|_| {
            Error::Device(
                DeviceFault::Limit,
                "Device: a profile is being recorded already. Finish it or drop it first.".into(),
            )
        })
    }

    /// Ends the recording and returns it.
    pub(crate) async fn finish_profile(&self) -> Result<Profile> {
        let (clock, recording) = self.stop_profile();
        let mut kernels = recording.kernels;
        kernels.extend(read_timestamps(self, recording.pending).await?);
        // Ticks of the device, or nanoseconds already.
        let period = match clock {
            Some(Clock::Host) => 1.0,
            _ => f64::from(self.queue.get_timestamp_period()),
        };
        let time =
            |ticks: u64| Duration::from_nanos((ticks as f64 * period).round().max(0.0) as u64);
        let zero = kernels.iter().map(|record| record.start).min().unwrap_or(0);
        let kernels = kernels.into_iter().map(|record| ProfiledKernel {
            label: record.label,
            start: time(record.start - zero),
            duration: time(record.end.saturating_sub(record.start)),
            bytes: record.bytes,
            flops: Some(record.flops).filter(|flops| *flops > 0),
        });
        let clock = clock.unwrap_or(Clock::Host);
        Ok(Profile::new(self.info.to_string(), clock, kernels.collect()))
    }

    /// Ends the recording and forgets it.
    pub(crate) fn drop_profile(&self) {
        drop(self.stop_profile());
    }

    fn stop_profile(&self) -> (Option<Clock>, Recording) {
        let clock = self.timer.clock();
        self.timer.clock.store(0, Ordering::Relaxed);
        (clock, std::mem::take(&mut *self.timer.lock()))
    }
}

/// Reads the timestamps of submissions and puts them into the records.
async fn read_timestamps(
    gpu: &Gpu,
    pending: Vec<(Vec<Record>, Timestamps)>,
) -> Result<Vec<Record>> {
    let mut known = Vec::new();
    for (mut records, timestamps) in pending {
        let bytes = gpu.read(timestamps.staging).await?;
        let ticks: &[[u64; 2]] = &bytes
            .chunks_exact(16)
            .map(|pair| {
                let word = |at: usize| {
                    let mut word = [0; 8];
                    word.copy_from_slice(&pair[at..at + 8]);
                    u64::from_le_bytes(word)
                };
                [word(0), word(8)]
            })
            .collect::<Vec<_>>();
        for (record, [start, end]) in records.iter_mut().zip(ticks) {
            (record.start, record.end) = (*start, *end);
        }
        known.append(&mut records);
    }
    Ok(known)
}
