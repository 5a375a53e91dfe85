//! TensorFlow reads the writer's output: `cargo xtask judge`. A whole `Checkpoint` has a separate judge.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use super::*;
use crate::host_array::{HostArray, HostDType};
use crate::train::state_file::update_checkpoint_state;
use crate::train::{CheckpointState, latest_checkpoint};

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn named(key: &str, dtype: HostDType, shape: &[usize], values: &[String]) -> (String, Value) {
    (key.to_string(), json!({"dtype": dtype.tensorflow_name(), "shape": shape, "values": values}))
}

#[test]
#[ignore = "takes a Python with TensorFlow, in WGRAD_JUDGE_PYTHON: `cargo xtask judge`"]
fn tensorflow_reads_every_type_and_name() {
    let folder = std::env::temp_dir().join(format!("wgrad-judge-bundle-{}", std::process::id()));
    let folder = folder.join("a \"b\" ä\n");
    let prefix = folder.join("ckpt.v1-7");
    let mut files = BundleFiles::begin(&prefix).unwrap();
    let mut wanted = Vec::new();
    // The types whose elements have a fixed size, and that a restore accepts.
    let numbers =
        (1..=23).map(HostDType::from_number).filter_map(|dtype| Some((dtype, dtype.size()?)));
    for (dtype, size) in numbers {
        let key = format!("dtype/{dtype}");
        let bytes: Vec<u8> = (0..6 * size).map(|i| (i * 37 % 2) as u8).collect();
        files.add(&key, &HostArray::new(dtype, [2, 3], &bytes).unwrap()).unwrap();
        wanted.push(named(&key, dtype, &[2, 3], &[hex(&bytes)]));
    }
    let shapes: [(&str, &[usize]); 4] = [
        ("scalar", &[]),
        ("empty", &[0, 3]),
        ("axes", &[1, 2, 1, 2, 1, 2, 1, 1]),
        ("large", &[300_000]),
    ];
    for (key, shape) in shapes {
        let count = elements(shape).unwrap() as u32;
        let bytes: Vec<u8> = (0..count).flat_map(|i| (i as f32).to_le_bytes()).collect();
        files.add(key, &HostArray::new(HostDType::F32, shape, &bytes).unwrap()).unwrap();
        wanted.push(named(key, HostDType::F32, shape, &[hex(&bytes)]));
    }
    let long = "x".repeat(100_000);
    let strings: [&[u8]; 6] =
        [b"a", b"", long.as_bytes(), b"\x00\xff", "ä😀".as_bytes(), &[0; 300]];
    let texts = [
        ("strings", &[3, 2][..], &strings[..]),
        ("string", &[], &strings[..1]),
        ("none", &[0], &[]),
    ];
    for (key, shape, strings) in texts {
        let texts: Vec<Vec<u8>> = strings.iter().map(|string| string.to_vec()).collect();
        files.add(key, &HostArray::from_strings(shape, texts).unwrap()).unwrap();
        let values: Vec<String> = strings.iter().map(|string| hex(string)).collect();
        wanted.push(named(key, HostDType::String, shape, &values));
    }
    // Several blocks of the index.
    let names = (0..3000)
        .map(|i| format!("model/layer-{i:04}/{}/.ATTRIBUTES/VARIABLE_VALUE", "k".repeat(i % 300)));
    for key in
        names.chain(["ä/😀/\u{10ffff}".to_string(), "n".repeat(50_000), " /.:\t\"".to_string()])
    {
        let array = HostArray::from(ndarray::arr0(key.len() as i64));
        files.add(&key, &array).unwrap();
        wanted.push(named(&key, HostDType::I64, &[], &[hex(array.bytes())]));
    }
    files.finish().unwrap();
    assert!(fs::metadata(index_path(&prefix)).unwrap().len() > 512 << 10);
    let state =
        CheckpointState { model_checkpoint_path: prefix.clone(), ..CheckpointState::default() };
    update_checkpoint_state(&folder, &state).unwrap();
    assert_eq!(latest_checkpoint(&folder).unwrap().as_ref(), Some(&prefix));

    let python = std::env::var("WGRAD_JUDGE_PYTHON").expect("`cargo xtask judge` names a Python");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/checkpoint/judge.py");
    let output = Command::new(python).arg(script).args([&prefix, &folder]).output().unwrap();
    fs::remove_dir_all(folder.parent().unwrap()).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    println!("TensorFlow {}", found["tensorflow"].as_str().unwrap());
    assert_eq!(PathBuf::from(found["latest"][0].as_str().unwrap()), prefix);
    let tensors = found["tensors"].as_object().unwrap();
    assert_eq!(tensors.len(), wanted.len());
    for (key, wanted) in &wanted {
        assert!(tensors[key] == *wanted, "{key}");
    }
}
