//! The child process: runs one case, and prints the answer as a line of JSON.

use std::io::BufRead;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use wgrad::interop::DeviceExt;
use wgrad::interop::wgpu;
use wgrad::{Device, Tensor};

use super::{MODELS, graphs, lstm, models, programs, recurrences};
use crate::Result;
use crate::child::answer;

/// `wgrad-peers alone --case NAME`.
pub fn run(arguments: &[String]) -> Result<()> {
    let value = |name: &str| {
        let at = arguments.iter().position(|argument| argument == name)?;
        arguments.get(at + 1).map(String::as_str)
    };
    let number = |name: &str| {
        value(name).ok_or(format!("{name} is missing"))?.parse::<u64>().map_err(|e| e.to_string())
    };
    let case = value("--case").ok_or("--case is missing")?;
    let words: Vec<&str> = case.split('_').collect();
    answer(match words[..] {
        ["planning", kind, size] => {
            planning(kind, size.parse()?, arguments.iter().any(|argument| argument == "--real"))?
        }
        ["cold", "recurrences"] => return serve_recurrences(),
        ["cold", "models"] => many_models(&Device::current()?)?,
        ["cold", name] => {
            let program = programs::ALL.iter().find(|(known, ..)| *known == name);
            let (.., program) = program.ok_or_else(|| format!("there is no program `{name}`"))?;
            once(&Device::current()?, program)?
        }
        ["lengths", "first"] => lstm::first_step(&Device::current()?)?,
        ["lengths", what] => lstm::lengths(
            &Device::current()?,
            what,
            number("--count")? as usize,
            Duration::from_secs(number("--seconds")?),
        )?,
        _ => return Err(format!("there is no case `{case}`").into()),
    })
}

/// A device that runs and compiles nothing, with the limits that every browser guarantees.
fn idle_device() -> Result<Device> {
    let mut descriptor = wgpu::InstanceDescriptor::new_without_display_handle();
    descriptor.backends = wgpu::Backends::NOOP;
    descriptor.backend_options.noop.enable = true;
    let instance = wgpu::Instance::new(descriptor);
    let adapter = pollster::block_on(instance.request_adapter(&Default::default()))?;
    let (device, queue) = pollster::block_on(adapter.request_device(&Default::default()))?;
    Ok(Device::from_wgpu(&adapter, device, queue)?)
}

/// Plans a graph, several times if that is fast, and returns the median.
fn planning(kind: &str, nodes: usize, real: bool) -> Result<Value> {
    let mut times = Vec::new();
    let began = Instant::now();
    loop {
        let device = if real { Device::new()? } else { idle_device()? };
        device.set_stream_limit(Some(usize::MAX));
        let _wanted = device.scope(|| graphs::graph(&device, kind, nodes))?;
        let before = device.stats();
        device.flush()?;
        let after = device.stats();
        times.push((after.planning - before.planning).as_secs_f64() * 1e3);
        if times.len() == 5 || began.elapsed() > Duration::from_secs(2) {
            times.sort_by(f64::total_cmp);
            return Ok(json!({
                "planning_ms": times[times.len() / 2],
                "plans": after.plan_misses, "kernels": after.kernels,
            }));
        }
    }
}

/// Runs a program to its results on the host.
fn once(device: &Device, program: impl FnOnce() -> wgrad::Result<Vec<Tensor>>) -> Result<Value> {
    let before = device.stats();
    let began = Instant::now();
    let results = program()?;
    let values =
        results.iter().map(Tensor::to_vec::<f32>).collect::<wgrad::Result<Vec<Vec<f32>>>>()?;
    let seconds = began.elapsed().as_secs_f64();
    let after = device.stats();
    Ok(json!({
        "seconds": seconds,
        "planning": (after.planning - before.planning).as_secs_f64(),
        "nodes": after.nodes - before.nodes,
        "kernels": after.kernels - before.kernels,
        "pipelines": after.pipelines - before.pipelines,
        "plans": after.plan_misses - before.plan_misses,
        "results": values,
    }))
}

/// Trains many small models one after the other, each for three steps.
fn many_models(device: &Device) -> Result<Value> {
    let before = device.stats();
    let began = Instant::now();
    let mut losses = Vec::new();
    let [mlps, conv_nets] = MODELS;
    for seed in 0..mlps {
        losses.push(models::mlp(seed)?);
    }
    for seed in 0..conv_nets {
        losses.push(models::conv_net(seed)?);
    }
    let seconds = began.elapsed().as_secs_f64();
    let after = device.stats();
    Ok(json!({
        "seconds": seconds,
        "planning": (after.planning - before.planning).as_secs_f64(),
        "kernels": after.kernels - before.kernels,
        "pipelines": after.pipelines - before.pipelines,
        "plans": after.plan_misses - before.plan_misses,
        "results": losses,
    }))
}

/// Answers `recurrence SEED` until its input ends.
fn serve_recurrences() -> Result<()> {
    let device = Device::current()?;
    answer(json!({}))?;
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let seed = line.strip_prefix("recurrence ").and_then(|seed| seed.trim().parse().ok());
        let seed = seed.ok_or_else(|| format!("`{line}` was not understood"))?;
        answer(once(&device, || recurrences::run(seed))?)?;
    }
    Ok(())
}
