//! For tests that need a separate process: starts this program again to run one of its tests.

use std::process::Command;

/// The command that runs the ignored test `name` of a test file; `module` is that file's `module_path!()`. The file is a program
/// of its own, or a module of one.
#[allow(dead_code)] // Not every test file uses all of it.
pub fn command(module: &str, name: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([full_name(module, name).as_str(), "--exact", "--ignored", "--nocapture"]);
    command
}

/// Runs the command of a test, which must pass, and returns its output: the errors first.
#[allow(dead_code)] // Not every test file uses all of it.
pub fn passes(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{command:?}: {text}{errors}");
    errors.into_owned() + &text
}

/// The standard error of the test `name` of `module`, run in a separate process with these environment variables.
#[allow(dead_code)] // Not every test file uses all of it.
pub fn stderr(module: &str, name: &str, variables: &[(&str, &str)]) -> String {
    let mut command = command(module, name);
    let output = command.arg("--test-threads=1").envs(variables.iter().copied()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stderr).unwrap()
}

/// The full name of the test within the program.
#[allow(dead_code)] // Not every test file uses all of it.
pub fn full_name(module: &str, name: &str) -> String {
    match module.split_once("::") {
        Some((_, inside)) => format!("{inside}::{name}"),
        None => name.to_owned(),
    }
}

/// Whether the test `name` of the test file `module`, which calls this, has a process of its own. If not, runs it again in one;
/// it must pass there, and has nothing left to do here. For tests that set what a whole process shares.
#[allow(dead_code)] // Not every test file uses all of it.
pub fn is_alone(module: &str, name: &str) -> bool {
    const ALONE: &str = "WGRAD_TEST_ALONE";
    let name = full_name(module, name);
    if std::env::var(ALONE).is_ok_and(|alone| alone == name) {
        return true;
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([name.as_str(), "--exact", "--nocapture"]);
    passes(command.env(ALONE, &name));
    false
}

/// Runs the test `name` of the test file `module` again, in a process whose kernels suit any GPU.
#[allow(dead_code)] // Not every test file uses all of it.
pub fn also_portable(module: &str, name: &str) {
    if std::env::var_os("WGRAD_PORTABLE").is_none() {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.arg(full_name(module, name)).args(["--exact", "--nocapture"]);
        passes(command.env("WGRAD_PORTABLE", "1"));
    }
}
