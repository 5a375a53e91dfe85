//! A folder that checks and measures wgrad on a machine without Rust, sources or network, and the program that runs there:
//! first the report, then test files on many threads, then the benchmark with sizes for graphics cards. Each part has a time
//! limit, and its result is a file in `results`; a second start continues with the parts that have no result yet.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::checks::{Check, Verdict};
use super::limited;
use super::machine::Build;
use super::programs::{MESSAGES, Programs, compiled, named};
use crate::run::{CommandLine, Status, workspace_root};

/// The most informative test files for a card; those that have failed on cards before come first.
///
/// Each is a test program and the module in it, or "" for the whole program.
const TESTS: [(&str, &str); 14] = [
    ("autodiff", "gradients"),
    ("device", "device"),
    ("fusion", "regressions"),
    ("ops", "traps"),
    ("device", "faults"),
    ("ops", "edges"),
    ("accuracy", ""),
    ("kept_memory", ""),
    ("fusion", "training"),
    ("ops", "convolutions"),
    ("ops", "attention"),
    ("ops", "linalg"),
    ("layers", "optimizers"),
    ("layers", "mixed_precision"),
];
/// As many threads as an application might have.
const THREADS: &str = "16";
const TEST_TIME: Duration = Duration::from_secs(240);
const BENCH_TIME: Duration = Duration::from_secs(900);

/// The file that identifies a pack.
const ABOUT: &str = "pack.json";
/// Data that the tests read; one compares the names that it knows with those in the sources.
const DATA: [&str; 3] = ["tests/data", "docs", "src"];

const SH: &str = "\
#!/bin/sh
# Checks and measures wgrad on this machine; results are written to the folder `results`. A second start continues where the first ended.
here=$(cd \"$(dirname \"$0\")\" && pwd)
CARGO_MANIFEST_DIR=\"$here/xtask\" exec \"$here/programs/xtask\" report --packed \"$here\"
";
const CMD: &str = "\
@echo off
rem Checks and measures wgrad on this machine; results are written to the folder `results`. A second start continues where the first ended.
set CARGO_MANIFEST_DIR=%~dp0xtask
\"%~dp0programs\\xtask.exe\" report --packed \"%~dp0.\"
";

/// Compiles everything and creates the folder.
pub fn make(folder: &Path) -> Result<()> {
    if fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some()) {
        bail!("--pack {}: the folder is not empty; name a new one", folder.display());
    }
    let build = Build::of_this_machine();
    let programs = Programs::build()?;
    let mut line = CommandLine::cargo_test().args(["--no-run", MESSAGES]);
    let test_programs: BTreeSet<&str> = TESTS.iter().map(|(program, _)| *program).collect();
    for name in &test_programs {
        line = line.args(["--test", *name]);
    }
    let tests = compiled(&line)?;
    let bin = folder.join("programs");
    fs::create_dir_all(&bin).with_context(|| bin.display().to_string())?;
    let own = std::env::current_exe().context("this program does not find itself")?;
    let mut all = BTreeMap::from([
        ("xtask", own),
        ("oracle", programs.oracle),
        ("fusion", programs.fusion),
        ("wgrad-peers", programs.peers),
    ]);
    // One of them may be a program of the report, too.
    for name in test_programs {
        all.insert(name, named(&tests, name)?);
    }
    for (name, from) in all {
        let to = bin.join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
        fs::copy(&from, &to).with_context(|| format!("{}: cannot be copied", from.display()))?;
        // Symbols and debug information are most of the size. Without `strip` the pack is larger but works.
        let _ = CommandLine::new("strip").args([to.to_string_lossy()]).probe();
    }
    let root = workspace_root();
    for part in DATA {
        copy(&root.join(part), &folder.join(part))?;
    }
    let write = |name: &str, text: &str| {
        fs::write(folder.join(name), text).with_context(|| format!("cannot write {name}"))
    };
    write("run.sh", SH)?;
    write("run.cmd", CMD)?;
    write(ABOUT, &json!({ "version": build.version, "compiler": build.compiler }).to_string())?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(folder.join("run.sh"), fs::Permissions::from_mode(0o755))?;
    }
    eprintln!("report: {} is complete; start run.sh or run.cmd in it", folder.display());
    Ok(())
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to).with_context(|| to.display().to_string())?;
    for entry in fs::read_dir(from).with_context(|| from.display().to_string())? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), &target).with_context(|| target.display().to_string())?;
        }
    }
    Ok(())
}

/// Runs the parts of a pack that have no result yet.
pub fn run(folder: &Path) -> Result<Status> {
    let about = fs::read_to_string(folder.join(ABOUT));
    let about = about.with_context(|| format!("{}: is not a pack", folder.display()))?;
    let about: Value = serde_json::from_str(&about).with_context(|| ABOUT.to_owned())?;
    let word = |key: &str| about[key].as_str().unwrap_or("unknown").to_owned();
    let results = folder.join("results");
    fs::create_dir_all(&results).with_context(|| results.display().to_string())?;
    let bin = folder.join("programs");
    let mut good = true;

    let page = results.join("report.md");
    if is_open(&page) {
        let build = Build { version: word("version"), compiler: word("compiler") };
        let programs = Programs::packed(&bin);
        match super::report(&programs, build, "run.sh".to_owned(), false, &page) {
            Ok(()) => {}
            // Without an adapter the other parts have no value either.
            Err(error) if is_open(&page) => return Err(error),
            Err(error) => {
                eprintln!("report: {error:#}");
                good = false;
            }
        }
    }
    for (name, module) in TESTS {
        let mut line = program(&bin, name, folder).args(["--test-threads", THREADS]);
        let mut result = name.to_owned();
        if !module.is_empty() {
            line = line.args([format!("{module}::")]);
            result = format!("{name}-{module}");
        }
        good &= part(&results.join(format!("test-{result}.txt")), &line, TEST_TIME)?;
    }
    let cache = results.join("cache");
    let line = program(&bin, "wgrad-peers", folder)
        .args(["--sizes", "gpu", "--no-docs", "--engines", "wgrad,copy", "--cache"])
        .args([cache.to_string_lossy()]);
    good &= part(&results.join("bench.txt"), &line, BENCH_TIME)?;
    eprintln!("report: all results are in {}", results.display());
    Ok(if good { Status::SUCCESS } else { Status::FAILURE })
}

fn is_open(result: &Path) -> bool {
    !result.is_file()
}

/// A program of the pack with the pack's data.
fn program(bin: &Path, name: &str, folder: &Path) -> CommandLine {
    let path = bin.join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
    let line = CommandLine::new(path.to_string_lossy()).folder(folder);
    line.env("CARGO_MANIFEST_DIR", &folder.to_string_lossy()).env("RUST_BACKTRACE", "0")
}

/// Runs a part that has no result yet, and writes the result when it is complete. False if the part failed in this run.
fn part(result: &Path, line: &CommandLine, limit: Duration) -> Result<bool> {
    let name = result.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    if !is_open(result) {
        eprintln!("report: {name}: has its result");
        return Ok(true);
    }
    let ended = limited::run(line, limit)?;
    let check = Check::of(&name, limit, &ended);
    check.announce("pack");
    let said = [ended.output.join("\n"), ended.errors.join("\n")].join("\n\n");
    let text = format!("{}\n\n{said}\n", check.words());
    // Under another name until it is complete, as the machine may stop at any moment.
    let begun = result.with_extension("begun");
    fs::write(&begun, text).with_context(|| begun.display().to_string())?;
    fs::rename(&begun, result).with_context(|| result.display().to_string())?;
    Ok(check.verdict == Verdict::Passed)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_part_runs_once_and_keeps_what_it_said() {
        let folder = std::env::temp_dir().join(format!("wgrad-pack-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let result = folder.join("part.txt");
        let own = std::env::current_exe().unwrap();
        let line = CommandLine::new(own.to_string_lossy()).args(["--list"]);
        let limit = Duration::from_secs(60);
        assert!(part(&result, &line, limit).unwrap());
        let text = fs::read_to_string(&result).unwrap();
        assert!(text.starts_with("passed in ") && text.contains("a_part_runs_once"), "{text}");
        // It has its result, so a failing program must not be started.
        let fails = CommandLine::new(own.to_string_lossy()).args(["--no-such-option"]);
        assert!(part(&result, &fails, limit).unwrap());
        assert!(!part(&folder.join("other.txt"), &fails, limit).unwrap());
        let text = fs::read_to_string(folder.join("other.txt")).unwrap();
        assert!(text.starts_with("FAILED after "), "{text}");
        assert!(run(&folder).err().unwrap().to_string().contains("is not a pack"));
        let error = make(&folder).unwrap_err().to_string();
        assert!(error.contains("is not empty"), "{error}");
        fs::remove_dir_all(folder).unwrap();
    }
}
