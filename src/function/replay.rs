//! Replays of a program: its calls are made again, so that tapes record them and variables see them one by one.
//!
//! In a trace, a replay records the program again; then choices become selects.

use std::collections::{HashMap, HashSet};

use smallvec::SmallVec;

use super::program::{At, Block, Control, Entry, Program, Renumbered};
use super::taped::{Differentiated, Taped, selected, separate};
use crate::dtype::DType;
use crate::eager;
use crate::error::Result;
use crate::tensor::Tensor;

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
        let mut taped: HashMap<At, Differentiated> = HashMap::new();
        // In a trace, nothing runs: the program is recorded again, with selects instead of choices.
        let traces = eager::traces_function();
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
                        Some(owner) if !traces => Renumbered::new(call.op.clone(), owner()?),
                        _ => call.op.clone(),
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
                    let effect = effect.clone();
                    eager::effect(&inputs.iter().collect::<Vec<_>>(), move |inputs| effect(inputs));
                    None
                }
                Entry::Count(counter) => {
                    if traces {
                        eager::advances(counter);
                    } else {
                        counter.advance()?;
                    }
                    None
                }
                Entry::Control(control) => {
                    let of = |at: At| value(&values, at);
                    let own = own as At;
                    let recorded = differentiated.contains(&own);
                    let (values, inputs) = match recorded {
                        true => separate(control, &of)?,
                        false => (HashMap::new(), Vec::new()),
                    };
                    let of = |at: At| values.get(&at).cloned().unwrap_or_else(|| of(at));
                    let run = |control: &Control| self.replay_control(control, &of);
                    let made = match (control, recorded) {
                        (Control::Choose { index, branches }, _) if traces => {
                            let branch = |block: &Block| self.replay_block(block, &[], &of);
                            let (tape, made) = selected(&of(*index), branches, &inputs, &branch)?;
                            taped.insert(own, tape);
                            made
                        }
                        (control, false) => run(control)?,
                        (control, true) => {
                            let (tape, made) = Taped::record(inputs, || run(control))?;
                            taped.insert(own, Differentiated::One(tape, made.clone()));
                            made
                        }
                    };
                    results.insert(own, made);
                    None
                }
                Entry::Gradient { of, dys, variables } => {
                    let dys: Vec<Tensor> = dys.iter().map(|at| value(&values, *at)).collect();
                    let variables = variables.iter().map(|variable| &self.variables[*variable]);
                    let gradients = taped[of].gradients(&dys, &variables.collect::<Vec<_>>())?;
                    results.insert(own as At, gradients);
                    None
                }
                Entry::Result { of, index } => Some(results[of][*index].clone()),
            };
            values.push(made);
            // After an entry, so that the calls that follow use the gradients.
            if traces && own + 1 == self.gradients && std::ptr::eq(entries, &*self.entries) {
                eager::gradients_end(&self.device);
            }
        }
        Ok(outputs.iter().map(|at| value(&values, *at)).collect())
    }

    fn replay_block(
        &self,
        block: &Block,
        arguments: &[Tensor],
        value: &dyn Fn(At) -> Tensor,
    ) -> Result<Vec<Tensor>> {
        let outer: Vec<Tensor> = block.captures.iter().map(|at| value(*at)).collect();
        self.replay_entries(&block.entries, &block.outputs, arguments, &outer)
    }

    /// Runs the blocks that the values select; `value` is that of an entry around them.
    fn replay_control(
        &self,
        control: &Control,
        value: &dyn Fn(At) -> Tensor,
    ) -> Result<Vec<Tensor>> {
        let run = |block: &Block, arguments: &[Tensor]| self.replay_block(block, arguments, value);
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
