//! TensorFlow and NumPy read the files that wgrad writes: `cargo xtask judge`, which installs TensorFlow.

#![allow(clippy::unwrap_used)]

use crate::support::folder;

use std::process::Command;

use folder::Folder;
use half::f16;
use ndarray::{Array1, array};
use serde_json::{Value, json};
use wgrad::data::CompressionType;
use wgrad::data::example::{Example, Feature, FeatureList, SequenceExample};
use wgrad::data::npy;
use wgrad::data::tfrecord::{TfRecordOptions, TfRecordWriter};

/// The records of each file: a label, integers, four floats with short decimals (the JSON reader rounds long ones), and bytes
/// as base64.
#[allow(clippy::type_complexity)]
const RECORDS: [(i64, &[i64], [f32; 4], &[(&[u8], &str)]); 3] = [
    (
        7,
        &[i64::MIN, -1, 0, 1, i64::MAX],
        [0.5, -1.25, 9.536_743e-7, 1048576.5],
        &[(b"a", "YQ=="), (b"", "")],
    ),
    (-3, &[], [0.0, -0.0, 1.0, 2.0], &[(b"\x00\xff\x80", "AP+A")]),
    (0, &[1 << 40], [0.25, 0.5, 0.75, 0.125], &[]),
];

#[test]
#[ignore = "takes a Python with TensorFlow, in WGRAD_JUDGE_PYTHON: `cargo xtask judge`"]
fn tensorflow_reads_what_is_written() {
    let folder = Folder::new("judge");
    for (name, packed) in [
        ("plain", CompressionType::None),
        ("gzip", CompressionType::Gzip),
        ("zlib", CompressionType::Zlib),
    ] {
        let options = TfRecordOptions::new().compression_type(packed);
        let path = folder.path(&format!("{name}.tfrecord"));
        let mut writer = TfRecordWriter::create_with(path, options).unwrap();
        for (label, numbers, floats, bytes) in RECORDS {
            let example = Example::new([
                ("label", Feature::from(label)),
                ("numbers", Feature::from(numbers)),
                ("floats", Feature::from(floats)),
                ("bytes", Feature::bytes_list(bytes.iter().map(|(bytes, _)| bytes))),
            ]);
            writer.write(example.serialize()).unwrap();
        }
        writer.close().unwrap();
    }
    let steps = FeatureList::new([[0.5f32, 1.0], [1.5, 2.0], [2.5, 3.0]]);
    let sequence = SequenceExample::new([("name", Feature::from("seq"))], [("steps", steps)]);
    let mut writer = TfRecordWriter::create(folder.path("sequence.tfrecord")).unwrap();
    writer.write(sequence.serialize()).unwrap();
    writer.close().unwrap();
    npy::save(folder.path("array.npy"), array![[1.5f32, 2.5], [3.5, -4.5]].reversed_axes())
        .unwrap();
    let arrays = || {
        [
            ("halves", Array1::from_vec(vec![f16::ONE, f16::NEG_ONE]).into()),
            ("yes", array![[true], [false]].into()),
            ("many", Array1::from_iter((0..1000).map(f64::from)).into()),
            ("bytes", array![0u8, 255].into()),
        ]
    };
    npy::savez(folder.path("stored.npz"), arrays()).unwrap();
    npy::savez_compressed(folder.path("packed.npz"), arrays()).unwrap();

    let python = std::env::var("WGRAD_JUDGE_PYTHON").expect("`cargo xtask judge` names a Python");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/tfrecord/judge.py");
    let output = Command::new(python).arg(script).arg(folder.path("")).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    println!("TensorFlow {}", found["tensorflow"].as_str().unwrap());

    let wanted: Vec<Value> = RECORDS
        .iter()
        .map(|(label, numbers, floats, bytes)| {
            let numbers: Vec<String> = numbers.iter().map(i64::to_string).collect();
            let bytes: Vec<&str> = bytes.iter().map(|(_, base64)| *base64).collect();
            let floats = floats.map(f64::from);
            json!({"label": label, "numbers": numbers, "floats": floats, "bytes": bytes, "missing": 0.5})
        })
        .collect();
    for name in ["plain", "gzip", "zlib"] {
        assert_eq!(found[name], json!(wanted), "{name}");
    }
    let steps = [[0.5, 1.0], [1.5, 2.0], [2.5, 3.0]];
    assert_eq!(found["sequence"], json!({"name": "c2Vx", "steps": steps}));
    let array = |name: &str, dtype: &str, shape: &[usize], values: Vec<f64>| {
        let wanted = json!({"dtype": dtype, "shape": shape, "values": values});
        assert_eq!(found["arrays"][name], wanted, "{name}");
    };
    array("one", "<f4", &[2, 2], vec![1.5, 3.5, 2.5, -4.5]);
    for archive in ["stored", "packed"] {
        array(&format!("{archive}/halves"), "<f2", &[2], vec![1.0, -1.0]);
        array(&format!("{archive}/yes"), "|b1", &[2, 1], vec![1.0, 0.0]);
        array(&format!("{archive}/many"), "<f8", &[1000], (0..1000).map(f64::from).collect());
        array(&format!("{archive}/bytes"), "|u1", &[2], vec![0.0, 255.0]);
    }
    assert_eq!(found["arrays"].as_object().unwrap().len(), 9);
}
