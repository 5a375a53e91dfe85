//! Counts the plans, pipelines and buffers that later training steps create again, which should be
//! none.

use wgrad::{Device, DeviceStats, Result};

/// Compares the device's counters after half of the steps with those after all.
pub struct Settled {
    device: Device,
    steps: usize,
    half: Option<DeviceStats>,
}

impl Settled {
    pub fn new(steps: usize) -> Result<Self> {
        Ok(Settled { device: Device::current()?, steps, half: None })
    }

    /// Call this after each step; the first step is 1.
    pub fn note(&mut self, step: usize) {
        if step == self.steps / 2 {
            self.half = Some(self.device.stats());
        }
    }

    /// What was created since then; `None` if there were too few steps.
    pub fn report(&self) -> Option<String> {
        let (half, now) = (self.half.as_ref()?, self.device.stats());
        Some(format!(
            "{} later steps made {} plans, {} pipelines and {} buffers",
            self.steps - self.steps / 2,
            now.plan_misses - half.plan_misses,
            now.pipelines - half.pipelines,
            now.buffers - half.buffers
        ))
    }
}
