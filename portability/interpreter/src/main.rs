//! Replays captured plans: `wgrad-interpreter FOLDER [--mutate] [--seed N] [--seconds N] [--threads N] [--only TEXT]`.
//!
//! Without `--mutate` it prints races and other faults, results that differ from the device's, and loops that never turned
//! twice; with it, the barriers that can go without anybody noticing. It ends with 1 if there are faults.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use wgrad_interpreter::{mutate, replay_all};

fn main() -> ExitCode {
    match arguments().and_then(run) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}

struct Arguments {
    mutate: bool,
    options: replay_all::Options,
}

fn arguments() -> Result<Arguments> {
    let threads = std::thread::available_parallelism().map_or(1, |count| count.get());
    let mut found = Arguments {
        mutate: false,
        options: replay_all::Options {
            folder: PathBuf::new(),
            seed: 0,
            time: None,
            threads,
            only: None,
            random_runs: 2,
        },
    };
    let options = &mut found.options;
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().with_context(|| format!("{argument} needs a value"));
        match argument.as_str() {
            "--mutate" => found.mutate = true,
            "--seed" => options.seed = value()?.parse().context("--seed takes a number")?,
            "--seconds" => {
                let seconds = value()?.parse().context("--seconds takes a number")?;
                options.time = Some(Duration::from_secs(seconds));
            }
            "--threads" => {
                options.threads =
                    value()?.parse::<usize>().context("--threads takes a number")?.max(1);
            }
            "--runs" => options.random_runs = value()?.parse().context("--runs takes a number")?,
            "--only" => options.only = Some(value()?),
            other if other.starts_with('-') => bail!("there is no {other}"),
            other => options.folder = other.into(),
        }
    }
    if options.folder.as_os_str().is_empty() {
        bail!("name the folder that WGRAD_KERNEL_CAPTURE named");
    }
    Ok(found)
}

fn run(arguments: Arguments) -> Result<bool> {
    if arguments.mutate {
        let summary = mutate::mutate(&arguments.options)?;
        print!("{summary}");
        return Ok(summary.is_clean());
    }
    let summary = replay_all::replay(&arguments.options)?;
    print!("{summary}");
    Ok(summary.is_clean())
}
