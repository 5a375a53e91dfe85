//! Replays of branches, loops and their gradients. A browser's page has none: it cannot wait for the values that decide.

use std::collections::{HashMap, HashSet};

use super::program::{At, Block, Control, Entry, Program};
use super::taped::{Differentiated, Taped, derivative, select, selected, separate};
use super::turns::{OneTurn, captures_of};
use crate::dtype::DType;
use crate::eager;
use crate::error::Result;
use crate::tensor::Tensor;
use crate::variable::Variable;

/// What [`separate`] returns.
type Separated = (HashMap<At, Tensor>, Vec<Tensor>);

/// The controls of a list of entries that a replay has run, by their entries.
#[derive(Default)]
pub(super) struct Controls {
    results: HashMap<At, Vec<Tensor>>,
    taped: HashMap<At, Differentiated>,
    /// Those of which an entry wants gradients.
    differentiated: HashSet<At>,
    /// The values of those that run again for second derivatives.
    again: HashMap<At, Separated>,
}

impl Controls {
    pub(super) fn new(entries: &[Entry]) -> Self {
        let mut controls = Controls::default();
        for entry in entries {
            if let Entry::Gradient { of, seeds, .. } = entry {
                controls.differentiated.insert(*of);
                if seeds.len() > 1 {
                    controls.again.insert(*of, Separated::default());
                }
            }
        }
        controls
    }

    /// Result `index` of the control or gradient `of`.
    pub(super) fn result(&self, of: At, index: usize) -> Tensor {
        self.results[&of][index].clone()
    }

    /// Runs a control.
    pub(super) fn run(
        &mut self,
        program: &Program,
        own: At,
        control: &Control,
        of: &dyn Fn(At) -> Tensor,
    ) -> Result<()> {
        let recorded = self.differentiated.contains(&own);
        let (values, inputs) = match recorded {
            true => separate(control, of)?,
            false => Separated::default(),
        };
        if let Some(again) = self.again.get_mut(&own) {
            *again = (values.clone(), inputs.clone());
        }
        let of = |at: At| values.get(&at).cloned().unwrap_or_else(|| of(at));
        let run = |control: &Control| program.replay_control(control, &of);
        let made = match (control, recorded) {
            // In a trace, nothing runs: the program is recorded again, with selects instead of choices.
            (Control::Choose { index, branches }, _) if eager::traces_function() => {
                let branch = |block: &Block| program.replay_block(block, &[], &of);
                let (tape, made) = selected(&of(*index), branches, &inputs, &branch)?;
                self.taped.insert(own, tape);
                made
            }
            (control, false) => run(control)?,
            (control, true) => {
                let (tape, made) = Taped::record(inputs, || run(control))?;
                self.taped.insert(own, Differentiated::One(tape, made.clone()));
                made
            }
        };
        self.results.insert(own, made);
        Ok(())
    }

    /// Computes gradients: see [`Entry::Gradient`]. `control` is the entry `of`.
    pub(super) fn differentiate(
        &mut self,
        program: &Program,
        own: At,
        (of, control): (At, &Entry),
        seeds: &[Vec<Tensor>],
        variables: &[&Variable],
    ) -> Result<()> {
        let gradients = match (seeds, control) {
            ([dys], _) => self.taped[&of].gradients(dys, variables)?,
            (_, Entry::Control(control)) => {
                program.derivative_again(control, &self.again[&of], seeds, variables)?
            }
            _ => unreachable!("gradients are those of a control"),
        };
        self.results.insert(own, gradients);
        Ok(())
    }
}

impl Program {
    /// Runs the control again, under as many tapes as there are lists of seeds.
    fn derivative_again(
        &self,
        control: &Control,
        (values, inputs): &Separated,
        seeds: &[Vec<Tensor>],
        variables: &[&Variable],
    ) -> Result<Vec<Tensor>> {
        let of = |at: At| values[&at].clone();
        // A tensor in two places has a gradient for each.
        let own = |seed: &Tensor| match seed.dtype().is_float() {
            true => seed.identity(),
            false => Ok(seed.clone()),
        };
        let seeds = seeds
            .iter()
            .map(|seeds| seeds.iter().map(own).collect::<Result<Vec<Tensor>>>())
            .collect::<Result<Vec<_>>>()?;
        match control {
            Control::Choose { index, branches } if eager::traces_function() => {
                let each = branches.iter().map(|block| {
                    derivative(&|| self.replay_block(block, &[], &of), inputs, &seeds, variables)
                });
                select(&of(*index), each.collect::<Result<_>>()?)
            }
            _ => derivative(&|| self.replay_control(control, &of), inputs, &seeds, variables),
        }
    }

    pub(super) fn replay_block(
        &self,
        block: &Block,
        arguments: &[Tensor],
        value: &dyn Fn(At) -> Tensor,
    ) -> Result<Vec<Tensor>> {
        let outer: Vec<Tensor> = block.captures.iter().map(|at| value(*at)).collect();
        self.replay_entries(&block.entries, &block.outputs, arguments, &outer)
    }

    /// Runs the blocks that the values select; `value` is that of an entry around them.
    pub(super) fn replay_control(
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
            Control::Repeat { cond, body, start, most, turn } => {
                let mut values: Vec<Tensor> = start.iter().map(|at| value(*at)).collect();
                // A check of numbers names the call that failed, so no turn may run that the loop does not make.
                let plain = !eager::traces_function() && !self.device.checks_numerics();
                // A tape follows the branch that runs, and a turn computes all of them.
                let chooses = || cond.has_control() || body.has_control();
                let turn = (plain && !(eager::observed() && chooses()))
                    .then(|| turn.get_or_init(|| OneTurn::of(self, cond, body, &values, value)));
                if let Some(Some(turn)) = turn {
                    let goes_on = run(cond, &values)?.swap_remove(0);
                    return turn.run(values, goes_on, captures_of(cond, body, value), *most);
                }
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
    match x.dtype() {
        DType::Bool => x.item::<bool>().map(i32::from),
        _ => x.item::<i32>(),
    }
}
