//! 300,000 broken images: no decoder panics or hangs, and none uses more memory than the file and the options permit.

#![allow(clippy::unwrap_used)]

use crate::mutations::peak;

use std::fs;

use peak::peak;
use wgrad::Error;
use wgrad::image::{self, DecodeOptions};

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

/// Changes the file in a few places: bits, bytes, sizes; truncates it, or repeats a part of it.
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

/// A chunk of a WebP, padded to an even length.
fn part(name: &[u8; 4], contents: &[u8]) -> Vec<u8> {
    let mut part = [&name[..], &(contents.len() as u32).to_le_bytes(), contents].concat();
    part.resize(part.len().next_multiple_of(2), 0);
    part
}

/// A number of three bytes.
fn three(number: u32) -> [u8; 3] {
    [number as u8, (number >> 8) as u8, (number >> 16) as u8]
}

/// The header of an animation on a canvas, and these frames.
fn animation(width: u32, height: u32, frames: &[u8]) -> Vec<u8> {
    let canvas = [&[2, 0, 0, 0][..], &three(width - 1), &three(height - 1)].concat();
    let parts = [&part(b"VP8X", &canvas)[..], &part(b"ANIM", &[0; 6]), frames].concat();
    let size = (parts.len() as u32 + 4).to_le_bytes();
    [&b"RIFF"[..], &size, b"WEBP", &parts].concat()
}

/// The contents of a frame chunk: position 0, its size, no duration, replacing what is there, and its chunks.
fn frame(width: u32, height: u32, parts: &[u8]) -> Vec<u8> {
    [&[0; 6][..], &three(width - 1), &three(height - 1), &[0, 0, 0, 2], parts].concat()
}

/// A lossless WebP image of 1 x 1: the chunk, which is the whole image.
fn one_pixel() -> Vec<u8> {
    // The signature, sizes and version; no transform, no cache; five codes with one symbol each.
    let mut bits = Bits(vec![0x2f], 0);
    for (value, count) in [(0, 14), (0, 14), (0, 1), (0, 3), (0, 1), (0, 1), (0, 1)] {
        bits.push(value, count);
    }
    for symbol in [7u32, 8, 9, 255, 0] {
        // A simple code with one symbol of eight bits.
        for (value, count) in [(1, 1), (0, 1), (1, 1), (symbol, 8)] {
            bits.push(value, count);
        }
    }
    part(b"VP8L", &bits.0)
}

/// Bytes filled from their lowest bits.
struct Bits(Vec<u8>, usize);

impl Bits {
    fn push(&mut self, value: u32, count: usize) {
        for bit in 0..count {
            if self.1.is_multiple_of(8) {
                self.0.push(0);
            }
            *self.0.last_mut().unwrap() |= ((value >> bit & 1) as u8) << (self.1 % 8);
            self.1 += 1;
        }
    }
}

/// The header of a lossy image with 2^28 pixels, and nothing else.
fn great_image(width: u16, height: u16) -> Vec<u8> {
    let sizes = [width.to_le_bytes(), height.to_le_bytes()].concat();
    // A visible key frame, with a first partition of 8 bytes.
    let tag = three(8 << 5 | 1 << 4);
    part(b"VP8 ", &[&tag[..], &[0x9d, 0x01, 0x2a], &sizes, &[0; 64]].concat())
}

/// The error that refuses a file, which must use no more memory than `bound`.
#[track_caller]
fn refused(file: &[u8], bound: i64) -> String {
    let (result, most) = peak(|| image::decode_frames(file, 4));
    let error = result.unwrap_err();
    assert!(matches!(error, Error::Data(_)), "{error:?}");
    assert!(most <= bound, "{most} bytes, which end in: {error}");
    error.to_string()
}

#[test]
fn an_animated_webp_takes_no_more_than_its_frames() {
    const SMALL: i64 = 1 << 20;
    // Valid frames are decoded, however many there are.
    let good = part(b"ANMF", &frame(1, 1, &one_pixel()));
    let frames = image::decode_frames(&animation(1, 1, &good.repeat(1000)), 4).unwrap();
    assert_eq!(frames.shape(), [1000, 1, 1, 4]);
    assert!(frames.rows().into_iter().all(|pixel| pixel.to_vec() == [8, 7, 9, 255]), "{frames:?}");

    // Many frames of one pixel on a large canvas: each would be expanded to the whole canvas.
    let file = animation(4000, 4000, &good.repeat(100));
    let want = "decode_frames: the header says 100 frames of 4000 x 4000 pixels, and at most 67108864 are decoded. If the file is \
                right, raise DecodeOptions::max_animation_pixels.";
    assert_eq!(refused(&file, SMALL), want);
    // A canvas larger than any image may be, and frames and images of that size.
    let file = animation(1 << 24, 1 << 24, &good);
    assert!(refused(&file, SMALL).contains("16777216 x 16777216 pixels, and at most 268435456"));
    let file = animation(1, 1, &part(b"ANMF", &frame(1 << 24, 1 << 24, &one_pixel())));
    assert!(refused(&file, SMALL).contains("16777216 x 16777216 pixels, and at most 268435456"));
    let file = animation(1, 1, &part(b"ANMF", &frame(16383, 16383, &great_image(16383, 16383))));
    assert_eq!(
        refused(&file, SMALL),
        "decode_frames: the image is broken: a frame has 16383 x 16383 pixels, and the canvas 1 x 1. Replace the file, or \
         leave it out."
    );

    // An image larger than its frame: the decoder would decode all of it before comparing sizes.
    let great = great_image(16383, 16383);
    let want = "decode_frames: the image is broken: an image of 16383 x 16383 pixels is to fill its frame of 1 x 1. Replace the \
                file, or leave it out.";
    assert_eq!(refused(&animation(1, 1, &part(b"ANMF", &frame(1, 1, &great))), SMALL), want);
    let behind_alpha = [&part(b"ALPH", &[0; 2])[..], &great].concat();
    assert_eq!(refused(&animation(1, 1, &part(b"ANMF", &frame(1, 1, &behind_alpha))), SMALL), want);
    let second = [&good[..], &part(b"ANMF", &frame(1, 1, &great))].concat();
    assert_eq!(refused(&animation(1, 1, &second), SMALL), want);
    // The frame ends in the image's header, or in its first bytes.
    for cut in [9, 15] {
        let mut short = part(b"ANMF", &frame(1, 1, &great));
        short[4..8].copy_from_slice(&(16 + cut as u32).to_le_bytes());
        let error = refused(&animation(1, 1, &short), SMALL);
        assert!(error.contains("the image is broken"), "{error}");
    }
    // Not an animation, but a canvas with another size than its image.
    let mut still = animation(1, 1, &great);
    still[20] = 0;
    let error = refused(&still, SMALL);
    assert!(error.contains("16383 x 16383 pixels is to fill the canvas of 1 x 1"), "{error}");

    // A frame of odd length without the padding byte: the decoder finds the next frame, but a reader that skips the byte does
    // not.
    let mut hidden = part(b"ANMF", &frame(1, 1, &[&one_pixel()[..], &[0]].concat()));
    hidden.pop();
    hidden.extend(part(b"ANMF", &frame(1, 1, &great)));
    let error = refused(&animation(1, 1, &hidden), SMALL);
    assert!(error.contains("has no padding byte after it"), "{error}");

    // Nested frames, a hundred thousand deep.
    let mut nested = Vec::new();
    for depth in 0..100_000u32 {
        nested.extend(b"ANMF");
        nested.extend((24 * (100_000 - depth) - 8).to_le_bytes());
        nested.extend(frame(1, 1, &[]));
    }
    let error = refused(&animation(1, 1, &nested), SMALL);
    assert!(error.contains("the image is broken"), "{error}");
}

#[test]
fn broken_files_end_in_pixels_or_in_words() {
    const CASES: usize = 300_000;
    const PIXELS: usize = 1 << 14;
    // A JPEG of one column is decoded in blocks of 32, with 16-bit numbers in addition to the pixels; the tables and windows of
    // the decoders are added.
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
        // A chunk of a lossy WebP has a 24-bit length, which its decoder allocates.
        let part = if name.ends_with("webp") { 1 << 24 } else { 0 };
        let bound = BOUND + part + 64 * bytes.len() as i64;
        assert!(peak <= bound, "{name}, case {case}: {peak} bytes");
    }
    println!("{decoded} decoded, {refused} refused, at most {most} bytes");
    // The test would be meaningless if nearly all were refused at the first byte, or hardly any were broken.
    assert!(decoded > CASES / 8 && refused > CASES / 3, "{decoded} decoded, {refused} refused");
}
