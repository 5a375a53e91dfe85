//! 300,000 broken images: no decoder panics or hangs, and none takes more memory than the file and the options allow.

#![allow(clippy::unwrap_used)]

#[path = "support/counting.rs"]
mod counting;

use std::cell::Cell;
use std::fs;

use counting::Counting;
use wgrad::Error;
use wgrad::image::{self, DecodeOptions};

thread_local! {
    /// Bytes that this thread holds, and the most that it has held.
    static HELD: Cell<(i64, i64)> = const { Cell::new((0, 0)) };
}

fn count(bytes: i64) {
    // Threads that end are past counting.
    let _ = HELD.try_with(|held| {
        let (now, peak) = held.get();
        held.set((now + bytes, peak.max(now + bytes)));
    });
}

#[global_allocator]
static ALLOCATOR: Counting = Counting(count);

/// The most bytes held while `run` ran, beyond those held before.
fn peak<T>(run: impl FnOnce() -> T) -> (T, i64) {
    let before = HELD.get().0;
    HELD.set((before, before));
    let result = run();
    (result, HELD.get().1 - before)
}

fn files() -> Vec<(String, Vec<u8>)> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/images");
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let ending = path.extension().unwrap().to_str().unwrap();
        if ["jpg", "png", "bmp", "gif", "webp"].contains(&ending) {
            files.push((path.display().to_string(), fs::read(&path).unwrap()));
        }
    }
    files.sort();
    assert!(files.len() > 30);
    files
}

/// Changes the file in a few places: bits, bytes, sizes; cuts it, and repeats a part of it.
fn mutate(bytes: &mut Vec<u8>, random: &mut fastrand::Rng) {
    const TELLING: [u8; 14] = [0, 1, 2, 3, 4, 7, 8, 0x7f, 0x80, 0xff, 0xc0, 0xc4, 0xd9, 0xda];
    for _ in 0..random.usize(1..6) {
        if bytes.len() < 4 {
            return;
        }
        // Half of the changes are in the header.
        let end = if random.bool() { bytes.len() } else { bytes.len().min(64) };
        let at = random.usize(0..end);
        match random.u8(0..8) {
            0 => bytes[at] ^= 1 << random.u8(0..8),
            1 => bytes[at] = random.u8(..),
            2 | 3 => bytes[at] = TELLING[random.usize(0..TELLING.len())],
            4 => bytes.truncate(at.max(1)),
            5 => drop(bytes.remove(at)),
            6 => bytes.insert(at, random.u8(..)),
            _ => {
                let part = bytes[at..(at + random.usize(0..40)).min(bytes.len())].to_vec();
                let to = random.usize(0..bytes.len());
                bytes.splice(to..to, part);
            }
        }
    }
}

#[test]
fn broken_files_end_in_pixels_or_in_words() {
    const CASES: usize = 300_000;
    const PIXELS: usize = 1 << 14;
    // A JPEG of one column is decoded in blocks of 32, with numbers of 16 bits beside the pixels; the tables and windows of
    // the decoders come on top.
    const BOUND: i64 = (PIXELS * 32 * 12 + (2 << 20)) as i64;
    let files = files();
    let mut random = fastrand::Rng::with_seed(19);
    let (mut decoded, mut refused, mut most) = (0, 0, 0);
    for case in 0..CASES {
        let (name, file) = &files[case % files.len()];
        let mut bytes = file.clone();
        mutate(&mut bytes, &mut random);
        let options = DecodeOptions::new()
            .max_pixels(PIXELS)
            .try_recover_truncated(random.bool())
            .ratio(1 << random.u8(0..4));
        let channels = [0, 1, 3, 4][random.usize(0..4)];
        let (result, peak) = peak(|| image::decode_frames_with(&bytes, channels, options));
        match result {
            Ok(frames) => {
                assert!(frames.len() <= PIXELS * 4, "{name}, case {case}: {:?}", frames.shape());
                assert!(!frames.is_empty(), "{name}, case {case}");
                decoded += 1;
            }
            Err(Error::Data(what)) => {
                assert!(!what.contains("the decoder gave up"), "{name}, case {case}: {what}");
                refused += 1;
            }
            Err(error) => panic!("{name}, case {case}: {error:?}"),
        }
        most = most.max(peak);
        // A part of a lossy WebP has a length of 24 bits, for which its decoder makes room.
        let part = if name.ends_with("webp") { 1 << 24 } else { 0 };
        let bound = BOUND + part + 64 * bytes.len() as i64;
        assert!(peak <= bound, "{name}, case {case}: {peak} bytes");
    }
    println!("{decoded} decoded, {refused} refused, at most {most} bytes");
    // The test would say nothing if nearly all were refused at the first byte, or hardly any was broken.
    assert!(decoded > CASES / 8 && refused > CASES / 3, "{decoded} decoded, {refused} refused");
}
