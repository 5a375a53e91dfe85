//! [`Known`]: what a session keeps of its graph from trace to trace.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{global_variables_initializer, train};
use crate::error::{Error, Result, message};
use crate::function::{ConcreteFunction, TensorSpec};
use crate::variable::Variable;

/// What a session keeps of its graph.
#[derive(Default)]
pub(super) struct Known(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    /// In the order in which the graph makes them.
    variables: Vec<(String, Variable)>,
    variable_at: HashMap<String, usize>,
    /// The identities of the variables that have no value yet.
    uninitialized: HashSet<u64>,
    /// Those of the steps of these names, in order.
    optimizers: Vec<(String, Arc<train::Optimizer>)>,
    /// The names of nodes, each with whether it is an operation.
    nodes: HashMap<String, bool>,
    /// Placeholders in traces that were not fed, by the identities of their tensors.
    unfed: HashMap<u64, Unfed>,
}

impl Known {
    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The variable of this name, which `make` makes if there is none yet.
    pub(super) fn variable(
        &self,
        name: &str,
        make: impl FnOnce() -> Result<Variable>,
    ) -> Result<Variable> {
        let found =
            |kept: &Kept| kept.variable_at.get(name).map(|at| kept.variables[*at].1.clone());
        if let Some(variable) = found(&self.lock()) {
            return Ok(variable);
        }
        // Without the lock: this calls the program.
        let made = make()?;
        let mut kept = self.lock();
        Ok(found(&kept).unwrap_or_else(|| {
            let at = kept.variables.len();
            kept.variable_at.insert(name.to_string(), at);
            kept.variables.push((name.to_string(), made.clone()));
            kept.uninitialized.insert(made.id());
            made
        }))
    }

    pub(super) fn optimizer(
        &self,
        name: &str,
        make: impl FnOnce() -> train::Optimizer,
    ) -> Arc<train::Optimizer> {
        let found = |kept: &Kept| {
            kept.optimizers.iter().find(|(known, _)| known == name).map(|(_, o)| o.clone())
        };
        if let Some(optimizer) = found(&self.lock()) {
            return optimizer;
        }
        let made = Arc::new(make());
        let mut kept = self.lock();
        found(&kept).unwrap_or_else(|| {
            kept.optimizers.push((name.to_string(), made.clone()));
            made
        })
    }

    pub(super) fn add_node(&self, name: &str, operation: bool) {
        self.lock().nodes.insert(name.to_string(), operation);
    }

    pub(super) fn add_unfed(&self, id: u64, unfed: Unfed) {
        self.lock().unfed.insert(id, unfed);
    }

    /// The names of the nodes, for a message.
    pub(super) fn names(&self, operations: bool) -> String {
        let kept = self.lock();
        let of_kind = |(_, operation): &(&String, &bool)| operations || !**operation;
        let mut names: Vec<&str> =
            kept.nodes.iter().filter(of_kind).map(|(name, _)| name.as_str()).collect();
        names.sort_unstable();
        match names.len() {
            0 => "no nodes".to_string(),
            1..=30 => names.join(", "),
            many => format!("{} and {} more", names[..30].join(", "), many - 30),
        }
    }

    /// The variables by their names, in order.
    #[cfg(feature = "checkpoint")]
    pub(super) fn variables(&self) -> Vec<(String, Variable)> {
        self.lock().variables.clone()
    }

    /// The optimizers by the names of their steps, in order.
    #[cfg(feature = "checkpoint")]
    pub(super) fn optimizers(&self) -> Vec<(String, Arc<train::Optimizer>)> {
        self.lock().optimizers.clone()
    }

    /// The name of the first variable that has no value yet.
    #[cfg(feature = "checkpoint")]
    pub(super) fn uninitialized(&self) -> Option<String> {
        let kept = self.lock();
        let mut variables = kept.variables.iter();
        let empty = variables.find(|(_, variable)| kept.uninitialized.contains(&variable.id()));
        empty.map(|(name, _)| name.clone())
    }

    pub(super) fn is_operation(&self, name: &str) -> bool {
        let known = self.lock().nodes.get(name).copied();
        known.unwrap_or(name == global_variables_initializer())
    }

    /// Notes that all variables have values.
    #[cfg(feature = "checkpoint")]
    pub(super) fn initialize_all(&self) {
        self.lock().uninitialized.clear();
    }

    /// Notes that the variables which the run has assigned have values.
    pub(super) fn initialize(&self, run: &ConcreteFunction) {
        let uninitialized = &mut self.lock().uninitialized;
        if !uninitialized.is_empty() {
            for variable in run.variables_assigned() {
                uninitialized.remove(&variable.id());
            }
        }
    }

    /// Refuses a run that reads a variable without a value, or uses a placeholder that is not fed.
    pub(super) fn check(&self, run: &ConcreteFunction) -> Result<()> {
        let kept = self.lock();
        if run.fails_always() {
            for tensor in run.captured_inputs() {
                if let Some(Unfed { name, spec }) = kept.unfed.get(&tensor.id()) {
                    return Err(Error::Data(message!(
                        "Session::run: you must feed a value for placeholder '{name}' with dtype {} and shape {}.",
                        spec.dtype(),
                        spec.to_string().trim_start_matches(|c| c != '[')
                    )));
                }
            }
        }
        if !kept.uninitialized.is_empty() {
            let read: HashSet<u64> = run.variables_read_first().iter().map(Variable::id).collect();
            let empty = kept.variables.iter().find(|(_, variable)| {
                kept.uninitialized.contains(&variable.id()) && read.contains(&variable.id())
            });
            if let Some((name, ..)) = empty {
                return Err(Error::Check(message!(
                    "Session::run: attempting to use uninitialized value {name}. Run global_variables_initializer() first, or \
                     restore the variables with a Saver."
                )));
            }
        }
        Ok(())
    }
}

/// What a placeholder has if nothing is fed for it.
pub(super) struct Unfed {
    pub(super) name: String,
    pub(super) spec: TensorSpec,
}
