//! The child process: one library, one case. It answers lines on its standard input with lines of JSON on its standard output;
//! the harness decides when it works.
//!
//! | line | answer |
//! |---|---|
//! | (at the start) | `{"adapter", "driver", "api", "version"}` |
//! | `check` | `{"check": [numbers]}`: a summary of the results, to compare with the others' |
//! | `run N` | `{"seconds": [N numbers]}` |
//! | `memory` | `{"host", "device"}`: the most bytes so far, or null where unknown |

use std::io::{BufRead, Write};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::cases::{self, Work};
use crate::{Result, copy_engine, wgrad_engine};

/// A case prepared by one library.
pub struct Job {
    pub adapter: String,
    pub driver: String,
    pub api: String,
    pub version: String,
    pub work: Box<dyn Prepared>,
}

/// A library's implementation of a case. Every call waits until the device has finished.
pub trait Prepared {
    /// Runs once and returns the time.
    fn run(&mut self) -> Result<Duration>;

    /// Runs and summarizes the results. For training: the losses of the first three steps.
    fn check(&mut self) -> Result<Vec<f64>>;

    /// Bytes that the library holds on the device, if it reports them.
    fn device_bytes(&self) -> Option<u64>;
}

/// `wgrad-peers engine NAME --case CASE [--adapter NAME --api API]`.
pub fn run(arguments: &[String]) -> Result<()> {
    let value = |name: &str| {
        let at = arguments.iter().position(|argument| argument == name)?;
        arguments.get(at + 1).cloned()
    };
    let engine = arguments.first().ok_or("an engine has to be named")?;
    let name = value("--case").ok_or("--case is missing")?;
    let case = cases::all(true)
        .into_iter()
        .find(|case| case.name == name)
        .ok_or_else(|| format!("there is no case `{name}`"))?;
    let adapter = value("--adapter").zip(value("--api"));
    let job = match engine.as_str() {
        "wgrad" => wgrad_engine::open(case.work)?,
        "copy" => match case.peers {
            cases::Peers::BurnAndCopy(bytes) => copy_engine::open(bytes)?,
            _ => return Err(format!("nothing is copied beside `{name}`").into()),
        },
        "burn" => open_burn(case.work, adapter)?,
        other => return Err(format!("there is no engine `{other}`").into()),
    };
    serve(job)
}

#[cfg(feature = "burn")]
fn open_burn(work: Work, adapter: Option<(String, String)>) -> Result<Job> {
    crate::burn_engine::open(work, adapter)
}

#[cfg(not(feature = "burn"))]
fn open_burn(_work: Work, _adapter: Option<(String, String)>) -> Result<Job> {
    Err("this program was built without Burn".into())
}

fn serve(mut job: Job) -> Result<()> {
    answer(json!({
        "adapter": job.adapter, "driver": job.driver, "api": job.api, "version": job.version,
    }))?;
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        match line.split_whitespace().collect::<Vec<_>>()[..] {
            ["check"] => answer(json!({ "check": job.work.check()? }))?,
            ["run", count] => {
                let mut seconds = Vec::new();
                for _ in 0..count.parse::<usize>()? {
                    seconds.push(job.work.run()?.as_secs_f64());
                }
                answer(json!({ "seconds": seconds }))?;
            }
            ["memory"] => {
                answer(json!({ "host": peak_host_bytes(), "device": job.work.device_bytes() }))?;
            }
            _ => return Err(format!("`{line}` was not understood").into()),
        }
    }
    Ok(())
}

/// Sends `value` to the harness.
pub fn answer(value: Value) -> Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{value}")?;
    out.flush()?;
    Ok(())
}

/// Measures the time of `work`.
pub fn timed<T>(work: impl FnOnce() -> Result<T>) -> Result<(Duration, T)> {
    let start = Instant::now();
    let result = work()?;
    Ok((start.elapsed(), result))
}

/// The peak resident memory of this process; available on Linux only.
pub fn peak_host_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}
