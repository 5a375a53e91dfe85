//! Weights in other programs' files: several shards, single tensors, other names, dtypes and axes.

#![cfg(feature = "safetensors")]
#![allow(clippy::unwrap_used)]

use crate::support::folder;

use folder::Folder;
use half::{bf16, f16};
use std::collections::HashMap;
use std::fs;
use wgrad::keras::Sequential;
use wgrad::keras::layers::Dense;
use wgrad::weights::{LoadOptions, SafetensorsFile, SaveOptions};
use wgrad::{Error, Trackable, Variable};

fn model() -> Sequential {
    let model = Sequential::new().add(Dense::new(5)).add(Dense::new(2));
    model.build([1, 3]).unwrap();
    model
}

/// A safetensors file with these arrays.
fn file(arrays: &[(&str, &str, &[usize], Vec<u8>)]) -> Vec<u8> {
    let (mut header, mut data) = (serde_json::Map::new(), Vec::new());
    for (name, dtype, shape, bytes) in arrays {
        let begin = data.len();
        data.extend(bytes);
        let info = serde_json::json!({"dtype": dtype, "shape": shape, "data_offsets": [begin, data.len()]});
        header.insert(name.to_string(), info);
    }
    let header = serde_json::to_vec(&header).unwrap();
    [&(header.len() as u64).to_le_bytes()[..], &header, &data].concat()
}

fn le<T: bytemuck::Pod>(values: &[T]) -> Vec<u8> {
    bytemuck::cast_slice(values).to_vec()
}

#[derive(Trackable)]
struct One {
    w: Variable,
}

impl One {
    fn of(value: wgrad::Tensor) -> Self {
        One { w: Variable::new(&value) }
    }

    fn zeros(count: usize) -> Self {
        One::of(wgrad::Tensor::zeros([count]).unwrap())
    }

    fn load(
        &self,
        dtype: &str,
        count: usize,
        bytes: Vec<u8>,
        round: bool,
    ) -> wgrad::Result<Vec<f32>> {
        let file = file(&[("w", dtype, &[count], bytes)]);
        self.load_safetensors_with(&file, LoadOptions::new().round(round))?;
        self.w.read().cast(wgrad::DType::F32)?.to_vec()
    }
}

#[test]
fn metadata_is_written_and_read() {
    let folder = Folder::new("weights-metadata");
    let path = folder.path("w.safetensors");
    let options = SaveOptions::new().metadata("format", "pt").metadata("größe", "\"1\"\n");
    model().save_weights_with(&path, options).unwrap();
    let file = SafetensorsFile::open(&path).unwrap();
    assert_eq!(file.metadata().len(), 2);
    assert_eq!(file.metadata()["größe"], "\"1\"\n");
    // Read with the library that defines the format.
    let bytes = fs::read(&path).unwrap();
    let (_, header) = safetensors::SafeTensors::read_metadata(&bytes).unwrap();
    let want: HashMap<String, String> =
        file.metadata().iter().map(|(key, value)| (key.clone(), value.clone())).collect();
    assert_eq!(*header.metadata(), Some(want));
}

#[test]
fn large_models_are_several_files_and_an_index() {
    let folder = Folder::new("weights-shards");
    let (from, to) = (model(), model());
    let path = folder.path("model.safetensors");
    from.save_weights(&path).unwrap();
    // Kernel 60 bytes, bias 20, kernel 40, bias 8: no two of the first three fit together.
    from.save_weights_with(&path, SaveOptions::new().max_shard_size(70)).unwrap();
    let mut names: Vec<String> = fs::read_dir(folder.path(""))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    let shards: Vec<String> =
        (1..=2).map(|at| format!("model-{at:05}-of-00002.safetensors")).collect();
    assert_eq!(names, [&shards[..], &["model.safetensors.index.json".to_string()]].concat());
    let index: serde_json::Value =
        serde_json::from_slice(&fs::read(folder.path("model.safetensors.index.json")).unwrap())
            .unwrap();
    assert_eq!(index["metadata"]["total_size"], 128);
    assert_eq!(index["weight_map"]["dense/kernel"], shards[0].as_str());
    assert_eq!(index["weight_map"]["dense_1/bias"], shards[1].as_str());
    for name in ["model.safetensors", "model.safetensors.index.json"] {
        to.load_weights(folder.path(name)).unwrap();
        assert_eq!(to.get_weights().unwrap(), from.get_weights().unwrap());
    }
    let file = SafetensorsFile::open(folder.path("model.safetensors.index.json")).unwrap();
    assert_eq!(file.metadata()["total_size"], "128");
    assert_eq!(file.info("dense/kernel").unwrap().shape, [3, 5]);
    assert_eq!(
        file.tensor("dense_1/kernel").unwrap().to_vec::<f32>().unwrap(),
        from.get_weights().unwrap()[2].iter().copied().collect::<Vec<_>>()
    );

    // A missing shard, one without its tensor, and names that lead elsewhere.
    let index_path = folder.path("model.safetensors.index.json");
    let reported = |text: &str| {
        fs::write(&index_path, text).unwrap();
        to.load_weights(&index_path).unwrap_err()
    };
    let error = reported(r#"{"weight_map": {"dense/kernel": "model-00003-of-00002.safetensors"}}"#);
    assert!(
        matches!(&error, Error::Io(io) if io.path.ends_with("model-00003-of-00002.safetensors")),
        "{error}"
    );
    let error = reported(&format!(r#"{{"weight_map": {{"dense_7/kernel": "{}"}}}}"#, shards[0]));
    assert!(error.to_string().contains("'dense_7/kernel' is in"), "{error}");
    for name in ["../model.safetensors", "/etc/passwd", "..", "", "a\\\\b"] {
        let error = reported(&format!(r#"{{"weight_map": {{"dense/kernel": "{name}"}}}}"#));
        assert!(
            matches!(&error, Error::Data(text) if text.contains("not a plain file name")),
            "{error}"
        );
    }
    for text in ["", "[]", "{}", r#"{"weight_map": []}"#, r#"{"weight_map": {"a": 1}}"#] {
        assert!(matches!(reported(text), Error::Data(_)), "{text}");
    }
}

#[test]
fn one_tensor_of_a_big_file_reads_only_its_bytes() {
    use std::io::Write;
    let folder = Folder::new("weights-lazy");
    let path = folder.path("big.safetensors");
    // 8 GiB in a sparse file, of which the disk holds a few blocks.
    let big = 8u64 << 30;
    let header = format!(
        r#"{{"big":{{"dtype":"U8","shape":[{big}],"data_offsets":[0,{big}]}},"w":{{"dtype":"F32","shape":[2],"data_offsets":[{big},{}]}}}}"#,
        big + 8
    );
    let mut to = fs::File::create(&path).unwrap();
    to.write_all(&(header.len() as u64).to_le_bytes()).unwrap();
    to.write_all(header.as_bytes()).unwrap();
    let begin = 8 + header.len() as u64 + big;
    std::io::Seek::seek(&mut to, std::io::SeekFrom::Start(begin)).unwrap();
    to.write_all(&le(&[1.5f32, -2.0])).unwrap();
    drop(to);
    let file = SafetensorsFile::open(&path).unwrap();
    assert_eq!(file.tensor("w").unwrap().to_vec::<f32>().unwrap(), [1.5, -2.0]);
    let one = One::zeros(2);
    one.load_weights_with(&path, LoadOptions::new().ignore("big")).unwrap();
    assert_eq!(one.w.read().to_vec::<f32>().unwrap(), [1.5, -2.0]);
    let error = file.tensor("v").unwrap_err().to_string();
    assert!(error.ends_with("there is no tensor 'v'; there are 'big', 'w'."), "{error}");
}

#[test]
fn dtypes_are_changed_where_every_value_is_kept() {
    let halves = [1.5f32, -0.0, 65504.0, 6.1e-5];
    let want: Vec<f32> = halves.iter().map(|x| f16::from_f32(*x).to_f32()).collect();
    let bytes = le(&halves.map(|x| f16::from_f32(x).to_bits()));
    assert_eq!(One::zeros(4).load("F16", 4, bytes, false).unwrap(), want);
    let bytes = le(&[1.0f32, f32::MIN, f32::INFINITY].map(|x| bf16::from_f32(x).to_bits()));
    let got = One::zeros(3).load("BF16", 3, bytes, false).unwrap();
    assert_eq!(got, [1.0, f32::NEG_INFINITY, f32::INFINITY]);
    assert_eq!(One::zeros(2).load("F64", 2, le(&[0.5f64, -1e10]), false).unwrap(), [0.5, -1e10]);
    let nan = One::zeros(1).load("F64", 1, le(&[f64::NAN]), false).unwrap();
    assert!(nan[0].is_nan());
    for (dtype, bytes) in [
        ("I8", le(&[-7i8, 3])),
        ("I16", le(&[-7i16, 3])),
        ("I32", le(&[-7i32, 3])),
        ("I64", le(&[-7i64, 3])),
    ] {
        assert_eq!(One::zeros(2).load(dtype, 2, bytes, false).unwrap(), [-7.0, 3.0], "{dtype}");
    }
    for (dtype, bytes) in [
        ("U8", le(&[7u8, 3])),
        ("U16", le(&[7u16, 3])),
        ("U32", le(&[7u32, 3])),
        ("U64", le(&[7u64, 3])),
    ] {
        assert_eq!(One::zeros(2).load(dtype, 2, bytes, false).unwrap(), [7.0, 3.0], "{dtype}");
    }
    let ints = One::of(wgrad::constant([0i32, 0]).unwrap());
    let got = ints.load("I64", 2, le(&[i64::from(i32::MIN), i64::from(i32::MAX)]), false).unwrap();
    assert_eq!(got, [i32::MIN as f32, i32::MAX as f32]);
}

#[test]
fn a_value_that_does_not_fit_is_named() {
    let reported = |one: &One, dtype: &str, count, bytes| {
        one.load(dtype, count, bytes, false).unwrap_err().to_string()
    };
    assert_eq!(
        reported(&One::zeros(3), "F64", 3, le(&[0.5, 0.1, 0.2])),
        "load: 'w' [3] is F64 in the weights and F32 in the model, which has no 0.1: that is element [1]. Load with \
         LoadOptions::new().round(true) if the nearest value will do."
    );
    let text = reported(&One::zeros(1), "I64", 1, le(&[(1i64 << 24) + 1]));
    assert!(text.contains("which has no 16777217: that is element [0]"), "{text}");
    let ints = One::of(wgrad::constant([0i32]).unwrap());
    let text = reported(&ints, "I64", 1, le(&[1i64 << 31]));
    assert!(text.contains("I32 in the model, which has no 2147483648"), "{text}");
    let text = reported(&ints, "F32", 1, le(&[1.0f32]));
    assert!(text.contains("neither can become the other"), "{text}");
    let text = reported(&One::zeros(1), "BOOL", 1, vec![1]);
    assert!(text.contains("neither can become the other"), "{text}");
    // Rounded if requested; nothing becomes infinite.
    assert_eq!(One::zeros(1).load("F64", 1, le(&[0.1]), true).unwrap(), [0.1]);
    let error = One::zeros(1).load("F64", 1, le(&[1e300]), true).unwrap_err().to_string();
    assert!(error.contains("no 1e300"), "{error}");
    // Layers that have seen no input report it at their first input.
    let later = Sequential::new().add(Dense::new(1));
    let bytes = file(&[
        ("dense/kernel", "F64", &[1, 1], le(&[0.1])),
        ("dense/bias", "BF16", &[1], le(&[bf16::from_f32(2.0).to_bits()])),
    ]);
    later.load_safetensors(&bytes).unwrap();
    assert!(later.build([1, 1]).unwrap_err().to_string().contains("no 0.1"));
    let later = Sequential::new().add(Dense::new(1));
    later.load_safetensors_with(&bytes, LoadOptions::new().round(true)).unwrap();
    later.build([1, 1]).unwrap();
    assert_eq!(later.get_weights().unwrap()[1][0], 2.0);
}

#[test]
fn names_are_mapped_by_patterns() {
    let theirs = file(&[
        ("model.blocks.0.w", "F32", &[5, 3], le(&(0..15).map(|x| x as f32).collect::<Vec<_>>())),
        ("model.blocks.0.b", "F32", &[5], le(&[1.0f32; 5])),
        ("model.blocks.1.w", "F32", &[2, 5], le(&[2.0f32; 10])),
        ("model.rotary", "F32", &[1], le(&[0.0f32])),
        ("optimizer.step", "I64", &[], le(&[5i64])),
    ]);
    let options = LoadOptions::new()
        .prefix("model.")
        .ignore("model.rotary")
        .rename("blocks.0.{p}", "dense/{p}")
        .rename("blocks.{i}.{p}", "dense_{i}/{p}");
    let full = options.clone().transpose("{layer}/w", &[1, 0]).allow_missing("dense_1/bias");
    let model = model();
    let before = model.get_weights().unwrap();
    let error = model.load_safetensors_with(&theirs, full.clone()).unwrap_err().to_string();
    assert!(error.contains("the weights hold 'dense/b' [5]"), "{error}");
    assert_eq!(model.get_weights().unwrap(), before);
    let options = LoadOptions::new()
        .prefix("model.")
        .ignore("{any..}.rotary")
        .rename("blocks.0.w", "dense/kernel")
        .rename("blocks.0.b", "dense/bias")
        .rename("blocks.{i}.w", "dense_{i}/kernel")
        .transpose("{layer}/kernel", &[1, 0])
        .allow_missing("{layer}/bias");
    model.load_safetensors_with(&theirs, options).unwrap();
    let after = model.get_weights().unwrap();
    assert_eq!((after[0][[0, 1]], after[0][[2, 4]]), (3.0, 14.0));
    assert_eq!(after[1].as_slice().unwrap(), [1.0; 5]);
    assert_eq!(after[2][[4, 1]], 2.0);
    assert_eq!(after[3], before[3]);
}
