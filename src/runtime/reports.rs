//! What the program is told when the device gets there: values that a flush copies to the host behind the work that makes
//! them, and what is done with them there.
//!
//! Nobody waits for a report. It is delivered, in the order of the calls, when the program next flushes or reads and the
//! device has got there; `synchronize` delivers all. A page that never asks for one loads nothing of this.

use std::collections::VecDeque;
use std::sync::Arc;

use super::{Device, DeviceState};
use crate::device::{Arriving, Gpu};
use crate::error::{Error, Result};
use crate::graph::{Value, ValueState};

/// What is done with the bytes of a report's values. It must not call the device. An error is what the flush or the read
/// returns that delivers the report.
pub(crate) type Deliver = Box<dyn FnOnce(&[&[u8]]) -> Result<()> + Send>;

/// The reports of a device, as flushes and reads know them.
pub(super) trait Reporter: wgpu::WasmNotSend {
    /// Takes a report; nobody has sent for its values yet.
    fn add(&mut self, values: Vec<Arc<Value>>, deliver: Deliver);
    /// True if nobody has sent for the values of some report.
    fn waits(&self) -> bool;
    /// Sends for the values that the device has or will have computed.
    fn send(&mut self, gpu: &Gpu) -> Result<()>;
    /// Delivers what has arrived, and returns the first error.
    fn deliver(&mut self, gpu: &Gpu) -> Result<()>;
}

impl Device {
    /// Copies `values` to the host at the next flush, without waiting, and calls `deliver` when they are there.
    pub(crate) fn report(&self, values: Vec<Arc<Value>>, deliver: Deliver) {
        let mut state = self.state();
        state.reports.get_or_insert_with(|| Box::new(Reports::default())).add(values, deliver);
        if self.0.sync {
            self.flush_unasked(&mut state);
        }
    }

    /// Sends for the reports' values after a flush, and delivers what has arrived. A later call returns an error.
    pub(super) fn send_reports(&self, state: &mut DeviceState) {
        let Some(reports) = &mut state.reports else { return };
        let sent = reports.send(&self.0.gpu);
        if let Err(error) = sent.and(reports.deliver(&self.0.gpu)) {
            state.failure.get_or_insert(error);
        }
    }

    /// Flushes before a read that would not, so that the read returns what waiting reports say.
    pub(super) fn flush_reports(&self, state: &mut DeviceState) {
        if state.reports.as_ref().is_some_and(|reports| reports.waits()) {
            self.flush_unasked(state);
        }
    }

    /// Delivers what had to arrive before the value that the program has read, or has waited for.
    pub(super) fn deliver_reports(&self) -> Result<()> {
        let mut state = self.state();
        let Some(reports) = &mut state.reports else { return Ok(()) };
        let told = reports.deliver(&self.0.gpu);
        // A flush may have met an error in between, and no call has told of it.
        let before =
            state.failure.take_if(|error| matches!(error, Error::Check(_) | Error::Index(_)));
        match before.or(told.err()) {
            Some(error) => Err(self.tell(&mut state, error)),
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
                // What has failed reports itself.
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
        let mut told = Ok(());
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
            told = told.and(delivered);
        }
        told
    }
}
