//! `cargo xtask python`: builds the Python module and runs its tests, or makes a wheel, installs it and runs a program with it.

use std::path::Path;

use anyhow::{Result, bail};

use crate::run::{CommandLine, Status, workspace_root};
use crate::{setup, virtual_environment};

/// What the tests need besides the module.
const NUMPY: &str = "numpy>=1.24";
/// Checks the type stubs.
const MYPY: &str = "mypy>=1.15,<3";
const MATURIN: &str = "maturin>=1.9,<2";

/// Makes a wheel in `target/wheels` in place of running the tests, and checks it.
const WHEEL: &str = "--wheel";
/// Builds the module of the wheel faster, and not as it is released.
const DEV: &str = "--dev";
/// Builds the module as it is released.
const RELEASE: &str = "--release";

/// Runs the tests; other arguments go to `unittest`, such as `test_guide`.
pub fn run(arguments: &[String]) -> Result<Status> {
    setup::run()?;
    let given = |name: &str| arguments.iter().any(|argument| argument == name);
    let python = environment()?;
    let package = workspace_root().join("wgrad-python");
    if given(WHEEL) {
        return wheel(&python, &package, given(DEV));
    }
    // Without `--release`, the build of `cargo xtask test` is used, with its features.
    let build = match given(RELEASE) {
        true => CommandLine::cargo(["build", "-p", "wgrad-python", RELEASE]),
        false => CommandLine::cargo_test().args(["--test", "package", "--no-run"]),
    };
    if !build.run()?.is_success() {
        bail!("the Python module did not build; see the compiler's output above");
    }
    // What only tests need stays among the dependencies.
    let folder = if given(RELEASE) { "release" } else { "debug/deps" };
    let [built, name] = library();
    let target = std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| workspace_root().join("target"), Into::into);
    std::fs::copy(target.join(folder).join(built), package.join("python/wgrad").join(name))?;
    let tests = package.join("tests");
    let separator = if cfg!(windows) { ";" } else { ":" };
    let path =
        [package.join("python"), tests.clone()].map(|path| path.to_string_lossy().into_owned());
    let command = CommandLine::new(python.as_str())
        .env("PYTHONPATH", &path.join(separator))
        .args(["-m", "unittest"]);
    let rest: Vec<&String> = arguments.iter().filter(|argument| *argument != RELEASE).collect();
    match rest.is_empty() {
        true => command.args(["discover", "-s"]).args([tests.to_string_lossy()]).run(),
        false => command.args(rest).run(),
    }
}

/// Makes a wheel, looks at what is in it, and runs a program with it in a new environment, outside of the sources.
fn wheel(python: &str, package: &Path, dev: bool) -> Result<Status> {
    pip(python, MATURIN)?;
    let target = workspace_root().join("target");
    let wheels = target.join("wheels");
    let manifest = package.join("Cargo.toml");
    let mut maturin = CommandLine::new(python)
        .args(["-m", "maturin", "build", "--out"])
        .args([wheels.to_string_lossy()])
        .args(["--manifest-path"])
        .args([manifest.to_string_lossy()]);
    if !dev {
        maturin = maturin.args([RELEASE]);
    }
    if !maturin.run()?.is_success() {
        bail!("maturin did not make a wheel; see its output above");
    }
    let check = package.join("check_wheel.py");
    let folder = target.join("python-wheel");
    CommandLine::new(python)
        .args([check.to_string_lossy(), wheels.to_string_lossy(), folder.to_string_lossy()])
        .run()
}

/// The library's file, and the module's.
fn library() -> [&'static str; 2] {
    if cfg!(windows) {
        ["_wgrad.dll", "_wgrad.pyd"]
    } else if cfg!(target_os = "macos") {
        ["lib_wgrad.dylib", "_wgrad.abi3.so"]
    } else {
        ["lib_wgrad.so", "_wgrad.abi3.so"]
    }
}

fn pip(python: &str, package: &str) -> Result<()> {
    let install = CommandLine::new(python).args(["-m", "pip", "install", "--quiet", package]);
    match install.run()?.is_success() {
        true => Ok(()),
        false => bail!("`{install}` failed; see its output above"),
    }
}

/// The Python of a virtual environment with NumPy and mypy, which is created if it does not exist.
fn environment() -> Result<String> {
    virtual_environment::python("python", "numpy, mypy", &[&[NUMPY, MYPY]])
}
