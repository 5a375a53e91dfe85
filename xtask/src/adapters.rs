//! `cargo xtask adapters`: plans what the tests run for each adapter that wgrad knows (`src/device/known_adapters.rs`), compares
//! the plans with the adapters' limits, and hands every kernel to the compilers that are installed.

use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::run::{CommandLine, Status, today, workspace_root};
use crate::setup;
use crate::system::Packages;

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Arguments {
    /// A part that is drawn by the seed.
    sample: bool,
    seed: u64,
    /// Look at the kernels of an earlier run.
    kept: bool,
}

const HELP: &str = "\
Usage: cargo xtask adapters [--sample] [--seed N] [--kept]

  --sample   a part, drawn by the day: in about a minute on two cores, once tests are compiled
  --seed N   decides what is drawn
  --kept     look at the kernels that the run before has written (target/adapters)

spirv-val and spirv-opt (Debian: spirv-tools), Chrome's tint and Microsoft's dxc read the kernels where they are on the PATH.
";

/// Khronos's validator and optimizer of SPIR-V.
const SPIRV_TOOLS: Packages = Packages {
    debian: &["spirv-tools"],
    fedora: &["spirv-tools"],
    arch: &["spirv-tools"],
    suse: &["spirv-tools"],
    alpine: &["spirv-tools"],
    otherwise: "SPIRV-Tools",
    arch_note: "",
    suse_note: "",
    alpine_note: "",
};

/// Runs the command.
pub fn run(arguments: &[String]) -> Result<Status> {
    if arguments.iter().any(|argument| argument == "--help" || argument == "-h") {
        print!("{HELP}");
        return Ok(Status::SUCCESS);
    }
    let arguments = parse(arguments, today()?)?;
    let folder = workspace_root().join("target/adapters");
    let name = folder.to_string_lossy().into_owned();
    let began = Instant::now();
    eprintln!("adapters: seed {}; `--seed {}` repeats this run", arguments.seed, arguments.seed);
    if !arguments.kept {
        setup::run()?;
        if folder.exists() {
            std::fs::remove_dir_all(&folder).with_context(|| format!("cannot empty {name}"))?;
        }
        for line in planned(&arguments) {
            let line = line.env("WGRAD_KERNEL_TEXTS", &name).env("WGRAD_TUNE", "off");
            let status = line.run()?;
            if !status.is_success() {
                return Ok(status);
            }
        }
        eprintln!("adapters: planned in {} s", began.elapsed().as_secs());
    }
    let has_spirv_tools = || CommandLine::new("spirv-val").args(["--version"]).probe().is_some();
    if cfg!(target_os = "linux") && !has_spirv_tools() {
        // Without it the other compilers still read the kernels, and the last step names what was not there.
        let lack = "there is no spirv-val";
        if let Err(error) = SPIRV_TOOLS.install(lack, "cargo xtask adapters") {
            eprintln!("adapters: {error:#}");
        }
    }
    let line = CommandLine::cargo_test()
        .args(["--test", "texts", "--", "--ignored", "--nocapture"])
        .env("WGRAD_COMPILERS", &looked_at(&arguments, &name));
    let status = line.run()?;
    eprintln!("adapters: {} s in all", began.elapsed().as_secs());
    Ok(status)
}

/// What the last step is asked for, an argument a line.
fn looked_at(arguments: &Arguments, folder: &str) -> String {
    let seconds = if arguments.sample { 45 } else { 1800 };
    format!("{folder}\n--seed\n{}\n--seconds\n{seconds}", arguments.seed)
}

fn parse(arguments: &[String], today: u64) -> Result<Arguments> {
    let mut found = Arguments { sample: false, seed: today, kept: false };
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match argument.as_str() {
            "--sample" => found.sample = true,
            "--kept" => found.kept = true,
            "--seed" => {
                let number = rest.next().and_then(|value| value.parse().ok());
                found.seed = number.context("--seed takes a number")?;
            }
            other => bail!("`cargo xtask adapters` has no {other}; --help lists its arguments"),
        }
    }
    Ok(found)
}

/// Every call of the catalog, for every known adapter.
const CATALOG: &str = "ops::catalog::adapters::every_call_fits_every_known_adapter";

/// The trainings of `tests/kernel_capture.rs`; one of them is in a sample.
const TRAININGS: [&str; 5] = ["MLP", "CNN", "LSTM", "GRU", "transformer"];

/// The tests whose graphs are planned.
fn planned(arguments: &Arguments) -> Vec<CommandLine> {
    let exact = |target: &[&str], name: &str| {
        let line = CommandLine::cargo_test().args(target);
        line.args(["--", "--exact", "--test-threads=1", "--include-ignored", name])
    };
    let trainings: &[&str] = &["--test", "kernel_capture"];
    let programs = exact(trainings, "random_programs");
    if arguments.sample {
        let training = TRAININGS[(arguments.seed % TRAININGS.len() as u64) as usize];
        return vec![
            programs
                .env("WGRAD_PROPERTY_CASES", "0.05")
                .env("WGRAD_CAPTURE_SEED", &(1000 * arguments.seed).to_string()),
            exact(trainings, "trainings_in_f32").env("WGRAD_CAPTURE_TRAINING", training),
        ];
    }
    vec![
        exact(&["--lib"], CATALOG),
        programs,
        exact(trainings, "trainings_in_f32"),
        exact(trainings, "trainings_in_f16"),
        // The crate's own tests have ops that no adapter would be asked for.
        CommandLine::cargo_test().args(["--test", "*", "--no-fail-fast"]),
    ]
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
        let none = Arguments { sample: false, seed: 9, kept: false };
        assert_eq!(parse(&[], 9).unwrap(), none);
        let some = Arguments { sample: true, seed: 77, kept: true };
        assert_eq!(parse(&words("--sample --seed 77 --kept"), 9).unwrap(), some);
        for wrong in ["--seed", "--seed x", "--all", "sample"] {
            assert!(parse(&words(wrong), 9).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_sample_is_a_part_of_the_whole() {
        let all = Arguments { sample: false, seed: 62, kept: false };
        let sample = Arguments { sample: true, ..all.clone() };
        assert_eq!((planned(&all).len(), planned(&sample).len()), (5, 2));
        let line = planned(&sample)[1].to_string();
        assert!(line.contains("WGRAD_CAPTURE_TRAINING=LSTM"), "{line}");
        assert_eq!(looked_at(&sample, "texts"), "texts\n--seed\n62\n--seconds\n45");
        assert_eq!(looked_at(&all, "texts"), "texts\n--seed\n62\n--seconds\n1800");
    }
}
