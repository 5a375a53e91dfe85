//! Randomly changed files, and checks of their readers: they must not panic or hang, and their memory is bounded by the file's
//! size. A test program with this module counts all allocations of its threads.

#![allow(dead_code)] // Not every test file uses all of it.

#[path = "peak.rs"]
pub mod peak;

use std::fs;
use std::path::PathBuf;

use fastrand::Rng;
use peak::peak;
use wgrad::{Error, Result};

pub const CASES: usize = 100_000;
/// The bytes that a reader may hold in addition to those proportional to the file: its buffers, and 64 KiB of read-ahead.
const BESIDE: i64 = 200 << 10;
/// Bytes per byte of a file. Two bytes of an example make an empty feature of 32 bytes, in a list that doubles as it grows.
pub const FOR_EACH: i64 = 100;
/// Deflate compresses at most 1,032 bytes to one; the decompressed bytes are in a list that grows.
pub const FOR_EACH_PACKED: i64 = 3 * 1032;

/// Makes one to four changes to a file.
fn change(bytes: &mut Vec<u8>, others: &[Vec<u8>], random: &mut Rng) {
    const EXTREMES: [u8; 9] = [0, 1, 0x7f, 0x80, 0xff, b'"', b',', b'\n', b'('];
    for _ in 0..random.usize(1..=4) {
        let at = random.usize(..=bytes.len());
        let end = (at + random.usize(..=40)).min(bytes.len());
        match random.u8(..9) {
            0 if at < bytes.len() => bytes[at] ^= 1 << random.u8(..8),
            1 if at < bytes.len() => bytes[at] = EXTREMES[random.usize(..EXTREMES.len())],
            2 => bytes.truncate(at),
            3 => drop(bytes.drain(at..end)),
            4 => {
                let again = bytes[at..end].to_vec();
                bytes.splice(at..at, again);
            }
            5 => {
                let byte = random.u8(..);
                bytes.splice(at..at, std::iter::repeat_n(byte, end - at));
            }
            // A number that might be a length, in either byte order.
            6 => {
                let number = random.u64(..) >> random.u8(..64);
                let number =
                    if random.bool() { number.to_le_bytes() } else { number.to_be_bytes() };
                let width = [2, 4, 8][random.usize(..3)].min(bytes.len() - at);
                bytes[at..at + width].copy_from_slice(&number[..width]);
            }
            7 => {
                let other = &others[random.usize(..others.len())];
                let from = random.usize(..=other.len());
                let until = (from + random.usize(..=200)).min(other.len());
                bytes.splice(at..end, other[from..until].iter().copied());
            }
            _ => {
                let digits = ["9", "-1", "99999999999999999999", "1e999", "nan"][random.usize(..5)];
                bytes.splice(at..at, digits.bytes());
            }
        }
    }
}

/// The results of reading: values, and informative errors.
#[derive(Default, Debug)]
pub struct Seen {
    pub good: usize,
    pub bad: usize,
}

impl Seen {
    /// Records the result of a reader of bytes in memory, which can fail only because of the contents.
    pub fn note<T>(&mut self, result: Result<T>) {
        match result {
            Ok(_) => self.good += 1,
            Err(Error::Data(text)) => self.refused(&text),
            Err(other) => panic!("bytes in memory have broken contents at most: {other}"),
        }
    }

    /// The error must be informative and must not contain the whole file.
    pub fn refused(&mut self, text: &str) {
        assert!(text.len() > 20 && text.len() < 20_000, "{text}");
        self.bad += 1;
    }
}

/// Reads `CASES` changed files. Some must be readable and some not, or nothing was tested.
#[track_caller]
pub fn fuzz(
    seed: u64,
    good: &[Vec<u8>],
    each: i64,
    fix: impl Fn(&mut Vec<u8>, &mut Rng),
    read: impl Fn(&[u8], &mut Seen),
) {
    let mut random = Rng::with_seed(seed);
    let mut seen = Seen::default();
    for file in good {
        let before = seen.bad;
        read(file, &mut seen);
        assert_eq!(seen.bad, before, "a good file is refused");
    }
    for case in 0..CASES {
        let mut bytes = good[case % good.len()].clone();
        change(&mut bytes, good, &mut random);
        fix(&mut bytes, &mut random);
        let bound = BESIDE + each * bytes.len() as i64;
        let ((), held) = peak(|| read(&bytes, &mut seen));
        assert!(held <= bound, "case {case}: {held} bytes for a file of {}", bytes.len());
    }
    assert!(seen.good > CASES / 100 && seen.bad > CASES / 100, "{seen:?}");
}

pub fn nothing(_: &mut Vec<u8>, _: &mut Rng) {}

pub fn data(name: &str) -> Vec<u8> {
    fs::read(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)).unwrap()
}
