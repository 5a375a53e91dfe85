//! [`Snapshot`]: the values of one moment, for saving them in a checkpoint.

use std::collections::HashSet;
#[cfg(not(target_family = "wasm"))]
use std::path::{Path, PathBuf};
#[cfg(not(target_family = "wasm"))]
use std::sync::mpsc::{SyncSender, sync_channel};

use prost::Message;

use super::graph::{Graph, MadeUp, state_key};
use super::proto::GRAPH;
use crate::error::{Error, Result, message};
use crate::host_array::{HostArray, HostDType};
use crate::tensor::Tensor;
use crate::trackable::arrays::{state_array, value_to_be};
use crate::trackable::{Everything, Item, Scope, Trackable};
#[cfg(not(target_family = "wasm"))]
use crate::train::bundle::BundleFiles;
use crate::train::bundle::BundleWriter;

/// Small tensors are read together up to this many bytes; a larger tensor is read alone, which avoids a copy.
const TOGETHER: usize = 4 << 20;

/// All values of a checkpoint at the moment of [`Checkpoint::snapshot`](super::Checkpoint::snapshot). Training continues while
/// another thread [writes](Self::write) them.
///
/// Nothing has been read yet. While the snapshot exists, the device stores these values in addition to the new ones from
/// training: as much memory again as the parts occupy.
#[must_use = "it is in no file until `write` puts it there"]
pub struct Snapshot {
    stored: Vec<Stored>,
    graph: Vec<u8>,
}

struct Stored {
    key: String,
    /// The name in wgrad.
    name: String,
    value: Value,
}

enum Value {
    Device {
        tensor: Tensor,
        /// Whether it is stored as a count of 64 bits.
        wide: bool,
    },
    Host(HostArray<'static>),
}

impl Snapshot {
    pub(super) fn take(root: &dyn Trackable) -> Result<Self> {
        let everything = Everything::collect(root, Scope::Checkpoint);
        everything.names("save", root.kind())?;
        let graph = Graph::new(root, &everything);
        let keys = graph.keys();
        let wide = graph.nodes.iter().filter(|node| node.counts_wide);
        let wide: HashSet<&str> = wide.filter_map(|node| node.value.as_deref()).collect();
        let mut stored: Vec<Stored> = Vec::new();
        for (name, item) in everything.into_entries() {
            let key = keys.get(&*name).cloned().unwrap_or_else(|| state_key(&name));
            let value = match item {
                Item::Variable(variable) => {
                    Value::Device { tensor: variable.peek(), wide: wide.contains(&*name) }
                }
                Item::ToBe(slot) => {
                    let left = value_to_be(&slot, &name)?;
                    if left.dtype().number() == 0 {
                        return Err(Error::Checkpoint(message!(
                            "save: '{name}' is of {}, which TensorFlow's checkpoints do not have. Call the model once, so \
                             that it takes the value.",
                            left.dtype().file_name()
                        )));
                    }
                    Value::Host(left)
                }
                Item::State { dtype, shape, bytes } => {
                    let array = state_array(&name, dtype, shape, bytes)?;
                    // TensorFlow counts in int64.
                    let small = array.bytes().last().is_some_and(|last| *last < 128);
                    let counts = array.shape().is_empty() && small;
                    Value::Host(if counts { array.signed() } else { array })
                }
            };
            stored.push(Stored { key, name, value });
        }
        drop(keys);
        for (at, node) in graph.nodes.iter().enumerate() {
            let same = match &node.made_up {
                None => continue,
                Some(MadeUp::Zero) => None,
                Some(MadeUp::Same(name)) => stored.iter().find(|stored| stored.name == *name),
            };
            let value = match same.map(|same| &same.value) {
                Some(Value::Host(array)) => array.clone(),
                _ => ndarray::arr0(0i32).into(),
            };
            let (key, name) = (graph.key(at), String::new());
            stored.push(Stored { key, name, value: Value::Host(value) });
        }
        Ok(Snapshot { stored, graph: graph.to_proto().encode_to_vec() })
    }

    /// The bytes of the values, on the host or on devices.
    pub fn size(&self) -> usize {
        let size = |stored: &Stored| match &stored.value {
            Value::Device { tensor, wide } => {
                let size = HostDType::from(tensor.dtype()).size().unwrap_or(1);
                tensor.len().saturating_mul(if *wide { 8 } else { size })
            }
            Value::Host(array) => array.bytes().len(),
        };
        self.stored.iter().map(size).sum()
    }

    /// Reads the values and writes them. After it is written, a value that training has replaced is freed on the device.
    pub(super) async fn write_to(self, writer: &mut impl Sink) -> Result<()> {
        writer.add_graph(&self.graph)?;
        let mut rest = self.stored;
        while !rest.is_empty() {
            let mut bytes = 0;
            let fits = |stored: &&Stored| {
                if let Value::Device { tensor, .. } = &stored.value {
                    bytes += tensor.len().saturating_mul(4);
                }
                bytes <= TOGETHER
            };
            let count = rest.iter().take_while(fits).count().max(1);
            let later = rest.split_off(count);
            let tensors: Vec<&Tensor> = rest
                .iter()
                .filter_map(|stored| match &stored.value {
                    Value::Device { tensor, .. } => Some(tensor),
                    Value::Host(_) => None,
                })
                .collect();
            let read = Tensor::all_bytes_async(&tensors).await;
            let mut read = read
                .map_err(|error| {
                    let names: Vec<&str> = rest.iter().map(|stored| &*stored.name).collect();
                    let first = names.first().copied().unwrap_or_default();
                    error.reworded(|text| message!("save: '{first}' and what follows: {text}"))
                })?
                .into_iter();
            for Stored { key, value, .. } in std::mem::replace(&mut rest, later) {
                let array = match value {
                    Value::Host(array) => array,
                    Value::Device { tensor, wide } => {
                        let bytes = read.next().unwrap_or_default();
                        let array = HostArray::from_device(bytes, tensor.shape(), tensor.dtype());
                        match wide {
                            true => array.to_array::<i32>()?.mapv(i64::from).into(),
                            false => array,
                        }
                    }
                };
                writer.add(Ready { key, array })?;
            }
        }
        Ok(())
    }
}

#[cfg(not(target_family = "wasm"))]
impl Snapshot {
    /// Reads the values and writes the files `PREFIX.index` and `PREFIX.data-00000-of-00001`; returns the prefix. Blocks; any
    /// thread may call it.
    ///
    /// # Errors
    /// [`Error::Io`] if a file cannot be written; [`Error::Device`] if the device is lost.
    pub fn write(self, prefix: impl AsRef<Path>) -> Result<PathBuf> {
        let prefix = prefix.as_ref();
        let mut files = BundleFiles::begin(prefix)?;
        files.add(GRAPH, &graph_array(&self.graph)?)?;
        // While one thread writes the values that have been read, this one reads the next ones.
        let (to, from) = sync_channel::<Ready>(WAITING);
        let (read, written) = std::thread::scope(|scope| {
            let write = move || -> Result<BundleFiles> {
                for Ready { key, array } in from {
                    files.add(&key, &array)?;
                }
                Ok(files)
            };
            let writer = std::thread::Builder::new().spawn_scoped(scope, write);
            let writer = writer.map_err(|error| Error::io(prefix, error))?;
            let read = pollster::block_on(self.write_to(&mut Writer(to)));
            Ok::<_, Error>((read, writer.join()))
        })?;
        // If writing fails, reading stops, so that the writer's error is returned first.
        let files = written.map_err(|_| {
            Error::Checkpoint("save: the thread that writes the file has panicked.".into())
        })??;
        read?;
        files.finish()?;
        Ok(prefix.to_path_buf())
    }
}

/// A value that has been read.
pub(super) struct Ready {
    key: String,
    array: HostArray<'static>,
}

/// The object graph as TensorFlow stores it: a string.
fn graph_array(graph: &[u8]) -> Result<HostArray<'static>> {
    HostArray::from_strings([], vec![graph.to_vec()])
}

/// The destination of the values: files, or bytes.
pub(super) trait Sink {
    fn add(&mut self, value: Ready) -> Result<()>;

    fn add_graph(&mut self, _graph: &[u8]) -> Result<()> {
        Ok(())
    }
}

impl Sink for BundleWriter<Vec<u8>> {
    fn add(&mut self, value: Ready) -> Result<()> {
        self.add(&value.key, &value.array)
    }

    fn add_graph(&mut self, graph: &[u8]) -> Result<()> {
        self.add(GRAPH, &graph_array(graph)?)
    }
}

/// The thread that writes files; the graph has already been written.
#[cfg(not(target_family = "wasm"))]
struct Writer(SyncSender<Ready>);

/// The maximum number of values that wait for the writing thread.
#[cfg(not(target_family = "wasm"))]
const WAITING: usize = 2;

#[cfg(not(target_family = "wasm"))]
impl Sink for Writer {
    fn add(&mut self, value: Ready) -> Result<()> {
        // The thread ends early if it cannot write, and reports the error itself.
        let stopped = |_| Error::Checkpoint("save: the file could not be written.".into());
        self.0.send(value).map_err(stopped)
    }
}

impl std::fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Snapshot({} values, {} bytes)", self.stored.len(), self.size())
    }
}
