//! SavedModels that TensorFlow and Keras write now have the results and gradients here that TensorFlow has for them:
//! `cargo xtask judge`. `WGRAD_JUDGE_SEED` is the seed of their weights and inputs.

use std::process::Command;

use crate::support::folder::Folder;
use crate::support::saved_models::compare;

#[test]
#[ignore = "takes a Python with TensorFlow, in WGRAD_JUDGE_PYTHON: `cargo xtask judge`"]
fn models_of_every_family() {
    let folder = Folder::new("judge-saved-models");
    let python = std::env::var("WGRAD_JUDGE_PYTHON").expect("`cargo xtask judge` names a Python");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/saved_model/make.py");
    let seed = std::env::var("WGRAD_JUDGE_SEED").unwrap_or("1".to_string());
    let output = Command::new(python).arg(script).arg(folder.path("")).arg(seed).output().unwrap();
    let reported = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{reported}");
    let mut compared = 0;
    let mut names: Vec<_> =
        std::fs::read_dir(folder.path("")).unwrap().map(|e| e.unwrap()).collect();
    names.sort_by_key(|entry| entry.file_name());
    for entry in names {
        let name = entry.file_name().into_string().unwrap();
        // What these hold, tests/saved_model has by name.
        let compares = folder.path(&format!("{name}.safetensors")).exists() && name != "functions";
        if entry.path().is_dir() && compares {
            compare(&folder.path(""), &name);
            compared += 1;
        }
    }
    assert!(compared >= 30, "{compared}");
}
