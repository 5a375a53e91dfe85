//! The stage that combines the gradients of several batches in one step (`gradient_accumulation_steps`).

use super::memory::ACCUMULATOR;
use super::options::{Pairs, Round, Stage};
use crate::eager;
use crate::error::{Error, Result, message};

/// Accumulates gradients. With the last one of a step, the formula receives their mean, and the sums are reset to 0.
#[derive(Debug)]
pub(super) struct Accumulation;

impl Stage for Accumulation {
    fn gradients<'v>(&self, round: &mut Round<'_>, pairs: Pairs<'v>) -> Result<Pairs<'v>> {
        let several = round.options.gradient_accumulation_steps;
        if eager::traces_function() {
            return Err(Error::Trace(message!(
                "{}: with gradient_accumulation_steps, {several}, only every {several}th call makes a step, and a function \
                 that is traced does the same at each run. Call apply_gradients outside of the function.",
                round.options.name
            )));
        }
        let last = (round.made + 1).is_multiple_of(several);
        let mut means = Pairs::new();
        for (variable, grad) in pairs {
            let slot = round.slot(ACCUMULATOR, variable)?;
            let old = slot.read_stopped();
            let sum = grad.stop_gradient().cast(variable.dtype())?.add(&old)?;
            if last {
                means.push((variable, sum.divide(several)?));
                round.changes.push((slot, old.zeros_like()?));
            } else {
                round.changes.push((slot, sum));
            }
        }
        if last {
            // As in Keras, a step also resets the sum of a variable that has no gradient now.
            let places = round.places();
            for variable in &round.variables.list {
                let slot = round.memory().made(ACCUMULATOR, variable);
                if let Some(slot) = slot.filter(|slot| !places.contains_key(&slot.id())) {
                    let zeros = slot.peek().zeros_like()?;
                    round.changes.push((slot, zeros));
                }
            }
        }
        Ok(means)
    }
}
