//! Reports: values that a flush copies to the host after the work that computes them, and the functions that process
//! them there.
//!
//! The program does not wait for a report. It is delivered, in the order of the calls, when the program next flushes or
//! reads after the device has computed the values; `synchronize` delivers all. A page that never requests a report does
//! not load this code.

use std::collections::VecDeque;
use std::sync::Arc;

use super::{Device, DeviceState};
use crate::device::{Arriving, Gpu};
use crate::error::{Error, Result};
use crate::graph::{Value, ValueState};

/// Processes the bytes of a report's values. It must not call the device. The flush or read that delivers the report
/// returns its error.
pub(crate) type Deliver = Box<dyn FnOnce(&[&[u8]]) -> Result<()> + Send>;

/// The reports of a device: the interface for flushes and reads.
pub(super) trait Reporter: wgpu::WasmNotSend {
    /// Adds a report, whose values are not requested yet.
    fn add(&mut self, values: Vec<Arc<Value>>, deliver: Deliver);
    /// True if the values of some report have not been requested.
    fn waits(&self) -> bool;
    /// Requests the values that the device has or will have computed.
    fn send(&mut self, gpu: &Gpu) -> Result<()>;
    /// Delivers what has arrived, and returns the first error.
    fn deliver(&mut self, gpu: &Gpu) -> Result<()>;
}

impl Device {
    /// Copies `values` to the host at the next flush, without waiting, and calls `deliver` when they are there.
    pub(crate) fn report(&self, values: Vec<Arc<Value>>, deliver: Deliver) {
        // What a trace calls does not happen.
        if values.iter().any(|value| value.traced().is_some()) {
            return;
        }
        let mut state = self.state();
        state.reports.get_or_insert_with(|| Box::new(Reports::default())).add(values, deliver);
        if self.0.sync {
            self.flush_unasked(&mut state);
        }
    }

    /// Requests the reports' values after a flush, and delivers what has arrived. Errors are returned by a later call.
    pub(super) fn send_reports(&self, state: &mut DeviceState) {
        // A report may be of a value that comes from another device.
        let landed = match state.reports.as_ref().is_some_and(|reports| reports.waits()) {
            true => self.land_incoming(state),
            false => Ok(()),
        };
        let Some(reports) = &mut state.reports else { return };
        let sent = landed.and_then(|()| reports.send(&self.0.gpu));
        if let Err(error) = sent.and(reports.deliver(&self.0.gpu)) {
            state.failure.get_or_insert(error);
        }
    }

    /// Flushes before a read that would not flush itself, so that the read returns the errors of waiting reports.
    pub(super) fn flush_reports(&self, state: &mut DeviceState) {
        if state.reports.as_ref().is_some_and(|reports| reports.waits()) {
            self.flush_unasked(state);
        }
    }

    /// Delivers the reports that precede the value that the program has read or waited for.
    pub(super) fn deliver_reports(&self) -> Result<()> {
        let mut state = self.state();
        let Some(reports) = &mut state.reports else { return Ok(()) };
        let reported = reports.deliver(&self.0.gpu);
        // A flush may have had an error in between that no call has returned yet.
        let before =
            state.failure.take_if(|error| matches!(error, Error::Check(_) | Error::Index(_)));
        match before.or(reported.err()) {
            Some(error) => Err(self.reported(&mut state, error)),
            None => Ok(()),
        }
    }
}

#[derive(Default)]
struct Reports {
    waiting: Vec<(Vec<Arc<Value>>, Deliver)>,
    sent: VecDeque<(Arriving, Vec<usize>, Deliver)>,
}

impl Reporter for Reports {
    fn add(&mut self, values: Vec<Arc<Value>>, deliver: Deliver) {
        self.waiting.push((values, deliver));
    }

    fn waits(&self) -> bool {
        !self.waiting.is_empty()
    }

    fn send(&mut self, gpu: &Gpu) -> Result<()> {
        for (values, deliver) in std::mem::take(&mut self.waiting) {
            let mut parts = Vec::with_capacity(values.len());
            let mut sizes = Vec::with_capacity(values.len());
            for value in &values {
                // A failed value reports its own error.
                let ValueState::Ready(buffer) = value.state() else { break };
                let bytes = value.spec.dtype.size() * value.spec.elements();
                parts.push((buffer, bytes.next_multiple_of(4) as u64));
                sizes.push(bytes);
            }
            if parts.len() < values.len() {
                continue;
            }
            let words: u64 = parts.iter().map(|(_, bytes)| bytes).sum();
            let staging = gpu.staging(words as usize)?;
            gpu.gather(&parts, &staging)?;
            self.sent.push_back((gpu.arriving(staging), sizes, deliver));
        }
        Ok(())
    }

    fn deliver(&mut self, gpu: &Gpu) -> Result<()> {
        let mut reported = Ok(());
        while let Some((arriving, sizes, deliver)) = self.sent.pop_front() {
            let bytes = match gpu.arrived(arriving) {
                Ok(bytes) => bytes,
                Err(arriving) => {
                    self.sent.push_front((arriving, sizes, deliver));
                    break;
                }
            };
            let delivered = bytes.and_then(|bytes| {
                let mut rest = &bytes[..];
                let parts = sizes.iter().map(|&size| {
                    let (own, later) = rest.split_at(size.next_multiple_of(4));
                    rest = later;
                    &own[..size]
                });
                deliver(&parts.collect::<Vec<_>>())
            });
            reported = reported.and(delivered);
        }
        reported
    }
}
