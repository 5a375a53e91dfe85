//! `cargo xtask races`: captures what kernels do on this adapter, and lets the interpreter in `portability/interpreter` look for
//! races, barriers that some do not reach, indices out of bounds and values that differ from the device's.

use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::run::{CommandLine, Status, today, workspace_root};
use crate::setup;

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Arguments {
    /// A part that is drawn by the seed, for a few minutes.
    sample: bool,
    /// Leave out barriers, and see whether that is noticed.
    mutate: bool,
    seed: u64,
    /// Interpret what an earlier run has captured.
    kept: bool,
}

const HELP: &str = "\
Usage: cargo xtask races [--sample] [--mutate] [--seed N] [--kept]

  --sample   a part, drawn by the day: in under three minutes on two cores
  --mutate   leave out every barrier in turn, and list those that nobody misses
  --seed N   decides what is drawn, and all orders and values that are random
  --kept     interpret what the run before has captured (target/races)
";

/// Runs the command.
pub fn run(arguments: &[String]) -> Result<Status> {
    if arguments.iter().any(|argument| argument == "--help" || argument == "-h") {
        print!("{HELP}");
        return Ok(Status::SUCCESS);
    }
    let arguments = parse(arguments, today()?)?;
    let folder = workspace_root().join("target/races");
    let name = folder.to_string_lossy().into_owned();
    let began = Instant::now();
    eprintln!("races: seed {}; `--seed {}` repeats this run", arguments.seed, arguments.seed);
    if !arguments.kept {
        setup::run()?;
        if folder.exists() {
            std::fs::remove_dir_all(&folder).with_context(|| format!("cannot empty {name}"))?;
        }
        let captures = captures(&arguments).into_iter();
        let captures = captures.map(|line| line.env("WGRAD_KERNEL_CAPTURE", &name));
        for line in std::iter::once(ignored(&["--lib"], CATALOG)).chain(captures) {
            let status = line.run()?;
            if !status.is_success() {
                return Ok(status);
            }
        }
        eprintln!("races: captured in {} s", began.elapsed().as_secs());
    }
    let line =
        CommandLine::cargo_test().args(["--test", "captured", "--", "--ignored", "--nocapture"]);
    let line = line.env("WGRAD_INTERPRETER", &interpreted(&arguments, &name));
    let status = line.run()?;
    eprintln!("races: {} s in all", began.elapsed().as_secs());
    Ok(status)
}

/// What the interpreter is asked for, an argument a line.
fn interpreted(arguments: &Arguments, folder: &str) -> String {
    let mut words = format!("{folder}\n--seed\n{}", arguments.seed);
    if arguments.mutate {
        words.push_str("\n--mutate");
    }
    if arguments.sample {
        words.push_str("\n--seconds\n60");
    }
    words
}

fn parse(arguments: &[String], today: u64) -> Result<Arguments> {
    let mut found = Arguments { sample: false, mutate: false, seed: today, kept: false };
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match argument.as_str() {
            "--sample" => found.sample = true,
            "--mutate" => found.mutate = true,
            "--kept" => found.kept = true,
            "--seed" => {
                let number = rest.next().and_then(|value| value.parse().ok());
                found.seed = number.context("--seed takes a number")?;
            }
            other => bail!("`cargo xtask races` has no {other}; --help lists its arguments"),
        }
    }
    Ok(found)
}

/// Interprets every kernel whose threads work together, on small inputs.
const CATALOG: &str = "ops::catalog::races::kernels_whose_invocations_work_together_have_no_race";

/// One of so many calls of the catalog is in a sample.
const CALLS: u64 = 60;

/// The trainings of `tests/kernel_capture.rs`; one of them is in a sample.
const TRAININGS: [&str; 5] = ["MLP", "CNN", "LSTM", "GRU", "transformer"];

/// An ignored test of this name.
fn ignored(target: &[&str], name: &str) -> CommandLine {
    let line = CommandLine::cargo_test().args(target);
    line.args(["--", "--ignored", "--exact", "--test-threads=1", name])
}

/// The tests that are captured.
fn captures(arguments: &Arguments) -> Vec<CommandLine> {
    let seed = arguments.seed;
    let test = |target: &[&str], name: &str| {
        let line = ignored(target, name);
        line.env("WGRAD_KERNEL_CAPTURE_ADAPTERS", "all").env("WGRAD_TUNE", "off")
    };
    let capture: &[&str] = &["--test", "kernel_capture"];
    let mut lines = vec![
        test(&["--lib"], "ops::catalog::runs::every_call_runs_on_a_device"),
        test(capture, "random_programs"),
        test(capture, "trainings_in_f32"),
        test(capture, "trainings_in_f16"),
        // What a program calls may depend on the adapter, too.
        test(capture, "trainings_in_f32").env("WGRAD_PORTABLE", "1"),
    ];
    if arguments.sample {
        let training = TRAININGS[(seed % TRAININGS.len() as u64) as usize];
        lines.truncate(3);
        lines = lines
            .into_iter()
            .map(|line| {
                line.env("WGRAD_CATALOG_SHARE", &format!("{}/{CALLS}", seed % CALLS))
                    .env("WGRAD_PROPERTY_CASES", "0.05")
                    .env("WGRAD_CAPTURE_SEED", &(1000 * seed).to_string())
                    .env("WGRAD_CAPTURE_TRAINING", training)
            })
            .collect();
    }
    lines
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn the_day_is_the_seed_unless_one_is_given() {
        let none = Arguments { sample: false, mutate: false, seed: 9, kept: false };
        assert_eq!(parse(&[], 9).unwrap(), none);
        let some = Arguments { sample: true, seed: 77, ..none };
        assert_eq!(parse(&words("--sample --seed 77"), 9).unwrap(), some);
        for wrong in ["--seed", "--seed x", "--all", "sample"] {
            assert!(parse(&words(wrong), 9).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_sample_is_a_part_of_the_whole() {
        let all = Arguments { sample: false, mutate: false, seed: 61, kept: false };
        let sample = Arguments { sample: true, ..all.clone() };
        assert_eq!((captures(&all).len(), captures(&sample).len()), (5, 3));
        let line = captures(&sample)[0].to_string();
        assert!(line.contains("WGRAD_CATALOG_SHARE=1/60"), "{line}");
        assert!(line.contains("WGRAD_CAPTURE_TRAINING=CNN"), "{line}");
        assert!(!captures(&all)[0].to_string().contains("WGRAD_CATALOG_SHARE"));
        assert_eq!(interpreted(&sample, "plans"), "plans\n--seed\n61\n--seconds\n60");
        let mutate = Arguments { mutate: true, ..all };
        assert_eq!(interpreted(&mutate, "plans"), "plans\n--seed\n61\n--mutate");
    }
}
