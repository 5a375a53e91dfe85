//! [`Source`]: a checkpoint that is being restored.

use std::collections::HashSet;
use std::path::PathBuf;

use super::graph::{Graph, is_state_key};
use super::matching::{Matching, State, matching};
use super::proto::{GRAPH, TrackableObjectGraph};
use crate::error::{Error, Result, message};
use crate::host_array::HostDType;
use crate::trackable::{Everything, Given, Item, NamedArray, Scope, Trackable, set_given};
use crate::train::bundle::BundleReader;

/// The values of a checkpoint and the graph of the objects that it was made of.
pub(super) struct Source {
    /// The name in messages.
    pub(super) name: PathBuf,
    reader: BundleReader<'static>,
    graph: TrackableObjectGraph,
}

impl Source {
    pub(super) fn new(name: PathBuf, reader: BundleReader<'static>) -> Result<Self> {
        if reader.info(GRAPH).is_none() {
            return Err(Error::Checkpoint(message!(
                "restore: {} has no object graph, so it is unknown what its values belong to: a program of \
                 TensorFlow 1 wrote it, or another tool. Take its values with load_checkpoint.",
                name.display()
            )));
        }
        let array = reader.array(GRAPH)?;
        let bytes = array.strings().and_then(|strings| strings.first());
        let graph = TrackableObjectGraph::parse(bytes.map_or(&[], |bytes| bytes))?;
        Ok(Source { graph, name, reader })
    }

    /// Restores the values of the parts of `root`, except those in `restored`. After an error nothing has changed.
    pub(super) fn restore(
        &self,
        root: &dyn Trackable,
        restored: &HashSet<String>,
    ) -> Result<Matching> {
        let everything = Everything::forms(root, Scope::Checkpoint);
        everything.names("restore", root.kind())?;
        let graph = Graph::new(root, &everything);
        let known = graph.keys();
        let (mut states, mut counts) = (Vec::new(), HashSet::new());
        // TensorFlow does not store wgrad's generators.
        let has_generators = self.reader.keys().any(is_state_key);
        for (name, item) in everything.entries() {
            let Item::State { dtype, shape, .. } = item else { continue };
            if *dtype == HostDType::U64 {
                counts.insert(name);
            }
            if !known.contains_key(name) {
                let required = has_generators || shape.is_none();
                states.push(State { name: name.to_string(), required });
            }
        }
        let shape = |key: &str| self.reader.info(key).map(|info| info.shape.clone());
        let mut matching = matching(&graph, &everything, &states, &self.graph, &shape)?;
        let taken: HashSet<&str> = matching.values.iter().map(|(_, key)| &**key).collect();
        let states = self.reader.keys().filter(|key| is_state_key(key) && !taken.contains(key));
        let states: Vec<String> = states.map(str::to_string).collect();
        matching.unused.extend(states);
        let new = matching.values.iter().filter(|(name, _)| !restored.contains(name));
        let new: Vec<&(String, String)> = new.collect();
        let names = new.iter().map(|(name, _)| &**name).collect();
        let mut get = |at: usize| {
            let (name, key) = new[at];
            self.array(name, key, counts.contains(&**name))
        };
        set_given(
            root,
            Scope::Checkpoint,
            Given { names, get: &mut get, may_lack: &|_| true, converts: true },
        )?;
        Ok(matching)
    }

    fn array<'a>(&self, name: &'a str, key: &str, counts: bool) -> Result<NamedArray<'a>> {
        let damaged = || {
            Error::Data(message!(
                "restore: the object graph says that '{name}' is at '{key}', and nothing is there. The checkpoint is \
                 damaged; take another one."
            ))
        };
        let info = self.reader.info(key).ok_or_else(damaged)?;
        if info.dtype.safetensors_name().is_none() {
            return Err(Error::Checkpoint(message!(
                "restore: '{name}' is {} in the checkpoint, which no variable can be. Take the value with \
                 load_checkpoint.",
                info.dtype
            )));
        }
        let array = self.reader.array(key)?;
        if counts
            && info.dtype == HostDType::I64
            && array.bytes().last().is_some_and(|last| *last > 127)
        {
            return Err(Error::Checkpoint(message!(
                "restore: '{name}' is a negative number in the checkpoint, and counts from 0 here. Take another checkpoint."
            )));
        }
        Ok(NamedArray::new(name, if counts { array.unsigned() } else { array }))
    }

    /// Adds the checkpoint's name to an error.
    pub(super) fn name(&self, error: Error) -> Error {
        error.reworded(|text| message!("{}: {text}", self.name.display()))
    }
}
