//! [`Concrete`]: a function for one signature, and its runs.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use smallvec::SmallVec;

#[cfg(all(feature = "saved-model", not(target_family = "wasm")))]
use super::frozen::{FrozenFunction, FrozenValue, Unfreezable};
use super::program::{Entry, Program, Renumbered};
use crate::eager::{self, Effect, Owner, RunCounter};
use crate::error::{Error, Result};
use crate::graph::{Graph, Input, Node, Op, RuntimeScalars, Spec, ValueState, outside_its_trace};
use crate::plan::PlanReport;
use crate::runtime::{FunctionGraph, FunctionLeaf};
use crate::support::sort::sort_by_key;
use crate::tensor::Tensor;
use crate::variable::Variable;

/// A program with its graph. A run takes the leaves from the caller, the variables and the captured tensors, runs the
/// graph's plan, and assigns the variables.
pub(super) struct Concrete {
    /// What the graph computes.
    program: Program,
    /// The program as it was traced, if the graph's differs.
    traced: Option<Program>,
    /// Whether runs must read values to know what to do.
    replays: bool,
    /// Why no run can succeed: the program captures a value that belongs to another trace, or that has failed.
    broken: Option<Error>,
    /// The graph's leaves, each with whether a run may overwrite it: it is a variable that the run assigns, and nothing else
    /// needs its old value.
    leaves: Vec<(Leaf, bool)>,
    outputs: Vec<Source>,
    /// The final values of variables, by the variables' identities: the order in which a run locks them.
    assigns: Vec<(usize, Source)>,
    /// For each variable, its index in `assigns`.
    cell_of: Vec<Option<usize>>,
    effects: Vec<(Vec<Source>, Effect)>,
    host: Vec<Host>,
    /// Runs follow each other: the host's numbers are in the nodes.
    graph: Mutex<FunctionGraph>,
}

/// A value from outside of the graph.
#[derive(Clone)]
enum Leaf {
    Argument(usize),
    Captured(Tensor),
    Variable(usize),
}

/// Where a value of a run comes from.
#[derive(Clone)]
enum Source {
    /// The wanted node of this number.
    Wanted(usize),
    Leaf(Leaf),
}

/// What the host does before a run, in the order of the program.
enum Host {
    Scalars(Arc<Renumbered>, Owner<Result<RuntimeScalars>>),
    Count(Arc<dyn RunCounter>),
}

impl Concrete {
    pub(super) fn new(traced: Program) -> Self {
        let broken = traced.all_entries().into_iter().find_map(|entry| match entry {
            Entry::Captured(tensor) => match tensor.value().state() {
                ValueState::Traced(_) => Some(outside_its_trace(tensor.value())),
                ValueState::Failed(error) => Some(error),
                _ => None,
            },
            _ => None,
        });
        #[cfg(not(target_family = "wasm"))]
        let (program, traced) = match traced.with_selects() {
            Some(program) => (program, Some(traced)),
            None => (traced, None),
        };
        #[cfg(target_family = "wasm")]
        let (program, traced) = (traced, None);
        let built = match program.has_control() {
            // Its runs are replays.
            true => Built::default(),
            false => Builder::new(&program).build(),
        };
        Concrete { traced, broken, ..built.into_concrete(program) }
    }

    fn traced(&self) -> &Program {
        self.traced.as_ref().unwrap_or(&self.program)
    }

    /// The shapes and dtypes of the tensors that the caller passes.
    pub(super) fn arguments(&self) -> &[Spec] {
        &self.traced().arguments
    }

    /// The shapes and dtypes of the results.
    pub(super) fn output_specs(&self) -> Vec<Spec> {
        self.traced().output_specs.clone()
    }

    /// The variables that a run reads or assigns.
    pub(super) fn variables(&self) -> &[Variable] {
        &self.traced().variables
    }

    /// The entries as they were traced, those of blocks included.
    pub(super) fn all_entries(&self) -> Vec<&Entry> {
        self.traced().all_entries()
    }

    /// Whether runs must read values to know what to do.
    pub(super) fn replays(&self) -> bool {
        self.replays
    }

    /// Whether no run can succeed.
    #[cfg(all(feature = "keras", not(target_family = "wasm")))]
    pub(super) fn is_broken(&self) -> bool {
        self.broken.is_some()
    }

    /// Runs the function on these arguments.
    ///
    /// # Errors
    /// Those of the device, and of a schedule or another source of numbers. After an error of a graph's run, variables are as
    /// they were; a replay has made its calls up to the error, as eager code has.
    pub(super) fn call(&self, arguments: &[Tensor]) -> Result<Vec<Tensor>> {
        if let Some(error) = &self.broken {
            return Err(error.clone());
        }
        // Tapes and traces record calls.
        if self.replays || eager::observed() || eager::in_trace() || self.must_replay(arguments) {
            return self.traced().replay(arguments);
        }
        let mut graph = self.graph.lock().unwrap_or_else(PoisonError::into_inner);
        let mut advanced: Vec<&Arc<dyn RunCounter>> = Vec::new();
        let mut made = None;
        let prepared = self.host.iter().try_for_each(|host| {
            match host {
                Host::Scalars(op, owner) => op.set(owner()?),
                Host::Count(counter) => {
                    let before = counter.advance()?;
                    made = made.or(before);
                    advanced.push(counter);
                }
            }
            Ok(())
        });
        let ran = prepared.and_then(|()| self.run(&mut graph, arguments, made));
        if ran.is_err() {
            advanced.iter().rev().for_each(|counter| counter.step_back());
        }
        ran
    }

    /// Whether the calls of a run must be made one by one: checks of numbers look at each, and if a value is on another device,
    /// the replay says which.
    pub(super) fn must_replay(&self, arguments: &[Tensor]) -> bool {
        // A run would assign the value of one replica only.
        let mirrored =
            |(variable, _): &(usize, Source)| self.program.variables[*variable].is_mirrored();
        self.program.device.checks_numerics()
            || self.assigns.iter().any(mirrored)
            || !self.is_on_device(arguments)
    }

    /// The program, if it has neither choices nor loops, and can run.
    #[cfg(not(target_family = "wasm"))]
    pub(super) fn without_blocks(&self) -> Option<&Program> {
        let plain = !self.replays && self.traced.is_none() && self.broken.is_none();
        plain.then_some(&self.program)
    }

    fn is_on_device(&self, arguments: &[Tensor]) -> bool {
        let device = &self.program.device;
        arguments.iter().all(|argument| argument.device().same(device))
            && self.program.variables.iter().all(|variable| variable.lock().device().same(device))
    }

    fn run(
        &self,
        graph: &mut FunctionGraph,
        arguments: &[Tensor],
        made: Option<u64>,
    ) -> Result<Vec<Tensor>> {
        let Program { device, variables, .. } = &self.program;
        // Before any lock is held: another function may assign these, and read the ones that this run locks.
        let read: Vec<Option<Tensor>> = variables
            .iter()
            .zip(&self.cell_of)
            .map(|(variable, cell)| cell.is_none().then(|| variable.peek()))
            .collect();
        // While the run replaces them, no other thread sees the variables.
        let mut cells: Vec<_> =
            self.assigns.iter().map(|(variable, _)| variables[*variable].lock()).collect();
        let tensor = |cells: &[MutexGuard<'_, Tensor>], leaf: &Leaf| match leaf {
            Leaf::Argument(at) => arguments[*at].clone(),
            Leaf::Captured(tensor) => tensor.clone(),
            Leaf::Variable(variable) => match (&read[*variable], self.cell_of[*variable]) {
                (Some(value), _) => value.clone(),
                (None, Some(at)) => cells[at].clone(),
                (None, None) => unreachable!("a variable that no cell holds was read"),
            },
        };
        let values = if graph.graph().nodes.is_empty() {
            Vec::new()
        } else {
            let leaf = |(leaf, replaced): &(Leaf, bool)| FunctionLeaf {
                value: tensor(&cells, leaf).value().clone(),
                replaced: *replaced,
            };
            let leaves: Vec<FunctionLeaf> = self.leaves.iter().map(leaf).collect();
            device.run_function(graph, &leaves, !self.assigns.is_empty(), made)?
        };
        let made = |cells: &[_], source: &Source| match source {
            Source::Wanted(at) => Tensor::new(device.clone(), values[*at].clone()),
            Source::Leaf(leaf) => tensor(cells, leaf).detached(),
        };
        let outputs: Vec<Tensor> = self.outputs.iter().map(|source| made(&cells, source)).collect();
        let effects: Vec<Vec<Tensor>> = self
            .effects
            .iter()
            .map(|(inputs, _)| inputs.iter().map(|source| made(&cells, source)).collect())
            .collect();
        let new: Vec<Tensor> =
            self.assigns.iter().map(|(_, source)| made(&cells, source)).collect();
        for (cell, value) in cells.iter_mut().zip(new) {
            **cell = value;
        }
        drop(cells);
        for ((_, effect), inputs) in self.effects.iter().zip(&effects) {
            effect(&inputs.iter().collect::<Vec<_>>());
        }
        Ok(outputs)
    }

    /// What the other program does differently, if anything.
    ///
    /// # Errors
    /// Those of reads of captured tensors.
    #[cfg(not(target_family = "wasm"))]
    pub(super) fn difference(&self, other: &Program) -> Result<Option<String>> {
        self.traced().difference(other)
    }

    /// The program as text.
    pub(super) fn text(&self) -> String {
        self.traced().text()
    }

    /// The program as a graph of this name in Graphviz's language.
    pub(super) fn graphviz(&self, name: &str) -> String {
        self.traced().graphviz(name)
    }

    /// The program as an SVG image with this title.
    pub(super) fn to_svg(&self, title: &str) -> String {
        self.traced().to_svg(title)
    }

    /// The program's nodes for TensorBoard.
    #[cfg(feature = "summary")]
    pub(super) fn graph_nodes(&self) -> Vec<super::drawing::GraphNode> {
        self.traced().graph_nodes()
    }

    /// What a run computes, with the plan of every device of WebGPU.
    ///
    /// # Errors
    /// Those of the plan, and of a program whose runs differ from each other.
    #[cfg(all(feature = "saved-model", not(target_family = "wasm")))]
    pub(super) fn frozen(&self) -> Result<FrozenFunction, Unfreezable> {
        if let Some(error) = &self.broken {
            return Err(Unfreezable::Failed(error.clone()));
        }
        let reasons = self.why_not_frozen();
        if !reasons.is_empty() {
            return Err(Unfreezable::Changes(reasons));
        }
        let mut graph = self.graph.lock().unwrap_or_else(PoisonError::into_inner);
        let plan = self.program.device.portable_plan(&mut graph).map_err(Unfreezable::Failed)?;
        let value = |leaf: &Leaf| match leaf {
            Leaf::Argument(at) => FrozenValue::Argument(*at),
            Leaf::Captured(tensor) => FrozenValue::Captured(tensor.clone()),
            Leaf::Variable(at) => FrozenValue::Variable(self.program.variables[*at].peek()),
        };
        let result = |source: &Source| match source {
            Source::Wanted(at) => FrozenValue::Computed(*at),
            Source::Leaf(leaf) => value(leaf),
        };
        Ok(FrozenFunction {
            plan,
            leaves: self.leaves.iter().map(|(leaf, _)| value(leaf)).collect(),
            results: self.outputs.iter().map(result).collect(),
        })
    }

    /// Why runs differ from each other, in clauses.
    #[cfg(all(feature = "saved-model", not(target_family = "wasm")))]
    fn why_not_frozen(&self) -> Vec<String> {
        let mut reasons = Vec::new();
        if self.replays {
            reasons.push(
                "it has branches or loops that the host decides at each run (cond, while_loop; where_ selects on the device), or \
                 calls the host (host_call)"
                    .to_string(),
            );
        }
        let mut assigned = std::collections::BTreeSet::new();
        let (mut effects, mut numbers) = (false, false);
        for entry in self.all_entries() {
            match entry {
                Entry::Assign { variable, .. } => drop(assigned.insert(*variable)),
                Entry::Effect { .. } => effects = true,
                Entry::Call(call) => numbers |= call.owner.is_some(),
                Entry::Count(_) => numbers = true,
                _ => {}
            }
        }
        if !assigned.is_empty() {
            let spec = |variable: &usize| self.variables()[*variable].spec().to_string();
            let specs: Vec<String> = assigned.iter().take(3).map(spec).collect();
            let more = if assigned.len() > specs.len() { ", ..." } else { "" };
            let count = assigned.len();
            let variables = if count == 1 { "variable" } else { "variables" };
            reasons.push(format!("it assigns {count} {variables} ({}{more})", specs.join(", ")));
        }
        if effects {
            reasons.push("it prints, checks or writes values".to_string());
        }
        if numbers {
            reasons.push(
                "it uses numbers that change, such as random ones or an optimizer's".to_string(),
            );
        }
        reasons
    }

    /// The graph, and which of its leaves a run overwrites; `None` if runs read values to know what to do.
    fn planned(&self) -> Option<(MutexGuard<'_, FunctionGraph>, Vec<bool>)> {
        let replaced = self.leaves.iter().map(|(_, replaced)| *replaced).collect();
        let graph = || self.graph.lock().unwrap_or_else(PoisonError::into_inner);
        (!self.replays).then(|| (graph(), replaced))
    }

    /// The plans of the graph as bytes, if it has any.
    #[cfg(all(feature = "saved-plans", not(target_family = "wasm")))]
    pub(super) fn plan_bytes(&self) -> Option<Vec<u8>> {
        let (mut graph, replaced) = self.planned()?;
        let training = !self.assigns.is_empty();
        Some(self.program.device.function_plans(&mut graph, &replaced, training))
    }

    /// Runs by these plans from now on.
    #[cfg(all(feature = "saved-plans", not(target_family = "wasm")))]
    pub(super) fn use_plan_bytes(&self, bytes: &[u8]) -> Result<(), String> {
        let mut graph = self.graph.lock().unwrap_or_else(PoisonError::into_inner);
        self.program.device.use_function_plans(&mut graph, bytes)
    }

    /// The kernels of a run after many others, if the graph has a plan.
    pub(super) fn plan(&self) -> Option<PlanReport> {
        let (mut graph, replaced) = self.planned()?;
        Some(self.program.device.function_report(&mut graph, &replaced))
    }
}

/// The value of an entry while the graph is built.
#[derive(Clone, Copy)]
enum Known {
    Node(usize),
    /// A leaf of [`Builder::leaves`].
    Leaf(usize),
    /// The entry has no value.
    Nothing,
}

/// A call of the program in the graph.
struct Called {
    op: Arc<dyn Op>,
    inputs: SmallVec<[Known; 3]>,
    spec: Spec,
    /// The index of its entry.
    entry: usize,
}

/// Makes a graph of a program: variables and identities become values.
struct Builder<'a> {
    program: &'a Program,
    calls: Vec<Called>,
    leaves: Vec<Leaf>,
    captured: HashMap<usize, usize>,
    outputs: Vec<Known>,
    assigned: Vec<Option<Known>>,
    effects: Vec<(Vec<Known>, Effect)>,
    host: Vec<Host>,
}

/// What a concrete function has besides its program.
#[derive(Default)]
struct Built {
    leaves: Vec<(Leaf, bool)>,
    outputs: Vec<Source>,
    assigns: Vec<(usize, Source)>,
    effects: Vec<(Vec<Source>, Effect)>,
    host: Vec<Host>,
    graph: Graph,
}

impl Built {
    fn into_concrete(self, program: Program) -> Concrete {
        let Built { leaves, outputs, assigns, effects, host, graph } = self;
        let graph = Mutex::new(FunctionGraph::new(graph));
        let mut cell_of = vec![None; program.variables.len()];
        for (at, (variable, _)) in assigns.iter().enumerate() {
            cell_of[*variable] = Some(at);
        }
        let replays = program.has_control();
        Concrete {
            program,
            traced: None,
            replays,
            broken: None,
            leaves,
            outputs,
            assigns,
            cell_of,
            effects,
            host,
            graph,
        }
    }
}

impl<'a> Builder<'a> {
    fn new(program: &'a Program) -> Self {
        let mut builder = Builder {
            program,
            calls: Vec::new(),
            leaves: Vec::new(),
            captured: HashMap::new(),
            outputs: Vec::new(),
            assigned: vec![None; program.variables.len()],
            effects: Vec::new(),
            host: Vec::new(),
        };
        let mut known: Vec<Known> = Vec::with_capacity(program.entries.len());
        let mut read: Vec<Option<usize>> = vec![None; program.variables.len()];
        for (at, entry) in program.entries.iter().enumerate() {
            let of = |at: &u32| known[*at as usize];
            let value = match entry {
                Entry::Argument(number) => builder.leaf(Leaf::Argument(*number)),
                Entry::Captured(tensor) => builder.capture(tensor),
                Entry::Call(call) => {
                    let mut op: Arc<dyn Op> = call.op.clone();
                    if let Some(owner) = &call.owner {
                        let own = Renumbered::new(call.op.clone(), call.op.runtime_scalars());
                        builder.host.push(Host::Scalars(own.clone(), owner.clone()));
                        op = own;
                    }
                    let inputs = call.inputs.iter().map(of).collect();
                    builder.calls.push(Called { op, inputs, spec: call.spec.clone(), entry: at });
                    Known::Node(builder.calls.len() - 1)
                }
                Entry::Read(variable) => match (builder.assigned[*variable], read[*variable]) {
                    (Some(value), _) => value,
                    (None, Some(leaf)) => Known::Leaf(leaf),
                    (None, None) => {
                        read[*variable] = Some(builder.leaves.len());
                        builder.leaf(Leaf::Variable(*variable))
                    }
                },
                Entry::Stopped(of) | Entry::Same(of) => known[*of as usize],
                Entry::Assign { variable, value } => {
                    builder.assigned[*variable] = Some(of(value));
                    Known::Nothing
                }
                Entry::Effect { inputs, effect } => {
                    builder.effects.push((inputs.iter().map(of).collect(), effect.clone()));
                    Known::Nothing
                }
                Entry::Outer(_)
                | Entry::Control(_)
                | Entry::Gradient { .. }
                | Entry::Result { .. } => {
                    unreachable!("a program with blocks has no graph")
                }
                Entry::Count(counter) => {
                    builder.host.push(Host::Count(counter.clone()));
                    Known::Nothing
                }
            };
            known.push(value);
        }
        builder.outputs = program.outputs.iter().map(|at| known[*at as usize]).collect();
        builder
    }

    fn leaf(&mut self, leaf: Leaf) -> Known {
        self.leaves.push(leaf);
        Known::Leaf(self.leaves.len() - 1)
    }

    fn capture(&mut self, tensor: &Tensor) -> Known {
        let address = Arc::as_ptr(tensor.value()) as usize;
        if let Some(leaf) = self.captured.get(&address) {
            return Known::Leaf(*leaf);
        }
        self.captured.insert(address, self.leaves.len());
        self.leaf(Leaf::Captured(tensor.clone()))
    }

    /// The graph of the calls that are needed, in their order; its leaves in the order in which they are read.
    fn build(self) -> Built {
        let Builder { program, calls, leaves, outputs, assigned, effects, host, .. } = self;
        let results = || {
            let effects = effects.iter().flat_map(|(inputs, _)| inputs);
            outputs.iter().chain(assigned.iter().flatten()).chain(effects)
        };
        let mut wanted = vec![false; calls.len()];
        let mut kept = vec![false; leaves.len()];
        for known in results() {
            match known {
                Known::Node(node) => wanted[*node] = true,
                Known::Leaf(leaf) => kept[*leaf] = true,
                Known::Nothing => {}
            }
        }
        let mut needed = wanted.clone();
        for at in (0..calls.len()).rev() {
            if needed[at] {
                for input in &calls[at].inputs {
                    if let Known::Node(node) = input {
                        needed[*node] = true;
                    }
                }
            }
        }
        let mut graph = Graph::default();
        let mut graph_leaves: Vec<(Leaf, bool)> = Vec::new();
        let replaced = |at: usize| match leaves[at] {
            Leaf::Variable(variable) => assigned[variable].is_some() && !kept[at],
            _ => false,
        };
        let mut leaf_at: Vec<Option<u32>> = vec![None; leaves.len()];
        let mut node_at = vec![0_u32; calls.len()];
        let mut wanted_at = vec![0; calls.len()];
        let mut count = 0;
        for (at, call) in calls.iter().enumerate().filter(|(at, _)| needed[*at]) {
            let inputs = call.inputs.iter().map(|input| match *input {
                Known::Node(node) => Input::Node(node_at[node]),
                Known::Leaf(leaf) => Input::Leaf(*leaf_at[leaf].get_or_insert_with(|| {
                    graph.leaves.push(program.spec_of(&leaves[leaf]));
                    graph_leaves.push((leaves[leaf].clone(), replaced(leaf)));
                    graph_leaves.len() as u32 - 1
                })),
                Known::Nothing => unreachable!("a call's input is a value"),
            });
            let inputs = inputs.collect();
            node_at[at] = graph.nodes.len() as u32;
            if wanted[at] {
                wanted_at[at] = count;
                count += 1;
            }
            if call.entry < program.gradients {
                graph.gradients = node_at[at] + 1;
            }
            let (op, spec) = (call.op.clone(), call.spec.clone());
            graph.nodes.push(Node { op, inputs, spec, wanted: wanted[at] });
        }
        graph.donated = vec![false; graph.leaves.len()];
        let source = |known: &Known| match *known {
            Known::Node(node) => Source::Wanted(wanted_at[node]),
            Known::Leaf(leaf) => Source::Leaf(leaves[leaf].clone()),
            Known::Nothing => unreachable!("a result is a value"),
        };
        let mut assigns: Vec<(usize, Source)> = assigned
            .iter()
            .enumerate()
            .filter_map(|(variable, known)| Some((variable, source(known.as_ref()?))))
            .collect();
        sort_by_key(&mut assigns, |(variable, _)| program.variables[*variable].id());
        Built {
            outputs: outputs.iter().map(source).collect(),
            effects: effects
                .iter()
                .map(|(inputs, effect)| (inputs.iter().map(source).collect(), effect.clone()))
                .collect(),
            assigns,
            leaves: graph_leaves,
            host,
            graph,
        }
    }
}

impl Program {
    fn spec_of(&self, leaf: &Leaf) -> Spec {
        match leaf {
            Leaf::Argument(number) => self.arguments[*number].clone(),
            Leaf::Captured(tensor) => tensor.spec().clone(),
            Leaf::Variable(variable) => self.variables[*variable].spec().clone(),
        }
    }
}
