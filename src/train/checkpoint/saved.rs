//! [`Saved`]: the objects of a checkpoint, with the queries of matching.

use std::cell::{Cell, OnceCell};
use std::collections::{HashMap, HashSet};

use super::proto::{TrackableObjectGraph, VALUE};

/// The objects of a file. Whatever its contents, no query visits an object more than a few times.
pub(super) struct Saved<'a> {
    graph: &'a TrackableObjectGraph,
    /// The shape of the tensor at a key.
    shape: &'a dyn Fn(&str) -> Option<Vec<usize>>,
    children: Vec<OnceCell<HashMap<&'a str, usize>>>,
    /// Whether a part of the object has a value that a program could have.
    valued: Vec<bool>,
    /// The number of objects that may still be visited to distinguish layers.
    steps: Cell<usize>,
}

/// The names from a layer to a value, and the value's shape.
pub(super) type Form = (String, Option<Vec<usize>>);

/// The contents of a layer of a file.
pub(super) struct Content<'a> {
    pub(super) form: Vec<Form>,
    /// The names of the values in the program that wrote the file.
    pub(super) full_names: Vec<&'a str>,
}

/// The name ending of the random seed states of Keras and wgrad.
pub(super) const SEED: &str = "seed_generator_state";

impl<'a> Saved<'a> {
    pub(super) fn new(
        graph: &'a TrackableObjectGraph,
        shape: &'a dyn Fn(&str) -> Option<Vec<usize>>,
    ) -> Self {
        let count = graph.nodes.len();
        let mut children = Vec::new();
        children.resize_with(count, OnceCell::new);
        // From the values to the objects that contain them.
        let mut parents: Vec<Vec<u32>> = vec![Vec::new(); count];
        let mut edges = 0;
        for (at, node) in graph.nodes.iter().enumerate() {
            edges += node.children.len();
            for child in &node.children {
                parents[child.node_id as usize].push(at as u32);
            }
        }
        let mut valued = vec![false; count];
        let has_value = |node: &usize| {
            let values = graph.nodes[*node].attributes.iter();
            values.into_iter().any(|value| value.name == VALUE && !value.full_name.ends_with(SEED))
        };
        let mut open: Vec<usize> = (0..count).filter(has_value).collect();
        while let Some(node) = open.pop() {
            if !std::mem::replace(&mut valued[node], true) {
                open.extend(parents[node].iter().map(|parent| *parent as usize));
            }
        }
        let steps = Cell::new(16 * (count + edges) + 1_000);
        Saved { graph, shape, children, valued, steps }
    }

    pub(super) fn len(&self) -> usize {
        self.graph.nodes.len()
    }

    pub(super) fn children(&self, object: usize) -> &HashMap<&'a str, usize> {
        self.children[object].get_or_init(|| {
            let children = self.graph.nodes[object].children.iter();
            children.map(|child| (&*child.local_name, child.node_id as usize)).collect()
        })
    }

    pub(super) fn child(&self, object: usize, name: &str) -> Option<usize> {
        self.children(object).get(name).copied()
    }

    /// The children whose names are numbers, in order.
    pub(super) fn numbered(&self, object: usize, prefix: &str) -> Vec<(usize, usize)> {
        let number = |(name, child): (&&str, &usize)| {
            Some((name.strip_prefix(prefix)?.parse().ok()?, *child))
        };
        let mut numbered: Vec<(usize, usize)> =
            self.children(object).iter().filter_map(number).collect();
        numbered.sort_unstable();
        numbered
    }

    pub(super) fn is_valued(&self, object: usize) -> bool {
        self.valued[object]
    }

    pub(super) fn key(&self, object: usize) -> Option<&'a str> {
        let attributes = self.graph.nodes[object].attributes.iter();
        let value = attributes.into_iter().find(|attribute| attribute.name == VALUE)?;
        Some(&value.checkpoint_key)
    }

    pub(super) fn shape_of(&self, object: usize) -> Option<Vec<usize>> {
        (self.shape)(self.key(object)?)
    }

    pub(super) fn full_name(&self, object: usize) -> Option<&'a str> {
        let attributes = self.graph.nodes[object].attributes.iter();
        let value = attributes.into_iter().find(|attribute| attribute.name == VALUE)?;
        Some(&value.full_name).filter(|name| !name.is_empty()).map(|name| &**name)
    }

    /// The keys of all values that objects have.
    pub(super) fn keys(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        let attributes = self.graph.nodes.iter().flat_map(|node| &node.attributes);
        attributes.map(|attribute| &*attribute.checkpoint_key)
    }

    /// The keys of Keras's seeds, which wgrad's generators do not use.
    pub(super) fn seeds(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        let attributes = self.graph.nodes.iter().flat_map(|node| &node.attributes);
        let seeds = attributes.filter(|attribute| attribute.full_name.ends_with(SEED));
        seeds.map(|attribute| &*attribute.checkpoint_key)
    }

    /// The contents of an object of the file.
    pub(super) fn content(&self, object: usize) -> Content<'a> {
        let mut content = Content { form: Vec::new(), full_names: Vec::new() };
        let (mut seen, mut open) = (HashSet::from([object]), vec![(object, String::new())]);
        while let Some((object, path)) = open.pop() {
            let Some(left) = self.steps.get().checked_sub(1) else { break };
            self.steps.set(left);
            if let Some(name) = self.full_name(object).filter(|name| !name.ends_with(SEED)) {
                content.full_names.push(name);
            }
            if self.key(object).is_some() {
                content.form.push((path.clone(), self.shape_of(object)));
            }
            for child in &self.graph.nodes[object].children {
                let at = child.node_id as usize;
                if self.valued[at] && seen.insert(at) {
                    open.push((at, format!("{path}/{}", child.local_name)));
                }
            }
        }
        content.form.sort_unstable();
        content
    }

    /// The slots of an optimizer of Keras 2: the variable's object, the slot's name and its object.
    pub(super) fn slots(&self, object: usize) -> impl Iterator<Item = (usize, &'a str, usize)> {
        self.graph.nodes[object].slot_variables.iter().map(|slot| {
            let (of, at) = (slot.original_variable_node_id, slot.slot_variable_node_id);
            (of as usize, &*slot.slot_name, at as usize)
        })
    }
}
