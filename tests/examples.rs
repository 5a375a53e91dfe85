//! The examples as programs: what they say to arguments that make no sense, and to a reader who leaves.

#![allow(clippy::unwrap_used)]

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

/// The program, built now unless it is there and new.
fn example(name: &str) -> Command {
    let built = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--example", name])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .status();
    assert!(built.unwrap().success());
    let tests = std::env::current_exe().unwrap();
    let target: PathBuf = tests.ancestors().nth(3).unwrap().into();
    let file = format!("{name}{}", std::env::consts::EXE_SUFFIX);
    Command::new(target.join("debug/examples").join(file))
}

fn run(name: &str, arguments: &[&str]) -> Output {
    example(name).args(arguments).output().unwrap()
}

#[test]
fn numbers_that_make_no_sense_are_refused() {
    let whole = "a whole number from 1 on is needed";
    let above = "a number above 0 is needed, such as 0.001";
    for (option, value, metavar, why) in [
        ("--steps", "0", "STEPS", whole),
        ("--batch", "0", "BATCH", whole),
        ("--epochs", "0", "EPOCHS", whole),
        ("--test", "0", "TEST", whole),
        ("--batch", "many", "BATCH", whole),
        ("--lr", "nan", "LR", above),
        ("--lr", "0", "LR", above),
        ("--lr", "inf", "LR", above),
        ("--lr", "1e-60", "LR", above),
    ] {
        let output = run("mnist", &[option, value]);
        assert_eq!(output.status.code(), Some(2), "{option} {value}");
        assert!(output.stdout.is_empty());
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        let first = format!("error: invalid value '{value}' for '{option} <{metavar}>': {why}\n");
        assert!(text.starts_with(&first), "{text}");
    }
    let output = run("mnist", &["--lr=-0.1"]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn a_reader_may_leave() {
    for name in ["mnist", "eager"] {
        let mut child =
            example(name).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && !text.contains("panicked"), "{name}: {text}");
    }
}
