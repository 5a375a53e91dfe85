//! Encodes and submits work; only this file begins compute passes.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::kernel_timer::Timestamps;
use super::launch::Launch;
use super::profile::Clock;
use super::stats::Counter;
use super::{Buffer, Gpu, Staging, platform};
use crate::error::{DeviceFault, Error, Result, message};

/// A buffer to copy to the host after the kernels.
pub(crate) type Read<'a> = Option<(&'a Buffer, &'a Staging)>;

#[cfg(not(target_family = "wasm"))]
/// A buffer to copy to the host as soon as it is computed, while the device computes with later kernels.
pub(crate) struct EarlyRead<'a> {
    pub(crate) from: &'a Buffer,
    /// How many of the kernels must have run.
    pub(crate) after: usize,
    /// The number of the pack that it belongs to.
    pub(crate) pack: usize,
    /// Where its bytes begin in the pack, and how many there are.
    pub(crate) at: u64,
    pub(crate) bytes: u64,
}

/// Submissions that the queue may still be working on, oldest first.
#[derive(Default)]
pub(super) struct InFlight(Mutex<VecDeque<wgpu::SubmissionIndex>>);

/// How far the host may run ahead of the device. Each submission pins its uploads' staging memory; a few
/// are enough to keep a device busy.
const AHEAD: usize = 4;

/// Work for an idle device is split into several submissions if it has at least this many kernels. A submission costs
/// about as much as encoding ten to twenty kernels, so shorter work gains nothing.
const LONG: usize = 96;

/// Kernels of the first of these submissions. Each later one may be twice as long: the device works on one for longer
/// than the host needs to encode the next.
const FIRST: usize = 32;

/// The most bytes that one of these submissions moves, if it has at least `FEW` kernels: the device needs longer for
/// them than the host needs to encode the next submission.
const SUBMISSION_BYTES: u64 = 256 << 20;
const FEW: usize = 8;

impl Gpu {
    /// Runs `launches` in order, then copies the buffer of `read`: in one submission, unless there are many kernels and
    /// the device is idle.
    pub(crate) fn submit(
        &self,
        launches: &[Launch<'_>],
        read: Read<'_>,
    ) -> Result<wgpu::SubmissionIndex> {
        self.ask()?;
        let mut rest = launches;
        if let Some(clock) = self.timer.clock().filter(|_| !launches.is_empty()) {
            self.submit_timed(launches, clock)?;
            rest = &[];
        } else if launches.len() >= LONG && self.is_idle() {
            let bytes: Vec<u64> = launches.iter().map(|launch| launch.bytes).collect();
            for len in submissions_before_the_last(&bytes) {
                let (first, later) = rest.split_at(len);
                self.send(first, None);
                rest = later;
            }
        }
        let index = self.send(rest, read);
        self.counters.add(Counter::Kernels, launches.len() as u64);
        self.check()?;
        self.hold_back(index.clone())?;
        Ok(index)
    }

    #[cfg(not(target_family = "wasm"))]
    /// Runs `launches` in order, and copies each buffer of `reads` into the staging buffer of its pack. Each pack is submitted once
    /// its last buffer is computed. Returns the submission that completes each pack, and the last one.
    pub(crate) fn submit_with_early_reads(
        &self,
        launches: &[Launch<'_>],
        reads: &[EarlyRead<'_>],
        packs: &[Staging],
    ) -> Result<(Vec<wgpu::SubmissionIndex>, wgpu::SubmissionIndex)> {
        self.ask()?;
        let mut after = vec![0; packs.len()];
        for read in reads {
            after[read.pack] = read.after.max(after[read.pack]);
        }
        let mut order: Vec<usize> = (0..packs.len()).collect();
        order.sort_by_key(|pack| after[*pack]);
        let mut done = 0;
        if let Some(clock) = self.timer.clock().filter(|_| !launches.is_empty()) {
            self.submit_timed(launches, clock)?;
            done = launches.len();
        }
        let mut submitted = vec![None; packs.len()];
        for pack in order {
            let until = after[pack].max(done);
            let mut encoder = self.device.create_command_encoder(&Default::default());
            encode(&mut encoder, &launches[done..until]);
            for read in reads.iter().filter(|read| read.pack == pack) {
                let (from, to) = (read.from, packs[pack].raw());
                encoder.copy_buffer_to_buffer(from.raw(), from.offset(), to, read.at, read.bytes);
            }
            done = until;
            submitted[pack] = Some(self.finish(encoder));
        }
        let last = self.send(&launches[done..], None);
        self.counters.add(Counter::Kernels, launches.len() as u64);
        self.check()?;
        self.hold_back(last.clone())?;
        Ok((submitted.into_iter().flatten().collect(), last))
    }

    fn send(&self, launches: &[Launch<'_>], read: Read<'_>) -> wgpu::SubmissionIndex {
        let mut encoder = self.device.create_command_encoder(&Default::default());
        encode(&mut encoder, launches);
        if let Some((buffer, staging)) = read {
            let (from, to, bytes) = (buffer.raw(), staging.raw(), staging.copy_bytes());
            encoder.copy_buffer_to_buffer(from, buffer.offset(), to, 0, bytes);
        }
        self.finish(encoder)
    }

    /// Submits the commands behind all held work.
    pub(super) fn finish(&self, encoder: wgpu::CommandEncoder) -> wgpu::SubmissionIndex {
        let held = self.held_commands();
        self.send_commands(held.into_iter().chain([encoder.finish()]))
    }

    pub(super) fn send_commands(
        &self,
        commands: impl IntoIterator<Item = wgpu::CommandBuffer>,
    ) -> wgpu::SubmissionIndex {
        let index = self.queue.submit(commands);
        self.transfer.uploads_submitted();
        self.counters.add(Counter::Submits, 1);
        index
    }

    /// Copies buffers one after another into one staging buffer: of each, the given number of bytes (whole words).
    pub(crate) fn gather(
        &self,
        buffers: &[(Arc<Buffer>, u64)],
        staging: &Staging,
    ) -> Result<wgpu::SubmissionIndex> {
        self.ask()?;
        let mut encoder = self.device.create_command_encoder(&Default::default());
        let mut at = 0;
        for (buffer, bytes) in buffers {
            let (from, to) = (buffer.raw(), staging.raw());
            encoder.copy_buffer_to_buffer(from, buffer.offset(), to, at, *bytes);
            at += bytes;
        }
        let index = self.finish(encoder);
        self.check()?;
        self.hold_back(index.clone())?;
        Ok(index)
    }

    /// For each pair, copies the given number of bytes from the first buffer to the second.
    pub(crate) fn copy<'a>(
        &self,
        mut buffers: impl Iterator<Item = (&'a Buffer, &'a Buffer)>,
        bytes: u64,
    ) -> Result<()> {
        self.ask()?;
        if self.hold_copies(&mut buffers, bytes) {
            return Ok(());
        }
        let mut encoder = self.device.create_command_encoder(&Default::default());
        for (from, to) in buffers {
            let (own, offset) = (to.raw(), to.offset());
            encoder.copy_buffer_to_buffer(from.raw(), from.offset(), own, offset, bytes);
        }
        let index = self.finish(encoder);
        self.check()?;
        self.hold_back(index)
    }

    /// Runs `launches` with a timestamp before and after each.
    fn submit_timed(&self, launches: &[Launch<'_>], clock: Clock) -> Result<()> {
        for chunk in launches.chunks(Timestamps::MOST) {
            if clock == Clock::Host {
                for launch in chunk {
                    let began = web_time::Instant::now();
                    let index = self.send(std::slice::from_ref(launch), None);
                    self.wait(Some(index))?;
                    self.timer.measured(launch, began);
                }
                continue;
            }
            let timestamps = Timestamps::new(self, chunk.len())?;
            let mut encoder = self.device.create_command_encoder(&Default::default());
            if clock == Clock::InsidePass {
                let mut pass = encoder.begin_compute_pass(&Default::default());
                for (i, launch) in (0..).zip(chunk) {
                    pass.write_timestamp(&timestamps.queries, 2 * i);
                    launch.encode(&mut pass);
                    pass.write_timestamp(&timestamps.queries, 2 * i + 1);
                }
            } else {
                for (i, launch) in (0..).zip(chunk) {
                    let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor {
                        label: None,
                        timestamp_writes: Some(wgpu::ComputePassTimestampWrites {
                            query_set: &timestamps.queries,
                            beginning_of_pass_write_index: Some(2 * i),
                            end_of_pass_write_index: Some(2 * i + 1),
                        }),
                    });
                    launch.encode(&mut pass);
                }
            }
            timestamps.resolve(&mut encoder, chunk.len());
            self.finish(encoder);
            self.timer.timestamped(self, chunk, timestamps)?;
        }
        Ok(())
    }

    /// Whether the device has done all submitted work. A browser does not report this.
    pub(super) fn is_idle(&self) -> bool {
        if !platform::MAY_BLOCK {
            return false;
        }
        let newest = {
            let queue = self.in_flight.0.lock().unwrap_or_else(PoisonError::into_inner);
            queue.back().cloned()
        };
        newest.is_none_or(|newest| {
            let ask = wgpu::PollType::Wait {
                submission_index: Some(newest),
                timeout: Some(Duration::ZERO),
            };
            self.faults.poll(ask).is_ok()
        })
    }

    /// Waits for the oldest submission when too many are under way. A browser cannot block; there the caller's own
    /// `await`s set the pace.
    pub(super) fn hold_back(&self, index: wgpu::SubmissionIndex) -> Result<()> {
        if !platform::MAY_BLOCK {
            return Ok(());
        }
        let oldest = {
            let mut queue = self.in_flight.0.lock().unwrap_or_else(PoisonError::into_inner);
            queue.push_back(index);
            if queue.len() > AHEAD { queue.pop_front() } else { None }
        };
        match oldest {
            Some(oldest) => self.wait(Some(oldest)),
            None => Ok(()),
        }
    }

    /// Blocks until the device has done `index`, or all submitted work.
    pub(crate) fn wait(&self, index: Option<wgpu::SubmissionIndex>) -> Result<()> {
        let wait = wgpu::PollType::Wait { submission_index: index, timeout: None };
        let polled = self.faults.poll(wait);
        // A lost device will never be done.
        if polled.is_err() { self.ask() } else { self.check() }?;
        polled.map(drop).map_err(|e| {
            Error::Device(DeviceFault::Validation, message!("Device: waiting for the queue: {e}."))
        })
    }
}

pub(super) fn encode(encoder: &mut wgpu::CommandEncoder, launches: &[Launch<'_>]) {
    if !launches.is_empty() {
        let mut pass = encoder.begin_compute_pass(&Default::default());
        launches.iter().for_each(|launch| launch.encode(&mut pass));
    }
}

/// How many kernels to submit before encoding the others: at most `most`, fewer if these move many bytes; `None` if too
/// few would remain for a separate submission.
fn first_submission(mut bytes: impl ExactSizeIterator<Item = u64>, most: usize) -> Option<usize> {
    let all = bytes.len();
    let mut moved = 0u64;
    let heavy = bytes.position(|bytes| {
        moved = moved.saturating_add(bytes);
        moved >= SUBMISSION_BYTES
    });
    let len = heavy.map_or(most, |at| (at + 1).clamp(FEW, most));
    (all >= len + FIRST).then_some(len)
}

/// The lengths of all submissions but the last, for kernels that move these bytes.
fn submissions_before_the_last(mut bytes: &[u64]) -> Vec<usize> {
    let (mut most, mut lengths) = (FIRST, Vec::new());
    while let Some(len) = first_submission(bytes.iter().copied(), most) {
        lengths.push(len);
        bytes = &bytes[len..];
        // Heavy kernels make many short ones.
        most = most.saturating_mul(2);
    }
    lengths
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of kernels in each submission, if each kernel moves `bytes`.
    fn submissions(kernels: usize, bytes: u64) -> Vec<usize> {
        let mut lengths = submissions_before_the_last(&vec![bytes; kernels]);
        lengths.push(kernels - lengths.iter().sum::<usize>());
        lengths
    }

    #[test]
    fn submissions_grow_and_the_last_is_worth_its_cost() {
        assert_eq!(submissions(96, 1000), [32, 64]);
        assert_eq!(submissions(127, 1000), [32, 95]);
        assert_eq!(submissions(128, 1000), [32, 64, 32]);
        assert_eq!(submissions(500, 1000), [32, 64, 128, 276]);
        assert_eq!(submissions(30, 1000), [30]);
    }

    #[test]
    fn heavy_kernels_go_early() {
        // Sixteen of them move 256 MiB.
        assert_eq!(submissions(96, 16 << 20), [16, 16, 16, 16, 32]);
        // Even the heaviest kernels are submitted a few at a time.
        assert_eq!(submissions(50, u64::MAX), [8, 8, 34]);
        // As for a recurrent layer of a thousand steps.
        assert_eq!(submissions(8 * 1000 + 32, 256 << 20), [vec![8; 1000], vec![32]].concat());
    }
}
