//! 100,000 broken files of each format: no reader panics or hangs, and memory is bounded by the file's size.
//!
//! The files are valid ones, changed at random from a fixed seed. Checksums that would stop the reader are corrected, so that
//! the code after the check is reached.

#![allow(clippy::unwrap_used)]

use crate::mutations;

use std::io::Write;

use fastrand::Rng;
use mutations::{FOR_EACH, FOR_EACH_PACKED, Seen, data, fuzz, nothing};
use wgrad::Result;
use wgrad::data::csv::{CsvOptions, CsvReader, required};
use wgrad::data::example::{
    Example, Feature, FeatureList, FixedLenFeature, FixedLenSequenceFeature, SequenceExample,
    VarLenFeature, parse_single_example, parse_single_sequence_example,
};
use wgrad::data::idx::parse_idx;
use wgrad::data::npy::{self, parse_npz, write_npz};
use wgrad::data::tfrecord::TfRecordReader;

fn masked_crc32c(bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes).rotate_right(15).wrapping_add(0xa282_ead8)
}

/// Corrects checksums, most of the time; a length can then be anything.
fn mend_checksums(bytes: &mut [u8], random: &mut Rng) {
    let mut at = 0;
    while at + 12 <= bytes.len() && random.u8(..8) > 0 {
        let length = u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
        let crc = masked_crc32c(&bytes[at..at + 8]).to_le_bytes();
        bytes[at + 8..at + 12].copy_from_slice(&crc);
        let left = (bytes.len() - at - 12) as u64;
        if length > left || left - length < 4 {
            return;
        }
        let end = at + 12 + length as usize;
        let crc = masked_crc32c(&bytes[at + 12..end]).to_le_bytes();
        bytes[end..end + 4].copy_from_slice(&crc);
        at = end + 4;
    }
}

fn records(name: &str) -> Vec<Vec<u8>> {
    TfRecordReader::new(&data(name)[..], "x").map(Result::unwrap).collect()
}

#[test]
fn tfrecord() {
    let long = data("tfrecord/examples.tfrecord");
    let good = [long[..1279].to_vec(), data("tfrecord/plain_strings.tfrecord")[..200].to_vec()];
    // The second ends within its last record; all earlier records are complete.
    let good = [good[0].clone(), good[1][..16 + 17 + 25 + 48].to_vec(), Vec::new()];
    fuzz(
        1,
        &good,
        FOR_EACH,
        |bytes, random| mend_checksums(bytes, random),
        |bytes, seen| {
            let mut reader = TfRecordReader::new(bytes, "x");
            let mut most = bytes.len() / 16 + 2;
            for record in reader.by_ref() {
                seen.note(record);
                most -= 1;
                assert!(most > 0, "more records than bytes");
            }
            assert!(reader.next().is_none());
        },
    );
}

#[test]
fn example() {
    let steps = FeatureList::new([[0.5f32, 1.0], [1.5, 2.0]]);
    let sequence = SequenceExample::new([("label", Feature::from(1))], [("steps", steps)]);
    let small =
        Example::new([("label", Feature::from(3)), ("floats", Feature::from([0.5f32, 2.0]))]);
    let good =
        [records("tfrecord/examples.tfrecord")[0].clone(), small.serialize(), sequence.serialize()];
    fuzz(2, &good, FOR_EACH, nothing, |bytes, seen| {
        let example = Example::parse(bytes);
        if let Ok(example) = &example {
            // A value that is read, written and read again is the same.
            let again = example.serialize();
            assert_eq!(Example::parse(&again).unwrap().serialize(), again);
        }
        seen.note(example);
        seen.note(SequenceExample::parse(bytes));
        let parsed = parse_single_example(
            bytes,
            &(
                ("label", FixedLenFeature::<i64>::scalar().default_value(-1i64)),
                ("floats", VarLenFeature::<f32>::new()),
                ("image_raw", FixedLenFeature::<Vec<u8>>::scalar().default_value(Vec::new())),
                ("name", VarLenFeature::<String>::new()),
                ("big", FixedLenSequenceFeature::<i64>::new([2]).allow_missing(true)),
            ),
        );
        let _ = parsed.map_err(|error| assert!(error.to_string().len() < 20_000));
        let parsed = parse_single_sequence_example(
            bytes,
            &(("label", FixedLenFeature::<i64>::scalar()),),
            &(
                ("steps", FixedLenSequenceFeature::<f32>::new([2])),
                ("steps", VarLenFeature::<f32>::new()),
            ),
        );
        let _ = parsed.map_err(|error| assert!(error.to_string().len() < 20_000));
    });
}

#[test]
fn csv() {
    let good = [
        "name,lives,weight\r\nTom,1,4.5\r\n\"Ann, the \"\"cat\"\"\",,2\r\n".as_bytes().to_vec(),
        "\u{feff}name,lives,weight\n\"a\nb\",-3,1e3\n\nKit,7,inf".as_bytes().to_vec(),
        "name,lives,weight\n".as_bytes().to_vec(),
        [b"name,lives,weight\n".to_vec(), b"x,1,2\n".repeat(30)].concat(),
    ];
    let columns = (required::<String>(), 9i64, required::<f32>());
    let options = CsvOptions::new().header(true).na_value("NA");
    fuzz(3, &good, FOR_EACH, nothing, |bytes, seen| {
        let reader = CsvReader::new(bytes, "x", columns.clone(), options.clone()).unwrap();
        let mut most = bytes.len() + 2;
        for record in reader {
            seen.note(record);
            most -= 1;
            assert!(most > 0, "more records than bytes");
        }
        let narrow = options.clone().max_record_bytes(50).select_cols(vec![1]);
        CsvReader::new(bytes, "x", (0i64,), narrow).unwrap().for_each(drop);
    });
}

#[test]
fn idx() {
    let images: Vec<u8> =
        [0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4].into_iter().chain(0..24).collect();
    let labels = vec![0, 0, 8, 1, 0, 0, 0, 3, 7, 2, 1];
    let empty = vec![0, 0, 8, 1, 0, 0, 0, 0];
    let read = |bytes: &[u8], seen: &mut Seen| seen.note(parse_idx(bytes, "x"));
    fuzz(4, &[images.clone(), labels.clone(), empty], FOR_EACH, nothing, read);
    let pack = |bytes: &[u8]| {
        let mut to = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        to.write_all(bytes).unwrap();
        to.finish().unwrap()
    };
    // If a byte at the start of gzip data changes, it counts as uncompressed data.
    let packed = [pack(&images), pack(&labels), images];
    fuzz(5, &packed, FOR_EACH_PACKED, nothing, read);
}

#[test]
fn npy() {
    let names =
        ["f32", "u8", "bool", "i64", "fortran_order", "big_endian", "version2", "scalar", "empty"];
    let good: Vec<Vec<u8>> = names.iter().map(|name| data(&format!("npy/{name}.npy"))).collect();
    fuzz(6, &good, FOR_EACH, nothing, |bytes, seen| {
        let array = npy::parse(bytes, "x");
        if let Ok(array) = &array {
            let mut again = Vec::new();
            npy::write(array, &mut again).unwrap();
            assert_eq!(&npy::parse(&again, "x").unwrap(), array);
        }
        seen.note(array);
    });
}

#[test]
fn npz() {
    let array = |n: i32| ndarray::Array1::from_iter(0..n).into();
    let good =
        [false, true].map(|packed| write_npz([("a", array(3)), ("b", array(60))], packed).unwrap());
    fuzz(7, &good, FOR_EACH_PACKED, nothing, |bytes, seen| seen.note(parse_npz(bytes, "x")));
}
