//! [`Graph`]: the objects that a checkpoint's parts are made of, with wgrad's names and Keras's.

use std::collections::HashMap;

use super::keras_names::{self, Numbered};
use super::proto::{
    BoolValue, ObjectReference, SerializedTensor, TrackableObject, TrackableObjectGraph, VALUE,
};
use crate::trackable::{Everything, Leaf, Parts, Trackable};

/// The objects below a root.
pub(super) struct Graph {
    pub(super) nodes: Vec<Node>,
    /// By wgrad's paths.
    places: HashMap<String, usize>,
    /// The paths of what keeps variables for variables.
    pub(super) owners: Vec<String>,
}

#[derive(Default)]
pub(super) struct Node {
    pub(super) kind: &'static str,
    /// Under each of their names; the ones by which TensorFlow finds a part come first.
    pub(super) children: Vec<(String, usize)>,
    /// Whose part it is, and the name under which its value is stored.
    parent: Option<(usize, String)>,
    /// wgrad's name of its value.
    pub(super) value: Option<String>,
    /// Whether it has weights, or a part of it has.
    has_weights: bool,
}

impl Graph {
    /// The graph of `root`, whose variables and numbers `everything` lists.
    pub(super) fn of(root: &dyn Trackable, everything: &Everything) -> Self {
        let mut graph =
            Graph { nodes: vec![Node::default()], places: HashMap::new(), owners: Vec::new() };
        let mut visit = |path: &str, leaf: Leaf<'_>| match leaf {
            Leaf::Part { kind, .. } => {
                let at = graph.place(path);
                graph.nodes[at].kind = kind();
            }
            Leaf::Variable(_) | Leaf::ToBe(_) => graph.set_value(path, true),
            Leaf::State(state) if state.form().1.is_some_and(<[usize]>::is_empty) => {
                graph.set_value(path, false);
            }
            Leaf::Slots(_) => {
                graph.place(path);
                graph.owners.push(path.to_string());
            }
            Leaf::State(_) | Leaf::Penalty(..) => {}
        };
        root.track(&mut Parts::new(&mut visit));
        // A part stands behind what it is a part of.
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

    /// The node at a path, which is made if it is not there.
    fn place(&mut self, path: &str) -> usize {
        if path.is_empty() {
            return 0;
        }
        if let Some(&at) = self.places.get(path) {
            return at;
        }
        // From the last part that is there on.
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
        self.nodes.push(Node { parent: Some((parent, name.to_string())), ..Node::default() });
        self.nodes[parent].children.push((name.to_string(), at));
        at
    }

    fn set_value(&mut self, path: &str, weight: bool) {
        let at = self.place(path);
        self.nodes[at].value = Some(path.to_string());
        self.nodes[at].has_weights |= weight;
    }

    pub(super) fn at(&self, path: &str) -> Option<usize> {
        if path.is_empty() { Some(0) } else { self.places.get(path).copied() }
    }

    /// Gives the parts of a node the names that they have in Keras, before their own.
    fn name_as_keras(&mut self, at: usize) {
        let kind = self.nodes[at].kind;
        let own = std::mem::take(&mut self.nodes[at].children);
        let mut names = Vec::new();
        if let Numbered::Layers { below, first } = keras_names::numbered(kind) {
            let weighted = own.iter().filter(|(_, child)| self.nodes[*child].has_weights);
            for (number, (_, child)) in weighted.enumerate() {
                names.push((format!("layer_with_weights-{number}"), *child));
            }
            // Keys have the names by which TensorFlow's guides know them.
            for (name, child) in &names {
                self.nodes[*child].parent = Some((at, name.clone()));
            }
            self.nodes[at].children = names;
            let below = below.map_or(at, |below| self.add(at, below));
            let list = self.add(below, "_operations");
            if first == 1 {
                self.add(list, "0");
            }
            let numbers = own.iter().enumerate();
            let numbers = numbers.map(|(i, (_, child))| ((i + first).to_string(), *child));
            self.nodes[list].children.extend(numbers);
            self.nodes[at].children.extend(own);
            return;
        }
        for (name, child) in &own {
            names
                .extend(keras_names::aliases(kind, name).map(|alias| (alias.into_owned(), *child)));
        }
        names.extend(own);
        self.nodes[at].children = names;
    }

    /// Adds what optimizers keep, in Keras's lists.
    fn add_slots(&mut self, everything: &Everything) {
        for owner in std::mem::take(&mut self.owners) {
            let Some(at) = self.at(&owner) else { continue };
            let kind = self.nodes[at].kind;
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
            // The variables in the order in which the optimizer has met them.
            let mut of: HashMap<&str, usize> = HashMap::new();
            for slot in &kept {
                let next = of.len();
                of.entry(&slot.of).or_insert(next);
            }
            let mut variables: Vec<(&str, usize)> = of.iter().map(|(of, at)| (*of, *at)).collect();
            variables.sort_unstable_by_key(|(_, number)| *number);
            let trainable = self.add(at, keras_names::TRAINABLE);
            for (name, number) in variables {
                match self.at(name).filter(|_| !name.is_empty()) {
                    Some(node) => self.nodes[trainable].children.push((number.to_string(), node)),
                    None => drop(self.add(trainable, &number.to_string())),
                }
            }
            let mut lists: HashMap<String, usize> = HashMap::new();
            let mut slots = Vec::with_capacity(kept.len());
            for slot in &kept {
                let list = keras_names::list_of(kind, &slot.slot).into_owned();
                let list = match lists.get(&list) {
                    Some(&list) => list,
                    None => {
                        let made = self.add(at, &list);
                        *lists.entry(list).or_insert(made)
                    }
                };
                let number = of[&*slot.of];
                let node = self.add(list, &number.to_string());
                self.nodes[node].value = Some(slot.name.clone());
                slots.push((keras_names::group(kind, &slot.slot), number, node));
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
    }

    /// The keys of all values, by wgrad's names.
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

    /// The graph as TensorFlow stores it.
    pub(super) fn to_proto(&self) -> TrackableObjectGraph {
        // A part may have the same name twice.
        let reference = |(name, at): &(String, usize)| ObjectReference {
            node_id: i32::try_from(*at).unwrap_or(i32::MAX),
            local_name: name.clone(),
        };
        let node = |(at, node): (usize, &Node)| TrackableObject {
            children: node.children.iter().map(reference).collect(),
            attributes: node
                .value
                .iter()
                .map(|value| SerializedTensor {
                    name: VALUE.to_string(),
                    full_name: value.clone(),
                    checkpoint_key: self.key(at),
                })
                .collect(),
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

/// The name of numbers that TensorFlow has no object for. No object of the graph refers to it, so TensorFlow does not miss one.
pub(super) fn state_key(name: &str) -> String {
    let names: Vec<String> = name.split('/').map(escaped).collect();
    format!("{}{STATE}", names.join("/"))
}

/// How these names end.
const STATE: &str = "/.ATTRIBUTES/WGRAD_STATE";

/// Whether a key is of such numbers.
pub(super) fn is_state_key(key: &str) -> bool {
    key.ends_with(STATE)
}
