//! Models of Keras 2, in the format of TensorFlow.js's converter, have the results here that Keras 2 has: `cargo xtask judge`.

use std::process::Command;

use wgrad as tf;
use wgrad::HostArray;
use wgrad::keras::saving::LoadedModel;
use wgrad::keras::{INFERENCE, Layer};

use crate::support::folder::Folder;
use crate::support::saved_models::{arrays, assert_near};

#[test]
#[ignore = "takes a Python with tf_keras, in WGRAD_JUDGE_PYTHON: `cargo xtask judge`"]
fn layers_models_of_keras_2() {
    let folder = Folder::new("judge-tfjs");
    let python = std::env::var("WGRAD_JUDGE_PYTHON").expect("`cargo xtask judge` names a Python");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/tfjs/sweep.py");
    let output = Command::new(python).arg(script).arg(folder.path("")).output().unwrap();
    let reported = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{reported}");
    let (mut count, mut wrong) = (0, Vec::new());
    for entry in std::fs::read_dir(folder.path("")).unwrap().map(Result::unwrap) {
        if !entry.path().is_dir() {
            continue;
        }
        count += 1;
        let name = entry.file_name().into_string().unwrap();
        let arrays = arrays(&folder.path(&format!("{name}.safetensors")));
        let x = arrays["in.x"].to_tensor().unwrap();
        let y = tf::tfjs::load_layers_model(entry.path().join("model.json")).and_then(|model| {
            match &model {
                LoadedModel::Sequential(model) => model.call(&x, INFERENCE),
                LoadedModel::Functional(model) => Layer::call(model, &x, INFERENCE),
                _ => unreachable!(),
            }
        });
        match y.and_then(|y| HostArray::from_tensor(&y)) {
            Ok(y) => assert_near(&name, &y, &arrays["out.y"], 1e-5),
            Err(error) => wrong.push(format!("{name}: {error}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 20, "{count}");
}
