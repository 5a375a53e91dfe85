//! `cargo xtask judge`: checks with TensorFlow and onnxruntime the files that wgrad writes, and with the tests of ONNX the models that
//! it reads. `--sample` runs a fifth of the tests, drawn by the day.
//!
//! All are installed from PyPI into `target/judge`, once; `WGRAD_JUDGE_PYTHON` names another Python that has them. If
//! `WGRAD_TORCH_PYTHON` names a Python with torch, torchvision, transformers and safetensors, the known networks are also compared
//! with those.

use anyhow::Result;

use crate::draw::Draw;
use crate::run::{CommandLine, Status, UNIT_TESTS};
use crate::virtual_environment;

/// The version that the formats were compared with.
const TENSORFLOW: &str = "tensorflow-cpu==2.21.0";
/// Keras 2. It asks for the package of TensorFlow that has kernels for GPUs, which are large and of no use here.
const KERAS_2: &str = "tf_keras==2.21.0";
/// What TensorFlow does not install: the readers of its events, ONNX's own tests and a program that runs its models, arrays between
/// Python and the tests, and boosted trees to compare with.
const OTHERS: [&str; 5] = [
    "tensorboard==2.21.0",
    "onnx==1.23.2",
    "onnxruntime==1.32.0",
    "safetensors==0.8.0",
    "scikit-learn==1.9.1",
];
/// Of how many parts a sample is one.
const PARTS: usize = 5;
/// Runs a part.
const SAMPLE: &str = "--sample";
/// The modules of all of them.
const MODULES: &str = "tensorflow, tf_keras, tensorboard, onnx, onnxruntime, safetensors, sklearn";

/// Runs the tests that need TensorFlow.
pub fn run(arguments: &[String]) -> Result<Status> {
    let draw = match arguments.iter().any(|argument| argument == SAMPLE) {
        true => Draw::of("judge", arguments, &[])?,
        false => None,
    };
    let python = match std::env::var("WGRAD_JUDGE_PYTHON") {
        Ok(python) => python,
        Err(_) => environment()?,
    };
    // PyTorch is large, and only the known networks are compared with it.
    let skip: &[&str] = match std::env::var_os("WGRAD_TORCH_PYTHON") {
        Some(_) => &[],
        None => &["--skip", "::pytorch_"],
    };
    // Some tests need private functions of the crate. Its other ignored unit tests run until they are killed.
    let parts: [(&[&str], &[&str]); 2] =
        [(&["--test", "judge", "--test", "programs"], skip), (&UNIT_TESTS, &["judge_tests"])];
    for (programs, filter) in parts {
        let tests = CommandLine::cargo_test()
            .args(programs)
            .args(["--", "--ignored"])
            .env("WGRAD_JUDGE_PYTHON", &python);
        let status = match &draw {
            None => tests.args(["--nocapture"]).args(filter).args(arguments).run()?,
            Some(draw) => {
                let (status, listed) = tests.clone().args(["--list"]).args(filter).read()?;
                let names = drawn(&listed, draw);
                match status.is_success() && !names.is_empty() {
                    true => tests.args(["--nocapture", "--exact"]).args(names).run()?,
                    false => status,
                }
            }
        };
        if !status.is_success() {
            return Ok(status);
        }
    }
    Ok(Status::SUCCESS)
}

/// A fifth of the tests in what `--list` prints.
fn drawn<'a>(listed: &'a str, draw: &Draw) -> Vec<&'a str> {
    let names = listed.lines().filter_map(|line| line.strip_suffix(": test"));
    names
        .enumerate()
        .filter(|(at, _)| at % PARTS == draw.pick(PARTS))
        .map(|(_, name)| name)
        .collect()
}

/// The Python of a virtual environment with TensorFlow, which is created if it does not exist.
fn environment() -> Result<String> {
    let packages: Vec<&str> = [TENSORFLOW].into_iter().chain(OTHERS).collect();
    virtual_environment::python("judge", MODULES, &[&packages, &["--no-deps", KERAS_2]])
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn each_test_is_drawn_on_one_of_five_days() {
        let listed =
            "a: test\nb::c: test\n\n2 tests, 0 benchmarks\nd: test\ne: test\nf: test\ng: test\n";
        let on = |day: usize| {
            let draw = Draw::for_tests(&format!("--sample --seed {day}"), &[]).unwrap();
            drawn(listed, &draw)
        };
        assert_eq!([on(0), on(1), on(2)], [vec!["a", "g"], vec!["b::c"], vec!["d"]]);
        assert_eq!([on(3), on(4), on(5)], [vec!["e"], vec!["f"], vec!["a", "g"]]);
    }
}
