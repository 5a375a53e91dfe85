//! A small model of a GPU for comparing kernels without a card. It knows cores, registers and memory, but no caches: its
//! numbers show which kernels leave a card idle, not how long they take.

use wgrad::PlannedKernel;

use crate::assembly::{Mix, hottest};
use crate::compiler::Compiled;

/// The properties of a GPU that the model uses.
#[derive(Debug, Clone, Copy)]
pub struct Gpu {
    /// Groups of lanes that issue instructions independently.
    pub simds: f64,
    /// Multiply-adds per second, times two.
    pub flops: f64,
    /// Bytes of memory traffic per second.
    pub bandwidth: f64,
    /// Bytes that must be in flight to use the full bandwidth: what memory transfers in the half microsecond that a load takes.
    pub in_flight: f64,
    /// Seconds from one launch to the next one that has to wait for it.
    pub launch: f64,
}

/// AMD's RX 6900 XT (Navi 21): 80 compute units with 2 SIMDs of 32 lanes at 2.25 GHz, 512 GB/s.
pub const NAVI21: Gpu =
    Gpu { simds: 160.0, flops: 23e12, bandwidth: 512e9, in_flight: 256e3, launch: 3e-6 };

/// Threads per wave in RADV's compute kernels.
const WAVE: u32 = 64;
/// Waves that keep a SIMD busy while some of them wait.
const BUSY: f64 = 4.0;

/// The model's estimate for a kernel.
#[derive(Debug, Clone)]
pub struct Estimate {
    /// Waves of the launch.
    pub waves: u64,
    /// The hottest loop, or all of the code if there is none.
    pub mix: Mix,
    /// Bytes that it transfers: all of its buffers, or the loads and stores of its threads if they do not loop.
    pub bytes: u64,
    /// Seconds, without the launch.
    pub seconds: f64,
}

impl Gpu {
    /// Estimates the duration of a kernel.
    pub fn estimate(&self, kernel: &PlannedKernel, compiled: &Compiled) -> Estimate {
        let groups: u64 = kernel.workgroups.iter().map(|count| u64::from(*count)).product();
        let waves = groups * u64::from(compiled.threads.div_ceil(WAVE));
        let (mix, bytes) = match hottest(&compiled.code) {
            Ok(mix) => (mix, kernel.bytes),
            Err(mix) => {
                let accessed = waves * u64::from(WAVE) * u64::from(mix.loaded + mix.stored);
                (mix, kernel.bytes.min(accessed))
            }
        };
        let rounds = (waves as f64 / self.simds).max(1.0 / self.simds);
        let resident = rounds.min(f64::from(compiled.waves));
        // The last waves leave cores idle. Waves start as others end, so half of the idle time counts.
        let tail = rounds / (rounds.ceil() / 2.0 + rounds / 2.0).max(1.0);
        let share = f64::from(mix.fmas) / f64::from(mix.instructions.max(1));
        let rate = self.flops * share.max(0.05) * (resident / BUSY).min(1.0) * tail.min(1.0);
        let computing = kernel.flops.unwrap_or(0) as f64 / rate;
        let under_way = resident * self.simds * f64::from(WAVE) * f64::from(mix.loaded.max(4));
        let moving = bytes as f64 / (self.bandwidth * (under_way / self.in_flight).min(1.0));
        Estimate { waves, mix, bytes, seconds: computing.max(moving) }
    }

    /// A lower bound for a program's duration: all of its products at the peak, or the bytes of its largest kernel.
    pub fn least(&self, flops: u64, kernels: &[&Estimate]) -> f64 {
        let bytes = kernels.iter().map(|kernel| kernel.bytes).max().unwrap_or(0);
        (flops as f64 / self.flops).max(bytes as f64 / self.bandwidth)
    }
}
