//! Runs of a function's graph: its calls are not made again, and its plan is found by a key that is computed once.

use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

#[cfg(all(feature = "saved-plans", not(target_family = "wasm")))]
use super::flush::Planning;
use super::flush::{ReadValues, Run, ready};
use super::{Device, DeviceState};
#[cfg(all(
    any(feature = "saved-model", feature = "saved-plans"),
    not(target_family = "wasm")
))]
use crate::device::Caps;
#[cfg(all(feature = "saved-plans", not(target_family = "wasm")))]
use crate::device::Gpu;
#[cfg(all(feature = "saved-model", not(target_family = "wasm")))]
use crate::dtype::DType;
use crate::error::Result;
use crate::graph::{Graph, Key, Value, ValueState};
#[cfg(all(feature = "saved-model", not(target_family = "wasm")))]
use crate::plan::portable::PortablePlan;
#[cfg(all(feature = "saved-plans", not(target_family = "wasm")))]
use crate::plan::saved;
use crate::plan::{Fusion, PlanReport, Reads};

/// A graph that runs many times, with the keys of its plans.
pub(crate) struct FunctionGraph {
    graph: Graph,
    /// The keys by the leaves that were donated: usually one.
    keys: Vec<(Vec<bool>, Key)>,
}

/// A leaf's value in a run.
pub(crate) struct FunctionLeaf {
    pub(crate) value: Arc<Value>,
    /// The caller replaces the value if the run succeeds, so the plan may overwrite it if nothing else holds it.
    pub(crate) replaced: bool,
}

/// What plans depend on besides their graphs. Features that the tuner proves or rejects count as the adapter declares them: a new
/// process has proven none.
#[cfg(all(feature = "saved-plans", not(target_family = "wasm")))]
fn configuration(gpu: &Gpu, state: &DeviceState) -> String {
    let declared = Caps { cooperative: gpu.caps.cooperative.clone(), ..state.caps.clone() };
    format!("{}{declared:?}, fusion {}", state.tuner.configuration(), state.fusion)
}

/// A run overwrites the values that it replaces in nearly all programs, or in none.
const KEYS: usize = 4;

impl FunctionGraph {
    pub(crate) fn new(graph: Graph) -> Self {
        FunctionGraph { graph, keys: Vec::new() }
    }

    pub(crate) fn graph(&self) -> &Graph {
        &self.graph
    }
}

impl Device {
    /// The kernels of `function` after many runs: for the leaves that its last run has overwritten; before the first run, for
    /// `replaced`.
    pub(crate) fn function_report(
        &self,
        function: &mut FunctionGraph,
        replaced: &[bool],
    ) -> PlanReport {
        let mut state = self.state();
        let state = &mut *state;
        let fusion = if state.fusion { Fusion::Full } else { Fusion::Off };
        let graph = &mut function.graph;
        let last = function.keys.last().map_or(replaced, |(donated, _)| donated);
        graph.donated.clear();
        graph.donated.extend_from_slice(last);
        // The plan depends on which numbers of the graph are equal.
        graph.key(&mut state.coincidences);
        state.tuner.plan(&self.0.gpu, &mut state.caps, graph, fusion).report()
    }

    /// The plan of `function` for every device of WebGPU.
    ///
    /// # Errors
    /// As [`PortablePlan::new`].
    #[cfg(all(feature = "saved-model", not(target_family = "wasm")))]
    pub(crate) fn portable_plan(&self, function: &mut FunctionGraph) -> Result<PortablePlan> {
        let graph = &mut function.graph;
        graph.donated.fill(false);
        // The plan depends on which numbers of the graph are equal.
        graph.key(&mut self.state().coincidences);
        let results = graph.nodes.iter().map(|node| &node.spec);
        let f16 = results.chain(&graph.leaves).any(|spec| spec.dtype == DType::F16);
        PortablePlan::new(graph, &Caps::of_webgpu(f16))
    }

    /// The plans of `function` as bytes, as they are now: for the leaves that its runs have overwritten until now, the last ones
    /// first; before the first run, for `replaced`. Their kernels are those that the runs have compiled, so a new process finds
    /// them in the driver's cache; the plans of later stages have other kernels, which nothing has compiled yet. What has no
    /// plan is planned for its first run. `training` as for [`Device::run_function`].
    #[cfg(all(feature = "saved-plans", not(target_family = "wasm")))]
    pub(crate) fn function_plans(
        &self,
        function: &mut FunctionGraph,
        replaced: &[bool],
        training: bool,
    ) -> Vec<u8> {
        let mut state = self.state();
        let state = &mut *state;
        let graph = &mut function.graph;
        if function.keys.is_empty() {
            graph.donated.clear();
            graph.donated.extend_from_slice(replaced);
            function.keys.push((replaced.to_vec(), graph.key(&mut state.coincidences)));
        }
        for (donated, key) in &function.keys {
            if state.plans.known(key).is_some() {
                continue;
            }
            graph.donated.clone_from(donated);
            // The plan depends on which numbers of the graph are equal.
            graph.key(&mut state.coincidences);
            let (tuner, caps) = (&mut state.tuner, &mut state.caps);
            let mut planning = Planning::new(&self.0.gpu, tuner, caps, state.fusion);
            let plan = planning.plan(graph, None, true, false, training);
            state.tuner.saw(plan.tasks());
            state.plans.insert(key, plan);
        }
        let known =
            |(donated, key): &'_ (Vec<bool>, Key)| Some((donated.clone(), state.plans.known(key)?));
        let plans: Vec<_> = function.keys.iter().rev().filter_map(known).collect();
        saved::to_bytes(&plans, graph, &configuration(&self.0.gpu, state))
    }

    /// Runs `function` by the plans of [`Device::function_plans`] from now on.
    ///
    /// # Errors
    /// The reason why they are not used.
    #[cfg(all(feature = "saved-plans", not(target_family = "wasm")))]
    pub(crate) fn use_function_plans(
        &self,
        function: &mut FunctionGraph,
        bytes: &[u8],
    ) -> Result<(), String> {
        let mut state = self.state();
        let state = &mut *state;
        // The structure includes which numbers of the graph are equal.
        function.graph.key(&mut state.coincidences);
        let gpu = &self.0.gpu;
        let configuration = configuration(gpu, state);
        let plans = saved::from_bytes(bytes, &function.graph, &configuration, &state.caps)?;
        // The process that saved the plans has proven what their kernels use; this one does not prove it again.
        if !gpu.caps.cooperative.is_empty() {
            gpu.outlive_cooperative_kernels();
        }
        for (donated, plan) in plans {
            function.graph.donated.clone_from(&donated);
            let key = function.graph.key(&mut state.coincidences);
            state.plans.insert(&key, plan);
            function.keys.retain(|(known, _)| *known != donated);
            function.keys.truncate(KEYS - 1);
            function.keys.push((donated, key));
        }
        Ok(())
    }

    /// Runs `function`, whose leaves have the values `leaves`. Returns the values of its wanted nodes. `training` and
    /// `made` as for an optimizer's step: whether it is one, and how many have been made before.
    ///
    /// # Errors
    /// The error of a failed leaf, and those of [`Device::flush`]. After an error, a value that was to be replaced is as it
    /// was, unless the driver reported the error after it had accepted the work: then it has failed.
    pub(crate) fn run_function(
        &self,
        function: &mut FunctionGraph,
        leaves: &[FunctionLeaf],
        training: bool,
        made: Option<u64>,
    ) -> Result<Vec<Arc<Value>>> {
        let gpu = &self.0.gpu;
        gpu.check_thread()?;
        let mut state = self.state();
        let state = &mut *state;
        state.uploaded = 0;
        if leaves.iter().any(|leaf| matches!(leaf.value.state(), ValueState::Waiting(_))) {
            self.flush_locked(state, ReadValues::None, &[])?;
        }
        self.slice_tuning(state);
        let mut buffers = Vec::with_capacity(leaves.len());
        let mut donated = Vec::with_capacity(leaves.len());
        let mut lent = Vec::new();
        for FunctionLeaf { value, replaced } in leaves {
            let mut buffer = ready(value)?;
            // One handle is the leaf's, the other the caller's.
            let donate = *replaced
                && Arc::strong_count(value) == 2
                && Arc::strong_count(&buffer) == 2
                && (buffer.is_pooled() || buffer.is_placed());
            if donate && buffer.is_placed() {
                buffer = gpu.take_off(&buffer)?;
            }
            if donate {
                lent.push(value.clone());
            }
            buffers.push(buffer);
            donated.push(donate);
        }
        // As in Stream::take: what other threads did with their handles happened before the run.
        fence(Ordering::Acquire);
        if function.graph.donated != donated {
            function.graph.donated.clone_from(&donated);
        }
        let at = match function.keys.iter().position(|(known, _)| *known == donated) {
            Some(at) => at,
            None => {
                let key = function.graph.key(&mut state.coincidences);
                function.keys.truncate(KEYS - 1);
                function.keys.push((donated, key));
                function.keys.len() - 1
            }
        };
        let graph = &function.graph;
        let wanted = graph.nodes.iter().enumerate().filter(|(_, node)| node.wanted);
        let outputs: Vec<(u32, Arc<Value>)> = wanted
            .map(|(at, node)| {
                let state = ValueState::Waiting(u32::MAX);
                (at as u32, Value::new(node.op.name(), node.spec.clone(), state))
            })
            .collect();
        let key = &function.keys[at].1;
        let run =
            Run { graph, key, leaves: &buffers, outputs: &outputs, lent: &lent, training, made };
        let ran = self.run_graph(state, &run, Reads::None);
        self.count_plans(state);
        self.put_away(state);
        if state.reports.is_some() {
            self.send_reports(state);
        }
        ran.map_err(|error| gpu.judge(error))?;
        Ok(outputs.into_iter().map(|(_, value)| value).collect())
    }
}
