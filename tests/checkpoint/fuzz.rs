//! 100,000 broken checkpoints and as many broken state files, like other formats in `tests/datasets/fuzz.rs`: with index and data
//! as changed, and with indexes whose checksums are corrected, so that the code after the check is reached.

#![allow(clippy::unwrap_used)]

use crate::mutations;

use mutations::{FOR_EACH, Seen, data, fuzz, nothing};
use wgrad::Error;
use wgrad::train::{CheckpointReader, CheckpointState};

/// Reads everything in a checkpoint.
fn read(index: &[u8], shards: Vec<Vec<u8>>, seen: &mut Seen) {
    let reader = CheckpointReader::from_bytes(index, shards);
    let Ok(reader) = reader else { return seen.note(reader) };
    let shapes = reader.get_variable_to_shape_map();
    assert!(shapes.len() <= index.len());
    for (name, shape) in shapes {
        match reader.get_tensor(&name) {
            Ok(array) => {
                assert_eq!(array.shape(), shape);
                seen.good += 1;
            }
            // A dtype without arrays, or a missing file.
            Err(Error::DType(text)) => seen.refused(&text),
            Err(Error::Io(error)) => seen.refused(&error.to_string()),
            Err(other) => seen.note(Err::<(), _>(other)),
        }
    }
}

fn masked_crc32c(bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes).rotate_right(15).wrapping_add(0xa282_ead8)
}

fn varint(mut number: usize, to: &mut Vec<u8>) {
    while number >= 0x80 {
        to.push(number as u8 | 0x80);
        number >>= 7;
    }
    to.push(number as u8);
}

/// A table of one block with these contents.
fn table(contents: &[u8]) -> Vec<u8> {
    let mut file = Vec::new();
    let mut places = Vec::new();
    let block = |contents: &[u8], file: &mut Vec<u8>, places: &mut Vec<u8>| {
        varint(file.len(), places);
        varint(contents.len(), places);
        let begin = file.len();
        file.extend_from_slice(contents);
        file.push(0);
        let crc = masked_crc32c(&file[begin..]).to_le_bytes();
        file.extend_from_slice(&crc);
    };
    let mut first = Vec::new();
    block(contents, &mut file, &mut first);
    let restarts = [0, 0, 0, 0, 1, 0, 0, 0];
    block(&restarts, &mut file, &mut places);
    let mut index = vec![0, 1];
    varint(first.len(), &mut index);
    index.push(b'z');
    index.extend_from_slice(&first);
    index.extend_from_slice(&restarts);
    block(&index, &mut file, &mut places);
    places.resize(40, 0);
    file.extend_from_slice(&places);
    file.extend_from_slice(&0xdb47_7524_8b80_fb57u64.to_le_bytes());
    file
}

/// The contents of an index's only block: it is followed by 5 bytes and then by the block that the footer names first.
fn contents(index: &[u8]) -> Vec<u8> {
    let footer = &index[index.len() - 48..];
    let end = footer.iter().position(|byte| byte & 0x80 == 0).unwrap();
    let at = footer[..=end].iter().rev().fold(0, |at, byte| at << 7 | usize::from(byte & 0x7f));
    index[..at - 5].to_vec()
}

fn checkpoint(name: &str, shards: usize) -> (Vec<u8>, Vec<Vec<u8>>) {
    let shard = |i| data(&format!("checkpoint/{name}.data-{i:05}-of-{shards:05}"));
    (data(&format!("checkpoint/{name}.index")), (0..shards).map(shard).collect())
}

#[test]
fn index_and_data() {
    // The index may be a part of the complete one.
    let (index, shards) = checkpoint("module/ckpt-1", 1);
    let good = [[&index[..], &shards[0]].concat(), [&index[..], &shards[0]].concat()];
    fuzz(11, &good, FOR_EACH, nothing, |bytes, seen| {
        let at = index.len().min(bytes.len());
        read(&bytes[..at], vec![bytes[at..].to_vec()], seen);
    });
}

#[test]
fn entries_behind_checksums_that_fit() {
    let files = [checkpoint("keras/ckpt-1", 1), checkpoint("partitioned/ckpt", 4)];
    for (seed, (index, shards)) in (12..).zip(files) {
        let whole = contents(&index);
        let good = [table(&whole)];
        // Changes the data covered by the checksum, then corrects the checksum.
        let fix = |bytes: &mut Vec<u8>, _: &mut fastrand::Rng| {
            let tail = good[0].len() - whole.len();
            bytes.truncate(bytes.len().saturating_sub(tail));
            *bytes = table(bytes);
        };
        fuzz(seed, &good, FOR_EACH, fix, |bytes, seen| read(bytes, shards.clone(), seen));
    }
}

#[test]
fn state_file() {
    let good = [
        data("checkpoint/module/checkpoint"),
        b"model_checkpoint_path: 'a\\303\\xa4' \"\\u00e4\" # x\nall_model_checkpoint_paths: [\"a\", 'b'];".to_vec(),
        "all_model_checkpoint_timestamps: [1e3, -inf] model_checkpoint_path: \"\u{e4}\\n\"".as_bytes().to_vec(),
    ];
    fuzz(14, &good, FOR_EACH, nothing, |bytes, seen| {
        seen.note(CheckpointState::parse(bytes, "run"))
    });
}
