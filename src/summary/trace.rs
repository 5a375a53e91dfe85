//! [`trace_on`] and [`trace_export`]: the times of kernels, and the graph that they form.

use std::cell::RefCell;

use prost::Message;

use super::graph::{Graph, kernel_names};
use super::graph_proto::{
    AllocatorMemoryUsed, DeviceStepStats, FunctionGraphs, NodeExecStats, RunMetadata, StepStats,
};
use super::payload::Payload;
use super::proto::{TensorProto, metadata};
use super::scope::write;
use super::step::Step;
use crate::device::{Profile, ProfiledKernel};
use crate::error::{Error, Result, message};
use crate::plan::PlanReport;
use crate::runtime::{Device, Profiler};

thread_local! {
    static TRACE: RefCell<Option<(Device, Profiler)>> = const { RefCell::new(None) };
}

/// Times every kernel of the current device from now on, until [`trace_export`] or [`trace_off`].
///
/// # Errors
/// [`Error::Check`] if a trace is already on in this thread; otherwise as [`Device::profile`](crate::Device::profile).
pub fn trace_on() -> Result<()> {
    if TRACE.with_borrow(Option::is_some) {
        return Err(Error::Check(message!(
            "trace_on: a trace is on already. End it by trace_export or trace_off."
        )));
    }
    let device = Device::current()?;
    let profiler = device.profile()?;
    TRACE.set(Some((device, profiler)));
    Ok(())
}

/// Ends a trace without a result.
pub fn trace_off() {
    TRACE.take();
}

/// Ends the trace and writes it: the graph of the last plan that ran, with the time and the bytes of its kernels; the tab
/// Graphs shows it under the tag `name`. Returns the times of all kernels, as [`Device::profile`](crate::Device::profile)
/// would have; [`Profile::write_chrome_trace`] writes them for Perfetto.
///
/// A plan's kernels have the times of its last run.
///
/// # Errors
/// [`Error::Check`] if no trace is on in this thread; otherwise as [`scalar`](super::scalar) and
/// [`Profiler::finish_async`](crate::Profiler::finish_async).
pub async fn trace_export_async(name: &str, step: impl Into<Step>) -> Result<Profile> {
    let Some((device, profiler)) = TRACE.take() else {
        return Err(Error::Check(message!("trace_export: no trace is on. Begin one by trace_on.")));
    };
    let profile = profiler.finish_async().await?;
    let bytes =
        run_metadata(device.last_plan().as_ref(), &profile, &device.adapter().name).encode_to_vec();
    write("trace_export", name, String::new(), step.into(), true, || {
        let shown = metadata("graph_run_metadata", b"1");
        Ok(Payload::Made(shown, TensorProto::strings(&[], vec![bytes])))
    })?;
    Ok(profile)
}

/// As [`trace_export_async`]; blocks.
///
/// # Errors
/// As [`trace_export_async`].
#[cfg(not(target_family = "wasm"))]
pub fn trace_export(name: &str, step: impl Into<Step>) -> Result<Profile> {
    pollster::block_on(trace_export_async(name, step))
}

fn run_metadata(plan: Option<&PlanReport>, profile: &Profile, device: &str) -> RunMetadata {
    let graph = plan.map_or_else(Graph::new, Graph::from).proto();
    let names = plan.map(kernel_names).unwrap_or_default();
    let labels: Vec<&str> =
        plan.iter().flat_map(|plan| plan.kernels()).map(|k| &*k.label).collect();
    let kernels = profile.kernels();
    // The last run of the plan, if no other plan ran after it.
    let tail = &kernels[kernels.len().saturating_sub(names.len())..];
    let same = tail.iter().map(|kernel| &*kernel.label).eq(labels.iter().copied());
    let stats = |(name, kernel): (&String, &ProfiledKernel)| {
        let micros = kernel.duration.as_micros().max(1) as i64;
        NodeExecStats {
            node_name: name.clone(),
            all_start_micros: kernel.start.as_micros() as i64,
            op_start_rel_micros: 0,
            op_end_rel_micros: micros,
            all_end_rel_micros: micros,
            memory: vec![AllocatorMemoryUsed {
                allocator_name: "wgrad".to_string(),
                total_bytes: i64::try_from(kernel.bytes).unwrap_or(i64::MAX),
            }],
            timeline_label: kernel.label.clone(),
        }
    };
    let node_stats = if same { names.iter().zip(tail).map(stats).collect() } else { Vec::new() };
    RunMetadata {
        step_stats: Some(StepStats {
            dev_stats: vec![DeviceStepStats { device: device.to_string(), node_stats }],
        }),
        partition_graphs: vec![graph.clone()],
        function_graphs: vec![FunctionGraphs {
            partition_graphs: vec![graph.clone()],
            pre_optimization_graph: Some(graph),
            post_optimization_graph: None,
        }],
    }
}
