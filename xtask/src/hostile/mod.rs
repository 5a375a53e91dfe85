//! `cargo xtask hostile`: runs tests on drivers that compute as inaccurately as WGSL permits.
//!
//! `wgrad-hostile` (`portability/hostile`) rewrites every kernel before the real driver compiles it. `course.rs` defines which
//! tests run on which drivers, `fixes.rs` removes fixes from kernels and expects a test to fail, and `programs.rs` compiles and
//! runs. docs/portability.md explains what this proves.

mod course;
mod fixes;
mod programs;

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use anyhow::{Result, anyhow, bail};

use crate::run::{Status, today};
use crate::setup;
use course::{Expected, Run};
use programs::{Outcome, Programs};

const HELP: &str = "\
Usage: cargo xtask hostile [OPTIONS] [TESTS...]

Runs tests on drivers that compute as badly as WGSL permits: with each permitted deviation alone, with random combinations of
them, and with subgroups of every size. Also removes workarounds for real drivers from kernels, which a test must detect. TESTS
are names of tests, or parts of them.

Options:
  --sample        a part that takes minutes, selected by the day
  --seed N        select by N instead of the day; the seed is printed
  --driver NAME   only this driver, as in round-far+contract or draw:17; repeatable
  --program NAME  only this test file, as in oracle; repeatable
  --list          list the permitted deviations (latitudes)
";

/// The number of lines shown of a failed test's output.
const LINES: usize = 40;

/// The parsed command line.
#[derive(Debug, Default, PartialEq, Eq)]
struct Options {
    sample: bool,
    seed: Option<u64>,
    drivers: Vec<String>,
    programs: Vec<String>,
    list: bool,
    help: bool,
    tests: Vec<String>,
}

impl Options {
    fn of(arguments: &[String]) -> Result<Self> {
        let mut options = Options::default();
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            let mut value = || {
                let value = arguments.next().cloned();
                value.ok_or_else(|| anyhow!("{argument} needs a value; see --help"))
            };
            match argument.as_str() {
                "--sample" => options.sample = true,
                "--seed" => {
                    let value = value()?;
                    let seed =
                        value.parse().map_err(|_| anyhow!("--seed takes a number, not {value}"))?;
                    options.seed = Some(seed);
                }
                "--driver" => options.drivers.push(value()?),
                "--program" => options.programs.push(value()?),
                "--list" => options.list = true,
                "--help" | "-h" => options.help = true,
                other if other.starts_with('-') => bail!("there is no option {other}; see --help"),
                test => options.tests.push(test.to_owned()),
            }
        }
        Ok(options)
    }
}

/// Runs the command.
pub fn run(arguments: &[String]) -> Result<Status> {
    let options = Options::of(arguments)?;
    if options.help {
        print!("{HELP}");
        return Ok(Status::SUCCESS);
    }
    setup::run()?;
    let began = Instant::now();
    let seed = options.seed.map_or_else(today, Ok)?;
    let programs = Programs::build(&course::programs(&options.programs))?;
    let latitudes = programs.latitudes()?;
    if options.list {
        latitudes.iter().for_each(|name| println!("{name}"));
        return Ok(Status::SUCCESS);
    }
    println!("seed {seed}; compiled after {} s", began.elapsed().as_secs());
    let mut runs: Vec<Run> = if !options.drivers.is_empty() {
        options.drivers.iter().flat_map(|driver| course::on(driver)).collect()
    } else if options.sample {
        course::sample(seed, &latitudes, |seed| programs.drawn(seed))?
    } else {
        course::whole(seed, &latitudes, |seed| programs.drawn(seed))?
    };
    if !options.programs.is_empty() {
        runs.retain(|run| options.programs.contains(&run.program));
    }
    if !options.tests.is_empty() {
        runs.iter_mut().for_each(|run| run.tests.clone_from(&options.tests));
    }
    if runs.is_empty() {
        bail!("no run has these drivers and programs; see --help");
    }
    let failed = run_all(&programs, &runs)?;
    println!("{} runs, {failed} failed, {} s", runs.len(), began.elapsed().as_secs());
    Ok(if failed == 0 { Status::SUCCESS } else { Status::FAILURE })
}

/// Runs all, in parallel on all cores, and prints a line for each. Returns how many failed.
fn run_all(programs: &Programs, runs: &[Run]) -> Result<usize> {
    let workers = std::thread::available_parallelism().map_or(1, usize::from).min(runs.len());
    let (next, printed) = (AtomicUsize::new(0), Mutex::new(0));
    let work = || -> Result<()> {
        while let Some(run) = runs.get(next.fetch_add(1, Ordering::Relaxed)) {
            let outcome = programs.run(run)?;
            let mut failed = printed.lock().map_err(|_| anyhow!("a thread panicked"))?;
            *failed += usize::from(!print(run, &outcome));
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        workers
            .into_iter()
            .try_for_each(|worker| worker.join().map_err(|_| anyhow!("a thread panicked"))?)
    })?;
    let failed = printed.into_inner().map_err(|_| anyhow!("a thread panicked"))?;
    Ok(failed)
}

/// Prints the outcome of a run, and returns whether it is the expected one.
fn print(run: &Run, outcome: &Outcome) -> bool {
    let good = match run.expected {
        Expected::Pass => outcome.failed.is_empty() && outcome.succeeded && outcome.passed > 0,
        Expected::Notice => !outcome.failed.is_empty(),
    };
    let word = match (good, run.expected) {
        (true, Expected::Pass) => "passed",
        (true, Expected::Notice) => "noticed",
        (false, Expected::Pass) => "FAILED",
        (false, Expected::Notice) => "NOT NOTICED",
    };
    println!(
        "{word:11} {:5.0} s  {run}: {} passed, {} failed",
        outcome.took.as_secs_f64(),
        outcome.passed,
        outcome.failed.len()
    );
    if !good {
        println!("{}", outcome.end_of_output(LINES));
        outcome.failed.iter().for_each(|test| println!("  failed: {test}"));
        println!("  again: {}", run.again());
    }
    good
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn options_are_read_and_others_refused() -> Result<()> {
        let line = split("--sample --seed 7 --driver round-up --program oracle conv");
        let expected = Options {
            sample: true,
            seed: Some(7),
            drivers: vec!["round-up".into()],
            programs: vec!["oracle".into()],
            tests: vec!["conv".into()],
            ..Options::default()
        };
        assert_eq!(Options::of(&line)?, expected);
        for (line, words) in [
            ("--seed", "needs a value"),
            ("--seed x", "takes a number"),
            ("--simple", "no option --simple"),
        ] {
            let error = Options::of(&split(line)).map(|_| ()).err().map(|error| error.to_string());
            assert!(error.is_some_and(|error| error.contains(words)), "{line}");
        }
        Ok(())
    }
}
