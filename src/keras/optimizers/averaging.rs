//! The stage that maintains a moving average of each weight (`use_ema`).

use std::sync::{Mutex, PoisonError};

use super::memory::{AVERAGE, Memory};
use super::options::{Round, Stage, Trainable};
use crate::eager;
use crate::error::{Error, Result, message};
use crate::ops::where_;
use crate::trackable::Trackable;

/// `average = momentum average + (1 - momentum) w` after each step; at the first step `w`.
#[derive(Debug)]
pub(super) struct Averaging;

impl Stage for Averaging {
    fn changes(&self, round: &mut Round<'_>) -> Result<()> {
        let momentum = round.options.ema_momentum;
        let often = round.options.ema_overwrite_frequency;
        // In a function, each run decides for itself.
        let chosen = often.filter(|_| eager::traces_function()).map(|often| {
            let now = move |t: i32| f64::from(u8::from((t as u64).is_multiple_of(often)));
            round.step.scalar(move |t, _| now(t))
        });
        let overwrites =
            chosen.is_some() || often.is_some_and(|often| round.step.number.is_multiple_of(often));
        let places = round.places();
        for variable in &round.variables.list {
            let place = places.get(&variable.id()).copied();
            let value = match place {
                Some(place) => round.changes[place].1.clone(),
                None => variable.read_stopped(),
            };
            let slot = round.slot(AVERAGE, variable)?;
            let of = move |t: i32| if t > 1 { momentum } else { 0.0 };
            let (old, new) =
                (round.step.scalar(move |t, _| of(t)), round.step.scalar(move |t, _| 1.0 - of(t)));
            let average = slot.read_stopped().multiply(old)?.add(value.multiply(new)?)?;
            let weight = match &chosen {
                Some(chosen) => {
                    let chosen =
                        chosen.clone().into_tensor_like("use_ema", &average)?.greater(0.5)?;
                    where_(&chosen, &average, &value)?
                }
                None => average.clone(),
            };
            match (overwrites, place) {
                (true, Some(place)) => round.changes[place].1 = weight,
                (true, None) => round.changes.push((variable.clone(), weight)),
                (false, _) => {}
            }
            round.changes.push((slot, average));
        }
        Ok(())
    }

    fn finalize(
        &self,
        name: &str,
        memory: &Mutex<Memory>,
        variables: &dyn Trackable,
    ) -> Result<()> {
        let variables = Trainable::find(variables);
        let memory = memory.lock().unwrap_or_else(PoisonError::into_inner);
        let average = |variable| {
            memory.made(AVERAGE, variable).ok_or_else(|| {
                Error::Check(message!(
                    "{name}: finalize_variable_values has no average of '{}'; the optimizer has made no step with \
                     it.",
                    variables.name(variable)
                ))
            })
        };
        let averages = variables.list.iter().map(average).collect::<Result<Vec<_>>>()?;
        drop(memory);
        let mut pairs = variables.list.iter().zip(averages);
        pairs.try_for_each(|(variable, average)| variable.assign(average.read_stopped()))
    }
}
