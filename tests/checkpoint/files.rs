//! TensorFlow's own checkpoints, and the checkpoint file format: `wgrad::train` without a model.

#![allow(clippy::unwrap_used)]

use crate::support::folder;
use crate::support::root;

use std::fs;
use std::path::{Path, PathBuf};

use folder::Folder;
use ndarray::ArrayD;
use safetensors::{Dtype, SafeTensors};
use serde_json::Value;
use wgrad::train::{
    self, CheckpointReader, latest_checkpoint, list_variables, load_checkpoint, load_variable,
};
use wgrad::{Error, HostArray, HostDType, bf16};

fn data(name: &str) -> PathBuf {
    root::root().join("tests/data/checkpoint").join(name)
}

/// Compares a checkpoint with the output of TensorFlow's own functions.
fn check(prefix: &Path) -> usize {
    let read = |ending: &str| {
        let mut path = prefix.as_os_str().to_os_string();
        path.push(ending);
        fs::read(path).unwrap()
    };
    let wanted: Vec<Value> = serde_json::from_slice(&read(".variables.json")).unwrap();
    let values = read(".safetensors");
    let values = SafeTensors::deserialize(&values).unwrap();
    let reader = load_checkpoint(prefix).unwrap();
    let (shapes, dtypes) = (reader.get_variable_to_shape_map(), reader.get_variable_to_dtype_map());
    let names: Vec<&str> = wanted.iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert!(shapes.keys().eq(&names) && dtypes.keys().eq(&names), "{names:?}");
    assert!(list_variables(prefix).unwrap().into_iter().eq(shapes.clone()));
    for one in &wanted {
        let name = one["name"].as_str().unwrap();
        let shape: Vec<usize> = serde_json::from_value(one["shape"].clone()).unwrap();
        assert_eq!(shapes[name], shape, "{name}");
        assert_eq!(dtypes[name].tensorflow_name(), one["dtype"].as_str().unwrap(), "{name}");
        let found = reader.get_tensor(name).unwrap();
        assert_eq!((found.shape(), found.dtype()), (&shape[..], dtypes[name]), "{name}");
        let Some(strings) = found.strings() else {
            let bytes = little_endian(&found);
            let wanted = values.tensor(name).unwrap();
            assert_eq!((wanted.shape(), wanted.data()), (&shape[..], &bytes[..]), "{name}");
            continue;
        };
        if let Some(wanted) = one["values"].as_array() {
            let wanted = wanted.iter().map(|text| text.as_str().unwrap().as_bytes());
            assert!(strings.iter().map(|string| &string[..]).eq(wanted), "{name}");
        } else {
            assert_eq!(strings.iter().map(Vec::len).sum::<usize>() as u64, one["bytes"], "{name}");
        }
    }
    wanted.len()
}

/// The bytes in the form of the files next to it: bfloat16 as float32.
fn little_endian(array: &HostArray<'_>) -> Vec<u8> {
    match array.to_array::<bf16>() {
        Ok(array) => array.iter().flat_map(|x| x.to_f32().to_le_bytes()).collect(),
        Err(_) => array.bytes().to_vec(),
    }
}

#[test]
fn tensorflows_checkpoints_have_the_names_and_values_that_it_says() {
    assert_eq!(check(&data("module/ckpt-2")), 15);
    assert_eq!(check(&data("dtypes/ckpt-1")), 16);
    assert_eq!(check(&data("keras/ckpt-1")), 17);
    assert_eq!(check(&data("sharded/ckpt-1")), 22);
    // bfloat16 is stored unchanged.
    let dtypes = load_checkpoint(data("dtypes")).unwrap();
    let found = dtypes.get_tensor("bf16/.ATTRIBUTES/VARIABLE_VALUE").unwrap();
    assert_eq!(found.dtype(), HostDType::Bf16);
    let values = fs::read(data("dtypes/ckpt-1.safetensors")).unwrap();
    let values = SafeTensors::deserialize(&values).unwrap();
    assert_eq!(values.tensor("bf16/.ATTRIBUTES/VARIABLE_VALUE").unwrap().dtype(), Dtype::F32);
}

/// `partitioned.py` next to the files documents their contents.
#[test]
fn tensors_in_pieces_are_put_together() {
    let prefix = data("partitioned/ckpt");
    let names = list_variables(&prefix).unwrap();
    let shapes: [(&str, &[usize]); 5] = [
        ("columns", &[2, 5, 3]),
        ("large", &[100]),
        ("rows", &[6, 4]),
        ("texts", &[4]),
        ("whole", &[6, 4]),
    ];
    let wanted = shapes.map(|(name, shape)| (name.to_string(), shape.to_vec()));
    assert_eq!(names, wanted);
    let get = |name| load_variable(&prefix, name).unwrap();
    let rows = ArrayD::from_shape_vec(vec![6, 4], (0..24).map(|i| i as f32).collect()).unwrap();
    assert_eq!(get("rows"), rows.clone().into());
    assert_eq!(get("whole"), rows.into());
    let columns = ArrayD::<i64>::from_shape_vec(vec![2, 5, 3], (-7..23).collect()).unwrap();
    assert_eq!(get("columns"), columns.into());
    let texts = ["a", "", "ccc", "dd"].map(|text| text.as_bytes().to_vec());
    assert_eq!(get("texts"), HostArray::from_strings([4], texts.to_vec()).unwrap());
    let large = get("large").to_array::<f32>().unwrap();
    assert!(large.iter().enumerate().all(|(i, &x)| x == if i < 64 { 1.0 } else { 0.0 }));
}

#[test]
fn an_array_of_another_type_is_refused() {
    let step = load_variable(data("module"), "step/.ATTRIBUTES/VARIABLE_VALUE").unwrap();
    assert_eq!(step.dtype(), HostDType::I64);
    let error = step.to_array::<f32>().unwrap_err().to_string();
    assert!(error.contains("has elements of type i64, and f32 is wanted"), "{error}");
    assert_eq!(step, ndarray::arr0(6i64).into());
}

/// A copy of a checkpoint, to be damaged.
fn copy(folder: &Folder, from: &str) -> PathBuf {
    let from = data(from);
    let (parent, name) = (from.parent().unwrap(), from.file_name().unwrap().to_str().unwrap());
    for entry in fs::read_dir(parent).unwrap() {
        let file = entry.unwrap().file_name().into_string().unwrap();
        if file.starts_with(name) && !file.ends_with(".json") && !file.ends_with(".safetensors") {
            fs::copy(parent.join(&file), folder.path(&file)).unwrap();
        }
    }
    folder.path(name)
}

/// Opens a checkpoint and reads all its tensors.
fn read_all(reader: Result<CheckpointReader, Error>) -> Result<(), Error> {
    let reader = reader?;
    let mut names = reader.get_variable_to_shape_map().into_keys();
    names.try_for_each(|name| reader.get_tensor(&name).map(drop))
}

#[test]
fn every_flipped_bit_is_found() {
    for name in ["module/ckpt-2", "dtypes/ckpt-1"] {
        let prefix = data(name);
        let file = |ending: &str| fs::read(format!("{}{ending}", prefix.display())).unwrap();
        let (index, bytes) = (file(".index"), file(".data-00000-of-00001"));
        read_all(CheckpointReader::from_bytes(&index, vec![bytes.clone()])).unwrap();
        let data_of = |error: Error| match error {
            Error::Data(text) => text.to_string(),
            // A tensor that is located in another file, according to the index.
            Error::Io(error) => error.to_string(),
            other => panic!("{other:?}"),
        };
        for at in 0..8 * index.len() {
            let mut flipped = index.clone();
            flipped[at / 8] ^= 1 << (at % 8);
            let error = read_all(CheckpointReader::from_bytes(&flipped, vec![bytes.clone()]));
            let error = data_of(error.expect_err(&format!("bit {at} of the index of {name}")));
            assert!(error.contains("checkpoint.index"), "{error}");
        }
        // In the large file, each bit of some bytes, and some bits of each.
        for at in (0..8 * bytes.len()).filter(|at| at % 11 == 0 || *at < 8 * 300) {
            let mut flipped = bytes.clone();
            flipped[at / 8] ^= 1 << (at % 8);
            let error = read_all(CheckpointReader::from_bytes(&index, vec![flipped]));
            let error = data_of(error.expect_err(&format!("bit {at} of the data of {name}")));
            assert!(error.contains("checkpoint.data-00000-of-00001: the tensor \""), "{error}");
        }
    }
}

#[test]
fn every_truncation_is_found() {
    let folder = Folder::new("truncated");
    let prefix = copy(&folder, "module/ckpt-2");
    for (ending, what) in [(".index", "ckpt-2.index"), (".data-00000-of-00001", "ckpt-2.data-")] {
        let path = PathBuf::from(format!("{}{ending}", prefix.display()));
        let whole = fs::read(&path).unwrap();
        for length in 0..whole.len() {
            fs::write(&path, &whole[..length]).unwrap();
            let error = read_all(load_checkpoint(&prefix)).unwrap_err();
            let Error::Data(text) = error else { panic!("{length}: {error}") };
            assert!(text.contains(what), "{length}: {text}");
            assert!(length > 0 || text.contains("empty") || text.contains("has 0"), "{text}");
        }
        fs::write(&path, whole).unwrap();
    }
    read_all(load_checkpoint(&prefix)).unwrap();
}

#[test]
fn a_missing_data_file_is_named_with_the_tensor() {
    let folder = Folder::new("shards");
    let prefix = copy(&folder, "sharded/ckpt-1");
    read_all(load_checkpoint(&prefix)).unwrap();
    fs::remove_file(folder.path("ckpt-1.data-00001-of-00003")).unwrap();
    let reader = load_checkpoint(&prefix).unwrap();
    let names = reader.get_variable_to_shape_map();
    let (mut good, mut bad) = (0, 0);
    for name in names.keys() {
        match reader.get_tensor(name) {
            Ok(_) => good += 1,
            Err(Error::Io(error)) => {
                assert!(error.path.ends_with("ckpt-1.data-00001-of-00003"));
                let text = error.to_string();
                assert!(text.contains(&format!("\"{name}\"")) && text.contains("all 3"), "{text}");
                bad += 1;
            }
            Err(other) => panic!("{other}"),
        }
    }
    assert!(good > 0 && bad > 0);
    // An open checkpoint stays readable.
    let prefix = copy(&folder, "sharded/ckpt-1");
    let reader = load_checkpoint(&prefix);
    for entry in fs::read_dir(folder.path("")).unwrap() {
        fs::remove_file(entry.unwrap().path()).unwrap();
    }
    if cfg!(unix) {
        read_all(reader).unwrap();
    }
    let Error::Io(error) = load_checkpoint(&prefix).unwrap_err() else { panic!() };
    assert!(error.path.ends_with("ckpt-1.index"));
}

#[test]
fn what_is_no_checkpoint_is_refused_in_words() {
    let folder = Folder::new("foreign");
    for (name, bytes) in [
        (
            "h5",
            b"\x89HDF\r\n\x1a\n and more of a file of another format, for so many bytes".to_vec(),
        ),
        ("text", b"hello".to_vec()),
        ("zeros", vec![0; 5000]),
    ] {
        folder.write(&format!("{name}.index"), &bytes);
        let Error::Data(text) = load_checkpoint(folder.path(name)).unwrap_err() else { panic!() };
        assert!(text.contains(&format!("{name}.index: the last 8 bytes")), "{text}");
    }
    fs::create_dir(folder.path("folder.index")).unwrap();
    assert!(matches!(load_checkpoint(folder.path("folder")), Err(Error::Io(_))));
    // A file's name is not the checkpoint's name.
    let prefix = copy(&folder, "module/ckpt-2");
    let error = load_checkpoint(folder.path("ckpt-2.index")).unwrap_err().to_string();
    assert!(error.ends_with(&format!("endings of its files: {}", prefix.display())), "{error}");
    let error = load_checkpoint(folder.path("")).unwrap_err().to_string();
    assert!(error.contains("no file \"checkpoint\""), "{error}");
    let error = load_variable(&prefix, "no").unwrap_err().to_string();
    assert!(error.contains("ckpt-2 has no tensor \"no\""), "{error}");
}

#[test]
fn the_newest_checkpoint_is_the_one_that_the_file_names() {
    let folder = Folder::new("newest");
    let here = folder.path("");
    assert_eq!(latest_checkpoint(&here).unwrap(), None);
    assert_eq!(train::get_checkpoint_state(&here).unwrap(), None);
    let prefix = copy(&folder, "module/ckpt-1");
    // No state file names it.
    assert_eq!(latest_checkpoint(&here).unwrap(), None);
    folder.write(
        "checkpoint",
        b"model_checkpoint_path: \"ckpt-1\"\nall_model_checkpoint_paths: \"../x\"\n",
    );
    assert_eq!(latest_checkpoint(&here).unwrap(), Some(prefix.clone()));
    let state = train::get_checkpoint_state(&here).unwrap().unwrap();
    assert_eq!(state.all_model_checkpoint_paths, [here.join("../x")]);
    assert_eq!(list_variables(&here).unwrap().len(), 15);
    // With an absolute path.
    let text = format!("model_checkpoint_path: \"{}\"", prefix.display());
    folder.write("checkpoint", text.as_bytes());
    assert_eq!(latest_checkpoint(&here).unwrap(), Some(prefix));
    // The named checkpoint does not exist.
    folder.write("checkpoint", b"model_checkpoint_path: \"ckpt-9\"\n");
    assert_eq!(latest_checkpoint(&here).unwrap(), None);
    for (text, what) in [
        (&b""[..], "names no checkpoint"),
        (b"\x00\x01\x02", "line 1"),
        (b"all_model_checkpoint_paths: \"a\"", "names no checkpoint"),
        (b"model_checkpoint_path: \"ckpt-1", "line 1 has a string without an end"),
    ] {
        let path = folder.write("checkpoint", text);
        let Error::Data(error) = latest_checkpoint(&here).unwrap_err() else { panic!() };
        assert!(
            error.starts_with(&format!("{}: ", path.display())) && error.contains(what),
            "{error}"
        );
    }
}
