//! [`Graph`]: the objects of a checkpoint's parts, with wgrad's names and Keras's.

use std::collections::{HashMap, HashSet};

use super::keras_names::{self, Numbered};
use super::proto::{
    BoolValue, ObjectReference, SerializedTensor, TrackableObject, TrackableObjectGraph, VALUE,
};
use crate::trackable::{Class, Everything, Leaf, Parts, Role, Trackable, slot_names};

/// The objects below a root.
pub(super) struct Graph {
    pub(super) nodes: Vec<Node>,
    /// By their paths in wgrad.
    places: HashMap<String, usize>,
    /// The paths of parts that store variables for other variables.
    pub(super) owners: Vec<String>,
}

#[derive(Default)]
pub(super) struct Node {
    pub(super) class: Option<&'static Class>,
    /// Under each of their names; the ones by which TensorFlow finds a part come first.
    pub(super) children: Vec<(String, usize)>,
    /// The part that contains it, and the name under which its value is stored.
    parent: Option<(usize, String)>,
    /// The part that contains it, by its path in wgrad.
    owner: Option<usize>,
    /// The name of its value in wgrad.
    pub(super) value: Option<String>,
    /// Whether it is a weight that training changes.
    pub(super) trainable: bool,
    /// A value that Keras has and wgrad does not store.
    pub(super) made_up: Option<MadeUp>,
    /// Whether Keras stores a 64-bit count where wgrad's variable has 32 bits.
    pub(super) counts_wide: bool,
    /// Whether it or one of its parts has weights.
    has_weights: bool,
    /// Its number in Keras, as a layer of a model.
    number: Option<usize>,
    /// The layers of a model.
    pub(super) layers: Vec<NumberedLayer>,
}

/// A layer of a model.
pub(super) struct NumberedLayer {
    /// The name in wgrad.
    pub(super) name: String,
    pub(super) node: usize,
    /// The number in Keras's `_operations`.
    pub(super) number: usize,
    /// The number among the layers with weights.
    pub(super) with_weights: Option<usize>,
}

/// A value that is stored only for Keras.
pub(super) enum MadeUp {
    /// The number 0.
    Zero,
    /// The same value as under this name of wgrad.
    Same(String),
}

impl Graph {
    /// The graph of `root`, whose variables and numbers are in `everything`.
    pub(super) fn new(root: &dyn Trackable, everything: &Everything) -> Self {
        let mut graph =
            Graph { nodes: vec![Node::default()], places: HashMap::new(), owners: Vec::new() };
        let mut visit = |path: &str, leaf: Leaf<'_>| match leaf {
            Leaf::Part { part_type, described, .. } => {
                let at = graph.place(path);
                graph.nodes[at].class = part_type().class;
                graph.nodes[at].number = described.and_then(|described| described().number);
            }
            Leaf::Variable(variable) => graph.set_weight(path, variable.trainable()),
            Leaf::ToBe(slot) => graph.set_weight(path, slot.trainable()),
            Leaf::State(state) if state.form().1.is_some_and(<[usize]>::is_empty) => {
                graph.set_value(path);
            }
            Leaf::Slots(_) => {
                graph.place(path);
                graph.owners.push(path.to_string());
            }
            Leaf::State(_) | Leaf::Penalty(..) | Leaf::Forget(_) => {}
        };
        root.track(&mut Parts::new(&mut visit));
        // A part comes after the part that contains it.
        for at in (1..graph.nodes.len()).rev() {
            if graph.nodes[at].has_weights {
                if let Some((parent, _)) = graph.nodes[at].parent {
                    graph.nodes[parent].has_weights = true;
                }
            }
        }
        for at in 0..graph.nodes.len() {
            graph.name_as_keras(at);
        }
        graph.add_slots(everything);
        graph
    }

    /// The node at a path, which is created if it does not exist.
    fn place(&mut self, path: &str) -> usize {
        if path.is_empty() {
            return 0;
        }
        if let Some(&at) = self.places.get(path) {
            return at;
        }
        // Starting at the last part that exists.
        let known = path.rmatch_indices('/').map(|(end, _)| end);
        let known = known.into_iter().find(|end| self.places.contains_key(&path[..*end]));
        let mut parent = known.map_or(0, |end| self.places[&path[..end]]);
        let mut begin = known.map_or(0, |end| end + 1);
        while begin <= path.len() {
            let end = path[begin..].find('/').map_or(path.len(), |at| begin + at);
            parent = self.add(parent, &path[begin..end]);
            self.places.insert(path[..end].to_string(), parent);
            begin = end + 1;
        }
        parent
    }

    /// Adds a part to a node.
    fn add(&mut self, parent: usize, name: &str) -> usize {
        let at = self.nodes.len();
        let (owner, name) = (Some(parent), name.to_string());
        self.nodes.push(Node { parent: Some((parent, name.clone())), owner, ..Node::default() });
        self.nodes[parent].children.push((name, at));
        at
    }

    fn set_value(&mut self, path: &str) -> usize {
        let at = self.place(path);
        self.nodes[at].value = Some(path.to_string());
        at
    }

    fn set_weight(&mut self, path: &str, trainable: bool) {
        let at = self.set_value(path);
        self.nodes[at].has_weights = true;
        self.nodes[at].trainable = trainable;
    }

    pub(super) fn at(&self, path: &str) -> Option<usize> {
        if path.is_empty() { Some(0) } else { self.places.get(path).copied() }
    }

    /// A part's path in wgrad.
    pub(super) fn path(&self, at: usize) -> &str {
        self.places.iter().find(|(_, known)| **known == at).map_or("", |(path, _)| path)
    }

    /// Whether each part, or a part of it, has values.
    pub(super) fn valued(&self) -> Vec<bool> {
        let mut valued: Vec<bool> = self.nodes.iter().map(|node| node.value.is_some()).collect();
        // A part comes after the part that contains it, except for slots of optimizers.
        for at in (1..self.nodes.len()).rev() {
            let parent = self.nodes[at].owner.filter(|_| valued[at]);
            parent.into_iter().for_each(|parent| valued[parent] = true);
        }
        valued
    }

    /// Adds the Keras names of a node's parts, before their own names.
    fn name_as_keras(&mut self, at: usize) {
        let class = self.nodes[at].class;
        let own = std::mem::take(&mut self.nodes[at].children);
        let mut names = Vec::new();
        if let Numbered::Layers { below, first } = keras_names::numbered(class) {
            let weighted = own.iter().filter(|(_, child)| self.nodes[*child].has_weights);
            for (number, (_, child)) in weighted.enumerate() {
                names.push((format!("layer_with_weights-{number}"), *child));
            }
            // Keys use the names by which TensorFlow's guides know them.
            for (name, child) in &names {
                self.nodes[*child].parent = Some((at, name.clone()));
            }
            self.nodes[at].children = names;
            let below = below.map_or(at, |below| self.add(at, below));
            let list = self.add(below, "_operations");
            if first == 1 {
                self.add(list, "0");
            }
            let (mut seen, mut with_weights) = (HashSet::new(), 0..);
            for (i, (name, child)) in own.iter().enumerate() {
                let number = self.nodes[*child].number.unwrap_or(i + first);
                let has_weights = self.nodes[*child].has_weights;
                let with_weights = has_weights.then(|| with_weights.next()).flatten();
                let (name, node) = (name.clone(), *child);
                self.nodes[at].layers.push(NumberedLayer { name, node, number, with_weights });
                // A layer that occurs there twice is one.
                if seen.insert(number) {
                    self.nodes[list].children.push((number.to_string(), node));
                }
            }
            self.nodes[at].children.extend(own);
            return;
        }
        for (name, child) in &own {
            let alias = class.and_then(|class| class.attribute(name)?.checkpoint);
            names.extend(alias.map(|alias| (alias.to_string(), *child)));
        }
        names.extend(own);
        self.nodes[at].children = names;
    }

    /// Adds the variables of optimizers, in Keras's lists.
    fn add_slots(&mut self, everything: &Everything) {
        for owner in std::mem::take(&mut self.owners) {
            let Some(at) = self.at(&owner) else { continue };
            let class = self.nodes[at].class;
            let mut all = Vec::new();
            for (name, keras) in [
                ("iterations", keras_names::ITERATIONS),
                ("learning_rate", keras_names::LEARNING_RATE),
            ] {
                let found = self.nodes[at].children.iter().find(|(known, _)| known == name);
                if let Some(&(_, child)) = found {
                    self.nodes[at].children.insert(0, (keras.to_string(), child));
                    self.nodes[child].parent = Some((at, keras.to_string()));
                    all.push(child);
                }
            }
            let kept: Vec<_> = everything.kept.iter().filter(|kept| kept.owner == owner).collect();
            // The variables in the optimizer's order, including those for which it stores nothing.
            let listed = everything.listed.iter().filter(|(known, _)| *known == owner);
            let listed = listed.flat_map(|(_, names)| names);
            let mut of: HashMap<&str, usize> = HashMap::new();
            let trainable = self.add(at, keras_names::TRAINABLE);
            for (number, name) in listed.enumerate() {
                of.insert(name, number);
                match self.at(name).filter(|_| !name.is_empty()) {
                    Some(node) => self.nodes[trainable].children.push((number.to_string(), node)),
                    None => drop(self.add(trainable, &number.to_string())),
                }
            }
            let mut lists: HashMap<String, usize> = HashMap::new();
            let mut slots = Vec::with_capacity(kept.len());
            for slot in &kept {
                let number = of[&*slot.of];
                let unlisted = slot_names::unlisted(class).contains(&&*slot.slot);
                let node = match unlisted {
                    true => self.detached(),
                    false => {
                        let name = keras_names::list_of(class, &slot.slot).into_owned();
                        let list = match lists.get(&name) {
                            Some(&list) => list,
                            None => {
                                let made = self.add(at, &name);
                                *lists.entry(name).or_insert(made)
                            }
                        };
                        self.add(list, &number.to_string())
                    }
                };
                self.nodes[node].value = Some(slot.name.clone());
                let group = slot_names::group(class, &slot.slot);
                let alone = slots.last().is_none_or(|(_, last, _)| *last != number);
                if unlisted && slot.slot == "velocity" && alone {
                    for _ in ["r", "c"] {
                        let node = self.detached();
                        self.nodes[node].made_up = Some(MadeUp::Zero);
                        slots.push((group, number, node));
                    }
                }
                slots.push((group, number, node));
            }
            // Within a group the slots of a variable stay together.
            slots.sort_by_key(|(group, number, _)| (*group, *number));
            all.extend(slots.into_iter().map(|(.., node)| node));
            let list = self.add(at, keras_names::VARIABLES);
            for (number, node) in all.into_iter().enumerate() {
                let number = number.to_string();
                if self.nodes[node].parent.as_ref().is_none_or(|(parent, _)| *parent != at) {
                    self.nodes[node].parent = Some((list, number.clone()));
                }
                self.nodes[list].children.push((number, node));
            }
            self.owners.push(owner);
        }
        self.add_outer_counts();
    }

    /// An optimizer that scales losses has a separate counter in Keras.
    fn add_outer_counts(&mut self) {
        for at in 0..self.nodes.len() {
            if self.nodes[at].class.is_none_or(|class| class.role != Role::OuterOptimizer) {
                continue;
            }
            if let Some(counter) = self.child(at, "step_counter") {
                self.nodes[counter].counts_wide = true;
            }
            let Some(inner) = self.child(at, "inner_optimizer") else { continue };
            let numbers = [keras_names::ITERATIONS, keras_names::LEARNING_RATE];
            let found = numbers.map(|name| (name, self.child(inner, name)));
            for (name, number) in found {
                let Some(number) = number else { continue };
                let same = self.nodes[number].value.clone();
                let node = self.add(at, name);
                self.nodes[node].made_up = same.map(MadeUp::Same);
            }
        }
    }

    fn child(&self, at: usize, wanted: &str) -> Option<usize> {
        let children = &self.nodes[at].children;
        children.iter().find(|(name, _)| name == wanted).map(|(_, child)| *child)
    }

    /// A node that does not belong to a part yet.
    fn detached(&mut self) -> usize {
        self.nodes.push(Node::default());
        self.nodes.len() - 1
    }

    /// The keys of all values, by their names in wgrad.
    pub(super) fn keys(&self) -> HashMap<&str, String> {
        let values = self.nodes.iter().enumerate();
        values.filter_map(|(at, node)| Some((node.value.as_deref()?, self.key(at)))).collect()
    }

    /// The name of a node's value in the bundle.
    pub(super) fn key(&self, at: usize) -> String {
        let (mut names, mut at) = (Vec::new(), at);
        while let Some((parent, name)) = &self.nodes[at].parent {
            names.push(escaped(name));
            at = *parent;
        }
        names.reverse();
        format!("{}/.ATTRIBUTES/{VALUE}", names.join("/"))
    }

    /// The graph in TensorFlow's format.
    pub(super) fn to_proto(&self) -> TrackableObjectGraph {
        let reference = |(name, at): &(String, usize)| ObjectReference {
            node_id: i32::try_from(*at).unwrap_or(i32::MAX),
            local_name: name.clone(),
        };
        let node = |(at, node): (usize, &Node)| TrackableObject {
            children: node.children.iter().map(reference).collect(),
            attributes: match node.value.is_some() || node.made_up.is_some() {
                true => vec![SerializedTensor {
                    name: VALUE.to_string(),
                    full_name: node.value.clone().unwrap_or_default(),
                    checkpoint_key: self.key(at),
                }],
                false => Vec::new(),
            },
            slot_variables: Vec::new(),
            has_checkpoint_values: Some(BoolValue { value: true }),
        };
        TrackableObjectGraph { nodes: self.nodes.iter().enumerate().map(node).collect() }
    }
}

/// A name as TensorFlow writes it within a key.
fn escaped(name: &str) -> String {
    name.replace('.', "..").replace('/', ".S")
}

/// The name of numbers that have no object in TensorFlow. No object of the graph refers to it, so TensorFlow ignores it.
pub(super) fn state_key(name: &str) -> String {
    let names: Vec<String> = name.split('/').map(escaped).collect();
    format!("{}{STATE}", names.join("/"))
}

/// The ending of these names.
const STATE: &str = "/.ATTRIBUTES/WGRAD_STATE";

/// Whether a key belongs to such numbers.
pub(super) fn is_state_key(key: &str) -> bool {
    key.ends_with(STATE)
}
