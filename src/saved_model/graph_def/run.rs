//! [`Session`]: a graph with the values of its variables and tables, which runs parts of it.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use super::call::{Call, Model, Results};
use super::graph::{Endpoint, Graph, Node, Steps};
use super::library::Library;
use super::ops;
use super::proto::Attr;
use super::tensor_proto::open_sizes;
use super::value::{Cell, CellState, Table, Value};
use crate::error::{Error, Result, message};
use crate::host_array::{HostArray, HostDType};
use crate::runtime::Device;
use crate::saved_model::budget::Budget;
use crate::saved_model::model_files::{ModelFiles, stays_inside};
use crate::saved_model::spec::SavedSpec;
use crate::saved_model::waiting;
use crate::train::BundleReader;

/// Larger constants are copied to the device once.
const LARGE: usize = 16;

#[derive(Debug)]
pub(crate) struct Session {
    library: Library,
    device: Device,
    variables: Mutex<HashMap<String, Arc<Cell>>>,
    tables: Mutex<HashMap<String, Arc<Table>>>,
    checkpoint: Option<BundleReader<'static>>,
    files: ModelFiles,
}

impl Session {
    pub(crate) fn new(
        library: Library,
        device: Device,
        checkpoint: Option<BundleReader<'static>>,
        files: ModelFiles,
    ) -> Self {
        let (variables, tables) = (Mutex::default(), Mutex::default());
        Session { library, device, variables, tables, checkpoint, files }
    }

    /// The result with this name in the graph outside functions.
    pub(crate) fn endpoint(&self, name: &str) -> Result<Endpoint> {
        self.library
            .top
            .endpoint(name)
            .ok_or_else(|| Error::Data(message!("the graph has no node \"{name}\".")))
    }

    /// The spec of a node that feeds or fetches name: its attributes may have the dtype and the shape.
    pub(crate) fn spec(&self, name: &str, input: bool) -> SavedSpec {
        let node = self.library.top.endpoint(name).map(|(node, _)| self.library.top.node(node));
        let attribute = |name: &str| node.and_then(|node| node.attributes.get(name));
        let dtype = ["dtype", "T"].iter().find_map(|name| match attribute(name) {
            Some(Attr::Type(number)) => Some(HostDType::from_number(*number)),
            _ => None,
        });
        let shape = match attribute("shape") {
            Some(Attr::Shape(shape)) if input => open_sizes(Some(shape)),
            _ => None,
        };
        SavedSpec { name: name.to_string(), dtype: dtype.unwrap_or(HostDType::F32), shape }
    }

    /// The order in which the graph computes `fetches` of `feeds`.
    ///
    /// # Errors
    /// [`Error::Data`] with all ops that are not known; `what` needs them.
    pub(crate) fn steps(
        &self,
        what: &str,
        feeds: &[u32],
        fetches: &[Endpoint],
        controls: &[u32],
    ) -> Result<Steps> {
        let steps = self.library.top.steps(feeds, fetches, controls)?;
        self.library.check(what, &self.library.top, &steps)?;
        Ok(steps)
    }

    /// Runs a part of the graph.
    pub(crate) fn run(&self, steps: &Steps, arguments: Vec<Value>) -> Result<Vec<Value>> {
        let execution = Execution { session: self, budget: Budget::default() };
        self.device.scope(|| execution.run(&self.library.top, steps, arguments))
    }

    /// Runs a function.
    pub(crate) fn run_function(&self, name: &str, arguments: Vec<Value>) -> Result<Vec<Value>> {
        let execution = Execution { session: self, budget: Budget::default() };
        self.device.scope(|| execution.function(name, arguments))
    }

    /// Checks that every op of a function is known.
    pub(crate) fn check_function(&self, what: &str, name: &str) -> Result<()> {
        let function = self.library.function(name)?;
        self.library.check(what, &function.graph, &function.steps)
    }

    /// Reads the variables of a part of the graph, and copies its large constants to the device.
    pub(crate) fn prepare(&self, steps: &Steps, trainable: &dyn Fn(&str) -> bool) -> Result<()> {
        self.prepare_nodes(&self.library.top, steps, trainable)
    }

    /// As `prepare`, for a function.
    pub(crate) fn prepare_function(
        &self,
        name: &str,
        trainable: &dyn Fn(&str) -> bool,
    ) -> Result<()> {
        let function = self.library.function(name)?;
        self.prepare_nodes(&function.graph, &function.steps, trainable)
    }

    fn prepare_nodes(
        &self,
        graph: &Graph,
        steps: &Steps,
        trainable: &dyn Fn(&str) -> bool,
    ) -> Result<()> {
        let mut result = Ok(());
        // Names of variables are unique in the graph, so its nodes name those that it needs.
        let mut names = HashSet::new();
        self.library.each_node(graph, steps, &mut |_, graph, steps, at| {
            let node = graph.node(steps.list[at].node);
            if matches!(&node.op[..], "VarHandleOp" | "VariableV2" | "Variable") {
                names.insert(shared_name(node));
            }
            if result.is_ok() {
                result = self.upload(node);
            }
        })?;
        result?;
        let variables = self.lock_variables();
        let cells = names.into_iter().filter_map(|name| variables.get(name).cloned());
        let cells: Vec<Arc<Cell>> = cells.collect();
        drop(variables);
        cells.iter().try_for_each(|cell| self.fill(cell, trainable))
    }

    /// Copies a large constant to the device.
    fn upload(&self, node: &Node) -> Result<()> {
        let Some(Ok(Value::Host(array))) = &node.constant else { return Ok(()) };
        if array.len() <= LARGE || !array.dtype().is_float() || node.uploaded.get().is_some() {
            return Ok(());
        }
        match self.device.scope(|| array.to_tensor()) {
            Ok(tensor) => drop(node.uploaded.set(tensor)),
            // A dtype that devices lack is an error of the node that needs the device.
            Err(Error::DType(_)) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Reads the value of a variable, if it is in the checkpoint.
    pub(crate) fn fill(&self, cell: &Cell, trainable: &dyn Fn(&str) -> bool) -> Result<()> {
        let CellState::Stored(key) = cell.state() else { return Ok(()) };
        let array = self.stored(&key)?;
        let named = |error: Error| {
            error.reworded(|text| message!("the variable \"{}\": {text}", cell.name))
        };
        self.device.scope(|| cell.fill(Arc::new(array), trainable(&key))).map_err(named)
    }

    /// An array of the checkpoint.
    fn stored(&self, key: &str) -> Result<HostArray<'static>> {
        let checkpoint = self.checkpoint.as_ref().ok_or_else(|| {
            Error::Data(message!("the model has variables, and no checkpoint with their values."))
        })?;
        checkpoint.array(key)
    }

    /// Adds the variable that the node of this name is, with its value.
    pub(crate) fn add_variable(&self, name: String, array: HostArray<'static>) -> Result<()> {
        let cell = Cell::new(&name, array.dtype());
        self.device.scope(|| cell.fill(Arc::new(array), true))?;
        self.lock_variables().insert(name, Arc::new(cell));
        Ok(())
    }

    /// The variables that nodes have made, by the names that nodes share.
    pub(crate) fn lock_variables(&self) -> std::sync::MutexGuard<'_, HashMap<String, Arc<Cell>>> {
        self.variables.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The name by which nodes share a variable.
fn shared_name(node: &Node) -> &str {
    match node.attributes.get("shared_name") {
        Some(Attr::Text(name)) if !name.is_empty() => {
            std::str::from_utf8(name).unwrap_or(&node.name)
        }
        _ => &node.name,
    }
}

/// One call of a graph.
struct Execution<'a> {
    session: &'a Session,
    budget: Budget,
}

impl Execution<'_> {
    fn run(&self, graph: &Graph, steps: &Steps, arguments: Vec<Value>) -> Result<Vec<Value>> {
        let mut arguments: Vec<Option<Value>> = arguments.into_iter().map(Some).collect();
        let mut left: Vec<u32> = steps.list.iter().map(|step| step.uses).collect();
        let mut values: Vec<Results> = Vec::with_capacity(steps.list.len());
        self.budget.spend(steps.list.len() as u64)?;
        for step in &steps.list {
            let node = graph.node(step.node);
            let results = match step.fed {
                Some(at) => {
                    let argument = arguments.get_mut(at as usize).and_then(Option::take);
                    let argument = argument.ok_or_else(|| {
                        Error::Data(message!("a function lacks its argument \"{}\".", node.name))
                    })?;
                    Results::from_iter([argument])
                }
                None => {
                    let inputs = step.inputs.iter();
                    let inputs = inputs.map(|input| take(&mut values, &mut left, *input));
                    let inputs =
                        inputs.collect::<Result<_>>().map_err(|error| named(node, error))?;
                    let mut call = Call { node, inputs, model: self };
                    let entry = ops::find(&node.op)
                        .ok_or_else(|| Error::Data(message!("the op {} is not known.", node.op)))?;
                    waiting::node(|| ops::run(entry, &mut call)).map_err(|error| {
                        // A function's error has the name of its own node.
                        let calls = |name: &&str| node.attributes.contains_key(*name);
                        if ops::FUNCTIONS.iter().any(calls) { error } else { named(node, error) }
                    })?
                }
            };
            // Nobody reads the values of a step that only runs for its effect.
            values.push(if step.uses == 0 { Results::new() } else { results });
        }
        steps.fetches.iter().map(|fetch| take(&mut values, &mut left, *fetch)).collect()
    }
}

/// The value of an input, which moves to its last reader.
fn take(values: &mut [Results], left: &mut [u32], (place, output): Endpoint) -> Result<Value> {
    let (place, output) = (place as usize, output as usize);
    let results = &mut values[place];
    let none =
        Error::Data(message!("it reads result {output} of a node that has {}.", results.len()));
    left[place] -= 1;
    if left[place] > 0 {
        return results.get(output).cloned().ok_or(none);
    }
    if output >= results.len() {
        return Err(none);
    }
    let value = results.swap_remove(output);
    results.clear();
    Ok(value)
}

/// An error with the node where it occurred.
fn named(node: &Node, error: Error) -> Error {
    error.reworded(|text| message!("node \"{}\" ({}): {text}", node.name, node.op))
}

impl Model for Execution<'_> {
    fn function(&self, name: &str, arguments: Vec<Value>) -> Result<Vec<Value>> {
        let function = self.session.library.function(name)?;
        if arguments.len() != function.arguments {
            return Err(Error::Data(message!(
                "the function \"{name}\" takes {} arguments, and {} were passed.",
                function.arguments,
                arguments.len()
            )));
        }
        waiting::node(|| self.run(&function.graph, &function.steps, arguments))
    }

    fn variable(&self, name: &str, dtype: HostDType) -> Arc<Cell> {
        let mut variables = self.session.lock_variables();
        let cell = variables.entry(name.to_string());
        cell.or_insert_with(|| Arc::new(Cell::new(name, dtype))).clone()
    }

    fn table(&self, name: &str, keys: HostDType, values: HostDType) -> Arc<Table> {
        let mut tables = self.session.tables.lock().unwrap_or_else(PoisonError::into_inner);
        let table = tables.entry(name.to_string());
        let new = || Arc::new(Table { keys, values, entries: Mutex::default() });
        table.or_insert_with(new).clone()
    }

    fn asset(&self, name: &[u8]) -> Result<Vec<u8>> {
        let name = String::from_utf8_lossy(name);
        if !stays_inside(&name) {
            return Err(Error::Data(message!(
                "the model names the file \"{name}\", which is outside its folder \"assets\"."
            )));
        }
        Ok(self.session.files.read(&format!("assets/{name}"))?.into_owned())
    }

    fn stored(&self, key: &str) -> Result<HostArray<'static>> {
        self.session.stored(key)
    }

    fn turn(&self) -> Result<()> {
        self.budget.spend(1)
    }
}
