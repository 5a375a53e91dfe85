//! One library, one case, one process: `wgrad-peers networks child ENGINE CASE FOLDER SECONDS`.
//!
//! It writes lines of JSON as soon as it knows something, so that a process that is stopped has still said what it measured:
//!
//! | line | when |
//! |---|---|
//! | `{"version", "adapter", "parameters"}` | when the model is ready |
//! | `{"first", "check", counters}` | after the first run |
//! | `{"milliseconds", "runs", "kernels", counters, "host"}` | after each later run |

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Case, find, wgrad};
use crate::Result;
use crate::child::{answer, peak_host_bytes};
use crate::harness::median;

/// A network that is ready to run.
pub struct Network {
    pub version: String,
    /// Adapter, driver and interface.
    pub adapter: Option<[String; 3]>,
    /// The number of parameters, with those that are not trained.
    pub parameters: Option<usize>,
    /// Runs once, from inputs that are on the device to results on the host.
    pub run: Box<dyn FnMut() -> Result<Ran>>,
    pub counters: Box<dyn Fn() -> Counters>,
}

pub struct Ran {
    /// The time that counts: of a generation, that after the prompt.
    pub time: Duration,
    /// Of a training step its loss.
    pub values: Vec<f32>,
}

impl Ran {
    pub fn timed(run: impl FnOnce() -> Result<Vec<f32>>) -> Result<Self> {
        let start = Instant::now();
        let values = run()?;
        Ok(Ran { time: start.elapsed(), values })
    }
}

/// What a library states about its device so far.
#[derive(Default)]
pub struct Counters {
    pub device_bytes: Option<u64>,
    pub kernels: Option<u64>,
    pub pipelines: Option<u64>,
    pub planning: Option<Duration>,
}

impl Counters {
    fn json(&self) -> Value {
        json!({
            "device": self.device_bytes,
            "pipelines": self.pipelines,
            "planning": self.planning.map(|time| time.as_secs_f64() * 1e3),
        })
    }
}

pub fn run(arguments: &[String]) -> Result<()> {
    let [engine, case, folder, seconds] = arguments else {
        return Err("`networks child` takes a library, a case, a folder and seconds".into());
    };
    let case = find(case)?;
    let folder = PathBuf::from(folder);
    let mut network = open(engine, case, &folder)?;
    let mut said = json!({ "version": network.version, "parameters": network.parameters });
    if let Some(adapter) = &network.adapter {
        said["adapter"] = json!(adapter);
    }
    answer(said)?;

    let budget = Duration::from_secs_f64(seconds.parse()?);
    let first = (network.run)()?;
    let mut check = first.values;
    let mut before = (network.counters)();
    answer(merged(json!({ "first": milliseconds(case, first.time), "check": check }), &before))?;

    let mut times = Vec::new();
    let began = Instant::now();
    while times.len() < 3 || (began.elapsed() < budget && times.len() < 50) {
        let ran = (network.run)()?;
        times.push(milliseconds(case, ran.time));
        if case.trains() && check.len() < 3 {
            check.extend(ran.values);
        }
        let after = (network.counters)();
        let kernels = after.kernels.zip(before.kernels).map(|(after, before)| after - before);
        let mut said = json!({
            "milliseconds": median(times.clone()),
            "runs": times.len(),
            "kernels": kernels.map(|kernels| kernels as f64 / case.calls() as f64),
            "host": peak_host_bytes(),
        });
        if case.trains() {
            said["check"] = json!(check);
        }
        answer(merged(said, &after))?;
        before = after;
    }
    Ok(())
}

fn merged(mut said: Value, counters: &Counters) -> Value {
    for (key, value) in counters.json().as_object().into_iter().flatten() {
        said[key] = value.clone();
    }
    said
}

/// Of a generation: of a token.
fn milliseconds(case: Case, time: Duration) -> f64 {
    time.as_secs_f64() * 1e3 / case.tokens() as f64
}

fn open(engine: &str, case: Case, folder: &Path) -> Result<Network> {
    match engine {
        "wgrad" => wgrad::open(case, folder),
        #[cfg(feature = "burn")]
        "burn" => super::burn::open(case),
        #[cfg(feature = "candle")]
        "candle" => super::candle::open(case, folder),
        other => Err(format!("this program was built without `{other}`").into()),
    }
}
