//! 100,000 broken event files: the reader neither panics nor hangs, and its memory is bounded by the file's size.

#![allow(clippy::unwrap_used)]

use crate::mutations;

use fastrand::Rng;
use mutations::{Seen, data, fuzz};
use wgrad::summary::EventReader;

/// Bytes per byte of a file. Two bytes of a summary make a value without contents, whose struct has room for every kind of
/// tensor, in a list that doubles as it grows.
const FOR_EACH: i64 = 1500;

fn file() -> Vec<u8> {
    data("summary/events.out.tfevents.1700000000.host.1.0.v2")
}

fn masked_crc32c(bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes).rotate_right(15).wrapping_add(0xa282_ead8)
}

/// Bytes as the records of a file: split anywhere, and framed so that the checksums are valid.
fn framed(bytes: &mut Vec<u8>, random: &mut Rng) {
    let mut file = Vec::with_capacity(bytes.len() + 64);
    let mut rest = &bytes[..];
    while !rest.is_empty() {
        let (record, later) = rest.split_at(random.usize(1..=rest.len().min(600)));
        rest = later;
        let length = (record.len() as u64).to_le_bytes();
        file.extend(length);
        file.extend(masked_crc32c(&length).to_le_bytes());
        file.extend(record);
        file.extend(masked_crc32c(record).to_le_bytes());
    }
    *bytes = file;
}

/// Each record of the file separately, without its frame.
fn records() -> Vec<Vec<u8>> {
    let file = file();
    let (mut at, mut found) = (0, Vec::new());
    while at < file.len() {
        let length = u64::from_le_bytes(file[at..at + 8].try_into().unwrap()) as usize;
        found.push(file[at + 12..at + 12 + length].to_vec());
        at += 16 + length;
    }
    found
}

fn read(file: &[u8], seen: &mut Seen) {
    for event in EventReader::new(file, "fuzz") {
        seen.note(event);
    }
}

#[test]
fn broken_files_are_refused() {
    // Half of them are framed again, so that the code after the checksum check is reached.
    let fix = |bytes: &mut Vec<u8>, random: &mut Rng| {
        if random.bool() {
            framed(bytes, random);
        }
    };
    fuzz(1, &[file()], FOR_EACH, fix, read);
}

#[test]
fn broken_events_are_refused() {
    // A record is one event: it is changed, then framed as a whole for reading.
    let read = |record: &[u8], seen: &mut Seen| {
        let length = (record.len() as u64).to_le_bytes();
        let mut file = length.to_vec();
        file.extend(masked_crc32c(&length).to_le_bytes());
        file.extend(record);
        file.extend(masked_crc32c(record).to_le_bytes());
        read(&file, seen);
    };
    fuzz(2, &records(), FOR_EACH, mutations::nothing, read);
}
