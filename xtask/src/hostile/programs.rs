//! The rewriter and the test programs: compiled, and run on a hostile driver.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::course::Run;
use crate::run::{CommandLine, workspace_root};

const REWRITER: &str = "wgrad-hostile";
/// The name of the crate's own unit tests.
const LIBRARY: &str = "lib";

pub struct Programs {
    rewriter: PathBuf,
    /// By the names of their files, each with its package's folder.
    tests: BTreeMap<String, (PathBuf, PathBuf)>,
}

/// The outcome of a run.
pub struct Outcome {
    pub succeeded: bool,
    pub passed: usize,
    /// The names of tests.
    pub failed: Vec<String>,
    pub took: Duration,
    output: String,
}

impl Programs {
    /// Compiles the rewriter and these programs with the features of all other tests, so that existing build results are
    /// reused.
    pub fn build(names: &[&str]) -> Result<Self> {
        let mut line = CommandLine::cargo_test().args(["--no-run", "--message-format=json"]);
        // Building the rewriter's own tests builds the rewriter, too.
        line = line.args(["--test", "subgroups"]);
        for name in names {
            line = match *name {
                LIBRARY => line.args(["--lib"]),
                name => line.args(["--test", name]),
            };
        }
        let (status, output) = line.read()?;
        if !status.is_success() {
            bail!("`{line}` failed; see its output above");
        }
        let (mut rewriter, mut tests) = (None, BTreeMap::new());
        for artifact in output.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
            let Some(path) = artifact["executable"].as_str().map(PathBuf::from) else { continue };
            let name = artifact["target"]["name"].as_str().unwrap_or_default();
            let manifest = artifact["manifest_path"].as_str().map(Path::new).and_then(Path::parent);
            let folder = manifest.map_or_else(workspace_root, Path::to_path_buf);
            match artifact["profile"]["test"].as_bool() {
                Some(true) if name == "wgrad" => {
                    tests.insert(LIBRARY.to_owned(), (path, folder));
                }
                Some(true) => _ = tests.insert(name.to_owned(), (path, folder)),
                _ if name == REWRITER => rewriter = Some(path),
                _ => {}
            }
        }
        if let Some(missing) = names.iter().find(|name| !tests.contains_key(**name)) {
            bail!("there is no file of tests called {missing}");
        }
        let rewriter = rewriter.context("cargo compiled no rewriter")?;
        Ok(Self { rewriter, tests })
    }

    fn rewriter(&self, arguments: &[&str]) -> Result<String> {
        let line = CommandLine::new(self.rewriter.to_string_lossy()).args(arguments);
        line.probe().with_context(|| format!("`{line}` failed"))
    }

    /// The names of all latitudes.
    pub fn latitudes(&self) -> Result<Vec<String>> {
        Ok(self.rewriter(&["--list"])?.lines().map(str::to_owned).collect())
    }

    /// The names of the latitudes that a seed selects, joined by `+`.
    pub fn drawn(&self, seed: u64) -> Result<String> {
        Ok(self.rewriter(&["--draw", &seed.to_string()])?.trim().to_owned())
    }

    /// Runs tests of a program on a driver.
    pub fn run(&self, run: &Run) -> Result<Outcome> {
        let program = self.tests.get(&run.program);
        let (program, folder) =
            program.with_context(|| format!("{} was not compiled", run.program))?;
        let mut line = CommandLine::new(program.to_string_lossy())
            .args(&run.tests)
            .args(["--test-threads=1"])
            .env("CARGO_MANIFEST_DIR", &folder.to_string_lossy())
            .folder(folder)
            .env("WGRAD_KERNEL_REWRITER", &self.rewriter.to_string_lossy())
            .env("WGRAD_HOSTILE", &run.driver);
        if std::env::var_os("GALLIVM_PERF").is_none() {
            line = line.env("GALLIVM_PERF", "nopt");
        }
        if let Some(sizes) = &run.subgroups {
            line = line.env("WGRAD_SUBGROUPS", sizes);
        }
        let functions = run.functions.as_ref().map(|functions| functions.write()).transpose()?;
        if let Some(file) = &functions {
            line = line.env("WGRAD_HOSTILE_FUNCTIONS", &file.to_string_lossy());
        }
        let began = Instant::now();
        let (status, output) = line.read_quietly()?;
        let output = String::from_utf8_lossy(&output).into_owned();
        Ok(Outcome::of(status.is_success(), output, began.elapsed()))
    }
}

impl Outcome {
    fn of(succeeded: bool, output: String, took: Duration) -> Self {
        let result =
            output.lines().filter_map(|line| line.strip_prefix("test result: ")).next_back();
        let words = result.unwrap_or_default().split_whitespace().collect::<Vec<_>>();
        let passed = words.windows(2).find(|pair| pair[1] == "passed;");
        let passed = passed.and_then(|pair| pair[0].parse().ok()).unwrap_or(0);
        // The last list of that name has the names alone.
        let names = output.rsplit_once("\nfailures:\n").map_or("", |(_, names)| names);
        let names = names.lines().take_while(|line| line.starts_with("    "));
        let failed = names.map(|name| name.trim().to_owned()).collect();
        Self { succeeded, passed, failed, took, output }
    }

    /// The last lines, without backtraces.
    pub fn end_of_output(&self, lines: usize) -> String {
        let shown = |line: &&str| {
            let line = line.trim_start();
            let frame =
                line.split_once(": ").is_some_and(|(number, _)| number.parse::<u32>().is_ok());
            !frame && !line.starts_with("at ") && !line.starts_with("stack backtrace")
        };
        let all: Vec<&str> = self.output.lines().filter(shown).collect();
        all[all.len().saturating_sub(lines)..].join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_counted_and_backtraces_left_out() {
        let output = "running 3 tests\ntest a ... ok\ntest b::c ... FAILED\n\nfailures:\n\n---- b::c stdout ----\n\
            thread 'b::c' panicked\nstack backtrace:\n   0: core::panicking\n      at ./src\nwrong\n\nfailures:\n    b::c\n\n\
            test result: FAILED. 1 passed; 1 failed; 1 ignored; 0 measured\n";
        let outcome = Outcome::of(false, output.to_owned(), Duration::ZERO);
        assert_eq!((outcome.passed, outcome.failed.as_slice()), (1, &["b::c".to_owned()][..]));
        let end = outcome.end_of_output(7);
        assert!(end.starts_with("thread 'b::c' panicked\nwrong\n"), "{end}");
        let crashed = Outcome::of(false, "running 3 tests\n".to_owned(), Duration::ZERO);
        assert_eq!((crashed.passed, crashed.failed.len()), (0, 0));
    }
}
