//! [`OuterTapes`]: calls of a function under a tape that the caller has opened. A run computes the results and what the gradients
//! need, the residuals, as one plan; the tape records it as one op, whose rule runs a second plan.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::concrete::Concrete;
use super::program::{At, Call, Control, Entry, Program};
use super::recorder::Recorder;
use crate::eager;
use crate::error::{Error, Result};
use crate::ops::{Rule, will_be_ones, with_gradient};
use crate::tape::{GradientTape, TensorOrVariable};
use crate::tensor::Tensor;
use crate::variable::Variable;

/// A function of fewer calls is replayed: its calls then become part of the plan of what surrounds it.
const CALLS: usize = 16;
/// Gradients are wanted of this many different sets of sources at most; for others, the function is replayed.
const SETS: usize = 16;

/// What one trace of a function needs to run under tapes.
#[derive(Default)]
pub(super) struct OuterTapes {
    inputs: OnceLock<Inputs>,
    /// By the inputs of which a tape wants gradients; `None` if the function must be replayed for them.
    halves: Mutex<HashMap<Vec<bool>, Option<Arc<Halves>>>>,
}

/// What a function uses besides its arguments, of which a tape may want gradients.
struct Inputs {
    captured: Vec<Tensor>,
    variables: Vec<Variable>,
    /// Code on the host may use anything.
    call_host: bool,
}

/// A function and its gradient.
struct Halves {
    /// Returns the results, and then the residuals that it makes.
    forward: Concrete,
    results: usize,
    /// The result that has a gradient.
    differentiable: usize,
    /// Gets the residuals and the gradient of that result, and returns those of the inputs.
    backward: Arc<Backward>,
    residuals: Vec<Residual>,
}

struct Backward {
    of_any: Concrete,
    /// For a gradient of ones, which is that of a loss: it gets the residuals alone.
    of_ones: OnceLock<Option<Concrete>>,
}

/// Where an argument of the backward half comes from.
#[derive(Clone, Copy)]
enum Residual {
    /// The function's own argument of this number.
    Argument(usize),
    /// The forward half makes it, after the results and as many other residuals.
    Made(usize),
}

impl OuterTapes {
    /// Runs the function; the tapes of this thread record it.
    ///
    /// # Errors
    /// Those of [`Concrete::call`].
    pub(super) fn call(&self, concrete: &Concrete, arguments: &[Tensor]) -> Result<Vec<Tensor>> {
        if eager::in_trace() || !eager::observed() || concrete.must_replay(arguments) {
            return concrete.call(arguments);
        }
        let inputs = self.inputs.get_or_init(|| Inputs::of(concrete));
        let tensors: Vec<&Tensor> = arguments.iter().chain(&inputs.captured).collect();
        match eager::only_observer_wants(&tensors, &inputs.variables) {
            Some(wanted) if !wanted.contains(&true) && !inputs.call_host => {
                eager::unobserved(|| concrete.call(arguments))
            }
            Some(wanted) => match self.halves(concrete, inputs, &wanted) {
                Some(halves) => halves.run(arguments, inputs, &wanted),
                None => concrete.call(arguments),
            },
            None => concrete.call(arguments),
        }
    }

    fn halves(&self, concrete: &Concrete, inputs: &Inputs, wanted: &[bool]) -> Option<Arc<Halves>> {
        let program = concrete.without_blocks()?;
        let lock = || self.halves.lock().unwrap_or_else(PoisonError::into_inner);
        let known = lock();
        if let Some(known) = known.get(wanted) {
            return known.clone();
        }
        if known.len() >= SETS {
            return None;
        }
        drop(known);
        let made = Halves::of(program, inputs, wanted).map(Arc::new);
        lock().insert(wanted.to_vec(), made.clone());
        made
    }
}

impl Inputs {
    fn of(concrete: &Concrete) -> Self {
        let mut read = BTreeSet::new();
        let (mut ids, mut captured, mut call_host) = (HashSet::new(), Vec::new(), false);
        for entry in concrete.all_entries() {
            match entry {
                Entry::Captured(tensor) if ids.insert(tensor.id()) => captured.push(tensor.clone()),
                Entry::Read(variable) => drop(read.insert(*variable)),
                Entry::Control(Control::Host { .. }) => call_host = true,
                _ => {}
            }
        }
        let variables = read.into_iter().map(|at| concrete.variables()[at].clone()).collect();
        Inputs { captured, variables, call_host }
    }

    /// Those that are wanted, after the wanted ones of `arguments`.
    fn wanted<'a>(
        &'a self,
        arguments: &'a [Tensor],
        wanted: &'a [bool],
    ) -> (impl Iterator<Item = &'a Tensor>, impl Iterator<Item = &'a Variable>) {
        let (of_tensors, of_variables) = wanted.split_at(wanted.len() - self.variables.len());
        let tensors = arguments.iter().chain(&self.captured).zip(of_tensors);
        let variables = self.variables.iter().zip(of_variables);
        (
            tensors.filter(|(_, wanted)| **wanted).map(|(tensor, _)| tensor),
            variables.filter(|(_, wanted)| **wanted).map(|(variable, _)| variable),
        )
    }
}

impl Halves {
    /// Traces the program with its gradient. `None` if it is small, if not exactly one result has a gradient, or if one of the
    /// wanted gradients does not exist: then a replay says why.
    fn of(program: &Program, inputs: &Inputs, wanted: &[bool]) -> Option<Self> {
        let calls = program.entries.iter().filter(|entry| matches!(entry, Entry::Call(_))).count();
        let mut floats = (0..program.outputs.len())
            .filter(|result| program.output_specs[*result].dtype.is_float());
        let (Some(differentiable), None) = (floats.next(), floats.next()) else { return None };
        let assigned = |variable: &Variable| {
            program.entries.iter().any(|entry| match entry {
                Entry::Assign { variable: at, .. } => program.variables[*at].id() == variable.id(),
                _ => false,
            })
        };
        if calls < CALLS || inputs.wanted(&[], wanted).1.any(assigned) {
            return None;
        }
        let arguments = program.arguments.len();
        let joint = program.recorded(&program.arguments, &|arguments| {
            let tape = GradientTape::unwatched();
            let (tensors, variables) = inputs.wanted(arguments, wanted);
            let tensors = tensors.cloned().map(TensorOrVariable::Tensor);
            let variables = variables.cloned().map(TensorOrVariable::Variable);
            let sources: Vec<TensorOrVariable> = tensors.chain(variables).collect();
            for source in &sources {
                match source {
                    TensorOrVariable::Tensor(tensor) => tape.watch(tensor)?,
                    TensorOrVariable::Variable(variable) => tape.watch(variable)?,
                }
            }
            let mut results = program.replay(arguments)?;
            let target = results[differentiable].clone();
            let dy = eager::placeholder_on(&program.device, target.spec().clone());
            // The backward half begins with this argument.
            Recorder::current().ok_or_else(no_trace)?.argument(&dy);
            results.extend(
                tape.gradient_from(&target, Some(&[&dy]), &sources[..])?.into_iter().flatten(),
            );
            match results.len() == program.outputs.len() + sources.len() {
                true => Ok(results),
                false => Err(no_trace()),
            }
        });
        Self::split(joint.ok()?, arguments, program.outputs.len(), differentiable)
    }

    /// Splits a program after its forward half, which has this many arguments and results.
    fn split(
        mut joint: Program,
        arguments: usize,
        results: usize,
        differentiable: usize,
    ) -> Option<Self> {
        let is_dy = |entry: &Entry| matches!(entry, Entry::Argument(at) if *at == arguments);
        let start = joint.entries.iter().position(is_dy)?;
        let (dy, gradients) = (joint.arguments.pop()?, joint.outputs.split_off(results));
        let gradient_specs = joint.output_specs.split_off(results);
        let behind = joint.entries.split_off(start);

        let used = behind.iter().flat_map(Entry::inputs).chain(gradients.iter().copied());
        let used: BTreeSet<At> = used.filter(|at| (*at as usize) < start).collect();
        let mut backward = Program::new(joint.device.clone());
        backward.variables.clone_from(&joint.variables);
        let mut residuals = Vec::new();
        let mut place: HashMap<At, At> = HashMap::new();
        for at in used {
            let entry = match &joint.entries[at as usize] {
                Entry::Captured(tensor) => Entry::Captured(tensor.clone()),
                // A constant.
                Entry::Call(Call { op, inputs, spec, owner: None, .. }) if inputs.is_empty() => {
                    let (op, inputs, spec) = (op.clone(), inputs.clone(), spec.clone());
                    Entry::Call(Call { op, inputs, spec, owner: None, rule: None })
                }
                entry => {
                    let spec = joint.spec_of_entry(at);
                    residuals.push(match entry {
                        Entry::Argument(argument) => Residual::Argument(*argument),
                        _ => {
                            joint.outputs.push(at);
                            joint.output_specs.push(spec.clone());
                            Residual::Made(joint.outputs.len() - 1)
                        }
                    });
                    backward.arguments.push(spec);
                    Entry::Argument(residuals.len() - 1)
                }
            };
            place.insert(at, backward.entries.len() as At);
            backward.entries.push(entry);
        }
        let moved = |at: &mut At| {
            *at = match (*at as usize).checked_sub(start) {
                Some(own) => (place.len() + own) as At,
                None => place[at],
            };
        };
        backward.entries.extend(behind.into_iter().map(|mut entry| {
            match &mut entry {
                Entry::Argument(argument) => *argument = residuals.len(),
                entry => entry.inputs_mut().into_iter().for_each(moved),
            }
            entry
        }));
        backward.arguments.push(dy);
        backward.outputs = gradients;
        backward.outputs.iter_mut().for_each(moved);
        backward.output_specs = gradient_specs;
        joint.gradients = 0;
        let (forward, of_any) = (Concrete::new(joint), Concrete::new(backward));
        // A rule of the program's own may capture values of the function's trace, which no run has.
        forward.without_blocks().and(of_any.without_blocks())?;
        let backward = Arc::new(Backward { of_any, of_ones: OnceLock::new() });
        Some(Halves { forward, results, differentiable, backward, residuals })
    }

    fn run(&self, arguments: &[Tensor], inputs: &Inputs, wanted: &[bool]) -> Result<Vec<Tensor>> {
        let (tensors, variables) = inputs.wanted(arguments, wanted);
        // The tape learns the variables from these reads.
        let read: Vec<Tensor> = variables.map(Variable::read).collect();
        let sources: Vec<&Tensor> = tensors.chain(&read).collect();
        let mut results = eager::unobserved(|| self.forward.call(arguments))?;
        let residual = |residual: &Residual| match residual {
            Residual::Argument(at) => arguments[*at].clone(),
            Residual::Made(at) => results[*at].clone(),
        };
        let residuals: Vec<Tensor> = self.residuals.iter().map(residual).collect();
        results.truncate(self.results);
        let backward = self.backward.clone();
        let rule: Rule = Arc::new(move |dys| backward.call(&residuals, &dys[0]));
        let result = &mut results[self.differentiable];
        *result = with_gradient(std::slice::from_ref(result), &sources, rule)?.remove(0);
        Ok(results)
    }
}

impl Backward {
    fn call(&self, residuals: &[Tensor], dy: &Tensor) -> Result<Vec<Tensor>> {
        // A tape or a trace may depend on the gradient itself: that of a Jacobian's row is a placeholder.
        let is_ones = !eager::in_trace() && !eager::observed() && will_be_ones(dy);
        match is_ones.then(|| self.of_ones.get_or_init(|| self.with_ones(dy)).as_ref()).flatten() {
            Some(of_ones) => of_ones.call(residuals),
            None => self.of_any.call(&[residuals, std::slice::from_ref(dy)].concat()),
        }
    }

    fn with_ones(&self, dy: &Tensor) -> Option<Concrete> {
        let program = self.of_any.without_blocks()?;
        let (_, residuals) = program.arguments.split_last()?;
        let recorded = program.recorded(residuals, &|residuals| {
            let ones = Tensor::ones(dy.shape())?;
            program.replay(&[residuals, &[ones]].concat())
        });
        recorded.ok().map(Concrete::new)
    }
}

/// Ends a trace; the caller replays the function.
fn no_trace() -> Error {
    Error::Trace("function: a gradient cannot be traced.".into())
}

#[cfg(test)]
#[path = "forward_backward_tests.rs"]
mod tests;
