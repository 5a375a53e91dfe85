//! Bundles written and read; TensorFlow's own are in `tests/checkpoint/files.rs`.

use std::borrow::Cow;
use std::fs;
use std::path::PathBuf;

use super::*;
use crate::error::Error;
use crate::host_array::{HostArray, HostDType};

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
        writer.add(key, &reader.array(key).unwrap()).unwrap();
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
    let Error::Io(error) = reader.array(missing).unwrap_err() else { panic!() };
    assert!(error.to_string().starts_with("checkpoint.data-00002-of-00003: the file is missing"));
}

#[test]
fn strings_and_empty_tensors_come_back() {
    let long = vec![b'x'; 100_000];
    let strings = vec![b"a".to_vec(), Vec::new(), long, b"\x00\xff".to_vec()];
    let arrays = [
        ("s", HostArray::from_strings([2, 2], strings).unwrap()),
        ("none", HostArray::from_strings([0, 3], Vec::new()).unwrap()),
        ("empty", HostArray::new(HostDType::F32, [0, 1 << 30], Vec::new()).unwrap()),
        ("scalar", ndarray::arr0(1i64).into()),
    ];
    let mut writer = BundleWriter::new(Vec::new());
    arrays.iter().for_each(|(key, array)| writer.add(key, array).unwrap());
    let (data, index) = writer.finish().unwrap();
    let reader = BundleReader::from_bytes(&index, vec![data.into()]).unwrap();
    for (key, array) in &arrays {
        assert_eq!(reader.array(key).unwrap(), *array);
    }
    assert!(matches!(reader.array("other"), Err(Error::Checkpoint(_))));
}

#[test]
fn every_dtype_that_tensorflow_stores_comes_back() {
    let mut writer = BundleWriter::new(Vec::new());
    let mut arrays = Vec::new();
    for &dtype in HostDType::ALL {
        let Some(size) = dtype.size() else { continue };
        let bytes: Vec<u8> = (0..6 * size).map(|i| (i * 37 % 2) as u8).collect();
        let array = HostArray::new(dtype, [2, 3], bytes).unwrap();
        let written = writer.add(dtype.tensorflow_name(), &array);
        // The rest only safetensors files have.
        assert_eq!(written.is_ok(), dtype.number() > 0, "{dtype}");
        arrays.extend(written.is_ok().then_some(array));
    }
    assert_eq!(arrays.len(), 30);
    let (data, index) = writer.finish().unwrap();
    let reader = BundleReader::from_bytes(&index, vec![data.into()]).unwrap();
    for array in arrays {
        let key = array.dtype().tensorflow_name();
        assert_eq!(reader.info(key).unwrap().dtype, array.dtype());
        assert_eq!(reader.array(key).unwrap(), array);
    }
}

#[test]
fn what_is_no_tensor_is_not_written() {
    let mut writer = BundleWriter::new(Vec::new());
    let array = HostArray::from(ndarray::array![1f32, 2.0]);
    let mut add = |key: &str| writer.add(key, &array).map_err(|error| error.to_string());
    add("a").unwrap();
    assert!(add("a").unwrap_err().contains("two tensors"));
    assert!(add("").unwrap_err().contains("no name"));
}
