//! Summaries that are read together and converted to records.

use prost::Message;

use super::payload::{Payload, numbers};
use super::proto::{EventProto, SourceMetadata, Summary, SummaryValue, What};
use super::step::Moment;
use crate::error::{Error, Result, message};
use crate::files::checksum::masked_crc32c;
use crate::graph::ValueState;
use crate::tensor::Tensor;

/// A summary that is waiting to be read and written.
pub(super) struct Entry {
    /// Seconds since 1970.
    pub(super) wall_time: f64,
    pub(super) step: Moment,
    /// The steps for which the summary is kept: the multiples of this number.
    pub(super) every: u64,
    pub(super) tag: String,
    pub(super) description: String,
    pub(super) payload: Payload,
}

impl Entry {
    fn unread(&self) -> impl Iterator<Item = &Tensor> {
        let step = match &self.step {
            Moment::Unread(tensor) => Some(tensor),
            Moment::Known(_) => None,
        };
        step.into_iter().chain(self.payload.unread())
    }

    /// Whether reading it makes the device run ops that still wait in its stream.
    pub(super) fn ready(&self) -> bool {
        self.unread().all(|tensor| !matches!(tensor.value().state(), ValueState::Waiting(_)))
    }

    /// Its approximate size in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.tag.len() + self.description.len() + self.payload.bytes() + 256
    }

    /// The event, from the values that were read for it.
    fn event(self, mut read: impl Iterator<Item = Vec<u8>>) -> Result<Option<EventProto>> {
        let step = match &self.step {
            Moment::Known(step) => *step,
            Moment::Unread(tensor) => {
                let bytes = read.next().unwrap_or_default();
                numbers(&bytes, tensor.dtype()).next().unwrap_or_default() as i64
            }
        };
        if step.unsigned_abs() % self.every.max(1) != 0 {
            return Ok(None);
        }
        let bytes = read.next().unwrap_or_default();
        let what = match self.payload {
            Payload::Graph(graph) => What::GraphDef(graph),
            payload => {
                let Some((mut metadata, tensor)) = payload.message(&self.tag, &bytes)? else {
                    return Ok(None);
                };
                metadata.description = self.description;
                let content = Some(super::proto::Content::Tensor(tensor));
                let value = SummaryValue { tag: self.tag, metadata: Some(metadata), content };
                What::Summary(Summary { value: vec![value.encode_to_vec()] })
            }
        };
        let wall_time = self.wall_time;
        Ok(Some(EventProto { wall_time, step, what: Some(what), source: None }))
    }
}

/// Reads all tensors of `entries` together, and appends a record for each entry to `records`. It omits entries that cannot
/// be read, and returns the first error.
pub(super) async fn encode(entries: Vec<Entry>, records: &mut Vec<u8>) -> Result<()> {
    let unread: Vec<Tensor> = entries.iter().flat_map(|entry| entry.unread().cloned()).collect();
    let all = Tensor::all_bytes_async(&unread.iter().collect::<Vec<_>>()).await;
    let mut first = Ok(());
    let mut note = |error: Error| {
        if first.is_ok() {
            first = Err(error);
        }
    };
    let mut together = match all {
        Ok(bytes) => Some(bytes.into_iter()),
        Err(_) => None,
    };
    for entry in entries {
        let tensors: Vec<Tensor> = entry.unread().cloned().collect();
        let (tag, own): (String, Result<Vec<Vec<u8>>>) = match &mut together {
            Some(bytes) => (String::new(), Ok(bytes.by_ref().take(tensors.len()).collect())),
            // One of them has failed; the others are still valid.
            None => {
                let list: Vec<&Tensor> = tensors.iter().collect();
                (entry.tag.clone(), Tensor::all_bytes_async(&list).await)
            }
        };
        match own.and_then(|bytes| entry.event(bytes.into_iter())) {
            Ok(Some(event)) => record(&event, records),
            Ok(None) => {}
            Err(error) => note(error.reworded(|text| message!("the summary \"{tag}\": {text}"))),
        }
    }
    first
}

/// The first record of a file, by which readers recognise the format.
pub(super) fn first_record(wall_time: f64) -> Vec<u8> {
    let mut bytes = Vec::new();
    let event = EventProto {
        wall_time,
        step: 0,
        what: Some(What::FileVersion("brain.Event:2".to_string())),
        source: Some(SourceMetadata { writer: "wgrad.summary".to_string() }),
    };
    record(&event, &mut bytes);
    bytes
}

/// Appends `event` as a TFRecord.
fn record(event: &EventProto, to: &mut Vec<u8>) {
    let length = (event.encoded_len() as u64).to_le_bytes();
    to.extend(length);
    to.extend(masked_crc32c(&length).to_le_bytes());
    let begin = to.len();
    // A vector accepts any message.
    let _ = event.encode(to);
    let crc = masked_crc32c(&to[begin..]);
    to.extend(crc.to_le_bytes());
}

/// Seconds since 1970, the time format of events.
pub(super) fn wall_time() -> f64 {
    let now = web_time::SystemTime::now().duration_since(web_time::SystemTime::UNIX_EPOCH);
    now.map_or(0.0, |since| since.as_secs_f64())
}
