//! Replays of a program: its calls are made again, so that tapes record them and variables see them one by one.

use std::collections::{HashMap, HashSet};

use smallvec::SmallVec;

use super::program::{At, Block, Control, Entry, Program, Renumbered};
use crate::dtype::DType;
use crate::eager;
use crate::error::Result;
use crate::tape::{GradientTape, PersistentTape, TensorOrVariable};
use crate::tensor::Tensor;
use crate::variable::Variable;

impl Program {
    /// Makes the program's calls eagerly, so that tapes record them and variables see them one by one.
    pub(super) fn replay(&self, arguments: &[Tensor]) -> Result<Vec<Tensor>> {
        self.replay_entries(&self.entries, &self.outputs, arguments, &[])
    }

    /// Replays a block; `outer` are the values that it captures.
    fn replay_entries(
        &self,
        entries: &[Entry],
        outputs: &[At],
        arguments: &[Tensor],
        outer: &[Tensor],
    ) -> Result<Vec<Tensor>> {
        let mut values: Vec<Option<Tensor>> = Vec::with_capacity(entries.len());
        let mut results: HashMap<At, Vec<Tensor>> = HashMap::new();
        let mut taped: HashMap<At, Taped> = HashMap::new();
        let differentiated = entries.iter().filter_map(|entry| match entry {
            Entry::Gradient { of, .. } => Some(*of),
            _ => None,
        });
        let differentiated: HashSet<At> = differentiated.collect();
        let value = |values: &[Option<Tensor>], at: At| -> Tensor {
            values[at as usize].clone().expect("an entry uses values of earlier entries")
        };
        for (own, entry) in entries.iter().enumerate() {
            let made = match entry {
                Entry::Argument(at) => Some(arguments[*at].clone()),
                Entry::Outer(at) => Some(outer[*at].clone()),
                Entry::Captured(tensor) => Some(tensor.clone()),
                Entry::Call(call) => {
                    let inputs: SmallVec<[Tensor; 3]> =
                        call.inputs.iter().map(|at| value(&values, *at)).collect();
                    let inputs: SmallVec<[&Tensor; 3]> = inputs.iter().collect();
                    let op = match &call.owner {
                        Some(owner) => Renumbered::new(call.op.clone(), owner()?),
                        None => call.op.clone(),
                    };
                    Some(eager::call_again(op, &inputs, &self.device, call.owner.as_ref())?)
                }
                Entry::Read(variable) => Some(self.variables[*variable].read()),
                Entry::Stopped(of) => Some(value(&values, *of).stop_gradient()),
                Entry::Same(of) => Some(value(&values, *of)),
                Entry::Assign { variable, value: of } => {
                    self.variables[*variable].assign(value(&values, *of))?;
                    None
                }
                Entry::Effect { inputs, effect } => {
                    let inputs: Vec<Tensor> = inputs.iter().map(|at| value(&values, *at)).collect();
                    effect(&inputs.iter().collect::<Vec<_>>());
                    None
                }
                Entry::Count(counter) => {
                    counter.advance()?;
                    None
                }
                Entry::Control(control) => {
                    let of = |at: At| value(&values, at);
                    let own = own as At;
                    let made = match differentiated.contains(&own) {
                        false => self.replay_control(control, &of)?,
                        true => {
                            let (tape, made) = Taped::record(self, control, &of)?;
                            taped.insert(own, tape);
                            made
                        }
                    };
                    results.insert(own, made);
                    None
                }
                Entry::Gradient { of, dys, variables } => {
                    let dys: Vec<Tensor> = dys.iter().map(|at| value(&values, *at)).collect();
                    let variables = variables.iter().map(|variable| &self.variables[*variable]);
                    let gradients = taped[of].gradients(&results[of], &dys, variables)?;
                    results.insert(own as At, gradients);
                    None
                }
                Entry::Result { of, index } => Some(results[of][*index].clone()),
            };
            values.push(made);
        }
        Ok(outputs.iter().map(|at| value(&values, *at)).collect())
    }

    /// Runs the blocks that the values select; `value` is that of an entry around them.
    fn replay_control(
        &self,
        control: &Control,
        value: &dyn Fn(At) -> Tensor,
    ) -> Result<Vec<Tensor>> {
        let run = |block: &Block, arguments: &[Tensor]| {
            let outer: Vec<Tensor> = block.captures.iter().map(|at| value(*at)).collect();
            self.replay_entries(&block.entries, &block.outputs, arguments, &outer)
        };
        match control {
            Control::Host { call, inputs } => {
                let inputs: Vec<Tensor> = inputs.iter().map(|at| value(*at)).collect();
                self.device.scope(|| call(&inputs))
            }
            Control::Choose { index, branches } => {
                let at = usize::try_from(number(&value(*index))?).unwrap_or(usize::MAX);
                run(&branches[at.min(branches.len() - 1)], &[])
            }
            Control::Repeat { cond, body, start, most } => {
                let mut values: Vec<Tensor> = start.iter().map(|at| value(*at)).collect();
                for _ in 0..*most {
                    if number(&run(cond, &values)?[0])? == 0 {
                        break;
                    }
                    values = run(body, &values)?;
                }
                Ok(values)
            }
        }
    }
}

/// A run of a [`Control`], of which a tape inside of the function computes gradients.
struct Taped {
    tape: PersistentTape,
    inputs: Vec<Tensor>,
}

impl Taped {
    /// Runs the control, with the values of the entries around it.
    fn record(
        program: &Program,
        control: &Control,
        value: &dyn Fn(At) -> Tensor,
    ) -> Result<(Self, Vec<Tensor>)> {
        let mut values: HashMap<At, Tensor> = HashMap::new();
        let mut inputs = Vec::new();
        let mut ids = HashSet::new();
        for at in control.inputs() {
            let mut x = value(at);
            if x.dtype().is_float() {
                // One tensor in two places of the program has a gradient for each.
                if !ids.insert(x.id()) {
                    x = x.identity()?;
                }
                inputs.push(x.clone());
            }
            values.insert(at, x);
        }
        let tape = GradientTape::persistent();
        inputs.iter().try_for_each(|x| tape.watch(x))?;
        let made = program.replay_control(control, &|at| values[&at].clone());
        tape.stop();
        Ok((Taped { tape, inputs }, made?))
    }

    /// The gradients of the inputs and of the variables, by those of the results.
    fn gradients<'a>(
        &self,
        results: &[Tensor],
        dys: &[Tensor],
        variables: impl Iterator<Item = &'a Variable>,
    ) -> Result<Vec<Tensor>> {
        let floats = results.iter().zip(dys).filter(|(result, _)| result.dtype().is_float());
        let (results, dys): (Vec<Tensor>, Vec<&Tensor>) =
            floats.map(|(result, dy)| (result.clone(), dy)).unzip();
        let inputs = self.inputs.iter().cloned().map(TensorOrVariable::Tensor);
        let variables = variables.cloned().map(TensorOrVariable::Variable);
        let sources: Vec<TensorOrVariable> = inputs.chain(variables).collect();
        let gradients = self.tape.gradient_from(&results[..], Some(&dys), &sources[..])?;
        let gradients = gradients.into_iter().zip(&sources).map(|(gradient, source)| {
            gradient.map_or_else(
                || match source {
                    TensorOrVariable::Tensor(x) => x.zeros_like(),
                    TensorOrVariable::Variable(x) => x.peek().zeros_like(),
                },
                Ok,
            )
        });
        gradients.collect()
    }
}

/// Reads the `bool` or `i32` that decides what runs.
fn number(x: &Tensor) -> Result<i32> {
    #[cfg(not(target_family = "wasm"))]
    return match x.dtype() {
        DType::Bool => x.item::<bool>().map(i32::from),
        _ => x.item::<i32>(),
    };
    #[cfg(target_family = "wasm")]
    Err(crate::graph::outside_its_trace(x.value()))
}
