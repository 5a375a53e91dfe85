//! Finds for each part of a program the object of a checkpoint that it was saved from.

use std::collections::HashMap;

use super::graph::{Graph, state_key};
use super::keras_names;
use super::proto::{TrackableObjectGraph, VALUE};
use crate::trackable::Everything;

/// Which value belongs where.
pub(super) struct Matching {
    /// wgrad's name of a part, and the key of its value.
    pub(super) values: Vec<(String, String)>,
    /// The values of the checkpoint that nobody takes.
    pub(super) unused: Vec<String>,
    /// wgrad's names of the parts for which the checkpoint has none.
    pub(super) missing: Vec<String>,
}

/// Numbers that TensorFlow has no object for.
pub(super) struct State {
    /// wgrad's name.
    pub(super) name: String,
    /// Whether the checkpoint ought to have it.
    pub(super) required: bool,
}

/// Matches the parts of `graph` with the objects that `saved` has, name by name from the root on, as TensorFlow does. `shape`
/// tells the shape of the tensor at a key.
pub(super) fn matching(
    graph: &Graph,
    everything: &Everything,
    states: &[State],
    saved: &TrackableObjectGraph,
    shape: &dyn Fn(&str) -> Option<Vec<usize>>,
) -> Matching {
    let bound = Bound::new(graph, saved);
    let mut values = bound.values();
    // What is stored for Keras alone.
    let made_up = graph.nodes.iter().zip(&bound.objects).filter(|(node, _)| node.made_up.is_some());
    let mut derived: Vec<&str> = made_up.filter_map(|(_, object)| bound.key((*object)?)).collect();
    bound.add_slots(everything, &mut values, &mut derived, shape);
    for State { name, .. } in states {
        let key = state_key(name);
        if shape(&key).is_some() {
            values.push((name.clone(), key));
        }
    }
    let taken: std::collections::HashSet<&str> =
        values.iter().map(|(_, key)| &**key).chain(derived).collect();
    let unused = bound.keys().filter(|key| !taken.contains(key)).map(str::to_string).collect();
    let given: std::collections::HashSet<&str> = values.iter().map(|(name, _)| &**name).collect();
    let wanted = graph.nodes.iter().filter_map(|node| node.value.as_ref());
    let states = states.iter().filter(|state| state.required).map(|state| &state.name);
    let wanted = wanted.chain(states);
    let missing = wanted.filter(|name| !given.contains(&***name)).cloned().collect();
    Matching { values, unused, missing }
}

struct Bound<'a> {
    graph: &'a Graph,
    saved: &'a TrackableObjectGraph,
    /// For each part the object that it was saved from.
    objects: Vec<Option<usize>>,
    /// For each object the part.
    parts: Vec<Option<usize>>,
}

impl<'a> Bound<'a> {
    fn new(graph: &'a Graph, saved: &'a TrackableObjectGraph) -> Self {
        let (objects, parts) = (vec![None; graph.nodes.len()], vec![None; saved.nodes.len()]);
        let mut bound = Bound { graph, saved, objects, parts };
        bound.bind(0, 0);
        bound.bind_trainable();
        bound
    }

    /// Keras 3 does not track a model's lists of layers, whose weights only the optimizer's list of what it trains has then. If that
    /// list has as many variables as the program, and those that are bound stand at the same places in both, so do the others.
    fn bind_trainable(&mut self) {
        let weights = self.graph.nodes.iter().enumerate().filter(|(_, node)| node.trainable);
        let weights: Vec<usize> = weights.map(|(at, _)| at).collect();
        if weights.iter().all(|weight| self.objects[*weight].is_some()) {
            return;
        }
        for owner in &self.graph.owners {
            let Some(object) = self.graph.at(owner).and_then(|at| self.objects[at]) else {
                continue;
            };
            let Some(&list) = self.children(object).get(keras_names::TRAINABLE) else { continue };
            let list = self.children(list);
            let found = (0..weights.len()).map(|number| list.get(&*number.to_string()).copied());
            let Some(found) = found.collect::<Option<Vec<usize>>>() else { continue };
            let agree = |(weight, object): (&usize, &usize)| {
                self.objects[*weight].is_none_or(|bound| bound == *object)
                    && self.parts[*object].is_none_or(|bound| bound == *weight)
            };
            if list.len() == weights.len() && weights.iter().zip(&found).all(agree) {
                for (weight, object) in weights.iter().zip(found) {
                    self.take(*weight, object);
                }
                return;
            }
        }
    }

    /// Binds a part to an object, and what both consist of.
    fn bind(&mut self, part: usize, object: usize) {
        let mut open = std::collections::VecDeque::new();
        if self.take(part, object) {
            open.push_back((part, object));
        }
        while let Some((part, object)) = open.pop_front() {
            let children = self.children(object);
            for (name, child) in &self.graph.nodes[part].children {
                if let Some(&found) = children.get(&**name) {
                    if self.take(*child, found) {
                        open.push_back((*child, found));
                    }
                }
            }
        }
    }

    /// Binds one part; an object belongs to one part.
    fn take(&mut self, part: usize, object: usize) -> bool {
        let free = self.objects[part].is_none() && self.parts[object].is_none();
        if free {
            self.objects[part] = Some(object);
            self.parts[object] = Some(part);
        }
        free
    }

    fn children(&self, object: usize) -> HashMap<&'a str, usize> {
        let children = self.saved.nodes[object].children.iter();
        children.map(|child| (&*child.local_name, child.node_id as usize)).collect()
    }

    fn key(&self, object: usize) -> Option<&'a str> {
        let attributes = self.saved.nodes[object].attributes.iter();
        let value = attributes.into_iter().find(|attribute| attribute.name == VALUE)?;
        Some(&value.checkpoint_key)
    }

    /// The keys of all values that objects have.
    fn keys(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        let attributes = self.saved.nodes.iter().flat_map(|node| &node.attributes);
        attributes.map(|attribute| &*attribute.checkpoint_key)
    }

    fn values(&self) -> Vec<(String, String)> {
        let value = |(at, node): (usize, &super::graph::Node)| {
            Some((node.value.clone()?, self.key(self.objects[at]?)?.to_string()))
        };
        self.graph.nodes.iter().enumerate().filter_map(value).collect()
    }

    /// Adds what optimizers keep for variables, also where an optimizer has not made it yet.
    fn add_slots(
        &self,
        everything: &Everything,
        values: &mut Vec<(String, String)>,
        derived: &mut Vec<&'a str>,
        shape: &dyn Fn(&str) -> Option<Vec<usize>>,
    ) {
        let kept: std::collections::HashSet<&str> =
            everything.kept.iter().map(|kept| &*kept.name).collect();
        values.retain(|(name, _)| !kept.contains(&**name));
        // Each optimizer's variables in the order of its list, for those that are no part of the checkpoint.
        let mut known: HashMap<&str, Vec<&str>> = HashMap::new();
        let mut met: std::collections::HashSet<(&str, &str)> = Default::default();
        for slot in &everything.kept {
            if met.insert((&slot.owner, &slot.of)) {
                known.entry(&slot.owner).or_default().push(&slot.of);
            }
        }
        for owner in &self.graph.owners {
            let Some(at) = self.graph.at(owner) else { continue };
            let Some(object) = self.objects[at] else { continue };
            let kind = self.graph.nodes[at].kind;
            let children = self.children(object);
            let mut add = |slot: &str, variable: &str, saved: usize| {
                if let Some(key) = self.key(saved) {
                    let name = format!("{slot}/{variable}");
                    let name = if owner.is_empty() { name } else { format!("{owner}/{name}") };
                    values.push((name, key.to_string()));
                }
            };
            let name_of = |variable: usize| {
                let part = self.parts[variable]?;
                self.graph.nodes[part].value.as_deref()
            };
            for reference in self.saved.nodes[object].slot_variables.iter() {
                let slot = keras_names::slot_of_keras_2(kind, &reference.slot_name);
                if let Some(variable) = name_of(reference.original_variable_node_id as usize) {
                    add(slot, variable, reference.slot_variable_node_id as usize);
                }
            }
            let trainable = children.get(keras_names::TRAINABLE);
            let trainable = trainable.map(|list| self.children(*list)).unwrap_or_default();
            let variable = |number: &str| {
                let named = trainable.get(number).and_then(|variable| name_of(*variable));
                named.or_else(|| {
                    let own = known.get(&**owner)?.get(number.parse::<usize>().ok()?)?;
                    self.graph.at(own).is_none().then_some(*own)
                })
            };
            let mut lists: Vec<(&str, usize)> = children.into_iter().collect();
            lists.sort_unstable();
            let mut listed = false;
            for (list, node) in &lists {
                let Some(slot) = keras_names::slot_of(kind, list) else { continue };
                for (number, saved) in self.children(*node) {
                    if let Some(variable) = variable(number) {
                        listed = true;
                        add(&slot, variable, saved);
                    }
                }
            }
            // Keras does not track Adafactor's lists.
            let all = lists.iter().find(|(list, _)| *list == keras_names::VARIABLES);
            let (false, Some((_, all)), "Adafactor") = (listed, all, kind) else { continue };
            let all = self.children(*all);
            let mut place = 2;
            for number in 0..trainable.len() {
                let number = number.to_string();
                let of = trainable.get(&*number).and_then(|node| self.key(*node)).and_then(shape);
                for slot in keras_names::ADAFACTOR {
                    let saved = all.get(&*place.to_string()).copied();
                    place += 1;
                    let (Some(variable), Some(saved)) = (variable(&number), saved) else {
                        continue;
                    };
                    // Keras has placeholders where the variable is no matrix.
                    if slot == "velocity" || of.as_ref().is_some_and(|shape| shape.len() > 1) {
                        add(slot, variable, saved);
                    } else {
                        derived.extend(self.key(saved));
                    }
                }
            }
        }
    }
}
