//! A small model of a GPU, by which kernels are compared before a card is at hand. It knows cores, registers and memory, and no
//! caches: its figures say which kernel leaves a card idle, and not how long one takes.

use wgrad::PlannedKernel;

use crate::assembly::{Mix, hottest};
use crate::compiler::Compiled;

/// What of a GPU counts.
#[derive(Debug, Clone, Copy)]
pub struct Gpu {
    /// Groups of lanes that issue instructions by themselves.
    pub simds: f64,
    /// Multiplications with a sum in a second, times two.
    pub flops: f64,
    /// Bytes of memory in a second.
    pub bandwidth: f64,
    /// Bytes that loads have to wait for at once to use all of it: what it moves in the half microsecond that a load takes.
    pub in_flight: f64,
    /// Seconds from one launch to the next that has to wait for it.
    pub launch: f64,
}

/// AMD's RX 6900 XT (Navi 21): 80 compute units of 2 SIMDs with 32 lanes at 2.25 GHz, 512 GB/s.
pub const NAVI21: Gpu =
    Gpu { simds: 160.0, flops: 23e12, bandwidth: 512e9, in_flight: 256e3, launch: 3e-6 };

/// Threads of a wave, as RADV compiles kernels for computing.
const WAVE: u32 = 64;
/// Waves that keep a SIMD busy while some of them wait.
const BUSY: f64 = 4.0;

/// What the model says of a kernel.
#[derive(Debug, Clone)]
pub struct Estimate {
    /// Waves of the launch.
    pub waves: u64,
    /// The hottest loop, or all of the code where there is none.
    pub mix: Mix,
    /// Bytes that it moves: all of its buffers, or what its threads have loads and stores for if they do not loop.
    pub bytes: u64,
    /// Seconds, without the launch.
    pub seconds: f64,
}

impl Gpu {
    /// How long a kernel takes.
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
        // The last waves leave cores idle. Waves begin as others end, so that half of what they leave counts.
        let tail = rounds / (rounds.ceil() / 2.0 + rounds / 2.0).max(1.0);
        let share = f64::from(mix.fmas) / f64::from(mix.instructions.max(1));
        let rate = self.flops * share.max(0.05) * (resident / BUSY).min(1.0) * tail.min(1.0);
        let computing = kernel.flops.unwrap_or(0) as f64 / rate;
        let under_way = resident * self.simds * f64::from(WAVE) * f64::from(mix.loaded.max(4));
        let moving = bytes as f64 / (self.bandwidth * (under_way / self.in_flight).min(1.0));
        Estimate { waves, mix, bytes, seconds: computing.max(moving) }
    }

    /// How long a program would take at least: all of its products at the peak, or the bytes of its largest kernel.
    pub fn least(&self, flops: u64, kernels: &[&Estimate]) -> f64 {
        let bytes = kernels.iter().map(|kernel| kernel.bytes).max().unwrap_or(0);
        (flops as f64 / self.flops).max(bytes as f64 / self.bandwidth)
    }
}
