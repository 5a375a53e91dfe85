//! `cargo xtask targets`: checks that the library compiles for systems that its authors have no machine of, and with the oldest
//! supported Rust. Nothing is run. rustup installs missing targets; those that it cannot install are reported as not checked.
//!
//! `--libraries` builds the C library for these systems instead, links it where this machine has a linker for them, and lists sizes.

mod libraries;

use anyhow::{Context, Result};

use crate::draw::Draw;
use crate::run::{CommandLine, Status, workspace_root};
use crate::toolchain::{add_target, has_rustup, has_target, rustc};

const TARGETS: [(&str, &str); 6] = [
    ("Windows", "x86_64-pc-windows-msvc"),
    ("macOS", "aarch64-apple-darwin"),
    ("Android", "aarch64-linux-android"),
    ("iOS", "aarch64-apple-ios"),
    ("Windows with MinGW", "x86_64-pc-windows-gnu"),
    ("Linux on Arm", "aarch64-unknown-linux-gnu"),
];

/// A sample has every third check.
const DAYS: usize = 3;

/// The result of one check.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Outcome {
    Ended(Status),
    /// Not checked, for this reason.
    Left(String),
}

const LIBRARIES: &str = "--libraries";

const HELP: &str = "\
Usage: cargo xtask targets [--sample] [--seed N]
       cargo xtask targets --libraries [--dev] [--sample] [TRIPLE...]

  --sample      a third of them, drawn by the day; of the libraries one
  --seed N      decides which
  --libraries   build the C library as released, for phones and other systems or for these targets, and list its sizes
  --dev         build it faster, and not as released
";

/// Runs all checks even if some fail, and prints the results.
pub fn run(arguments: &[String]) -> Result<Status> {
    if arguments.first().is_some_and(|argument| argument == LIBRARIES) {
        return libraries::run(&arguments[1..]);
    }
    let Some(draw) = Draw::of("targets", arguments, &[])? else {
        print!("{HELP}");
        return Ok(Status::SUCCESS);
    };
    let mut rows = Vec::new();
    for (at, (system, triple)) in TARGETS.into_iter().enumerate() {
        if is_drawn(at, &draw) {
            rows.push((format!("{system} ({triple})"), target(triple)?));
        }
    }
    if is_drawn(TARGETS.len(), &draw) {
        let manifest = std::fs::read_to_string(workspace_root().join("Cargo.toml"))
            .context("cannot read Cargo.toml")?;
        let oldest = declared_rust(&manifest).context("Cargo.toml declares no rust-version")?;
        rows.push((format!("Rust {oldest}, the oldest"), toolchain(oldest)?));
    }
    eprint!("{}", summary(&rows));
    Ok(worst(&rows))
}

/// Whether a check is made.
fn is_drawn(at: usize, draw: &Draw) -> bool {
    !draw.sample || at % DAYS == draw.pick(DAYS)
}

/// Why there is no standard library for `triple`, if so.
fn lacks(triple: &str) -> Result<Option<String>> {
    if has_target(triple) {
        return Ok(None);
    }
    if !has_rustup() {
        return Ok(Some("this Rust lacks the target, and there is no rustup".into()));
    }
    let added = add_target(triple)?;
    Ok((!added).then(|| format!("`rustup target add {triple}` failed; see its output above")))
}

fn target(triple: &str) -> Result<Outcome> {
    if let Some(why) = lacks(triple)? {
        return Ok(Outcome::Left(why));
    }
    // `download` has C code, which needs a C compiler for the target.
    let line = CommandLine::cargo(CHECK).args(["--features", FEATURES, "--target", triple]);
    Ok(Outcome::Ended(line.run()?))
}

fn toolchain(version: &str) -> Result<Outcome> {
    if !has_rustup() {
        return Ok(Outcome::Left("there is no rustup".into()));
    }
    if rustc(Some(version)).args(["--version"]).probe().is_none() {
        let install = ["toolchain", "install", version, "--profile", "minimal"];
        let line = CommandLine::new("rustup").args(install).args(["--no-self-update"]);
        if !line.run()?.is_success() {
            return Ok(Outcome::Left(format!("`{line}` failed; see its output above")));
        }
    }
    let line = CommandLine::new("rustup").args(["run", version, "cargo"]).args(CHECK);
    Ok(Outcome::Ended(line.run()?))
}

/// Besides the default ones: what has code for some systems, or uses the types of many crates.
const FEATURES: &str = "csv,estimator,preprocessing,saved-model,summary";

/// The library without its tests, which may need a newer Rust.
const CHECK: [&str; 4] = ["check", "--locked", "--lib", "--package=wgrad"];

/// The `rust-version` in the text of a `Cargo.toml`.
pub fn declared_rust(manifest: &str) -> Option<&str> {
    let lines = manifest.lines().filter_map(|line| line.strip_prefix("rust-version"));
    lines.filter_map(|line| line.trim_start_matches([' ', '=']).split('"').nth(1)).next()
}

fn summary(rows: &[(String, Outcome)]) -> String {
    let line = |(what, outcome): &(String, Outcome)| match outcome {
        Outcome::Ended(status) if status.is_success() => format!("targets: {what}: compiles\n"),
        Outcome::Ended(_) => format!("targets: {what}: DOES NOT COMPILE\n"),
        Outcome::Left(why) => format!("targets: {what}: NOT CHECKED, as {why}\n"),
    };
    rows.iter().map(line).collect()
}

/// The status of the first check that failed; a check that could not be made is not a failure.
fn worst(rows: &[(String, Outcome)]) -> Status {
    let statuses = rows.iter().filter_map(|(_, outcome)| match outcome {
        Outcome::Ended(status) => Some(*status),
        Outcome::Left(_) => None,
    });
    statuses.into_iter().find(|status| !status.is_success()).unwrap_or(Status::SUCCESS)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn row(what: &str, outcome: Outcome) -> (String, Outcome) {
        (what.to_owned(), outcome)
    }

    /// The status of a program that failed.
    fn failure() -> Outcome {
        Outcome::Ended(CommandLine::new("cargo").args(["no-such-command"]).run().unwrap())
    }

    #[test]
    fn the_oldest_rust_is_that_of_the_manifest() {
        let text = "[package]\nversion = \"0.1.0\"\nrust-version = \"1.87\"\nedition = \"2024\"\n";
        assert_eq!(declared_rust(text), Some("1.87"));
        assert_eq!(declared_rust("rust-version.workspace = true\n"), None);
        let own = std::fs::read_to_string(workspace_root().join("Cargo.toml")).unwrap();
        assert!(declared_rust(&own).unwrap().starts_with("1."));
    }

    #[test]
    fn three_days_check_everything() {
        let drawn = |arguments| {
            let draw = Draw::for_tests(arguments, &[]).unwrap();
            (0..=TARGETS.len()).filter(|at| is_drawn(*at, &draw)).collect::<Vec<_>>()
        };
        assert_eq!(drawn("--sample --seed 3"), [0, 3, 6]);
        assert_eq!(drawn("--sample --seed 4"), [1, 4]);
        assert_eq!(drawn("--sample --seed 5"), [2, 5]);
        assert_eq!(drawn(""), [0, 1, 2, 3, 4, 5, 6]);
    }

    #[test]
    fn unchecked_parts_are_reported_and_no_failure() {
        let good = row("macOS", Outcome::Ended(Status::SUCCESS));
        let left = row("Android", Outcome::Left("there is no rustup".to_owned()));
        let rows = [good.clone(), left];
        let text =
            "targets: macOS: compiles\ntargets: Android: NOT CHECKED, as there is no rustup\n";
        assert_eq!(summary(&rows), text);
        assert_eq!(worst(&rows), Status::SUCCESS);

        let rows = [good, row("Windows", failure())];
        assert!(summary(&rows).ends_with("targets: Windows: DOES NOT COMPILE\n"));
        assert!(!worst(&rows).is_success());
    }
}
