//! Small HDF5 files whose parts overlap, or are referenced a thousand times: readers use at most a few times the file's size in
//! memory.

#![allow(clippy::unwrap_used)]

use crate::mutations::peak;

use peak::peak;
use wgrad::keras::layers::Dense;
use wgrad::keras::{Sequential, saving};

/// A file that is written piece by piece, after the superblock of one of Keras's files.
struct Hdf5(Vec<u8>);

/// Numbers as eight bytes each.
fn words(numbers: &[u64]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

impl Hdf5 {
    fn new() -> Self {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/keras_files/nested.weights.h5");
        Hdf5(std::fs::read(path).unwrap()[..96].to_vec())
    }

    /// Appends a piece at a multiple of eight, and returns its position.
    fn put(&mut self, piece: &[u8]) -> u64 {
        self.0.resize(self.0.len().next_multiple_of(8), 0);
        let at = self.0.len() as u64;
        self.0.extend(piece);
        at
    }

    /// Appends a root with these messages, and reads the file into a model. Returns the error, the peak of memory and the
    /// file's size.
    fn read(mut self, messages: &[(u8, Vec<u8>)]) -> (String, i64, usize) {
        let mut body = Vec::new();
        for (kind, message) in messages {
            let size = message.len().next_multiple_of(8);
            body.extend([*kind, 0]);
            body.extend((size as u16).to_le_bytes());
            body.extend([0; 4]);
            body.extend(message);
            body.resize(body.len() + size - message.len(), 0);
        }
        let mut header = vec![1, 0, messages.len() as u8, 0];
        header.extend(1u32.to_le_bytes());
        header.extend((body.len() as u32).to_le_bytes());
        header.extend([0; 4]);
        header.extend(body);
        let root = self.put(&header);
        self.0[64..72].copy_from_slice(&root.to_le_bytes());
        let model = Sequential::new().add(Dense::new(2));
        let (read, most) = peak(|| saving::weights_from_h5(&model, &self.0));
        (read.unwrap_err().to_string(), most, self.0.len())
    }
}

/// A heap of names, and a B-tree over tables of links at `tables`; returns the message that references both.
fn symbols(file: &mut Hdf5, names: &[u8], tables: &[u64]) -> (u8, Vec<u8>) {
    let at = file.put(names);
    let heap = file.put(&[b"HEAP\0\0\0\0".to_vec(), words(&[names.len() as u64, 1, at])].concat());
    let mut tree = b"TREE\0\0".to_vec();
    tree.extend((tables.len() as u16).to_le_bytes());
    tree.extend([0xff; 16]);
    tree.extend(tables.iter().flat_map(|table| words(&[0, *table])));
    tree.extend([0; 8]);
    let tree = file.put(&tree);
    (0x11, words(&[tree, heap]))
}

#[test]
fn tables_of_links_that_overlap_are_refused() {
    const TABLES: usize = 5_000;
    let mut file = Hdf5::new();
    // Each table's header overlaps a part of the previous table's entry that the reader ignores.
    let mut tables = Vec::new();
    for table in 0..TABLES {
        tables.extend(b"SNOD\x01\0");
        tables.extend(((TABLES - table - 1) as u16).to_le_bytes());
        tables.extend(words(&[8, 96, 0, 0]));
    }
    tables.extend([0; 40]);
    let first = file.put(&tables);
    let places: Vec<u64> = (0..TABLES as u64).map(|table| first + 40 * table).collect();
    let message = symbols(&mut file, b"\0\0\0\0\0\0\0\0a\0\0\0\0\0\0\0", &places);
    let (error, most, size) = file.read(&[message]);
    assert!(error.contains("overlap"), "{error}");
    assert!(most < 100 * size as i64, "{most} bytes for a file of {size}");
}

#[test]
fn a_long_name_that_thousands_of_links_share_is_refused() {
    const LINKS: usize = 5_000;
    let mut file = Hdf5::new();
    // Invalid UTF-8, so that each name needs three times its bytes.
    let names = [vec![0xff; 4096], vec![0; 8]].concat();
    let mut table = b"SNOD\x01\0".to_vec();
    table.extend((LINKS as u16).to_le_bytes());
    (0..LINKS).for_each(|_| table.extend(words(&[0, 96, 0, 0, 0])));
    let table = file.put(&table);
    let message = symbols(&mut file, &names, &[table]);
    let (error, most, size) = file.read(&[message]);
    assert!(error.contains("share names"), "{error}");
    assert!(most < 100 * size as i64, "{most} bytes for a file of {size}");
}

/// Links of a group with non-ASCII names: the leaves of their B-tree overlap.
#[test]
fn leaves_of_names_that_overlap_are_refused() {
    const LEAVES: usize = 2_000;
    const RECORD: usize = 32;
    let mut file = Hdf5::new();
    // A block with one link, `a`, and the heap that consists of it: one block, four-byte offsets, three-byte lengths.
    let link = [vec![1, 0, 1, b'a'], words(&[96])].concat();
    let block = file.put(&[link.clone(), vec![0; 64]].concat());
    let mut heap = b"FRHP\0\0\0\0\0\0".to_vec();
    heap.extend(65_536u32.to_le_bytes());
    heap.extend([0; 96]);
    heap.extend(1u16.to_le_bytes());
    heap.extend(words(&[65_536, 65_536]));
    heap.extend([32, 0, 0, 0]);
    heap.extend(words(&[block]));
    heap.extend([0, 0]);
    heap.resize(146, 0);
    let heap = file.put(&heap);
    // A record: a hash, a form, an offset and a length; the reader ignores what follows, which is the next leaf's header.
    let record = |head: &[u8]| {
        let mut record = vec![0; 4 + 1 + 4];
        record.extend([link.len() as u8, 0, 0]);
        record.resize(RECORD - head.len(), 0);
        [record, head.to_vec()].concat()
    };
    let head = b"BTLF\0\x05";
    let mut leaves = head.to_vec();
    (0..2 * LEAVES).for_each(|_| leaves.extend(record(head)));
    let first = file.put(&leaves);
    let size = (6 + LEAVES * RECORD + (LEAVES + 1) * 10) as u32;
    let mut node = b"BTIN\0\x05".to_vec();
    (0..LEAVES).for_each(|_| node.extend(record(&[])));
    for leaf in 0..=LEAVES as u64 {
        node.extend((first + RECORD as u64 * leaf).to_le_bytes());
        node.extend((LEAVES as u16 / 2).to_le_bytes());
    }
    let node = file.put(&node);
    file.put(&vec![0; size as usize]);
    let mut tree = b"BTHD\0\x05".to_vec();
    tree.extend(size.to_le_bytes());
    tree.extend([RECORD as u8, 0, 1, 0, 0, 0]);
    tree.extend(words(&[node]));
    tree.extend((LEAVES as u16).to_le_bytes());
    tree.resize(38, 0);
    let tree = file.put(&tree);
    let message = [vec![0, 0], words(&[heap, tree])].concat();
    let (error, most, size) = file.read(&[(2, message)]);
    assert!(error.contains("overlap"), "{error}");
    assert!(most < 100 * size as i64, "{most} bytes for a file of {size}");
}

#[test]
fn a_text_to_which_thousands_of_elements_refer_is_refused() {
    const ELEMENTS: usize = 3_000;
    let mut file = Hdf5::new();
    let text = vec![0xff; 100_000];
    let mut heap = [b"GCOL\x01\0\0\0".to_vec(), words(&[32 + text.len() as u64])].concat();
    heap.extend([1, 0, 0, 0, 0, 0, 0, 0]);
    heap.extend(words(&[text.len() as u64]));
    heap.extend(&text);
    let heap = file.put(&heap);
    // An attribute: its name, strings in a heap as the type, one axis.
    let mut attribute = vec![1, 0, 12, 0, 8, 0, 16, 0];
    attribute.extend(b"layer_names\0\0\0\0\0");
    attribute.extend([0x19, 1, 0, 0, 16, 0, 0, 0]);
    attribute.extend([1, 1, 0, 0, 0, 0, 0, 0]);
    attribute.extend(words(&[ELEMENTS as u64]));
    for _ in 0..ELEMENTS {
        attribute.extend((text.len() as u32).to_le_bytes());
        attribute.extend(words(&[heap]));
        attribute.extend(1u32.to_le_bytes());
    }
    let (error, most, size) = file.read(&[(0x0c, attribute)]);
    assert!(error.contains("more text than the file"), "{error}");
    assert!(most < 100 * size as i64, "{most} bytes for a file of {size}");
}
