//! Bundles written and read; TensorFlow's own are in `tests/checkpoint/files.rs`.

use std::borrow::Cow;
use std::fs;
use std::path::PathBuf;

use super::*;
use crate::error::Error;

fn data(name: &str) -> PathBuf {
    root::root().join("tests/data/checkpoint").join(name)
}

/// Writes the contents of a bundle again, in the order of its data.
fn rewritten(reader: &BundleReader<'_>) -> (Vec<u8>, Vec<u8>) {
    let mut keys: Vec<&str> = reader.keys().collect();
    let offset = |key: &&str| {
        let info = reader.info(key).unwrap();
        (info.shard, info.offset, elements(&info.shape).unwrap())
    };
    keys.sort_by_key(offset);
    let mut writer = BundleWriter::new(Vec::new());
    for key in keys {
        let info = reader.info(key).unwrap();
        if info.dtype == DataType::String {
            let strings = reader.read_strings(key).unwrap();
            let strings: Vec<&[u8]> = strings.iter().map(|string| &string[..]).collect();
            writer.add_strings(key, &info.shape, &strings).unwrap();
        } else {
            writer.add(key, info.dtype, &info.shape, &reader.read(key).unwrap()).unwrap();
        }
    }
    let (data, index) = writer.finish().unwrap();
    (index, data)
}

/// TensorFlow wrote these files, and the writer's output must have the same bytes.
#[test]
fn what_tensorflow_wrote_is_written_again_byte_for_byte() {
    for name in ["module/ckpt-1", "module/ckpt-2", "dtypes/ckpt-1", "keras/ckpt-1"] {
        let prefix = data(name);
        let (index, bytes) = rewritten(&BundleReader::open(&prefix).unwrap());
        assert!(bytes == fs::read(data_path(&prefix, 0, 1)).unwrap(), "{name}");
        assert!(index == fs::read(index_path(&prefix)).unwrap(), "{name}");
    }
}

#[test]
fn what_is_in_memory_is_read_as_files_are() {
    let prefix = data("sharded/ckpt-1");
    let index = fs::read(index_path(&prefix)).unwrap();
    let shard = |i| fs::read(data_path(&prefix, i, 3)).unwrap();
    let shards = [shard(0), shard(1), shard(2)];
    let from_files = BundleReader::open(&prefix).unwrap();
    let in_memory = || shards.iter().map(|shard| Cow::Borrowed(&shard[..]));
    let reader = BundleReader::from_bytes(&index, in_memory().collect()).unwrap();
    assert!(reader.keys().eq(from_files.keys()) && reader.keys().count() > 10);
    assert!(rewritten(&reader) == rewritten(&from_files));
    // One shard too few.
    let reader = BundleReader::from_bytes(&index, in_memory().take(2).collect()).unwrap();
    let missing = reader.keys().find(|key| reader.info(key).unwrap().shard == 2).unwrap();
    let Error::Io(error) = reader.read_strings(missing).unwrap_err() else { panic!() };
    assert!(error.to_string().starts_with("checkpoint.data-00002-of-00003: the file is missing"));
}

#[test]
fn strings_and_empty_tensors_come_back() {
    let long = vec![b'x'; 100_000];
    let strings: [&[u8]; 4] = [b"a", b"", &long, b"\x00\xff"];
    let mut writer = BundleWriter::new(Vec::new());
    writer.add_strings("s", &[2, 2], &strings).unwrap();
    writer.add_strings("none", &[0, 3], &[]).unwrap();
    writer.add("empty", DataType::Float32, &[0, 1 << 30], &[]).unwrap();
    writer.add("scalar", DataType::Int64, &[], &[1, 0, 0, 0, 0, 0, 0, 0]).unwrap();
    let (data, index) = writer.finish().unwrap();
    let reader = BundleReader::from_bytes(&index, vec![data.into()]).unwrap();
    assert_eq!(reader.read_strings("s").unwrap(), strings);
    assert_eq!(reader.read_strings("none").unwrap(), Vec::<Vec<u8>>::new());
    assert!(reader.read("empty").unwrap().is_empty());
    assert_eq!(reader.info("empty").unwrap().shape, [0, 1 << 30]);
    assert_eq!(reader.read("scalar").unwrap(), 1u64.to_le_bytes());
    assert!(matches!(reader.read("s"), Err(Error::DType(_))));
    assert!(matches!(reader.read_strings("scalar"), Err(Error::DType(_))));
    assert!(matches!(reader.read("other"), Err(Error::Checkpoint(_))));
}

#[test]
fn what_is_no_tensor_is_not_written() {
    let mut writer = BundleWriter::new(Vec::new());
    let mut add = |key: &str, shape: &[usize], bytes: &[u8]| {
        writer.add(key, DataType::Float32, shape, bytes).map_err(|error| error.to_string())
    };
    add("a", &[2], &[0; 8]).unwrap();
    assert!(add("a", &[2], &[0; 8]).unwrap_err().contains("two tensors"));
    assert!(add("", &[2], &[0; 8]).unwrap_err().contains("no name"));
    assert!(add("b", &[2], &[0; 7]).unwrap_err().contains("does not have 7 bytes"));
    assert!(add("b", &[usize::MAX, 2], &[0; 8]).is_err());
    assert!(add("b", &[usize::MAX, 0], &[]).is_err());
    assert!(writer.add("c", DataType::Variant, &[], &[]).is_err());
    assert!(writer.add_strings("c", &[2], &[b"one"]).is_err());
}
