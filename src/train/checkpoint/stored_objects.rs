//! [`StoredObjects`]: the objects of a checkpoint by their places, for readers that have a graph of their own.

use std::collections::HashMap;

use super::proto::{GRAPH, TrackableObjectGraph, VALUE};
use crate::error::Result;
use crate::train::bundle::BundleReader;

/// The objects of a checkpoint; the first is the checkpoint itself.
#[derive(Debug)]
pub(crate) struct StoredObjects {
    graph: TrackableObjectGraph,
    children: HashMap<(usize, String), usize>,
}

impl StoredObjects {
    /// The objects, if the checkpoint has any: one of TensorFlow 1 has only tensors.
    ///
    /// # Errors
    /// Those of a damaged checkpoint.
    pub(crate) fn read(bundle: &BundleReader<'_>) -> Result<Option<Self>> {
        if bundle.info(GRAPH).is_none() {
            return Ok(None);
        }
        let array = bundle.array(GRAPH)?;
        let Some(bytes) = array.strings().and_then(<[_]>::first) else { return Ok(None) };
        let mut graph = TrackableObjectGraph::parse(bytes)?;
        let mut children = HashMap::new();
        for (at, node) in graph.nodes.iter_mut().enumerate() {
            for child in std::mem::take(&mut node.children) {
                // The graph has been checked: each place exists.
                children.insert((at, child.local_name), child.node_id.unsigned_abs() as usize);
            }
        }
        Ok(Some(StoredObjects { graph, children }))
    }

    /// The part of this name.
    pub(crate) fn child(&self, at: usize, name: &str) -> Option<usize> {
        self.children.get(&(at, name.to_string())).copied()
    }

    /// The name in the bundle of the value of an object that is a variable.
    pub(crate) fn value_key(&self, at: usize) -> Option<&str> {
        let attributes = &self.graph.nodes.get(at)?.attributes;
        let value = attributes.iter().find(|attribute| attribute.name == VALUE)?;
        Some(&value.checkpoint_key)
    }
}
