//! Models of files in memory, and calls that cannot wait for values.

use std::fs;
use std::path::Path;

use wgrad as tf;
use wgrad::saved_model::{LoadOptions, Outputs, SavedFunction};
use wgrad::{HostArray, Tensor};

use crate::results::folder;
use crate::support::saved_models::{arrays, assert_near, part};

/// All files of a folder, by their paths below it, with `before` in front of them.
fn files(folder: &Path, before: &str) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let name = format!("{before}{}", entry.file_name().to_str().unwrap());
        match entry.path().is_dir() {
            true => found.extend(files(&entry.path(), &format!("{name}/"))),
            false => found.push((name, fs::read(entry.path()).unwrap())),
        }
    }
    found
}

fn inputs(name: &str) -> Vec<(String, Tensor)> {
    let arrays = arrays(&folder().join(format!("{name}.safetensors")));
    let each = part(&arrays, "in.").into_iter();
    each.map(|(name, array)| (name, array.to_tensor().unwrap())).collect()
}

fn check(name: &str, results: Outputs) {
    let arrays = arrays(&folder().join(format!("{name}.safetensors")));
    for (key, value) in results {
        let value = pollster::block_on(value.to_host_array_async()).unwrap();
        assert_near(&format!("{name}: {key}"), &value, &arrays[&format!("out.{key}")], 1e-5);
    }
}

fn call_async(f: &SavedFunction, name: &str) {
    check(name, pollster::block_on(f.call_async(inputs(name))).unwrap());
}

#[test]
fn saved_models_with_or_without_the_folders_name() {
    for before in ["", "exported/", "some/where\\"] {
        let model = tf::saved_model::load_from_bytes(
            files(&folder().join("cnn"), before),
            LoadOptions::new(),
        );
        let f = model.unwrap().signature("serving_default").unwrap();
        check("cnn", f.call(inputs("cnn")).unwrap());
    }
    // With assets.
    let all = files(&folder().join("tables"), "");
    let model = tf::saved_model::load_from_bytes(all, LoadOptions::new()).unwrap();
    let f = model.signature("serving_default").unwrap();
    let words = HostArray::from_strings([1], vec![b"blue".to_vec()]).unwrap();
    let results = f.call([("s", words)]).unwrap();
    assert_eq!(results.tensor("place").unwrap().to_vec::<i32>().unwrap(), [2]);
}

#[test]
fn missing_files_are_named() {
    let error = |files: Vec<(String, Vec<u8>)>| {
        let model = tf::saved_model::load_from_bytes(files, LoadOptions::new());
        let error = model.and_then(|model| model.signature("serving_default").map(drop));
        error.unwrap_err().to_string()
    };
    let all = files(&folder().join("cnn"), "");
    let without = |word: &str| {
        let kept = all.iter().filter(|(name, _)| !name.contains(word));
        error(kept.cloned().collect())
    };
    assert!(without("saved_model.pb").contains("\"saved_model.pb\" is missing: there are"));
    assert!(without("index").contains("checkpoint"), "{}", without("index"));
    let text = without("variables.data");
    assert!(text.contains("data-00000-of-00001"), "{text}");
    let renamed =
        all.iter().map(|(name, bytes)| (name.replace("00000-of-", "00007-of-"), bytes.clone()));
    let text = error(renamed.collect());
    assert!(text.contains("00000-of-00001\" is missing: there is"), "{text}");
    let text = tf::onnx::load_from_bytes_with(
        &fs::read(folder().join("../onnx/mlp.onnx")).unwrap(),
        [("other.data", vec![0u8; 4])],
    );
    let text = text.unwrap_err().to_string();
    assert!(text.contains("\"mlp.data\" is missing: there are other.data"), "{text}");
}

/// Loops, branches and sizes by values: each value is awaited, and nothing runs twice.
#[test]
fn calls_that_cannot_wait() {
    for name in ["cnn", "cond", "loop", "recurrence", "case", "dynamic", "integers"] {
        let model = tf::saved_model::load(folder().join(name)).unwrap();
        call_async(&model.signature("serving_default").unwrap(), name);
    }
    // What a call assigns, it assigns once.
    let model = tf::saved_model::load(folder().join("counter")).unwrap();
    let f = model.signature("serving_default").unwrap();
    let x = tf::constant([1.0, 1.0]).unwrap();
    for expected in [6.0, 7.0, 8.0] {
        let results = pollster::block_on(f.call_async([("x", &x)])).unwrap();
        assert_eq!(results.tensor("steps").unwrap().to_vec::<f32>().unwrap(), [expected; 2]);
    }
    let error = pollster::block_on(f.call_async([("y", &x)])).unwrap_err().to_string();
    assert!(error.contains("lacks its input \"x\""), "{error}");
}

/// A loaded model as a layer before another one: both are trained.
#[test]
fn a_loaded_model_is_a_layer() {
    use wgrad::Trackable;
    use wgrad::keras::layers::Dense;
    use wgrad::keras::optimizers::Adam;
    use wgrad::keras::{
        CompileOptions, FitOptions, Sequential, losses::SparseCategoricalCrossentropy,
    };
    use wgrad::keras::{INFERENCE, Layer, Model};

    tf::random::set_seed(2);
    let loaded = tf::saved_model::load(folder().join("cnn")).unwrap();
    let before = {
        loaded.signature("serving_default").unwrap();
        loaded.get_weights().unwrap()
    };
    let model = Sequential::new().add(loaded.layer("serving_default").unwrap()).add(Dense::new(3));
    model.build([None, Some(16), Some(16), Some(3)]).unwrap();
    assert_eq!(model.variables().len(), before.len() + 2);
    let x = tf::random::normal([12, 16, 16, 3]).unwrap();
    let y = tf::constant([0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2]).unwrap();
    let loss = SparseCategoricalCrossentropy::new().from_logits(true);
    model.compile(Adam::new(0.05), loss, CompileOptions::new()).unwrap();
    let options = FitOptions::new().epochs(12).batch_size(4).verbose(0);
    let history = model.fit((&x, &y), options).unwrap();
    let losses = history.get("loss").unwrap();
    assert!(losses[11] < losses[0] * 0.9, "{losses:?}");
    let after = loaded.get_weights().unwrap();
    assert!(before.iter().zip(&after).any(|(a, b)| a != b));
    // In TensorFlow's model with an ONNX model before it, as a layer of its own.
    let onnx = tf::onnx::load(folder().join("../onnx/cnn.onnx")).unwrap();
    let shape: Vec<usize> =
        onnx.inputs()[0].shape.as_ref().unwrap().iter().map(|s| s.unwrap_or(2)).collect();
    let own = Sequential::new().add(onnx.clone());
    let x = tf::random::normal(shape).unwrap();
    let expected = onnx.predict(&x).unwrap().to_vec::<f32>().unwrap();
    assert_eq!(own.call(&x, INFERENCE).unwrap().to_vec::<f32>().unwrap(), expected);
}
