//! Writes groups and datasets like h5py by default: every HDF5 library reads them.

use std::collections::BTreeMap;

use super::MAGIC;
use super::bytes::UNDEFINED;
use super::types;
use crate::error::{Error, Result, message};
use crate::host_array::HostArray;

/// The contents to write: nested groups, and datasets.
#[derive(Default)]
pub(crate) struct Group<'a> {
    groups: BTreeMap<String, Group<'a>>,
    datasets: BTreeMap<String, HostArray<'a>>,
}

impl<'a> Group<'a> {
    /// Adds a dataset at a path such as `layers/dense/vars/0`.
    pub(crate) fn add(&mut self, path: &str, array: HostArray<'a>) {
        match path.split_once('/') {
            Some((first, rest)) => {
                self.groups.entry(first.to_string()).or_default().add(rest, array)
            }
            None => drop(self.datasets.insert(path.to_string(), array)),
        }
    }
}

/// The number of links in a table and of children of a B-tree node: twice the numbers of the
/// superblock.
const LINKS: usize = 8;
const CHILDREN: usize = 32;

/// The bytes of a file with these groups.
pub(crate) fn write(root: &Group<'_>) -> Result<Vec<u8>> {
    let mut file = Writer { bytes: vec![0; 96] };
    let root = file.group(root)?;
    let mut head = MAGIC.to_vec();
    // Versions; addresses and lengths of 8 bytes; the halves of LINKS and CHILDREN; no flags.
    head.extend([
        0,
        0,
        0,
        0,
        0,
        8,
        8,
        0,
        (LINKS / 2) as u8,
        0,
        (CHILDREN / 2) as u8,
        0,
        0,
        0,
        0,
        0,
    ]);
    for number in [0, UNDEFINED, file.bytes.len() as u64, UNDEFINED] {
        head.extend(number.to_le_bytes());
    }
    head.extend(root.link(0));
    file.bytes[..96].copy_from_slice(&head);
    Ok(file.bytes)
}

struct Writer {
    bytes: Vec<u8>,
}

/// The address of an object.
struct ObjectAddress {
    header: u64,
    /// A group's B-tree and heap.
    group: Option<(u64, u64)>,
}

impl ObjectAddress {
    /// The link to it in a table; `name` is the name's offset in the heap.
    fn link(&self, name: u64) -> Vec<u8> {
        let (tree, heap) = self.group.unwrap_or_default();
        let cached = u64::from(self.group.is_some());
        [name, self.header, cached, tree, heap].map(u64::to_le_bytes).concat()
    }
}

impl Writer {
    /// Appends a block at a multiple of eight bytes.
    fn put(&mut self, block: &[u8]) -> u64 {
        self.bytes.resize(self.bytes.len().next_multiple_of(8), 0);
        let at = self.bytes.len() as u64;
        self.bytes.extend_from_slice(block);
        at
    }

    /// Appends an object header with these messages.
    fn header(&mut self, messages: &[(u16, Vec<u8>)]) -> u64 {
        let mut body = Vec::new();
        for (kind, message) in messages {
            let size = message.len().next_multiple_of(8);
            body.extend(kind.to_le_bytes());
            body.extend((size as u16).to_le_bytes());
            body.extend([0; 4]);
            body.extend(message);
            body.resize(body.len() + size - message.len(), 0);
        }
        let mut header = vec![1, 0];
        header.extend((messages.len() as u16).to_le_bytes());
        header.extend(1u32.to_le_bytes());
        header.extend((body.len() as u32).to_le_bytes());
        header.extend([0; 4]);
        header.extend(body);
        self.put(&header)
    }

    fn group(&mut self, group: &Group<'_>) -> Result<ObjectAddress> {
        let mut places: BTreeMap<&str, ObjectAddress> = BTreeMap::new();
        for (name, dataset) in &group.datasets {
            places.insert(name, self.dataset(name, dataset)?);
        }
        for (name, group) in &group.groups {
            let place = self.group(group)?;
            if places.insert(name, place).is_some() {
                return Err(Error::Checkpoint(message!(
                    "save: '{name}' would be a group and a dataset. Give one of the layers another name."
                )));
            }
        }
        // The names, in the order in which libraries compare them, after an empty one.
        let mut names = vec![0; 8];
        let mut links: Vec<(u64, Vec<u8>)> = Vec::new();
        for (name, place) in places {
            let at = names.len() as u64;
            names.extend(name.bytes());
            names.resize((names.len() + 1).next_multiple_of(8), 0);
            links.push((at, place.link(at)));
        }
        let names_at = self.put(&names);
        let mut heap = b"HEAP\0\0\0\0".to_vec();
        // 1: no part of it is free.
        for number in [names.len() as u64, 1, names_at] {
            heap.extend(number.to_le_bytes());
        }
        let heap = self.put(&heap);
        // Each node of the tree with the last name below it.
        let mut nodes: Vec<(u64, u64)> = Vec::new();
        for links in links.chunks(LINKS) {
            let mut table = b"SNOD\x01\0".to_vec();
            table.extend((links.len() as u16).to_le_bytes());
            links.iter().for_each(|(_, link)| table.extend(link));
            table.resize(8 + 40 * LINKS, 0);
            let last = links.last().map_or(0, |(name, _)| *name);
            nodes.push((last, self.put(&table)));
        }
        let mut level = 0;
        let tree = loop {
            let above: Vec<(u64, u64)> = self.level(&nodes, level);
            match above[..] {
                [(_, root)] => break root,
                _ => nodes = above,
            }
            level += 1;
        };
        let header = self.header(&[(0x11, [tree, heap].map(u64::to_le_bytes).concat())]);
        Ok(ObjectAddress { header, group: Some((tree, heap)) })
    }

    /// Writes the nodes of a level of a B-tree over `children`.
    fn level(&mut self, children: &[(u64, u64)], level: u8) -> Vec<(u64, u64)> {
        let size = 24 + 8 * (2 * CHILDREN + 1);
        let groups: Vec<&[(u64, u64)]> = match children.is_empty() {
            true => vec![&[]],
            false => children.chunks(CHILDREN).collect(),
        };
        let begin = self.bytes.len().next_multiple_of(8) as u64;
        let at = |index: usize| begin + (index * size) as u64;
        let (mut nodes, mut before) = (Vec::new(), 0);
        for (index, group) in groups.iter().enumerate() {
            let mut node = b"TREE\0".to_vec();
            node.push(level);
            node.extend((group.len() as u16).to_le_bytes());
            let left = if index == 0 { UNDEFINED } else { at(index - 1) };
            let right = if index + 1 == groups.len() { UNDEFINED } else { at(index + 1) };
            node.extend([left, right, before].map(u64::to_le_bytes).concat());
            for (last, child) in *group {
                node.extend([*child, *last].map(u64::to_le_bytes).concat());
                before = *last;
            }
            node.resize(size, 0);
            nodes.push((before, self.put(&node)));
        }
        nodes
    }

    fn dataset(&mut self, name: &str, dataset: &HostArray<'_>) -> Result<ObjectAddress> {
        let refused = |why: &str| {
            Error::Checkpoint(message!(
                "save: '{name}' {:?} of {} cannot be written as HDF5: {why}.",
                dataset.shape(),
                dataset.dtype().file_name()
            ))
        };
        let elements = types::message(dataset.dtype())
            .ok_or_else(|| refused("the format has no such type"))?;
        let rank = u8::try_from(dataset.shape().len()).ok().filter(|rank| *rank <= 32);
        let rank = rank.ok_or_else(|| refused("it has more than 32 axes"))?;
        let mut space = vec![1, rank, 0, 0, 0, 0, 0, 0];
        dataset.shape().iter().for_each(|size| space.extend((*size as u64).to_le_bytes()));
        let at = match dataset.bytes().is_empty() {
            true => UNDEFINED,
            false => self.put(dataset.bytes()),
        };
        let mut layout = vec![3, 1];
        layout.extend([at, dataset.bytes().len() as u64].map(u64::to_le_bytes).concat());
        // Space is allocated late, and filled with zeros if nothing is written.
        let fill = vec![2, 2, 2, 1, 0, 0, 0, 0];
        let header = self.header(&[(1, space), (3, elements), (5, fill), (8, layout)]);
        Ok(ObjectAddress { header, group: None })
    }
}
