//! Finds the object of a checkpoint for each part of a program.

use std::collections::HashMap;

use super::graph::{Graph, state_key};
use super::keras_names;
use super::layers::Layers;
use super::proto::TrackableObjectGraph;
use super::saved::Saved;
use crate::error::{Error, Result, message};
use crate::trackable::{Everything, slot_names};

/// The assignment of values to parts.
pub(super) struct Matching {
    /// The name of a part in wgrad, and the key of its value.
    pub(super) values: Vec<(String, String)>,
    /// The values of the checkpoint that no part uses.
    pub(super) unused: Vec<String>,
    /// The names in wgrad of the parts without a value in the checkpoint.
    pub(super) missing: Vec<String>,
}

/// Numbers that have no object in TensorFlow.
pub(super) struct State {
    /// The name in wgrad.
    pub(super) name: String,
    /// Whether the checkpoint should contain it.
    pub(super) required: bool,
}

/// Matches the parts of `graph` with the objects in `saved`, name by name starting at the root, as TensorFlow does. `shape`
/// returns the shape of the tensor at a key.
///
/// # Errors
/// [`Error::Checkpoint`] if a value may belong to more than one part.
pub(super) fn matching(
    graph: &Graph,
    everything: &Everything,
    states: &[State],
    saved: &TrackableObjectGraph,
    shape: &dyn Fn(&str) -> Option<Vec<usize>>,
) -> Result<Matching> {
    let saved = Saved::new(saved, shape);
    let shapes: HashMap<&str, &[usize]> =
        everything.variables().map(|(name, variable)| (name, variable.shape())).collect();
    let bound = Bound::new(graph, &saved, &shapes)?;
    let mut values = bound.values();
    // Values that are stored only for Keras.
    let made_up = graph.nodes.iter().zip(&bound.objects).filter(|(node, _)| node.made_up.is_some());
    let mut derived: Vec<&str> = made_up.filter_map(|(_, object)| saved.key((*object)?)).collect();
    derived.extend(saved.seeds());
    bound.add_slots(everything, &mut values, &mut derived)?;
    for State { name, .. } in states {
        let key = state_key(name);
        if shape(&key).is_some() {
            values.push((name.clone(), key));
        }
    }
    let taken: std::collections::HashSet<&str> =
        values.iter().map(|(_, key)| &**key).chain(derived).collect();
    let unused = saved.keys().filter(|key| !taken.contains(key)).map(str::to_string).collect();
    let given: std::collections::HashSet<&str> = values.iter().map(|(name, _)| &**name).collect();
    let wanted = graph.nodes.iter().filter_map(|node| node.value.as_ref());
    let states = states.iter().filter(|state| state.required).map(|state| &state.name);
    let wanted = wanted.chain(states);
    let missing = wanted.filter(|name| !given.contains(&***name)).cloned().collect();
    Ok(Matching { values, unused, missing })
}

struct Bound<'a, 'b> {
    graph: &'b Graph,
    saved: &'b Saved<'a>,
    shapes: &'b HashMap<&'b str, &'b [usize]>,
    /// For each part, its object.
    objects: Vec<Option<usize>>,
    /// For each object the part.
    parts: Vec<Option<usize>>,
}

impl<'a, 'b> Bound<'a, 'b> {
    fn new(
        graph: &'b Graph,
        saved: &'b Saved<'a>,
        shapes: &'b HashMap<&'b str, &'b [usize]>,
    ) -> Result<Self> {
        let (objects, parts) = (vec![None; graph.nodes.len()], vec![None; saved.len()]);
        let mut bound = Bound { graph, saved, shapes, objects, parts };
        bound.bind(0, 0)?;
        bound.bind_trainable();
        Ok(bound)
    }

    /// Keras 3 does not track a model's lists of layers; then only the optimizer's list of trainable variables has their
    /// weights. If that list has as many variables as the program, the variables that are already bound have the same indices
    /// in both, and names and shapes do not contradict it, the others are bound by index, too.
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
            let Some(list) = self.saved.child(object, keras_names::TRAINABLE) else { continue };
            let list = self.saved.numbered(list, "");
            let counted = list.iter().enumerate().all(|(at, (number, _))| at == *number);
            if !counted || list.len() != weights.len() {
                continue;
            }
            let agree = |(weight, (_, object)): (&usize, &(usize, usize))| {
                self.objects[*weight].is_none_or(|bound| bound == *object)
                    && self.parts[*object].is_none_or(|bound| bound == *weight)
                    && self.may_be(*weight, *object)
            };
            if weights.iter().zip(&list).all(agree) {
                for (weight, (_, object)) in weights.iter().zip(list) {
                    self.take(*weight, object);
                }
                return;
            }
        }
    }

    /// Whether the last names and the shapes of a weight and an object are compatible.
    fn may_be(&self, weight: usize, object: usize) -> bool {
        let Some(name) = self.graph.nodes[weight].value.as_deref() else { return false };
        let (ours, theirs) = (self.shapes.get(name), self.saved.shape_of(object));
        let shape = ours.zip(theirs).is_none_or(|(ours, theirs)| **ours == *theirs);
        let last = |name: &'_ str| name.rsplit('/').next().unwrap_or_default().to_string();
        // A variable that a program created itself may have any name.
        let known = ["kernel", "bias", "gamma", "beta", "recurrent_kernel", "embeddings"];
        let theirs = self.saved.full_name(object).map(last);
        let theirs = theirs.filter(|theirs| known.contains(&&**theirs));
        let ours = Some(last(name)).filter(|ours| known.contains(&&**ours));
        shape && ours.zip(theirs).is_none_or(|(ours, theirs)| ours == theirs)
    }

    /// Binds a part to an object, and recursively their parts.
    fn bind(&mut self, part: usize, object: usize) -> Result<()> {
        let valued = self.graph.valued();
        let (graph, saved, shapes) = (self.graph, self.saved, self.shapes);
        let layers = Layers { graph, saved, valued: &valued, shapes };
        let mut open = std::collections::VecDeque::new();
        if self.take(part, object) {
            open.push_back((part, object));
        }
        while let Some((part, object)) = open.pop_front() {
            let node = &graph.nodes[part];
            let pairs = match node.layers.is_empty() {
                false => layers.pairs(part, object)?,
                true => {
                    let children = node.children.iter();
                    let pair = |(name, child): &(String, usize)| {
                        Some((*child, saved.child(object, name)?))
                    };
                    children.filter_map(pair).collect()
                }
            };
            open.extend(pairs.into_iter().filter(|(part, object)| self.take(*part, *object)));
        }
        Ok(())
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

    fn values(&self) -> Vec<(String, String)> {
        let value = |(at, node): (usize, &super::graph::Node)| {
            Some((node.value.clone()?, self.saved.key(self.objects[at]?)?.to_string()))
        };
        self.graph.nodes.iter().enumerate().filter_map(value).collect()
    }

    /// Adds the optimizers' variables, including those that an optimizer has not created yet.
    fn add_slots(
        &self,
        everything: &Everything,
        values: &mut Vec<(String, String)>,
        derived: &mut Vec<&'a str>,
    ) -> Result<()> {
        let kept: std::collections::HashSet<&str> =
            everything.kept.iter().map(|kept| &*kept.name).collect();
        values.retain(|(name, _)| !kept.contains(&**name));
        // Each optimizer's variables in the order of its list, for variables that are not part of the checkpoint.
        let known: HashMap<&str, &Vec<String>> =
            everything.listed.iter().map(|(owner, names)| (&**owner, names)).collect();
        for owner in &self.graph.owners {
            let Some(at) = self.graph.at(owner) else { continue };
            let Some(object) = self.objects[at] else { continue };
            let class = self.graph.nodes[at].class;
            let children = self.saved.children(object);
            let trainable = children.get(keras_names::TRAINABLE);
            let trainable = trainable.map_or_else(Vec::new, |list| self.saved.numbered(*list, ""));
            let trainable: HashMap<usize, usize> = trainable.into_iter().collect();
            // Only a number identifies the variable of a slot if the checkpoint does not contain the variable.
            let same_count = known.get(&**owner).is_some_and(|own| own.len() == trainable.len());
            let mut unclear = None;
            let mut add = |slot: &str, variable: &str, saved: usize| {
                let Some(key) = self.saved.key(saved) else { return };
                let name = format!("{slot}/{variable}");
                let name = if owner.is_empty() { name } else { format!("{owner}/{name}") };
                if self.graph.at(variable).is_none() {
                    let theirs = self.saved.shape_of(saved).unwrap_or_default();
                    let ours = self.shapes.get(&*name).filter(|ours| ***ours != *theirs);
                    if !same_count || ours.is_some() {
                        unclear.get_or_insert((name.clone(), key, theirs));
                    }
                }
                values.push((name, key.to_string()));
            };
            let name_of = |variable: usize| {
                let part = self.parts[variable]?;
                self.graph.nodes[part].value.as_deref()
            };
            for (of, slot, saved) in self.saved.slots(object) {
                let slot = keras_names::slot_of_keras_2(class, slot);
                if let Some(variable) = name_of(of) {
                    add(slot, variable, saved);
                }
            }
            let variable = |number: usize| {
                let named = trainable.get(&number).and_then(|variable| name_of(*variable));
                named.or_else(|| {
                    let own = known.get(&**owner)?.get(number)?;
                    self.graph.at(own).is_none().then_some(&**own)
                })
            };
            let mut lists: Vec<(&str, usize)> =
                children.iter().map(|(name, list)| (*name, *list)).collect();
            lists.sort_unstable();
            let mut listed = false;
            for (list, node) in &lists {
                let Some(slot) = keras_names::slot_of(class, list) else { continue };
                for (number, saved) in self.saved.numbered(*node, "") {
                    if let Some(variable) = variable(number) {
                        listed = true;
                        add(&slot, variable, saved);
                    }
                }
            }
            // Keras may list an optimizer's slots only among all of its variables, as it does Adafactor's.
            let unlisted = slot_names::unlisted(class);
            let all = lists.iter().find(|(list, _)| *list == keras_names::VARIABLES);
            if let (false, Some((_, all)), false) = (listed, all, unlisted.is_empty()) {
                let all: HashMap<usize, usize> =
                    self.saved.numbered(*all, "").into_iter().collect();
                let mut place = 2;
                for number in 0..trainable.len() {
                    let of = trainable.get(&number).and_then(|node| self.saved.shape_of(*node));
                    for slot in unlisted {
                        let saved = all.get(&place).copied();
                        place += 1;
                        let (Some(variable), Some(saved)) = (variable(number), saved) else {
                            continue;
                        };
                        // Keras has placeholders where the variable is no matrix.
                        if *slot == "velocity" || of.as_ref().is_some_and(|of| of.len() > 1) {
                            add(slot, variable, saved);
                        } else {
                            derived.extend(self.saved.key(saved));
                        }
                    }
                }
            }
            if let Some((name, key, theirs)) = unclear {
                let own = known.get(&**owner).map_or(0, |own| own.len());
                return Err(Error::Checkpoint(message!(
                    "restore: nothing but its number says that '{name}' is '{key}' {theirs:?} of the checkpoint, \
                     whose optimizer has {} variables, and this one has {own}: it could be that of another variable. \
                     Add the model to the checkpoint together with its optimizer, or build the optimizer with the \
                     variables that it had.",
                    trainable.len()
                )));
            }
        }
        Ok(())
    }
}
