//! [`OneTurn`]: a turn of a loop as one plan. Small turns run ahead of the values that end the loop, so that the host waits
//! seldom.

use std::sync::atomic::{AtomicU64, Ordering};

use super::concrete::Concrete;
use super::program::{At, Block, Program, Turn};
use crate::eager;
use crate::error::Result;
use crate::graph::Spec;
use crate::tensor::Tensor;

/// A turn: a function of the loop's values and of what its blocks capture, which returns the next values and whether there is
/// another turn.
pub(super) struct OneTurn {
    concrete: Concrete,
    /// How many turns may run before the host knows whether the loop makes them.
    ahead: u64,
    /// How many turns the last run made.
    last: AtomicU64,
}

/// More turns than this never run ahead: they would cost more than a wait.
const AHEAD: u64 = 32;

/// The values that the blocks of a loop capture.
pub(super) fn captures_of(cond: &Block, body: &Block, value: &dyn Fn(At) -> Tensor) -> Vec<Tensor> {
    cond.captures.iter().chain(&body.captures).map(|at| value(*at)).collect()
}

impl OneTurn {
    /// The turn of a loop from these values; `None` if it does more than compute, or chooses among branches that are not small.
    pub(super) fn of(
        program: &Program,
        cond: &Block,
        body: &Block,
        values: &[Tensor],
        value: &dyn Fn(At) -> Tensor,
    ) -> Option<Box<dyn Turn>> {
        if !cond.only_computes() || !body.only_computes() {
            return None;
        }
        let captures = captures_of(cond, body, value);
        let sizes = |tensors: &[Tensor]| tensors.iter().map(Tensor::len).collect::<Vec<usize>>();
        let (own, captured) = (sizes(values), sizes(&captures));
        let (of_cond, of_body) = captured.split_at(cond.captures.len());
        let mut calls = 0;
        let mut small = |block: &Block, captured: &[usize]| {
            program.small_values(&block.entries, (&own, captured), false, &mut calls).is_some()
        };
        let ahead = match small(cond, of_cond) && small(body, of_body) {
            true => AHEAD,
            false if cond.has_control() || body.has_control() => return None,
            false => 1,
        };
        let count = values.len();
        let specs: Vec<Spec> = values.iter().chain(&captures).map(|x| x.spec().clone()).collect();
        let recorded = program.recorded(&specs, &|arguments| {
            let (values, captured) = arguments.split_at(count);
            let (of_cond, of_body) = captured.split_at(cond.captures.len());
            let mut next = program.replay_entries(&body.entries, &body.outputs, values, of_body)?;
            next.extend(program.replay_entries(&cond.entries, &cond.outputs, &next, of_cond)?);
            Ok(next)
        });
        let concrete = Concrete::new(recorded.ok()?);
        Some(Box::new(OneTurn { concrete, ahead, last: AtomicU64::new(1) }))
    }
}

impl Turn for OneTurn {
    fn run(
        &self,
        mut values: Vec<Tensor>,
        goes_on: Tensor,
        captures: Vec<Tensor>,
        most: u64,
    ) -> Result<Vec<Tensor>> {
        let observed = eager::observed();
        // The values before each turn that may run, and whether it does.
        let mut goes_on = vec![goes_on];
        let mut made = 0;
        let mut ahead = self.last.load(Ordering::Relaxed).min(self.ahead);
        while made < most {
            let mut states = vec![values];
            for _ in 0..ahead.min(most - made) {
                let arguments = [&states[states.len() - 1][..], &captures].concat();
                let mut next = self.concrete.call(&arguments)?;
                goes_on.extend(next.pop());
                states.push(next);
                // Tapes record a replay: each turn is a plan of its own, as many turns together would be a new one each.
                if observed {
                    goes_on[0].device().flush()?;
                }
            }
            let flags: Vec<&Tensor> = goes_on.iter().collect();
            let flags = pollster::block_on(Tensor::to_vecs_async::<bool>(&flags))?;
            let ends = flags.iter().position(|flag| !flag[0]);
            let turns = ends.unwrap_or(states.len() - 1);
            values = states.swap_remove(turns);
            made += turns as u64;
            if ends.is_some() {
                break;
            }
            goes_on = goes_on.split_off(turns);
            ahead = (2 * ahead).clamp(1, self.ahead);
        }
        self.last.store(made, Ordering::Relaxed);
        Ok(values)
    }
}

#[cfg(test)]
#[path = "turns_tests.rs"]
mod tests;
