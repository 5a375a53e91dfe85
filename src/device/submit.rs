//! Encoding and submission: the only place where a compute pass begins.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use super::pipeline::Pipeline;
use super::stats::Counter;
use super::{Buffer, Gpu, Staging};
use crate::error::{DeviceFault, Error, Result};

/// One dispatch, ready to encode.
pub(crate) struct Launch {
    pub(crate) pipeline: Arc<Pipeline>,
    pub(crate) bind_group: wgpu::BindGroup,
    pub(crate) grid: [u32; 3],
}

/// Submissions that the queue may still be working on, oldest first.
#[derive(Default)]
pub(super) struct InFlight(Mutex<VecDeque<wgpu::SubmissionIndex>>);

/// How far the host may run ahead of the device. Each submission pins its uploads' staging memory; a few
/// are enough to keep a device busy.
const AHEAD: usize = 4;

impl Gpu {
    /// Runs `launches` in order in one pass, then copies buffers to `reads`, all in one submission.
    pub(crate) fn submit(
        &self,
        launches: &[Launch],
        reads: &[(Arc<Buffer>, &Staging)],
    ) -> Result<wgpu::SubmissionIndex> {
        self.check()?;
        let mut encoder = self.device.create_command_encoder(&Default::default());
        if !launches.is_empty() {
            let mut pass = encoder.begin_compute_pass(&Default::default());
            for launch in launches {
                pass.set_pipeline(&launch.pipeline.raw);
                pass.set_bind_group(0, &launch.bind_group, &[]);
                let [x, y, z] = launch.grid;
                pass.dispatch_workgroups(x, y, z);
            }
        }
        for (buffer, staging) in reads {
            encoder.copy_buffer_to_buffer(buffer.raw(), 0, staging.raw(), 0, staging.copy_bytes());
        }
        let index = self.queue.submit([encoder.finish()]);
        self.transfer.uploads_submitted();
        self.counters.add(Counter::Submits, 1);
        self.counters.add(Counter::Kernels, launches.len() as u64);
        self.check()?;
        self.hold_back(index.clone())?;
        Ok(index)
    }

    /// Waits for the oldest submission when too many are under way. A browser cannot block; there the
    /// caller's own `await`s set the pace.
    fn hold_back(&self, index: wgpu::SubmissionIndex) -> Result<()> {
        let oldest = {
            let mut queue = self.in_flight.0.lock().unwrap_or_else(PoisonError::into_inner);
            queue.push_back(index);
            if queue.len() > AHEAD { queue.pop_front() } else { None }
        };
        match oldest {
            Some(oldest) if cfg!(not(target_family = "wasm")) => self.wait(Some(oldest)),
            _ => Ok(()),
        }
    }

    /// Blocks until `index`, or all that was submitted, is done.
    pub(crate) fn wait(&self, index: Option<wgpu::SubmissionIndex>) -> Result<()> {
        let wait = wgpu::PollType::Wait { submission_index: index, timeout: None };
        let polled = self.device.poll(wait);
        if polled.is_err() {
            // Of a lost device nothing can be awaited; polling it once more tells of the loss.
            let _ = self.device.poll(wgpu::PollType::Poll);
        }
        self.check()?;
        polled.map(|_| ()).map_err(|e| {
            Error::Device(DeviceFault::Validation, format!("Device: waiting for the queue: {e}."))
        })
    }
}
