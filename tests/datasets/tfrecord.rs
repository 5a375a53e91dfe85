//! TFRecord files written by TensorFlow, value for value; broken ones; writing, and datasets of records.

#![allow(clippy::unwrap_used)]

use crate::support::folder;
use crate::support::root;

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use folder::Folder;
use ndarray::array;
use serde_json::Value;
use wgrad::data::example::{
    Example, Feature, FeatureKind, FixedLenFeature, VarLenFeature, parse_single_example,
};
use wgrad::data::tfrecord::{TfRecordOptions, TfRecordReader, TfRecordWriter};
use wgrad::data::{AUTOTUNE, CompressionType, Dataset, IteratorState, TfRecordDataset};
use wgrad::{Error, Result};

fn oracle(name: &str) -> PathBuf {
    root::root().join("tests/data/tfrecord").join(name)
}

fn expected() -> Value {
    serde_json::from_slice(&fs::read(oracle("expected.json")).unwrap()).unwrap()
}

fn all(dataset: &Dataset<Vec<u8>>) -> Result<Vec<Vec<u8>>> {
    dataset.iter().collect()
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for part in bytes.chunks(3) {
        let bits = part.iter().fold(0u32, |bits, byte| bits << 8 | u32::from(*byte))
            << (8 * (3 - part.len()));
        for i in 0..4 {
            let letter = LETTERS[(bits >> (18 - 6 * i) & 63) as usize];
            text.push(if i <= part.len() { letter.into() } else { '=' });
        }
    }
    text
}

const PACKED: [(&str, CompressionType); 3] = [
    ("examples.tfrecord", CompressionType::None),
    ("examples.gzip.tfrecord", CompressionType::Gzip),
    ("examples.zlib.tfrecord", CompressionType::Zlib),
];

#[test]
fn every_value_that_tensorflow_wrote_is_read() {
    let expected = expected();
    let wanted = expected["records"].as_array().unwrap();
    assert!(wanted.len() >= 7);
    for (name, packed) in PACKED {
        let dataset = TfRecordDataset::new(oracle(name)).compression_type(packed).build().unwrap();
        let records = all(&dataset).unwrap();
        assert_eq!(records.len(), wanted.len(), "{name}");
        for (record, wanted) in records.iter().zip(wanted) {
            assert_eq!(record.len() as u64, wanted["length"].as_u64().unwrap());
            let features = Example::parse(record).unwrap().features.unwrap().feature;
            let mut names = BTreeSet::new();
            let mut kind = |group: &str, name: &str, found: Vec<String>| {
                let wanted = wanted["features"][group][name].as_array();
                let wanted = wanted.unwrap_or_else(|| panic!("{name} is no {group}"));
                let text = |value: &Value| match value {
                    Value::String(text) => text.clone(),
                    // The file has the f32's value as an f64 decimal.
                    number => (number.as_f64().unwrap() as f32).to_string(),
                };
                assert_eq!(found, wanted.iter().map(text).collect::<Vec<_>>(), "{name}");
                names.insert(format!("{group}/{name}"));
            };
            for (name, feature) in &features {
                match feature.kind.as_ref().unwrap() {
                    FeatureKind::Int64List(list) => {
                        kind("int64", name, list.value.iter().map(i64::to_string).collect());
                    }
                    FeatureKind::FloatList(list) => {
                        kind("float", name, list.value.iter().map(f32::to_string).collect());
                    }
                    FeatureKind::BytesList(list) => {
                        kind("bytes_base64", name, list.value.iter().map(|b| base64(b)).collect());
                    }
                }
            }
            let groups = wanted["features"].as_object().unwrap();
            let count: usize = groups.values().map(|group| group.as_object().unwrap().len()).sum();
            assert_eq!(names.len(), count);
        }
    }
}

#[test]
fn records_of_any_bytes_are_read() {
    let expected: Vec<Vec<u8>> = vec![
        Vec::new(),
        b"x".to_vec(),
        b"123456789".to_vec(),
        vec![0; 32],
        (0..=255).cycle().take(256 * 40).collect(),
    ];
    let dataset = TfRecordDataset::new(oracle("plain_strings.tfrecord")).build().unwrap();
    assert_eq!(all(&dataset).unwrap(), expected);
    let empty = TfRecordDataset::new(oracle("no_records.tfrecord")).build().unwrap();
    assert_eq!(all(&empty).unwrap().len(), 0);
}

#[test]
fn a_broken_file_is_refused_at_the_record_that_is_broken() {
    let expected = expected();
    let corrupted = expected["corrupted"].as_object().unwrap();
    assert_eq!(corrupted.len(), 5);
    for (name, what) in corrupted {
        let path = oracle(&format!("{name}.tfrecord"));
        let dataset = TfRecordDataset::new(&path).build().unwrap();
        let before = what["records_before_the_error"].as_u64().unwrap() as usize;
        let mut records = dataset.iter();
        for record in records.by_ref().take(before) {
            record.unwrap();
        }
        let error = records.next().unwrap().unwrap_err();
        assert!(matches!(error, Error::Data(_)));
        // Record 0 has 1,263 bytes plus 16 of framing.
        let wanted = format!("{}: record {before}, which begins at byte 1279, ", path.display());
        assert!(error.to_string().starts_with(&wanted), "{error}");
        assert!(records.next().is_none(), "{name}: nothing shows where the next record begins");
        // Reading continues with the next file.
        let two = TfRecordDataset::new([&path, &oracle("examples.tfrecord")]).build().unwrap();
        assert_eq!(two.iter().filter(Result::is_ok).count(), before + 7);
        assert_eq!(two.iter().filter(Result::is_err).count(), 1);
    }
}

#[test]
fn a_file_that_ends_anywhere_is_refused_or_complete() {
    let bytes = fs::read(oracle("examples.tfrecord")).unwrap();
    let lengths: Vec<usize> =
        TfRecordReader::new(&bytes[..], "x").map(|record| record.unwrap().len() + 16).collect();
    let ends: Vec<usize> = lengths
        .iter()
        .scan(0, |end, length| {
            *end += length;
            Some(*end)
        })
        .collect();
    for end in 0..bytes.len() {
        let whole = ends.iter().filter(|at| **at <= end).count();
        let mut reader = TfRecordReader::new(&bytes[..end], "x");
        assert_eq!(reader.by_ref().take_while(Result::is_ok).count(), whole, "{end}");
        let again = TfRecordReader::new(&bytes[..end], "x").nth(whole);
        assert_eq!(again.is_some(), end > 0 && !ends.contains(&end), "{end}");
    }
}

#[test]
fn packed_files_that_end_early_or_are_not_packed_are_refused() {
    let folder = Folder::new("packed");
    for (name, packed) in &PACKED[1..] {
        let bytes = fs::read(oracle(name)).unwrap();
        let dataset =
            |path: &PathBuf| TfRecordDataset::new(path).compression_type(*packed).build().unwrap();
        for end in [1, 2, 5, 20, 1000, bytes.len() - 9, bytes.len() - 4, bytes.len() - 1] {
            let cut = folder.write("cut", &bytes[..end]);
            let error = all(&dataset(&cut)).unwrap_err();
            let text = error.to_string();
            assert!(matches!(error, Error::Data(_)), "{text}");
            assert!(text.contains("data end too early"), "{name} {end}: {text}");
        }
        let mut broken = bytes.clone();
        broken[300] ^= 0xff;
        let error = all(&dataset(&folder.write("broken", &broken))).unwrap_err();
        assert!(matches!(error, Error::Data(_)), "{error}");
        let longer = [&bytes[..], b"rest"].concat();
        let error = all(&dataset(&folder.write("longer", &longer))).unwrap_err();
        assert!(matches!(error, Error::Data(_)), "{error}");
        let error = all(&dataset(&oracle("examples.tfrecord"))).unwrap_err().to_string();
        assert!(error.contains("data are corrupt"), "{error}");
        let error =
            all(&TfRecordDataset::new(oracle(name)).build().unwrap()).unwrap_err().to_string();
        assert!(error.contains("corrupt, compressed or not a TFRecord file"), "{error}");
    }
}

#[test]
fn what_is_written_is_read() {
    let folder = Folder::new("written");
    let mut random = fastrand::Rng::with_seed(5);
    let records: Vec<Vec<u8>> = (0..200)
        .map(|i| {
            let length = if i == 50 { 300_000 } else { random.usize(..2000) };
            (0..length).map(|_| random.u8(..16)).collect()
        })
        .collect();
    for packed in [CompressionType::None, CompressionType::Gzip, CompressionType::Zlib] {
        for level in [0, 1, 9] {
            let path = folder.path("records");
            let options = TfRecordOptions::new().compression_type(packed).compression_level(level);
            let mut writer = TfRecordWriter::create_with(&path, options).unwrap();
            for (i, record) in records.iter().enumerate() {
                writer.write(record).unwrap();
                if i == 100 {
                    writer.flush().unwrap();
                }
            }
            writer.close().unwrap();
            let dataset = TfRecordDataset::new(&path).compression_type(packed).build().unwrap();
            assert!(all(&dataset).unwrap() == records, "{packed:?} {level}");
        }
        // A dropped writer has still written everything.
        let path = folder.path("dropped");
        let options = TfRecordOptions::new().compression_type(packed);
        TfRecordWriter::create_with(&path, options).unwrap().write(b"one").unwrap();
        let dataset = TfRecordDataset::new(&path).compression_type(packed).build().unwrap();
        assert_eq!(all(&dataset).unwrap(), [b"one"]);
    }
}

#[test]
fn files_that_tensorflow_wrote_are_written_again_byte_for_byte() {
    let original = fs::read(oracle("examples.tfrecord")).unwrap();
    let mut writer = TfRecordWriter::new(Vec::new(), "memory");
    for record in TfRecordReader::new(&original[..], "x") {
        writer.write(record.unwrap()).unwrap();
    }
    assert!(writer.close().unwrap() == original);
}

/// Files with the records `FILE-0`, `FILE-1` and so on, with these counts.
fn shards(folder: &Folder, counts: &[usize], packed: CompressionType) -> Vec<PathBuf> {
    let shard = |(file, count): (usize, &usize)| {
        let path = folder.path(&format!("shard-{file}"));
        let options = TfRecordOptions::new().compression_type(packed);
        let mut writer = TfRecordWriter::create_with(&path, options).unwrap();
        (0..*count).for_each(|i| writer.write(format!("{file}-{i}")).unwrap());
        writer.close().unwrap();
        path
    };
    counts.iter().enumerate().map(shard).collect()
}

fn texts(dataset: &Dataset<Vec<u8>>) -> Vec<String> {
    all(dataset).unwrap().into_iter().map(|record| String::from_utf8(record).unwrap()).collect()
}

#[test]
fn several_files_are_read_in_order_or_in_turns() {
    let folder = Folder::new("turns");
    let files = shards(&folder, &[2, 0, 3, 1], CompressionType::None);
    let dataset = TfRecordDataset::new(&files).build().unwrap();
    assert_eq!(texts(&dataset), ["0-0", "0-1", "2-0", "2-1", "2-2", "3-0"]);
    // TensorFlow 2.21 returned these for such files.
    for (reads, wanted) in [
        (2, ["0-0", "0-1", "2-0", "2-1", "3-0", "2-2"]),
        (3, ["0-0", "2-0", "0-1", "3-0", "2-1", "2-2"]),
        (9, ["0-0", "2-0", "3-0", "0-1", "2-1", "2-2"]),
        (usize::MAX - 1, ["0-0", "2-0", "3-0", "0-1", "2-1", "2-2"]),
    ] {
        let dataset = TfRecordDataset::new(&files).num_parallel_reads(reads).build().unwrap();
        assert_eq!(texts(&dataset), wanted, "{reads}");
    }
    let files = shards(&folder, &[100, 3, 0, 41, 77, 2, 64], CompressionType::Gzip);
    let dataset = TfRecordDataset::new(&files).compression_type(CompressionType::Gzip);
    let mut in_order = texts(&dataset.clone().build().unwrap());
    let mut in_turns = texts(&dataset.num_parallel_reads(AUTOTUNE).build().unwrap());
    in_order.sort();
    in_turns.sort();
    assert_eq!(in_order, in_turns);
}

#[test]
fn a_pass_goes_on_where_it_was_saved() {
    let folder = Folder::new("saved");
    for packed in [CompressionType::None, CompressionType::Gzip, CompressionType::Zlib] {
        let files = shards(&folder, &[3, 0, 40, 2], packed);
        for reads in [1, 3] {
            let dataset = || {
                let dataset = TfRecordDataset::new(&files).compression_type(packed);
                dataset.num_parallel_reads(reads).build().unwrap()
            };
            let whole = texts(&dataset());
            for given in 0..=whole.len() {
                let dataset = dataset();
                let mut iter = dataset.iter();
                assert_eq!(iter.by_ref().take(given).filter(Result::is_ok).count(), given);
                let state = IteratorState::from_bytes(iter.save().unwrap().as_bytes());
                let resumed = dataset.resume(&state).unwrap();
                let rest: Vec<Vec<u8>> = resumed.collect::<Result<_>>().unwrap();
                assert_eq!(rest, whole[given..].iter().map(|s| s.as_bytes()).collect::<Vec<_>>());
            }
        }
    }
}

#[test]
fn a_pass_saved_behind_a_broken_record_goes_on_with_the_next_file() {
    let broken = oracle("flipped_data_record1.tfrecord");
    let dataset = TfRecordDataset::new([broken, oracle("examples.tfrecord")]).build().unwrap();
    let mut iter = dataset.iter();
    assert_eq!(iter.by_ref().take(2).filter(Result::is_err).count(), 1);
    let rest: Vec<_> = dataset.resume(&iter.save().unwrap()).unwrap().collect();
    assert!(rest.len() == 7 && rest.iter().all(Result::is_ok));
}

#[test]
fn a_file_that_vanished_or_shrank_cannot_be_gone_on_with() {
    let folder = Folder::new("shrank");
    let files = shards(&folder, &[4], CompressionType::None);
    let dataset = TfRecordDataset::new(&files).build().unwrap();
    let mut iter = dataset.iter();
    iter.by_ref().take(3).for_each(drop);
    let state = iter.save().unwrap();
    fs::write(&files[0], "short").unwrap();
    let error = dataset.resume(&state).unwrap_err().to_string();
    assert!(error.contains("was at byte 57, and the file has 5 bytes now"), "{error}");
    fs::remove_file(&files[0]).unwrap();
    assert!(matches!(dataset.resume(&state), Err(Error::Io(_))));
    let missing = dataset.iter().next().unwrap();
    assert!(matches!(missing, Err(Error::Io(io)) if io.path == files[0]));
}

#[test]
fn a_pipeline_takes_examples_apart() {
    let pictures = TfRecordDataset::new(oracle("examples.tfrecord")).build().unwrap();
    let pictures = pictures.map(|record| {
        let (label, height, width, raw, floats) = parse_single_example(
            &record,
            &(
                ("label", FixedLenFeature::<i64>::scalar()),
                ("height", FixedLenFeature::<i64>::scalar()),
                ("width", FixedLenFeature::<i64>::scalar()),
                ("image_raw", FixedLenFeature::<Vec<u8>>::scalar()),
                ("floats", VarLenFeature::<f32>::new()),
            ),
        )?;
        let shape = (height as usize, width as usize, 3);
        let picture = ndarray::Array3::from_shape_vec(shape, raw).unwrap();
        Ok((picture, label, floats.len() as i64))
    });
    let pictures: Vec<_> = pictures.iter().collect::<Result<_>>().unwrap();
    let widths: Vec<usize> = pictures.iter().map(|(picture, ..)| picture.shape()[1]).collect();
    assert_eq!(widths, [5, 6, 7, 5, 6, 7, 5]);
    assert_eq!(pictures[0].0.slice(ndarray::s![0, 0, ..]), array![0x22, 0x20, 0xcc]);
    assert_eq!(pictures.iter().map(|p| p.2).collect::<Vec<_>>(), [4, 5, 6, 7, 8, 9, 10]);
}

#[test]
fn features_of_every_kind_are_built() {
    let example = Example::new([
        ("one", Feature::from(7)),
        ("yes", Feature::from(true)),
        ("many", Feature::from(vec![1i64, -2, 3])),
        ("float", Feature::from(0.5f32)),
        ("floats", Feature::from(&[0.5f32, 1.5][..])),
        ("text", Feature::from("täxt")),
        ("bytes", Feature::from(vec![0u8, 255])),
        ("texts", Feature::bytes_list(["a", "bc"])),
    ]);
    let parsed = parse_single_example(
        &example.serialize(),
        &(
            ("one", FixedLenFeature::<i64>::scalar()),
            ("yes", FixedLenFeature::<i64>::scalar()),
            ("many", FixedLenFeature::<i64>::new([3, 1])),
            ("float", FixedLenFeature::<f32>::scalar()),
            ("floats", VarLenFeature::<f32>::new()),
            ("text", FixedLenFeature::<String>::scalar()),
            ("bytes", FixedLenFeature::<Vec<u8>>::scalar()),
            ("texts", VarLenFeature::<String>::new()),
        ),
    );
    let (one, yes, many, float, floats, text, bytes, texts) = parsed.unwrap();
    assert_eq!((one, yes, many), (7, 1, array![[1], [-2], [3]]));
    assert_eq!((float, floats), (0.5, vec![0.5, 1.5]));
    assert_eq!(
        (text.as_str(), bytes, texts),
        ("täxt", vec![0, 255], vec!["a".into(), "bc".into()])
    );
}
