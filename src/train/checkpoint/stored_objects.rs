//! The objects of a checkpoint by their places, for files that have a graph of their own: [`StoredObjects`] of one that is read,
//! [`ObjectsToStore`] of one that is written.

use std::collections::{BTreeMap, HashMap};

use super::graph::Graph;
use super::proto::{GRAPH, TrackableObjectGraph, VALUE};
use super::snapshot::Snapshot;
use crate::error::Result;
use crate::trackable::{Everything, Item, Scope, Trackable};
use crate::train::bundle::BundleReader;
use crate::variable::Variable;

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

/// The objects below a root, in the order of the checkpoint that `snapshot` writes; the first is the root.
pub(crate) struct ObjectsToStore {
    /// The parts of each object, by their names.
    pub(crate) children: Vec<Vec<(String, usize)>>,
    /// The objects that are variables.
    pub(crate) variables: BTreeMap<usize, StoredVariable>,
    pub(crate) snapshot: Snapshot,
}

/// A variable, with its names in wgrad and in the checkpoint.
pub(crate) struct StoredVariable {
    pub(crate) variable: Variable,
    pub(crate) name: String,
    pub(crate) key: String,
}

impl ObjectsToStore {
    /// # Errors
    /// As [`Checkpoint::snapshot`](super::Checkpoint::snapshot).
    pub(crate) fn new(root: &dyn Trackable) -> Result<Self> {
        let everything = Everything::forms(root, Scope::Checkpoint);
        let graph = Graph::new(root, &everything);
        let named: HashMap<&str, &Variable> = everything
            .entries()
            .filter_map(|(name, item)| match item {
                Item::Variable(variable) => Some((name, variable)),
                _ => None,
            })
            .collect();
        let variables = graph.nodes.iter().enumerate().filter_map(|(at, node)| {
            let name = node.value.as_deref()?;
            let variable = (*named.get(name)?).clone();
            Some((at, StoredVariable { variable, name: name.to_string(), key: graph.key(at) }))
        });
        Ok(ObjectsToStore {
            variables: variables.collect(),
            children: graph.nodes.iter().map(|node| node.children.clone()).collect(),
            snapshot: Snapshot::take(root)?,
        })
    }
}
