//! [`EventReader`]: the values of one event file.

use std::collections::{HashMap, VecDeque};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use prost::Message;

use super::event::{Event, Value};
use super::proto::{EventProto, SummaryMetadata, What};
use crate::data::tfrecord::TfRecordReader;
use crate::error::{Error, Result, message};

/// Iterates over the values of an event file, which may be any [`Read`].
///
/// A last record that is not complete ends the file, as its writer may have been killed or still write. Elsewhere a wrong byte
/// is an error, with which the iterator ends.
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
/// [`Error::Data`](crate::Error::Data) if a checksum is wrong, or a record holds no event or a tensor that is not what it says;
/// [`Error::Io`](crate::Error::Io) if the system refuses to read.
pub struct EventReader<R> {
    records: TfRecordReader<R>,
    name: PathBuf,
    run: String,
    /// Values of the record that was read last.
    waiting: VecDeque<Event>,
    /// What each tag said of itself; some writers say it once.
    known: HashMap<String, Said>,
    record: u64,
    failed: bool,
    truncated: bool,
}

/// What a tag says of itself, shared by its events: a file may say it once and have it a million times.
#[derive(Clone)]
struct Said {
    plugin: String,
    content: Arc<[u8]>,
    description: Arc<str>,
}

/// The most bytes of a plugin's name, which each event has.
const LONGEST_PLUGIN: usize = 256;

impl Said {
    fn of(metadata: &SummaryMetadata) -> Self {
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
            waiting: VecDeque::new(),
            known: HashMap::new(),
            record: 0,
            failed: false,
            truncated: false,
        }
    }

    /// Whether the file has ended within a record.
    pub fn truncated(&self) -> bool {
        self.truncated
    }

    /// Reads a record; false at the end.
    fn fill(&mut self) -> Result<bool> {
        let record = match self.records.next() {
            None => return Ok(false),
            Some(Ok(record)) => record,
            Some(Err(_)) if self.records.truncated() => {
                self.truncated = true;
                return Ok(false);
            }
            Some(Err(error)) => return Err(error),
        };
        let event = EventProto::decode(&record[..]).map_err(|error| {
            self.broken(&format!("is no event ({error}). The file is of another kind"))
        })?;
        let made = |tag: String, value: Value| Event {
            run: self.run.clone(),
            wall_time: event.wall_time,
            step: event.step,
            tag,
            plugin: String::new(),
            plugin_content: Arc::default(),
            description: Arc::default(),
            value,
        };
        match event.what {
            Some(What::GraphDef(graph)) => {
                let event = made(String::new(), Value::Graph(graph));
                self.waiting.push_back(Event { plugin: "graphs".to_string(), ..event });
            }
            Some(What::RunMetadata(data)) => {
                let event = made(data.tag, Value::RunMetadata(data.run_metadata));
                self.waiting.push_back(event);
            }
            Some(What::Summary(summary)) => {
                for value in summary.value {
                    let own = value.metadata.as_ref().filter(|own| own.plugin_data.is_some());
                    let own = own.map(Said::of);
                    if let Some(own) = &own {
                        if !self.known.contains_key(&value.tag) {
                            self.known.insert(value.tag.clone(), own.clone());
                        }
                    }
                    let said = own.as_ref().or_else(|| self.known.get(&value.tag)).cloned();
                    let said = said.unwrap_or_else(|| Said::of(&SummaryMetadata::default()));
                    if said.plugin.len() > LONGEST_PLUGIN {
                        return Err(self.broken(&format!(
                            "holds \"{}\", whose plugin's name has {} bytes. The file is broken",
                            value.tag,
                            said.plugin.len()
                        )));
                    }
                    // One value may stand for many, as its own bytes allow: a record may hold thousands of such.
                    let shown = Value::of(&value, &said.plugin, value.encoded_len());
                    let shown = shown.map_err(|what| {
                        self.broken(&format!(
                            "holds \"{}\", whose tensor {what}. The file is broken",
                            value.tag
                        ))
                    })?;
                    self.waiting.push_back(Event {
                        run: self.run.clone(),
                        wall_time: event.wall_time,
                        step: event.step,
                        tag: value.tag,
                        plugin: said.plugin,
                        plugin_content: said.content,
                        description: said.description,
                        value: shown,
                    });
                }
            }
            // The version, messages and sessions of TensorFlow 1.
            _ => {}
        }
        self.record += 1;
        Ok(true)
    }

    fn broken(&self, what: &str) -> Error {
        let (name, record) = (self.name.display(), self.record);
        Error::Data(message!("{name}: record {record} {what}; write it anew, or read another."))
    }
}

impl<R: Read> Iterator for EventReader<R> {
    type Item = Result<Event>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(event) = self.waiting.pop_front() {
                return Some(Ok(event));
            }
            if self.failed {
                return None;
            }
            match self.fill() {
                Ok(true) => {}
                Ok(false) => {
                    self.failed = true;
                    return None;
                }
                Err(error) => {
                    self.failed = true;
                    return Some(Err(error));
                }
            }
        }
    }
}
