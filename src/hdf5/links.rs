//! The links of a group that has a name beyond ASCII: HDF5 stores them as messages in its header, or in a heap if there are
//! many.
//!
//! Source: the HDF5 File Format Specification (link message 6, link info message 2, fractal heaps, B-trees 2 of type 5).

use std::borrow::Cow;

use super::bytes::{Broken, Cursor, Seen, UNDEFINED, part};

/// A name, and the address of the object's header.
pub(super) type Link<'a> = (Cow<'a, str>, u64);

/// A name that can be part of a path.
pub(super) fn name(bytes: &[u8]) -> Result<Cow<'_, str>, Broken> {
    if bytes.is_empty() || bytes.contains(&b'/') || bytes.len() > 4096 {
        return Err(Broken(
            "a link has no name, or one with a slash or of more than 4096 bytes".into(),
        ));
    }
    Ok(String::from_utf8_lossy(bytes))
}

/// The link in a message.
pub(super) fn link(message: &[u8]) -> Result<Link<'_>, Broken> {
    let mut from = Cursor::new(message, "a link");
    let (version, flags) = (from.number(1)?, from.number(1)?);
    if version != 1 {
        return Err(Broken(format!("a link has version {version}; only 1 is supported")));
    }
    let kind = if flags & 8 != 0 { from.number(1)? } else { 0 };
    // The creation order, and the character set.
    from.take(if flags & 4 != 0 { 8 } else { 0 } + usize::from(flags & 16 != 0))?;
    let length = from.number(1 << (flags & 3))?;
    let name = name(from.take(usize::try_from(length).unwrap_or(usize::MAX))?)?;
    if kind != 0 {
        return Err(Broken(format!("'{name}' is a soft link, which is not supported")));
    }
    Ok((name, from.number(8)?))
}

/// The addresses of the heap and of the B-tree of names in a link info message, if it has them.
pub(super) fn info(message: &[u8]) -> Result<Option<(u64, u64)>, Broken> {
    let mut from = Cursor::new(message, "a group's links");
    let (_, flags) = (from.number(1)?, from.number(1)?);
    from.take(if flags & 1 != 0 { 8 } else { 0 })?;
    let (heap, tree) = (from.number(8)?, from.number(8)?);
    Ok(Some((heap, tree)).filter(|(heap, _)| *heap != UNDEFINED))
}

/// Collects the links in a heap, which a B-tree indexes by their names.
pub(super) fn walk<'a>(
    file: &'a [u8],
    heap: u64,
    tree: u64,
    seen: &mut Seen,
    links: &mut Vec<Link<'a>>,
) -> Result<(), Broken> {
    let heap = Heap::read(file, heap, seen)?;
    let mut from = Cursor::new(part(file, tree, 38, "a B-tree of names")?, "a B-tree of names");
    seen.note(tree)?;
    from.expect(b"BTHD\0\x05")?;
    let (size, record, depth) = (from.number(4)?, from.number(2)?, from.number(2)?);
    from.take(2)?;
    let (root, count) = (from.number(8)?, from.number(2)?);
    if depth > 1 || !(5..64).contains(&record) || size < 64 {
        return Err(Broken(format!(
            "a group has links in a B-tree of depth {depth}, with records of {record} and nodes of {size} bytes; \
             depths 0 and 1 are supported. Save the file with ASCII names, or with fewer in a group"
        )));
    }
    // The number of records of a leaf is stored in this many bytes.
    let width = width((size - 10) / record);
    let mut leaves = Vec::new();
    match (root, depth) {
        (UNDEFINED, _) => {}
        (_, 0) => leaves.push((root, count)),
        _ => {
            let node = part(file, root, size, "a node of names")?;
            seen.note(root)?;
            let mut from = Cursor::new(node, "a node of names");
            from.expect(b"BTIN\0\x05")?;
            seen.spend(count, record)?;
            for _ in 0..count {
                links.push(heap.link(from.take(record as usize)?, seen)?);
            }
            seen.spend(count, 8)?;
            for _ in 0..=count {
                leaves.push((from.number(8)?, from.number(width)?));
            }
        }
    }
    for (leaf, count) in leaves {
        seen.note(leaf)?;
        let mut from = Cursor::new(part(file, leaf, size, "a node of names")?, "a node of names");
        from.expect(b"BTLF\0\x05")?;
        seen.spend(count, record)?;
        for _ in 0..count {
            links.push(heap.link(from.take(record as usize)?, seen)?);
        }
    }
    Ok(())
}

/// The number of bytes that a number up to `most` needs.
fn width(most: u64) -> usize {
    (64 - most.leading_zeros() as usize).div_ceil(8).max(1)
}

/// A fractal heap: blocks that double in size.
struct Heap<'a> {
    file: &'a [u8],
    /// The offset of each block in the heap, its address and its size.
    blocks: Vec<(u64, u64, u64)>,
    /// The number of bytes of an offset and of a length in a reference.
    widths: (usize, usize),
}

impl<'a> Heap<'a> {
    fn read(file: &'a [u8], at: u64, seen: &mut Seen) -> Result<Self, Broken> {
        seen.note(at)?;
        let mut from = Cursor::new(part(file, at, 146, "a heap of links")?, "a heap of links");
        from.expect(b"FRHP\0")?;
        let (_, filters, _) = (from.number(2)?, from.number(2)?, from.number(1)?);
        if filters != 0 {
            return Err(Broken(
                "a heap of links is compressed, which wgrad does not support".into(),
            ));
        }
        let longest = from.number(4)?;
        from.take(12 * 8)?;
        let (across, first, largest) = (from.number(2)?, from.number(8)?, from.number(8)?);
        let (bits, _, root, rows) =
            (from.number(2)?, from.number(2)?, from.number(8)?, from.number(2)?);
        let known = (1..=64).contains(&bits) && first > 0 && first <= largest && across > 0;
        if !known {
            return Err(Broken("a heap of links has impossible sizes".into()));
        }
        let offset = bits.div_ceil(8);
        let mut blocks = Vec::new();
        if rows == 0 {
            blocks.push((0, root, first));
        } else {
            let table = part(file, root, 13 + offset, "a heap's table")?;
            Cursor::new(table, "a heap's table").expect(b"FHIB\0")?;
            seen.note(root)?;
            let (mut begin, mut place) = (0u64, root + 13 + offset);
            for row in 0..rows {
                let size = first.checked_shl(row.saturating_sub(1) as u32).unwrap_or(0);
                if size == 0 || size > largest {
                    return Err(Broken(
                        "a group has more links than are supported; save the file with ASCII names"
                            .into(),
                    ));
                }
                seen.spend(across, 8)?;
                for _ in 0..across {
                    let mut from = Cursor::new(part(file, place, 8, "a heap's table")?, "a heap");
                    let address = from.number(8)?;
                    if address != UNDEFINED {
                        blocks.push((begin, address, size));
                    }
                    place += 8;
                    begin = begin.saturating_add(size);
                }
            }
        }
        Ok(Heap { file, blocks, widths: (offset as usize, width(largest.min(longest))) })
    }

    /// The link to which a record refers.
    fn link(&self, record: &'a [u8], seen: &mut Seen) -> Result<Link<'a>, Broken> {
        let mut from = Cursor::new(record, "a record of names");
        // The name's hash.
        from.take(4)?;
        if from.number(1)? & 0xf0 != 0 {
            return Err(Broken("a link is stored in a form that is not supported".into()));
        }
        let (at, length) = (from.number(self.widths.0)?, from.number(self.widths.1)?);
        let behind = self.blocks.partition_point(|(begin, ..)| *begin <= at);
        let block = behind.checked_sub(1).map(|block| self.blocks[block]);
        let inside = block.filter(|(begin, _, size)| {
            (at - begin).checked_add(length).is_some_and(|end| end <= *size)
        });
        let Some((begin, address, _)) = inside else {
            return Err(Broken("a link is outside its heap".into()));
        };
        let address = address.checked_add(at - begin).unwrap_or(UNDEFINED);
        let found = link(part(self.file, address, length, "a link")?)?;
        seen.name(found.0.len())?;
        Ok(found)
    }
}
