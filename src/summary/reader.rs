//! [`EventReader`]: the values of one event file.

use std::collections::HashMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::vec::IntoIter;

use prost::Message;

use super::event::{Event, Value};
use super::proto::{EventProto, SummaryMetadata, SummaryValue, What};
use crate::data::tfrecord::TfRecordReader;
use crate::error::{Error, Result, message};

/// Iterates over the values of an event file, which may be any [`Read`].
///
/// An incomplete last record ends the file, because its writer may have been killed or may still be writing. Elsewhere a wrong
/// byte is an error, after which the iterator ends.
///
/// ```no_run
/// use wgrad::summary::EventReader;
/// let path = "logs/events.out.tfevents.1700000000.host.1.0.v2";
/// let file = std::fs::File::open(path).expect("it is there");
/// for event in EventReader::new(std::io::BufReader::new(file), path) {
///     let event = event?;
///     println!("{} {} {:?}", event.step, event.tag, event.value);
/// }
/// # Ok::<(), wgrad::Error>(())
/// ```
///
/// # Errors
/// [`Error::Data`](crate::Error::Data) if a checksum is wrong, or if a record is not an event or has an inconsistent tensor;
/// [`Error::Io`](crate::Error::Io) if reading fails.
pub struct EventReader<R> {
    records: TfRecordReader<R>,
    name: PathBuf,
    run: String,
    /// The rest of the record that was read last.
    waiting: Waiting,
    /// The metadata of each tag; some writers write it only once.
    known: HashMap<String, Said>,
    /// The number of records that were read.
    records_read: u64,
    failed: bool,
    truncated: bool,
}

impl<R> std::fmt::Debug for EventReader<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EventReader")
            .field("name", &self.name)
            .field("records_read", &self.records_read)
            .finish_non_exhaustive()
    }
}

/// The values of a record that have not been requested yet. Each is decoded on request: two bytes of a file may be a value, and
/// a decoded one takes hundreds.
#[derive(Default)]
struct Waiting {
    wall_time: f64,
    step: i64,
    values: IntoIter<Vec<u8>>,
}

/// The metadata of a tag, shared by its events: a file may contain it once and use it a million times.
#[derive(Clone)]
struct Said {
    plugin: String,
    content: Arc<[u8]>,
    description: Arc<str>,
}

/// The maximum length of a plugin's name in bytes; each event stores it.
const LONGEST_PLUGIN: usize = 256;

impl Said {
    fn from_metadata(metadata: &SummaryMetadata) -> Self {
        let plugin = metadata.plugin_data.clone().unwrap_or_default();
        Said {
            plugin: plugin.plugin_name,
            content: plugin.content.into(),
            description: metadata.description.as_str().into(),
        }
    }
}

impl<R: Read> EventReader<R> {
    /// Reads events from `from`; `name` is for messages.
    pub fn new(from: R, name: impl AsRef<Path>) -> Self {
        EventReader::of_run(from, name.as_ref(), ".")
    }

    pub(super) fn of_run(from: R, name: &Path, run: &str) -> Self {
        EventReader {
            records: TfRecordReader::new(from, name),
            name: name.to_path_buf(),
            run: run.to_string(),
            waiting: Waiting::default(),
            known: HashMap::new(),
            records_read: 0,
            failed: false,
            truncated: false,
        }
    }

    /// Whether the file has ended within a record.
    pub fn truncated(&self) -> bool {
        self.truncated
    }

    /// The next event, or none at the end.
    fn read(&mut self) -> Result<Option<Event>> {
        loop {
            while let Some(bytes) = self.waiting.values.next() {
                if let Some(event) = self.shown(&bytes)? {
                    return Ok(Some(event));
                }
            }
            let record = match self.records.next() {
                None => return Ok(None),
                Some(Ok(record)) => record,
                Some(Err(_)) if self.records.truncated() => {
                    self.truncated = true;
                    return Ok(None);
                }
                Some(Err(error)) => return Err(error),
            };
            self.records_read += 1;
            let event = EventProto::decode(&record[..]).map_err(|error| {
                self.broken(&format!("is not an event ({error}). The file is of another kind"))
            })?;
            self.waiting =
                Waiting { wall_time: event.wall_time, step: event.step, ..Waiting::default() };
            let nobody = || Said::from_metadata(&SummaryMetadata::default());
            match event.what {
                Some(What::GraphDef(graph)) => {
                    let said = Said { plugin: "graphs".to_string(), ..nobody() };
                    return Ok(Some(self.event(String::new(), said, Value::Graph(graph))));
                }
                Some(What::RunMetadata(data)) => {
                    let value = Value::RunMetadata(data.run_metadata);
                    return Ok(Some(self.event(data.tag, nobody(), value)));
                }
                Some(What::Summary(summary)) => self.waiting.values = summary.value.into_iter(),
                // The version, messages and sessions of TensorFlow 1.
                _ => {}
            }
        }
    }

    /// The content of a value; none if it has neither a value nor metadata.
    fn shown(&mut self, bytes: &[u8]) -> Result<Option<Event>> {
        let value = SummaryValue::decode(bytes).map_err(|error| {
            self.broken(&format!(
                "holds something that is not a value ({error}). The file is broken"
            ))
        })?;
        let own = value.metadata.as_ref().filter(|own| own.plugin_data.is_some());
        let own = own.map(Said::from_metadata);
        if own.is_none() && value.content.is_none() {
            return Ok(None);
        }
        if let Some(own) = &own {
            if !self.known.contains_key(&value.tag) {
                self.known.insert(value.tag.clone(), own.clone());
            }
        }
        let said = own.as_ref().or_else(|| self.known.get(&value.tag)).cloned();
        let said = said.unwrap_or_else(|| Said::from_metadata(&SummaryMetadata::default()));
        if said.plugin.len() > LONGEST_PLUGIN {
            return Err(self.broken(&format!(
                "holds \"{}\", whose plugin's name has {} bytes. The file is broken",
                value.tag,
                said.plugin.len()
            )));
        }
        // One value may represent many, within its own number of bytes: a record may hold thousands of such.
        let shown = Value::from_proto(&value, &said.plugin, bytes.len()).map_err(|what| {
            self.broken(&format!(
                "holds \"{}\", whose tensor {what}. The file is broken",
                value.tag
            ))
        })?;
        Ok(Some(self.event(value.tag, said, shown)))
    }

    fn event(&self, tag: String, said: Said, value: Value) -> Event {
        Event {
            run: self.run.clone(),
            wall_time: self.waiting.wall_time,
            step: self.waiting.step,
            tag,
            plugin: said.plugin,
            plugin_content: said.content,
            description: said.description,
            value,
        }
    }

    fn broken(&self, what: &str) -> Error {
        let (name, record) = (self.name.display(), self.records_read.saturating_sub(1));
        Error::Data(message!("{name}: record {record} {what}; write it again, or read another."))
    }
}

impl<R: Read> Iterator for EventReader<R> {
    type Item = Result<Event>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let event = self.read().transpose();
        self.failed = !matches!(event, Some(Ok(_)));
        event
    }
}
