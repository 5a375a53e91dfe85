//! `cargo xtask judge`: checks with TensorFlow and onnxruntime the files that wgrad writes, and with the tests of ONNX the models that
//! it reads.
//!
//! All are installed from PyPI into `target/judge`, once; `WGRAD_JUDGE_PYTHON` names another Python that has them. If
//! `WGRAD_TORCH_PYTHON` names a Python with torch, torchvision, transformers and safetensors, the known networks are also compared
//! with those.

use anyhow::{Result, bail};

use crate::run::{CommandLine, Status, workspace_root};

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
/// The modules of all of them.
const MODULES: &str = "tensorflow, tf_keras, tensorboard, onnx, onnxruntime, safetensors, sklearn";

/// Runs the tests that need TensorFlow.
pub fn run(arguments: &[String]) -> Result<Status> {
    let python = match std::env::var("WGRAD_JUDGE_PYTHON") {
        Ok(python) => python,
        Err(_) => environment()?,
    };
    let judge = |tests: Vec<&str>, filter: &[&str]| {
        CommandLine::cargo_test()
            .args(tests)
            .args(["--", "--ignored", "--nocapture"])
            .args(filter)
            .args(arguments)
            .env("WGRAD_JUDGE_PYTHON", &python)
            .run()
    };
    // PyTorch is large, and only the known networks are compared with it.
    let skip: &[&str] = match std::env::var_os("WGRAD_TORCH_PYTHON") {
        Some(_) => &[],
        None => &["--skip", "::pytorch_"],
    };
    let judged = judge(vec!["--test", "judge", "--test", "programs"], skip)?;
    if !judged.is_success() {
        return Ok(judged);
    }
    // Tests that need private functions of the crate. Other ignored unit tests run until they are killed.
    judge(vec!["--lib"], &["judge_tests"])
}

/// The Python of a virtual environment with TensorFlow, which is created if it does not exist.
fn environment() -> Result<String> {
    let folder = workspace_root().join("target/judge");
    let python = folder.join(if cfg!(windows) { "Scripts/python.exe" } else { "bin/python" });
    let python = python.to_string_lossy().into_owned();
    let has_all = || {
        CommandLine::new(python.as_str())
            .args(["-c", &format!("import {MODULES}")])
            .probe()
            .is_some()
    };
    if has_all() {
        return Ok(python);
    }
    let system = ["python3", "python"]
        .into_iter()
        .find(|name| CommandLine::new(*name).args(["-m", "venv", "--help"]).probe().is_some());
    let Some(system) = system else {
        bail!("there is no Python 3 with venv; install it (on Debian: python3-venv)");
    };
    let steps = [
        CommandLine::new(system).args(["-m", "venv"]).args([folder.to_string_lossy()]),
        CommandLine::new(python.as_str())
            .args(["-m", "pip", "install", "--quiet", TENSORFLOW])
            .args(OTHERS),
        CommandLine::new(python.as_str()).args([
            "-m",
            "pip",
            "install",
            "--quiet",
            "--no-deps",
            KERAS_2,
        ]),
    ];
    for step in steps {
        if !step.run()?.is_success() {
            bail!("`{step}` failed; see its output above");
        }
    }
    match has_all() {
        true => Ok(python),
        false => bail!("{python} cannot import all of {MODULES}"),
    }
}
