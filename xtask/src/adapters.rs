//! `cargo xtask adapters`: plans the tests' graphs for each adapter that wgrad knows (`src/device/known_adapters.rs`), compares
//! the plans with the adapters' limits, and passes every kernel to the installed compilers.

use std::time::Instant;

use anyhow::{Context, Result};

use crate::draw::Draw;
use crate::run::{CommandLine, Status, UNIT_TESTS, workspace_root};
use crate::setup;
use crate::system::Packages;

const HELP: &str = "\
Usage: cargo xtask adapters [--sample] [--seed N] [--kept]

  --sample   a part, drawn by the day: in about a minute on two cores, once tests are compiled
  --seed N   decides what is drawn
  --kept     check the kernels that the previous run wrote (target/adapters)

spirv-val and spirv-opt (Debian: spirv-tools), Chrome's tint and Microsoft's dxc check the kernels if they are on the PATH.
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
    let Some(draw) = Draw::of("adapters", arguments, &["--kept"])? else {
        print!("{HELP}");
        return Ok(Status::SUCCESS);
    };
    let folder = workspace_root().join("target/adapters");
    let name = folder.to_string_lossy().into_owned();
    let began = Instant::now();
    eprintln!("adapters: seed {}; `--seed {}` repeats this run", draw.seed, draw.seed);
    if !draw.has("--kept") {
        setup::run()?;
        if folder.exists() {
            std::fs::remove_dir_all(&folder).with_context(|| format!("cannot empty {name}"))?;
        }
        for line in planned(&draw) {
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
        // Without it the other compilers still check the kernels, and the last step names what was missing.
        let lack = "there is no spirv-val";
        if let Err(error) = SPIRV_TOOLS.install(lack, "cargo xtask adapters") {
            eprintln!("adapters: {error:#}");
        }
    }
    let line = CommandLine::cargo_test()
        .args(["--test", "texts", "--", "--ignored", "--nocapture"])
        .env("WGRAD_COMPILERS", &looked_at(&draw, &name));
    let status = line.run()?;
    eprintln!("adapters: {} s in all", began.elapsed().as_secs());
    Ok(status)
}

/// The arguments of the last step, one per line.
fn looked_at(draw: &Draw, folder: &str) -> String {
    let seconds = if draw.sample { 45 } else { 1800 };
    format!("{folder}\n--seed\n{}\n--seconds\n{seconds}", draw.seed)
}

/// Every call of the catalog, for every known adapter.
const CATALOG: &str = "ops::catalog::adapters::every_call_fits_every_known_adapter";

/// The trainings of `tests/kernel_capture.rs`; a sample has one of them.
const TRAININGS: [&str; 5] = ["MLP", "CNN", "LSTM", "GRU", "transformer"];

/// The tests whose graphs are planned.
fn planned(draw: &Draw) -> Vec<CommandLine> {
    let exact = |target: &[&str], name: &str| {
        let line = CommandLine::cargo_test().args(target);
        line.args(["--", "--exact", "--test-threads=1", "--include-ignored", name])
    };
    let trainings: &[&str] = &["--test", "kernel_capture"];
    let programs = exact(trainings, "random_programs");
    if draw.sample {
        let training = TRAININGS[draw.pick(TRAININGS.len())];
        return vec![
            programs
                .env("WGRAD_PROPERTY_CASES", "0.05")
                .env("WGRAD_CAPTURE_SEED", &(1000 * draw.seed).to_string()),
            exact(trainings, "trainings_in_f32").env("WGRAD_CAPTURE_TRAINING", training),
        ];
    }
    vec![
        exact(&UNIT_TESTS, CATALOG),
        programs,
        exact(trainings, "trainings_in_f32"),
        exact(trainings, "trainings_in_f16"),
        // The unit tests contain ops that no real adapter would run.
        CommandLine::cargo_test().args(["--test", "*", "--no-fail-fast"]),
    ]
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_a_part_of_the_whole() {
        let of = |arguments| Draw::for_tests(arguments, &[]).unwrap();
        let (all, sample) = (of("--seed 62"), of("--sample --seed 62"));
        assert_eq!((planned(&all).len(), planned(&sample).len()), (5, 2));
        let line = planned(&sample)[1].to_string();
        assert!(line.contains("WGRAD_CAPTURE_TRAINING=LSTM"), "{line}");
        assert_eq!(looked_at(&sample, "texts"), "texts\n--seed\n62\n--seconds\n45");
        assert_eq!(looked_at(&all, "texts"), "texts\n--seed\n62\n--seconds\n1800");
    }
}
