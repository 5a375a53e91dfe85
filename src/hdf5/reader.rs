//! [`File`]: the objects of an HDF5 file that is in memory, found by walking its groups.
//!
//! Every address of a file is visited once, so that no cycle of links and no object with a thousand names uses more memory
//! than the file has bytes.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;

use super::MAGIC;
use super::bytes::{Broken, Cursor, Seen, part};
use super::links::{self, Link};
use super::object::Object;
use super::texts::Heaps;
use crate::error::{Error, Result, message};
use crate::host_array::HostArray;

/// An HDF5 file.
pub(crate) struct File<'a> {
    bytes: &'a [u8],
    /// The name in messages.
    name: String,
    nodes: BTreeMap<String, Node<'a>>,
    /// The strings of attributes, once they have been requested.
    heaps: RefCell<Heaps<'a>>,
}

/// A group or a dataset.
pub(crate) struct Node<'a> {
    path: String,
    object: Object<'a>,
}

/// The maximum nesting of groups.
const DEEPEST: usize = 64;

impl<'a> File<'a> {
    pub(crate) fn parse(bytes: &'a [u8], name: &Path) -> Result<Self> {
        let name = name.display().to_string();
        let heaps = RefCell::new(Heaps::new(bytes));
        let mut file = File { bytes, name, nodes: BTreeMap::new(), heaps };
        let root = superblock(bytes).map_err(|broken| file.wrong(&broken.0))?;
        let mut seen = Seen::with_length(bytes.len());
        // The paths use at most a few times the size of the file.
        let mut room = 64 * 1024 + 16 * bytes.len();
        let mut waiting = vec![(String::new(), root, 0)];
        while let Some((path, at, depth)) = waiting.pop() {
            let inside = |broken: Broken| file.wrong(&format!("in '{path}': {}", broken.0));
            let mut object = Object::read(bytes, at, &mut seen).map_err(inside)?;
            let mut found = std::mem::take(&mut object.links);
            if let Some((tree, heap)) = object.group {
                walk(bytes, tree, heap, &mut seen, &mut found).map_err(inside)?;
            }
            if let Some((heap, tree)) = object.dense {
                links::walk(bytes, heap, tree, &mut seen, &mut found).map_err(inside)?;
            }
            for (name, at) in found {
                let below =
                    if path.is_empty() { name.into_owned() } else { format!("{path}/{name}") };
                let left = room.checked_sub(below.len() + size_of::<Node<'_>>());
                let (Some(left), true) = (left, depth < DEEPEST) else {
                    return Err(file.wrong("its groups lie too deep, or their names are too long"));
                };
                room = left;
                waiting.push((below, at, depth + 1));
            }
            let node = Node { path: path.clone(), object };
            if file.nodes.insert(path.clone(), node).is_some() {
                return Err(file.wrong(&format!("two objects are called '{path}'")));
            }
        }
        Ok(file)
    }

    fn wrong(&self, what: &str) -> Error {
        Error::Data(message!(
            "{}: load: {what}. It is damaged or not an HDF5 file that is supported; take another copy, or save it \
             again with Keras.",
            self.name
        ))
    }

    /// The object at a path such as `layers/dense/vars`; an empty path is the root.
    pub(crate) fn get(&self, path: &str) -> Option<&Node<'a>> {
        self.nodes.get(path)
    }

    /// The datasets, sorted by path.
    pub(crate) fn datasets(&self) -> impl Iterator<Item = &Node<'a>> {
        self.nodes.values().filter(|node| node.object.is_dataset())
    }

    /// A dataset's values.
    pub(crate) fn values(&self, node: &Node<'a>) -> Result<HostArray<'a>> {
        let values = node.object.values(self.bytes, &mut self.heaps.borrow_mut());
        values.map_err(|broken| self.wrong(&format!("in '{}': {}", node.path, broken.0)))
    }

    /// The strings of an attribute; none if there is no such attribute.
    pub(crate) fn texts(
        &self,
        node: &Node<'a>,
        attribute: &str,
    ) -> Result<Option<Vec<Cow<'a, str>>>> {
        let Some(found) = node.object.attribute(attribute) else { return Ok(None) };
        let texts = found.texts(&mut self.heaps.borrow_mut()).map(Some);
        texts.map_err(|broken| self.wrong(&format!("in '{}': {}", node.path, broken.0)))
    }
}

impl Node<'_> {
    pub(crate) fn path(&self) -> &str {
        &self.path
    }
}

/// The address of the root's header.
fn superblock(bytes: &[u8]) -> Result<u64, Broken> {
    let mut from = Cursor::new(bytes, "the superblock");
    if !bytes.starts_with(MAGIC) {
        return Err(Broken("it does not begin as an HDF5 file does".into()));
    }
    from.take(8)?;
    let version = from.number(1)?;
    if version > 1 {
        return Err(Broken(format!(
            "it has a superblock of version {version}; only 0 is supported, which h5py writes unless libver='latest' \
             is set"
        )));
    }
    from.take(4)?;
    let (offsets, lengths, _) = (from.number(1)?, from.number(1)?, from.number(1)?);
    if (offsets, lengths) != (8, 8) {
        return Err(Broken(format!(
            "its addresses have {offsets} bytes and its lengths {lengths}; only 8 are supported"
        )));
    }
    // The sizes of nodes, the flags; those of version 1 have four bytes more.
    from.take(8 + 4 * version as usize)?;
    let base = from.number(8)?;
    if base != 0 {
        return Err(Broken(format!("its addresses count from byte {base}; only 0 is supported")));
    }
    // Free space, end, driver, and the root's name.
    from.take(32)?;
    from.number(8)
}

/// Collects the links of a group from its B-tree and heap at these addresses.
fn walk<'a>(
    bytes: &'a [u8],
    tree: u64,
    heap: u64,
    seen: &mut Seen,
    found: &mut Vec<Link<'a>>,
) -> Result<(), Broken> {
    let mut from = Cursor::new(part(bytes, heap, 32, "a heap of names")?, "a heap of names");
    from.expect(b"HEAP")?;
    from.take(4)?;
    let (size, _, at) = (from.number(8)?, from.number(8)?, from.number(8)?);
    let names = part(bytes, at, size, "a heap of names")?;
    let mut waiting = vec![tree];
    while let Some(at) = waiting.pop() {
        seen.note(at)?;
        if part(bytes, at, 4, "a group")? == b"SNOD" {
            let mut from = Cursor::new(&bytes[at as usize + 4..], "a table of links");
            from.take(2)?;
            let count = from.number(2)?;
            seen.spend(count, 40)?;
            for _ in 0..count {
                let (name, to, kind, _, _) = (
                    from.number(8)?,
                    from.number(8)?,
                    from.number(4)?,
                    from.number(4)?,
                    from.take(16)?,
                );
                let name = part(names, name, (names.len() as u64).saturating_sub(name), "a name")?;
                let name = links::name(name.split(|byte| *byte == 0).next().unwrap_or_default())?;
                seen.name(name.len())?;
                if kind == 2 {
                    return Err(Broken(format!("'{name}' is a soft link, which is not supported")));
                }
                found.push((name, to));
            }
            continue;
        }
        let mut from = Cursor::new(&bytes[at as usize..], "a B-tree");
        from.expect(b"TREE")?;
        let (kind, _level, count) = (from.number(1)?, from.number(1)?, from.number(2)?);
        if kind != 0 {
            return Err(Broken(format!("the B-tree at byte {at} is not that of a group")));
        }
        seen.spend(count, 16)?;
        // Its neighbours.
        from.take(16)?;
        for _ in 0..count {
            from.take(8)?;
            waiting.push(from.number(8)?);
        }
    }
    Ok(())
}
