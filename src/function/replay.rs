//! Replays of a program: its calls are made again, so that tapes record them and variables see them one by one.

use std::sync::Arc;

use smallvec::SmallVec;

use super::program::{At, Entry, GradientRule, Program, Renumbered};
#[cfg(not(target_family = "wasm"))]
use super::replay_control::Controls;
use crate::eager;
use crate::error::Result;
use crate::ops::Rule;
use crate::tensor::Tensor;

impl Program {
    /// Makes the program's calls eagerly, so that tapes record them and variables see them one by one.
    pub(super) fn replay(&self, arguments: &[Tensor]) -> Result<Vec<Tensor>> {
        self.replay_entries(&self.entries, &self.outputs, arguments, &[])
    }

    /// Replays a block; `outer` are the values that it captures.
    pub(super) fn replay_entries(
        &self,
        entries: &[Entry],
        outputs: &[At],
        arguments: &[Tensor],
        outer: &[Tensor],
    ) -> Result<Vec<Tensor>> {
        let mut values: Vec<Option<Tensor>> = Vec::with_capacity(entries.len());
        #[cfg(not(target_family = "wasm"))]
        let mut controls = Controls::new(entries);
        // In a trace, nothing runs: the program is recorded again.
        let traces = eager::traces_function();
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
                    if let Some(rule) = &call.rule {
                        values.push(Some(rule.attach(&inputs, &|at| value(&values, at))?));
                        continue;
                    }
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
                #[cfg(not(target_family = "wasm"))]
                Entry::Control(control) => {
                    controls.run(self, own as At, control, &|at| value(&values, at))?;
                    None
                }
                #[cfg(not(target_family = "wasm"))]
                Entry::Gradient { of, seeds, variables } => {
                    let variables: Vec<_> =
                        variables.iter().map(|variable| &self.variables[*variable]).collect();
                    let seeds: Vec<Vec<Tensor>> = seeds
                        .iter()
                        .map(|seeds| seeds.iter().map(|at| value(&values, *at)).collect())
                        .collect();
                    let control = (*of, &entries[*of as usize]);
                    controls.differentiate(self, own as At, control, &seeds, &variables)?;
                    None
                }
                #[cfg(not(target_family = "wasm"))]
                Entry::Result { of, index } => Some(controls.result(*of, *index)),
                #[cfg(target_family = "wasm")]
                Entry::Control(_) | Entry::Gradient { .. } | Entry::Result { .. } => {
                    unreachable!("a page records no branches and loops")
                }
            };
            values.push(made);
            // After an entry, so that the calls that follow use the gradients.
            if traces && own + 1 == self.gradients && std::ptr::eq(entries, &*self.entries) {
                eager::gradients_end(&self.device);
            }
        }
        Ok(outputs.iter().map(|at| value(&values, *at)).collect())
    }
}

impl GradientRule {
    /// Calls the op of the custom gradient; `value` is that of an entry.
    fn attach(&self, inputs: &[&Tensor], value: &dyn Fn(At) -> Tensor) -> Result<Tensor> {
        let captured: Vec<Tensor> = self.captures.iter().map(|at| value(*at)).collect();
        let program = self.program.clone();
        let rule: Rule = Arc::new(move |dys| match &program {
            Ok(program) => program.replay(&[dys, &captured].concat()),
            Err(error) => Err(error.clone()),
        });
        self.results.call(inputs, rule)
    }
}

#[cfg(test)]
#[path = "replay_tests.rs"]
mod tests;
