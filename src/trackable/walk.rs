//! The walks that only need variables.

use super::Trackable;
use super::arrays::{Everything, Scope};
use super::parts::{Leaf, Parts, Track};
use crate::error::{Result, message};
use crate::tensor::Tensor;
use crate::variable::Variable;

/// The walk over `part`, one function for all queries.
pub(super) fn over<T: Trackable + ?Sized>(part: &T) -> impl Fn(&mut Parts<'_>) {
    |parts| part.track(parts)
}

pub(super) fn count_params(track: Track<'_>) -> usize {
    count(&variables(track, |_| true))
}

pub(super) fn variables(track: Track<'_>, wanted: fn(&Variable) -> bool) -> Vec<Variable> {
    let mut found = Vec::new();
    let mut visit = |_: &str, leaf: Leaf<'_>| match leaf {
        Leaf::Variable(variable) if wanted(variable) => found.push(variable.clone()),
        Leaf::Slots(owner) => {
            let slots = owner.slots().into_iter();
            found.extend(
                slots.filter_map(|(.., slot)| slot.variable().filter(|v| wanted(v)).cloned()),
            );
        }
        _ => {}
    };
    track(&mut Parts::new(&mut visit));
    found
}

pub(super) fn named_variables(track: Track<'_>) -> Vec<(String, Variable)> {
    let everything = Everything::found(track, Scope::Variables, false);
    everything.variables().map(|(name, variable)| (name.to_string(), variable.clone())).collect()
}

/// The names and variables that training changes.
pub(crate) fn named_trainable(root: &dyn Trackable) -> Vec<(String, Variable)> {
    let mut named = named_variables(&|parts| root.track(parts));
    named.retain(|(_, variable)| variable.trainable());
    named
}

pub(super) fn set_trainable(track: Track<'_>, trainable: bool) {
    let mut visit = |_: &str, leaf: Leaf<'_>| match leaf {
        Leaf::Variable(variable) => variable.freeze(!trainable),
        Leaf::ToBe(slot) => slot.freeze(!trainable),
        _ => {}
    };
    track(&mut Parts::new(&mut visit));
}

/// The penalties on the variables that training changes.
pub(super) fn penalties(track: Track<'_>) -> Result<Vec<Tensor>> {
    let mut found = Ok(Vec::new());
    let mut visit = |path: &str, leaf: Leaf<'_>| {
        let Leaf::Penalty(variable, penalty) = leaf else { return };
        let Ok(list) = &mut found else { return };
        if variable.trainable() {
            match penalty(&variable.read()) {
                Ok(value) => list.push(value),
                Err(error) => {
                    found = Err(error.reworded(|text| message!("the weight '{path}': {text}")));
                }
            }
        }
    };
    track(&mut Parts::new(&mut visit));
    found
}

/// The same for a part of unknown type.
pub(crate) fn penalties_of(part: &dyn Trackable) -> Result<Vec<Tensor>> {
    penalties(&|parts| part.track(parts))
}

/// Resets all metrics that `root` owns.
pub(crate) fn reset_metrics(root: &dyn Trackable) -> Result<()> {
    let mut done = Ok(());
    let mut visit = |_: &str, leaf: Leaf<'_>| {
        if let (Leaf::State(state), true) = (leaf, done.is_ok()) {
            done = state.reset_metric();
        }
    };
    root.track(&mut Parts::new(&mut visit));
    done
}

/// Clears the state that calls have left for the next ones, in everything that `root` owns.
pub(crate) fn forget(root: &dyn Trackable) {
    let mut visit = |_: &str, leaf: Leaf<'_>| {
        if let Leaf::Forget(forget) = leaf {
            forget();
        }
    };
    root.track(&mut Parts::new(&mut visit));
}

/// Their sum.
pub(super) fn penalty(track: Track<'_>) -> Result<Tensor> {
    let losses = penalties(track)?;
    let Some((first, rest)) = losses.split_first() else { return Tensor::zeros([]) };
    rest.iter().try_fold(first.clone(), |sum, loss| sum.add(loss))
}

/// The number of elements in `variables`.
pub(super) fn count<'a>(variables: impl IntoIterator<Item = &'a Variable>) -> usize {
    variables.into_iter().map(|v| v.shape().iter().product::<usize>()).sum()
}
