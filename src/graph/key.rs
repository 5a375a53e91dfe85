//! The condition for two graphs to share a plan: the key, and which nodes carry equal runtime scalars.

use std::any::Any;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};

use super::{Graph, Input};
use crate::support::mixer::{Mixer, hash_bytes};

/// A graph's structure as bytes, equal for two graphs exactly if one plan serves both. The hash finds the plan; then
/// the bytes are compared in full, because a collision would give wrong results.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Key {
    hash: u64,
    bytes: Box<[u8]>,
}

impl Key {
    pub(crate) fn hash(&self) -> u64 {
        self.hash
    }

    /// The number of its bytes, which grows with the number of nodes.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }
}

impl Graph {
    /// The graph's key. Also sets [`Graph::equal_scalars`], which is part of it, unless `coincidences` has recorded too
    /// many patterns of this structure.
    pub(crate) fn key(&mut self, coincidences: &mut Coincidences) -> Key {
        let mut key = KeyWriter(Vec::with_capacity(48 * self.nodes.len() + 64));
        key.write_u32(self.gradients);
        for (leaf, donated) in self.leaves.iter().zip(&self.donated) {
            leaf.hash(&mut key);
            key.write_u8(u8::from(*donated));
        }
        self.equal_scalars.clear();
        self.in_fours.clear();
        let mut first_with = HashIndex::default();
        for (i, node) in self.nodes.iter().enumerate() {
            // Ops without inputs have their shape as an attribute; the shapes of others follow from `infer`.
            key.write_u32(((node.inputs.len() as u32) << 1) | u32::from(node.wanted));
            for input in &node.inputs {
                key.write_u32(match *input {
                    Input::Node(i) => i << 1,
                    Input::Leaf(i) => (i << 1) | 1,
                });
            }
            // The length is first, so that the attributes of one op cannot be confused with those of another and the
            // bytes that follow.
            let at = key.0.len();
            key.write_u32(0);
            node.op.identify(&mut key);
            let bytes = (key.0.len() - at - 4) as u32;
            key.0[at..at + 4].copy_from_slice(&bytes.to_ne_bytes());

            let op: &dyn Any = &*node.op;
            let words = node.op.runtime_scalars();
            let (mut same, mut in_fours) = (None, 0);
            // Those of a function's program change from run to run by themselves.
            if !words.is_empty() && !node.op.scalars_vary() {
                in_fours = node.op.in_fours();
                let mut hash = Mixer::default();
                op.type_id().hash(&mut hash);
                words.hash(&mut hash);
                let first = *first_with.entry(hash.finish()).or_insert(i as u32);
                let other = &self.nodes[first as usize].op;
                let other_type = (&**other as &dyn Any).type_id();
                // Nodes whose hashes collide count as different.
                let equal = first != i as u32 && other_type == op.type_id();
                same = (equal && other.runtime_scalars() == words).then_some(first);
            }
            self.equal_scalars.push(same);
            self.in_fours.push(in_fours);
        }
        let structure = hash_bytes(&key.0);
        if !coincidences.heeds(structure, &self.equal_scalars, &self.in_fours) {
            self.equal_scalars.fill(None);
            self.in_fours.fill(0);
        }
        for (i, in_fours) in self.in_fours.iter().enumerate().filter(|(_, bits)| **bits != 0) {
            key.write_u32(i as u32);
            key.write_u32(*in_fours);
        }
        // No node has this number.
        key.write_u32(u32::MAX);
        for (i, same) in self.equal_scalars.iter().enumerate() {
            if let Some(first) = same {
                key.write_u32(i as u32);
                key.write_u32(*first);
            }
        }
        Key { hash: hash_bytes(&key.0), bytes: key.0.into_boxed_slice() }
    }
}

impl Graph {
    /// What [`Graph::key`] depends on, except for the donated leaves, as text that is the same in each process; after a call of
    /// `key`.
    #[cfg(all(feature = "saved-plans", not(target_family = "wasm")))]
    pub(crate) fn structure(&self) -> String {
        use super::attributes::Value;
        let mut text = format!("gradients {}\n", self.gradients);
        for leaf in &self.leaves {
            text += &format!("leaf {leaf}\n");
        }
        for (i, node) in self.nodes.iter().enumerate() {
            let same = self.equal_scalars.get(i).copied().flatten();
            let in_fours = self.in_fours.get(i).copied().unwrap_or(0);
            let attributes = Value::of_identity(&*node.op);
            text += &format!(
                "{}{attributes} of {:?}: {}, {}, {same:?}, {in_fours}\n",
                node.op.kind(),
                node.inputs,
                node.spec,
                node.wanted
            );
        }
        text
    }

    /// A hash of the op's name and of the result's shape and dtype. Loops repeat these, even if inputs, numbers, and
    /// attributes such as the position of a slice vary between iterations.
    pub(crate) fn symbol(&self, i: usize) -> u64 {
        let node = &self.nodes[i];
        let mut hash = Mixer::default();
        node.op.name().hash(&mut hash);
        node.spec.hash(&mut hash);
        hash.finish()
    }

    /// The bytes that determine how node `i` is lowered: its op, its attributes, and the shapes and dtypes around it.
    pub(crate) fn kind(&self, i: usize) -> Vec<u8> {
        let node = &self.nodes[i];
        let mut key = KeyWriter(Vec::with_capacity(64));
        node.op.identify(&mut key);
        for input in &node.inputs {
            self.spec(*input).hash(&mut key);
        }
        node.spec.hash(&mut key);
        key.0
    }

    /// The bytes that determine the value of node `i` with the inputs `inputs`: two nodes of a graph with equal
    /// signatures have the same value whenever the plan of this graph runs.
    pub(crate) fn signature(&self, i: usize, inputs: impl Iterator<Item = Input>) -> Vec<u8> {
        let node = &self.nodes[i];
        // A reshape shares the elements but not the shape, so the kind, which includes the shapes, is first.
        let mut key = KeyWriter(self.kind(i));
        inputs.for_each(|input| input.hash(&mut key));
        if !node.op.runtime_scalars().is_empty() {
            let first = self.equal_scalars.get(i).copied().flatten();
            key.write_u32(first.unwrap_or(i as u32));
        }
        key.0
    }
}

/// The bytes that identify an op without its inputs: those of its type and of the attributes that determine its code.
#[cfg(not(target_family = "wasm"))]
pub(crate) fn identity_bytes(op: &dyn super::Identity) -> Vec<u8> {
    let mut key = KeyWriter(Vec::new());
    op.identify(&mut key);
    key.0
}

/// Maps hashes or addresses to small numbers. One type serves all of them, because each kind of map would add code.
pub(crate) type HashIndex = HashMap<u64, u32, BuildHasherDefault<Mixer>>;

/// Counts the patterns of equal runtime scalars that each structure has shown.
///
/// A plan may compute nodes with equal scalars once, so the key records which are equal, and which are multiples of
/// four. In a program with random numbers they keep forming new patterns, each of which would need a plan; after a few
/// patterns, such a structure gets a plan that assumes neither equal scalars nor multiples of four, which is correct
/// for all.
#[derive(Default)]
pub(crate) struct Coincidences {
    /// How many patterns each structure has shown, by its hash.
    counts: HashIndex,
    /// The patterns, by hashes of structure and pattern.
    ways: HashIndex,
}

/// After this many patterns a structure's scalars count as random.
const WAYS: u32 = 8;
/// How many structures are remembered.
const STRUCTURES: usize = 1024;

impl Coincidences {
    /// True if the plan for the structure of this hash may rely on `equal_scalars` and `in_fours`. A collision of hashes
    /// costs only speed, as the key has the bytes.
    fn heeds(&mut self, structure: u64, equal_scalars: &[Option<u32>], in_fours: &[u32]) -> bool {
        if equal_scalars.iter().all(Option::is_none) && in_fours.iter().all(|&bits| bits == 0) {
            return true;
        }
        if self.counts.len() >= STRUCTURES && !self.counts.contains_key(&structure) {
            self.counts.clear();
            self.ways.clear();
        }
        let mut way = Mixer(structure);
        (equal_scalars, in_fours).hash(&mut way);
        let count = self.counts.entry(structure).or_insert(0);
        if self.ways.contains_key(&way.finish()) {
            return true;
        }
        let room = *count < WAYS;
        if room {
            *count += 1;
            self.ways.insert(way.finish(), 0);
        }
        room
    }
}

/// Collects the hashed bytes instead of mixing them.
pub(super) struct KeyWriter(pub(super) Vec<u8>);

impl Hasher for KeyWriter {
    fn write(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    fn finish(&self) -> u64 {
        hash_bytes(&self.0)
    }
}
