//! `cargo xtask races`: captures what kernels do on this adapter, and runs the interpreter in `portability/interpreter` to find
//! races, barriers that some threads do not reach, indices out of bounds and values that differ from the device's.

use std::time::Instant;

use anyhow::{Context, Result};

use crate::draw::Draw;
use crate::run::{CommandLine, Status, UNIT_TESTS, workspace_root};
use crate::setup;

const HELP: &str = "\
Usage: cargo xtask races [--sample] [--mutate] [--seed N] [--kept]

  --sample   a part, drawn by the day: in under three minutes on two cores
  --mutate   remove each barrier in turn, and list those whose absence goes undetected
  --seed N   decides what is drawn, and all orders and values that are random
  --kept     interpret what the previous run captured (target/races)
";

/// Runs the command.
pub fn run(arguments: &[String]) -> Result<Status> {
    let Some(draw) = Draw::of("races", arguments, &["--mutate", "--kept"])? else {
        print!("{HELP}");
        return Ok(Status::SUCCESS);
    };
    let folder = workspace_root().join("target/races");
    let name = folder.to_string_lossy().into_owned();
    let began = Instant::now();
    eprintln!("races: seed {}; `--seed {}` repeats this run", draw.seed, draw.seed);
    if !draw.has("--kept") {
        setup::run()?;
        if folder.exists() {
            std::fs::remove_dir_all(&folder).with_context(|| format!("cannot empty {name}"))?;
        }
        let captures = captures(&draw).into_iter();
        let captures = captures.map(|line| line.env("WGRAD_KERNEL_CAPTURE", &name));
        for line in std::iter::once(ignored(&UNIT_TESTS, CATALOG)).chain(captures) {
            let status = line.run()?;
            if !status.is_success() {
                return Ok(status);
            }
        }
        eprintln!("races: captured in {} s", began.elapsed().as_secs());
    }
    let line =
        CommandLine::cargo_test().args(["--test", "captured", "--", "--ignored", "--nocapture"]);
    let line = line.env("WGRAD_INTERPRETER", &interpreted(&draw, &name));
    let status = line.run()?;
    eprintln!("races: {} s in all", began.elapsed().as_secs());
    Ok(status)
}

/// The interpreter's arguments, one per line.
fn interpreted(draw: &Draw, folder: &str) -> String {
    let mut words = format!("{folder}\n--seed\n{}", draw.seed);
    if draw.has("--mutate") {
        words.push_str("\n--mutate");
    }
    if draw.sample {
        words.push_str("\n--seconds\n60");
    }
    words
}

/// Interprets every kernel whose threads work together, on small inputs.
const CATALOG: &str = "ops::catalog::races::kernels_whose_invocations_work_together_have_no_race";

/// A sample has one of this many calls of the catalog.
const CALLS: u64 = 60;

/// The trainings of `tests/kernel_capture.rs`; a sample has one of them.
const TRAININGS: [&str; 5] = ["MLP", "CNN", "LSTM", "GRU", "transformer"];

/// An ignored test of this name.
fn ignored(target: &[&str], name: &str) -> CommandLine {
    let line = CommandLine::cargo_test().args(target);
    line.args(["--", "--ignored", "--exact", "--test-threads=1", name])
}

/// The tests that are captured.
fn captures(draw: &Draw) -> Vec<CommandLine> {
    let seed = draw.seed;
    let test = |target: &[&str], name: &str| {
        let line = ignored(target, name);
        line.env("WGRAD_KERNEL_CAPTURE_ADAPTERS", "all").env("WGRAD_TUNE", "off")
    };
    let capture: &[&str] = &["--test", "kernel_capture"];
    let mut lines = vec![
        test(&UNIT_TESTS, "ops::catalog::runs::every_call_runs_on_a_device"),
        test(capture, "random_programs"),
        test(capture, "trainings_in_f32"),
        test(capture, "trainings_in_f16"),
        // A program's calls may also depend on the adapter.
        test(capture, "trainings_in_f32").env("WGRAD_PORTABLE", "1"),
    ];
    if draw.sample {
        let training = TRAININGS[draw.pick(TRAININGS.len())];
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

    #[test]
    fn a_sample_is_a_part_of_the_whole() {
        let of = |arguments| Draw::for_tests(arguments, &["--mutate"]).unwrap();
        let (all, sample) = (of("--seed 61"), of("--sample --seed 61"));
        assert_eq!((captures(&all).len(), captures(&sample).len()), (5, 3));
        let line = captures(&sample)[0].to_string();
        assert!(line.contains("WGRAD_CATALOG_SHARE=1/60"), "{line}");
        assert!(line.contains("WGRAD_CAPTURE_TRAINING=CNN"), "{line}");
        assert!(!captures(&all)[0].to_string().contains("WGRAD_CATALOG_SHARE"));
        assert_eq!(interpreted(&sample, "plans"), "plans\n--seed\n61\n--seconds\n60");
        assert_eq!(interpreted(&of("--mutate --seed 61"), "plans"), "plans\n--seed\n61\n--mutate");
    }
}
