//! One library, one model, one process: `wgrad-peers loading child ENGINE MODEL.onnx`.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::json;

use super::{arrays_of, tensors, wgrad};
use crate::Result;
use crate::child::answer;
use crate::harness::median;

/// How long later calls are timed.
const STEADY: Duration = Duration::from_secs(1);

/// What a library measured of itself.
pub struct Times {
    pub device: Option<Duration>,
    pub load: Duration,
    pub first: Duration,
    pub steady: Duration,
    pub version: Option<&'static str>,
    /// Whether a kept plan was used.
    pub kept: bool,
    /// The parts of the first result that wgrad knows.
    pub parts: Option<Parts>,
    pub result: Vec<f64>,
}

pub struct Parts {
    /// Tracing the function, and reading the kept plan.
    pub trace: Duration,
    pub planning: Duration,
    /// How many plans and pipelines the first call made. Pipelines that the driver has kept count, too.
    pub plans: u64,
    pub pipelines: u64,
}

pub fn run(arguments: &[String]) -> Result<()> {
    let [engine, file] = arguments else {
        return Err("a library and a file have to be named".into());
    };
    let file = Path::new(file);
    let arrays = tensors::read(&arrays_of(file))?.ok_or("the file has arrays of other dtypes")?;
    let find = |name: &str| arrays.get(name).ok_or_else(|| format!("there is no array `{name}`"));
    let (input, expected) = (find("in.x")?, find("out.y")?);
    let times = match engine.as_str() {
        "wgrad" => wgrad::time(file, input, true)?,
        "wgrad-without-plan" => wgrad::time(file, input, false)?,
        #[cfg(feature = "tract")]
        "tract" => super::tract::time(file, input)?,
        other => return Err(format!("this program was built without `{other}`").into()),
    };
    let expected = tensors::numbers(expected)?;
    let apart = expected.iter().zip(&times.result).map(|(a, b)| (a - b).abs());
    let difference = apart.fold(0.0, f64::max);
    let milliseconds = |time: Duration| time.as_secs_f64() * 1e3;
    answer(json!({
        "device": times.device.map(milliseconds),
        "load": milliseconds(times.load),
        "first": milliseconds(times.first),
        "steady": milliseconds(times.steady),
        "difference": difference,
        "version": times.version,
        "kept": times.kept,
        "trace": times.parts.as_ref().map(|parts| milliseconds(parts.trace)),
        "planning": times.parts.as_ref().map(|parts| milliseconds(parts.planning)),
        "plans": times.parts.as_ref().map(|parts| parts.plans),
        "pipelines": times.parts.as_ref().map(|parts| parts.pipelines),
    }))
}

/// The median time of calls, for a second and five calls at least.
pub fn steady(mut call: impl FnMut() -> Result<()>) -> Result<Duration> {
    let mut times = Vec::new();
    let began = Instant::now();
    while began.elapsed() < STEADY || times.len() < 5 {
        let start = Instant::now();
        call()?;
        times.push(start.elapsed().as_secs_f64());
    }
    Ok(Duration::from_secs_f64(median(times)))
}
