//! The sorted table that is a bundle's index: keys in order, each with a value.
//!
//! The format is that of TensorFlow's `core/lib/io/table`, which derives from LevelDB (`doc/table_format.md` there). Blocks
//! follow each other; a footer has the location of the index block, whose values are the locations of the others. In a block,
//! a key omits the prefix that it shares with the previous one, except at restarts. After each block are its compression and
//! the masked checksum of both.

use std::path::Path;

use prost::encoding::{decode_varint, encode_varint};

use crate::error::{Error, Result, message};
use crate::files::checksum::masked_crc32c;

/// The last bytes of each table.
const MAGIC: [u8; 8] = 0xdb47_7524_8b80_fb57u64.to_le_bytes();
/// Two locations of at most 20 bytes, padded with zeros, and [`MAGIC`].
pub(super) const FOOTER: usize = 48;
/// After each block: one byte for its compression, four for the checksum.
const TRAILER: usize = 5;
/// A block ends after the entry with which it reaches this many bytes (TensorFlow's `table::Options`).
const BLOCK: usize = 256 << 10;
/// The number of keys that share prefixes (TensorFlow's `table::Options`).
const RESTART: usize = 16;

/// The location of a block.
#[derive(Clone, Copy)]
struct BlockHandle {
    offset: u64,
    size: u64,
}

impl BlockHandle {
    fn encode(self, to: &mut Vec<u8>) {
        encode_varint(self.offset, to);
        encode_varint(self.size, to);
    }
}

/// The bytes of a block that is being written.
struct Block {
    bytes: Vec<u8>,
    restarts: Vec<u32>,
    restart_interval: usize,
    since_restart: usize,
    last: Vec<u8>,
}

impl Block {
    fn new(restart_interval: usize) -> Self {
        Block {
            bytes: Vec::new(),
            restarts: vec![0],
            restart_interval,
            since_restart: 0,
            last: Vec::new(),
        }
    }

    fn add(&mut self, key: &[u8], value: &[u8]) {
        let mut shared = 0;
        if self.since_restart < self.restart_interval {
            shared = key.iter().zip(&self.last).take_while(|(a, b)| a == b).count();
        } else {
            self.restarts.push(self.bytes.len() as u32);
            self.since_restart = 0;
        }
        encode_varint(shared as u64, &mut self.bytes);
        encode_varint((key.len() - shared) as u64, &mut self.bytes);
        encode_varint(value.len() as u64, &mut self.bytes);
        self.bytes.extend_from_slice(&key[shared..]);
        self.bytes.extend_from_slice(value);
        self.since_restart += 1;
        self.last.clear();
        self.last.extend_from_slice(key);
    }

    fn size(&self) -> usize {
        self.bytes.len() + 4 * self.restarts.len() + 4
    }

    /// Appends the block with its trailer.
    fn write(mut self, to: &mut Vec<u8>) -> BlockHandle {
        for restart in &self.restarts {
            self.bytes.extend_from_slice(&restart.to_le_bytes());
        }
        self.bytes.extend_from_slice(&(self.restarts.len() as u32).to_le_bytes());
        let place = BlockHandle { offset: to.len() as u64, size: self.bytes.len() as u64 };
        // Not compressed.
        self.bytes.push(0);
        to.extend_from_slice(&self.bytes);
        to.extend_from_slice(&masked_crc32c(&self.bytes).to_le_bytes());
        place
    }
}

/// Writes a table; the keys must be in order.
pub(super) struct TableWriter {
    file: Vec<u8>,
    block: Block,
    index: Block,
    /// The last complete block, whose key in the index depends on the next block's first.
    complete: Option<BlockHandle>,
}

impl TableWriter {
    pub(super) fn new() -> Self {
        TableWriter {
            file: Vec::new(),
            block: Block::new(RESTART),
            index: Block::new(1),
            complete: None,
        }
    }

    pub(super) fn add(&mut self, key: &[u8], value: &[u8]) {
        if let Some(place) = self.complete.take() {
            let last = std::mem::take(&mut self.block.last);
            self.name(&separator(&last, key), place);
        }
        self.block.add(key, value);
        if self.block.size() >= BLOCK {
            self.end_block();
        }
    }

    /// The whole table.
    pub(super) fn finish(mut self) -> Vec<u8> {
        if !self.block.bytes.is_empty() {
            self.end_block();
        }
        // LevelDB stores filters here, TensorFlow nothing.
        let meta = Block::new(RESTART).write(&mut self.file);
        if let Some(place) = self.complete.take() {
            let last = std::mem::take(&mut self.block.last);
            self.name(&successor(&last), place);
        }
        let index = self.index.write(&mut self.file);
        let footer = self.file.len();
        meta.encode(&mut self.file);
        index.encode(&mut self.file);
        self.file.resize(footer + FOOTER - MAGIC.len(), 0);
        self.file.extend_from_slice(&MAGIC);
        self.file
    }

    fn end_block(&mut self) {
        let block = std::mem::replace(&mut self.block, Block::new(RESTART));
        let last = block.last.clone();
        self.complete = Some(block.write(&mut self.file));
        // For the index only: `add` resets it, so that the new block shares nothing with it.
        self.block.last = last;
    }

    fn name(&mut self, key: &[u8], place: BlockHandle) {
        let mut value = Vec::new();
        place.encode(&mut value);
        self.index.add(key, &value);
    }
}

/// A short key that is at least `last` and less than `next`.
fn separator(last: &[u8], next: &[u8]) -> Vec<u8> {
    let shared = last.iter().zip(next).take_while(|(a, b)| a == b).count();
    match (last.get(shared), next.get(shared)) {
        (Some(&byte), Some(&other)) if byte < 0xff && byte + 1 < other => {
            let mut key = last[..shared].to_vec();
            key.push(byte + 1);
            key
        }
        _ => last.to_vec(),
    }
}

/// A short key that is at least `last`.
fn successor(last: &[u8]) -> Vec<u8> {
    match last.iter().position(|&byte| byte != 0xff) {
        Some(at) => {
            let mut key = last[..at].to_vec();
            key.push(last[at] + 1);
            key
        }
        None => last.to_vec(),
    }
}

/// Whether these last bytes of a file are the end of a table.
pub(super) fn ends_a_table(bytes: &[u8]) -> bool {
    bytes.ends_with(&MAGIC)
}

/// The reason why a file that does not end like a table is not one.
pub(super) fn no_table(name: &Path, length: u64) -> Error {
    let name = name.display();
    match length {
        0 => Error::Data(message!(
            "{name} is empty. The process that wrote it was stopped, or the disk was full; take another checkpoint."
        )),
        _ => Error::Data(message!(
            "{name}: the last 8 bytes of {length} are not those of an index of a TensorFlow checkpoint \
             (57fb808b247547db). The file is truncated, or it is of another format; take another checkpoint."
        )),
    }
}

/// Passes each key of a table and its value to `take`, in order. `name` is for messages.
///
/// # Errors
/// [`Error::Data`] if a byte was changed, or a block is compressed.
pub(super) fn read(
    name: &Path,
    bytes: &[u8],
    mut take: impl FnMut(&[u8], &[u8]) -> Result<()>,
) -> Result<()> {
    if bytes.len() < FOOTER || !ends_a_table(bytes) {
        return Err(no_table(name, bytes.len() as u64));
    }
    let table = Table { name, bytes };
    let end = bytes.len() - FOOTER;
    let mut footer = &bytes[end..bytes.len() - MAGIC.len()];
    let (meta, index) = (table.place(&mut footer)?, table.place(&mut footer)?);
    // As it is written, followed by zeros: no checksum covers the footer.
    let mut wanted = Vec::new();
    meta.encode(&mut wanted);
    index.encode(&mut wanted);
    wanted.resize(FOOTER - MAGIC.len(), 0);
    if bytes[end..bytes.len() - MAGIC.len()] != wanted {
        return Err(table.broken(format_args!("the footer at byte {end} is malformed")));
    }
    let mut at = 0;
    let mut budget = Budget(RESTART * bytes.len());
    let mut last: Option<Vec<u8>> = None;
    let mut blocks = Vec::new();
    // The index block needs a separate budget, because its keys are short forms of the others.
    table.entries(index, &mut Budget(RESTART * bytes.len()), |_, mut value| {
        blocks.push(table.place(&mut value)?);
        Ok(())
    })?;
    for block in blocks {
        table.follows(block, &mut at)?;
        table.entries(block, &mut budget, |key, value| {
            if last.as_deref().is_some_and(|last| last >= key) {
                return Err(table.broken(format_args!(
                    "the key \"{}\" comes after one that is not below it",
                    key.escape_ascii()
                )));
            }
            let kept = last.get_or_insert_default();
            kept.clear();
            kept.extend_from_slice(key);
            take(key, value)
        })?;
    }
    table.follows(meta, &mut at)?;
    table.entries(meta, &mut budget, |_, _| Ok(()))?;
    table.follows(index, &mut at)?;
    if at != end as u64 {
        return Err(table.broken(format_args!(
            "the blocks end at byte {at}, and the footer begins at byte {end}"
        )));
    }
    Ok(())
}

/// The total length that keys may have without omissions: with a whole one in each [`RESTART`], at most this many times the
/// size of the file.
struct Budget(usize);

struct Table<'a> {
    name: &'a Path,
    bytes: &'a [u8],
}

impl<'a> Table<'a> {
    fn broken(&self, what: std::fmt::Arguments<'_>) -> Error {
        Error::Data(message!(
            "{}: {what}. The file is corrupt; take another checkpoint.",
            self.name.display()
        ))
    }

    fn number(&self, from: &mut &[u8]) -> Result<u64> {
        decode_varint(from).map_err(|_| self.broken(format_args!("a number in a block has no end")))
    }

    fn place(&self, from: &mut &[u8]) -> Result<BlockHandle> {
        Ok(BlockHandle { offset: self.number(from)?, size: self.number(from)? })
    }

    /// Checks that a block begins where the previous one ended, so that every byte of the file belongs to one.
    fn follows(&self, block: BlockHandle, at: &mut u64) -> Result<()> {
        if block.offset != *at {
            return Err(self.broken(format_args!(
                "a block should begin at byte {at}, and the index block says {}",
                block.offset
            )));
        }
        // The block was read, so it is within the file.
        *at = block.offset.saturating_add(block.size).saturating_add(TRAILER as u64);
        Ok(())
    }

    /// The contents of a block.
    fn contents(&self, BlockHandle { offset, size }: BlockHandle) -> Result<&'a [u8]> {
        let end = (self.bytes.len() - FOOTER) as u64;
        let whole = size.checked_add(TRAILER as u64).and_then(|whole| offset.checked_add(whole));
        if whole.is_none_or(|whole| whole > end) {
            return Err(self.broken(format_args!(
                "a block should have {size} bytes from byte {offset} on, and the footer begins at byte {end}"
            )));
        }
        let block = &self.bytes[offset as usize..];
        let (block, crc) = block[..size as usize + TRAILER].split_at(size as usize + 1);
        let wanted = little_endian(crc);
        let found = masked_crc32c(block);
        if found != wanted {
            return Err(self.broken(format_args!(
                "the block of {size} bytes at byte {offset} has the checksum {found:#010x}, and the file says \
                 {wanted:#010x}"
            )));
        }
        let (contents, compression) = block.split_at(size as usize);
        let compression = match compression[0] {
            0 => return Ok(contents),
            1 => "Snappy".to_string(),
            other => format!("method {other}"),
        };
        Err(Error::Data(message!(
            "{}: the block at byte {offset} is compressed ({compression}). TensorFlow writes indexes that are not, \
             and only those are supported; save the checkpoint with TensorFlow again.",
            self.name.display()
        )))
    }

    fn entries(
        &self,
        block: BlockHandle,
        budget: &mut Budget,
        mut take: impl FnMut(&[u8], &[u8]) -> Result<()>,
    ) -> Result<()> {
        let contents = self.contents(block)?;
        let at = block.offset;
        let restarts =
            contents.len().checked_sub(4).map(|at| little_endian(&contents[at..]) as usize);
        let behind = restarts.and_then(|n| n.checked_mul(4)?.checked_add(4));
        let Some(entries) = behind.and_then(|behind| contents.len().checked_sub(behind)) else {
            return Err(
                self.broken(format_args!("the block at byte {at} has no room for its restarts"))
            );
        };
        let mut rest = &contents[..entries];
        let mut key: Vec<u8> = Vec::new();
        while !rest.is_empty() {
            let lengths =
                [self.number(&mut rest)?, self.number(&mut rest)?, self.number(&mut rest)?];
            let [shared, unshared, value] = lengths;
            if shared > key.len() as u64 || unshared.saturating_add(value) > rest.len() as u64 {
                return Err(self.broken(format_args!(
                    "an entry of the block at byte {at} shares {shared} bytes with the key before, which has {}, and \
                     should have {unshared} and {value} more, of which {} are there",
                    key.len(),
                    rest.len()
                )));
            }
            key.truncate(shared as usize);
            let (unshared, behind) = rest.split_at(unshared as usize);
            let (value, behind) = behind.split_at(value as usize);
            key.extend_from_slice(unshared);
            rest = behind;
            budget.0 = budget.0.checked_sub(key.len()).ok_or_else(|| {
                self.broken(format_args!(
                    "the keys are longer than those of any table that TensorFlow writes"
                ))
            })?;
            take(&key, value)?;
        }
        Ok(())
    }
}

/// The number of four bytes or fewer.
fn little_endian(bytes: &[u8]) -> u32 {
    bytes.iter().rev().fold(0, |number, &byte| number << 8 | u32::from(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_the_index_block_are_short() {
        assert_eq!(separator(b"abcde", b"abzz"), b"abd");
        assert_eq!(separator(b"abc", b"abd"), b"abc");
        assert_eq!(separator(b"ab", b"abc"), b"ab");
        assert_eq!(separator(b"a\xff", b"b"), b"a\xff");
        assert_eq!(successor(b"step"), b"t");
        assert_eq!(successor(b"\xff\xffa"), b"\xff\xffb");
        assert_eq!(successor(b"\xff"), b"\xff");
        assert_eq!(successor(b""), b"");
    }

    #[test]
    fn a_table_of_many_blocks_is_read_as_it_was_written() {
        let pair = |i: usize| {
            (format!("layer-{i:06}/kernel/.ATTRIBUTES/VARIABLE_VALUE"), vec![i as u8; i % 90])
        };
        let mut writer = TableWriter::new();
        for (key, value) in (0..20_000).map(pair) {
            writer.add(key.as_bytes(), &value);
        }
        let bytes = writer.finish();
        assert!(bytes.len() > 4 * BLOCK);
        let mut found = 0;
        read(Path::new("x"), &bytes, |key, value| {
            let (wanted, bytes) = pair(found);
            assert!(key == wanted.as_bytes() && value == bytes);
            found += 1;
            Ok(())
        })
        .unwrap();
        assert_eq!(found, 20_000);
        let empty = TableWriter::new().finish();
        read(Path::new("x"), &empty, |_, _| panic!("it has no keys")).unwrap();
    }

    #[test]
    fn a_compressed_block_is_refused_in_words() {
        let mut writer = TableWriter::new();
        writer.add(b"key", b"value");
        let mut bytes = writer.finish();
        // Three lengths, a key, a value, a restart at 0 and the number of restarts.
        let size = 3 + 3 + 5 + 4 + 4;
        bytes[size] = 1;
        let crc = masked_crc32c(&bytes[..size + 1]).to_le_bytes();
        bytes[size + 1..size + 5].copy_from_slice(&crc);
        let error = read(Path::new("x"), &bytes, |_, _| Ok(())).unwrap_err().to_string();
        assert!(error.contains("Snappy"), "{error}");
    }

    #[test]
    fn keys_that_share_nearly_all_take_no_memory() {
        // One long key, and then many that add a byte to it.
        let mut block = Block::new(usize::MAX);
        let mut key = vec![b'a'; 100_000];
        for i in 0..50_000u32 {
            key.truncate(100_000);
            key.extend_from_slice(&i.to_be_bytes());
            block.add(&key, b"");
        }
        let mut file = Vec::new();
        let place = block.write(&mut file);
        let meta = Block::new(16).write(&mut file);
        let mut index = Block::new(1);
        let mut value = Vec::new();
        place.encode(&mut value);
        index.add(&key, &value);
        let index = index.write(&mut file);
        let footer = file.len();
        meta.encode(&mut file);
        index.encode(&mut file);
        file.resize(footer + 40, 0);
        file.extend_from_slice(&MAGIC);
        let mut seen = 0;
        let error = read(Path::new("x"), &file, |key, _| {
            seen += key.len();
            Ok(())
        });
        assert!(error.unwrap_err().to_string().contains("longer"));
        assert!(seen <= 16 * file.len());
    }
}
