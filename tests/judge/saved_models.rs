//! SavedModels that TensorFlow and Keras write now have the results and gradients here that TensorFlow has for them:
//! `cargo xtask judge`. `WGRAD_JUDGE_SEED` is the seed of their weights and inputs, `WGRAD_JUDGE_PROGRAMS` the number of models, which
//! are drawn by the day.

use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::support::folder::Folder;
use crate::support::saved_models::compare;

/// The models of the script whose results can be compared by name.
const MODELS: &[&str] = &[
    "mlp",
    "cnn",
    "resnet",
    "mobile",
    "lstm",
    "gru",
    "rnn",
    "masked",
    "transformer",
    "conv1d",
    "conv3d",
    "unet",
    "norms",
    "merges",
    "reshapes",
    "activations",
    "convlstm",
    "attention",
    "image_layers",
    "tabular",
    "einsum",
    "grouped_query",
    "cond",
    "loop",
    "recurrence",
    "case",
    "ops",
    "images",
    "matrices",
    "integers",
    "dynamic",
    "counter",
    "tensorflow_1",
];

#[test]
#[ignore = "takes a Python with TensorFlow, in WGRAD_JUDGE_PYTHON: `cargo xtask judge`"]
fn models_of_every_family() {
    let folder = Folder::new("judge-saved-models");
    let python = std::env::var("WGRAD_JUDGE_PYTHON").expect("`cargo xtask judge` names a Python");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/saved_model/make.py");
    let seed = std::env::var("WGRAD_JUDGE_SEED").unwrap_or("1".to_string());
    let count = std::env::var("WGRAD_JUDGE_PROGRAMS").map_or(12, |count| count.parse().unwrap());
    let today = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() / 86_400;
    // The days of a week take all of them.
    let first = today as usize * count % MODELS.len();
    let drawn = (0..MODELS.len().min(count)).map(|at| MODELS[(first + at) % MODELS.len()]);
    let drawn: Vec<&str> = drawn.collect();
    let mut command = Command::new(python);
    command.arg(script).arg(folder.path("")).arg(seed).args(&drawn);
    let output = command.output().unwrap();
    let reported = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{reported}");
    drawn.iter().for_each(|name| compare(&folder.path(""), name));
}
