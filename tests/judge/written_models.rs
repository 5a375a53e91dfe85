//! SavedModels that this crate writes have the results and gradients in TensorFlow that they have here: `cargo xtask judge`.

use std::path::Path;
use std::process::Command;

use wgrad as tf;
use wgrad::{GradientTape, HostArray, Tensor, Trackable};

use crate::support::folder::Folder;
use crate::support::saved_models::store;
use crate::support::written_models::{Written, all};

/// Writes a model, and what it computes for batches of two sizes.
fn write(model: &Written, folder: &Folder) {
    let name = model.name;
    model.save(&folder.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    let mut arrays: Vec<(String, HostArray<'static>)> = Vec::new();
    for size in [3, 6] {
        let inputs = model.random(size, size as u64);
        let mut add = |kind: &str, key: &str, array: HostArray<'static>| {
            arrays.push((format!("{size}.{kind}.{key}"), array));
        };
        for (key, input) in model.names().iter().zip(&inputs) {
            add("in", key, HostArray::from_tensor(input).unwrap());
        }
        if !model.trains {
            for (at, array) in model.restored(&inputs).into_iter().enumerate() {
                add("out", &format!("output_{at}"), array);
            }
            continue;
        }
        let tape = GradientTape::new();
        let results = (model.body)(&inputs).unwrap();
        let mut loss = Tensor::scalar(0f32).unwrap();
        for (at, y) in results.iter().enumerate() {
            add("out", &format!("output_{at}"), HostArray::from_tensor(y).unwrap());
            loss = loss.add(y.square().unwrap().reduce_sum(()).unwrap()).unwrap();
        }
        let named = model.root.named_variables();
        let trained: Vec<_> = named.iter().filter(|(_, variable)| variable.trainable()).collect();
        let variables: Vec<&tf::Variable> = trained.iter().map(|(_, variable)| variable).collect();
        let gradients = tape.gradient(&loss, variables).unwrap();
        for ((key, _), gradient) in trained.iter().zip(&gradients) {
            let Some(gradient) = gradient else { continue };
            add("grad", key, HostArray::from_tensor(gradient).unwrap());
        }
    }
    store(&folder.path(&format!("{name}.safetensors")), &arrays);
}

/// Runs a Python script on what `write` has written.
fn judged(script: &str, folder: &Folder, names: impl Iterator<Item = &'static str>) {
    let python = std::env::var("WGRAD_JUDGE_PYTHON").expect("`cargo xtask judge` names a Python");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(script);
    let mut command = Command::new(python);
    command.arg(script).arg(folder.path("")).args(names);
    let output = command.output().unwrap();
    let reported = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{reported}");
}

#[test]
#[ignore = "takes a Python with onnxruntime, in WGRAD_JUDGE_PYTHON: `cargo xtask judge`"]
fn written_models_compute_the_same_in_onnxruntime() {
    let folder = Folder::new("judge-written-onnx");
    let models: Vec<Written> =
        all().into_iter().filter(|model| model.onnx_lacks().is_none()).collect();
    for model in &models {
        write(model, &folder);
        let path = folder.path(&format!("{}.onnx", model.name));
        model.save_onnx(&path, model.name == "mlp").unwrap();
    }
    judged("onnx/read.py", &folder, models.iter().map(|model| model.name));
}

#[test]
#[ignore = "takes a Python with TensorFlow, in WGRAD_JUDGE_PYTHON: `cargo xtask judge`"]
fn written_models_compute_the_same_in_tensorflow() {
    let folder = Folder::new("judge-written-models");
    let models = all();
    models.iter().for_each(|model| write(model, &folder));
    judged("saved_model/read.py", &folder, models.iter().map(|model| model.name));
}
