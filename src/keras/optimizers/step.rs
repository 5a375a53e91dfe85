//! Performs a step completely or not at all: computes new values, assigns them, and restores the old ones if the device
//! fails.

use std::collections::HashSet;
use std::hash::BuildHasherDefault;

use super::memory::Start;
use super::options::{Change, Options, Pairs, Round, StepStage, Trainable};
use super::{Optimizer, OptimizerState, Step};
#[cfg(not(target_family = "wasm"))]
use crate::distribute::{all_reduce, hash_of};
use crate::eager;
use crate::error::{Error, Result, message};
use crate::graph::Mixer;
use crate::tensor::Tensor;
use crate::trackable;
use crate::variable::Variable;

/// Computes the new values of a variable and its slots.
type Update<'a> = dyn Fn(&Step, &Tensor, &Tensor, &[Tensor]) -> Result<(Tensor, Vec<Tensor>)> + 'a;

/// An optimizer's formula and its slots.
struct Formula<'a> {
    update: &'a Update<'a>,
    slots: &'a dyn Fn(&Variable) -> Vec<&'static str>,
    start: &'a Start<'a>,
}

/// Performs a step.
pub(super) fn run<O: Optimizer + ?Sized>(
    optimizer: &O,
    grads: Vec<Option<Tensor>>,
    variables: &Trainable<'_>,
) -> Result<()> {
    let formula = Formula {
        update: &|step, w, g, slots| optimizer.update(step, w, g, slots),
        slots: &|variable| optimizer.slot_names(variable),
        start: &|name, variable| optimizer.slot_start(name, variable),
    };
    make(optimizer.state(), &formula, grads, variables)
}

/// Same as [`run`], but compiled once rather than for each optimizer.
fn make(
    state: &OptimizerState,
    formula: &Formula<'_>,
    grads: Vec<Option<Tensor>>,
    variables: &Trainable<'_>,
) -> Result<()> {
    #[cfg(not(target_family = "wasm"))]
    if let Some(replica) = eager::replica().filter(|replica| replica.replicas.in_sync() > 1) {
        return make_in_replicas(&replica, state, formula, grads, variables);
    }
    let _turn = state.turn();
    let options = state.options();
    options.check()?;
    let pairs = pairs(state, grads, variables)?;
    state.memory().keep();
    if eager::traces_function() {
        // The runs of the function are the steps.
        let changes = new_values(state, &options, formula, pairs, variables)?;
        changes.iter().try_for_each(|(variable, value)| variable.replace(value))?;
        eager::advances(&state.counter());
        return Ok(());
    }
    let done = new_values(state, &options, formula, pairs, variables)
        .and_then(|changes| commit(changes, state.made()));
    match done {
        Ok(()) => state.set_made(state.made().saturating_add(1)),
        Err(_) => state.memory().forget(),
    }
    done
}

/// As [`make`], in a replica of a strategy: the step is made once, when all replicas have brought their gradients, and changes the
/// variables of each replica by the sum of these gradients.
#[cfg(not(target_family = "wasm"))]
fn make_in_replicas(
    replica: &eager::Replica,
    state: &OptimizerState,
    formula: &Formula<'_>,
    grads: Vec<Option<Tensor>>,
    variables: &Trainable<'_>,
) -> Result<()> {
    let options = state.options();
    options.check()?;
    let name = &options.name;
    check(name, &grads, variables)?;
    if eager::traces_function() {
        return Err(Error::Check(message!(
            "{name}: the step of an optimizer cannot be part of a function that runs in a replica. Trace the computation of the \
             gradients, and apply them outside of the function."
        )));
    }
    let devices = replica.replicas.devices();
    let lacks = |variable: &&Variable| {
        !variable.is_on(devices) || replica.replicas.workers().is_some() && !variable.is_mirrored()
    };
    if let Some(variable) = variables.list.iter().find(|variable| lacks(variable)) {
        return Err(Error::Check(message!(
            "{name}: the variable '{}' was not made with this strategy, so its replicas have no values of their own. Make the \
             model in Strategy::scope.",
            variables.name(variable)
        )));
    }
    replica.meet("apply_gradients", grads, |all| {
        let _turn = state.turn();
        let agreed = match replica.replicas.workers() {
            Some(_) => signature(state, &options, replica, variables)?,
            None => 0,
        };
        // With central storage, the first device makes the step.
        let updates = if replica.replicas.is_central() { 1 } else { devices.len() };
        let sums = all_reduce(name, &replica.replicas, all, agreed, updates)?;
        state.memory().keep();
        let mut changes = Vec::with_capacity(sums.len());
        let computed = sums.into_iter().enumerate().try_for_each(|(index, grads)| {
            replica.updating(index, || {
                let pairs = pairs(state, grads, variables)?;
                changes.push(new_values(state, &options, formula, pairs, variables)?);
                Ok(())
            })
        });
        match computed.and_then(|()| commit_in_replicas(replica, changes, state.made())) {
            Ok(()) => state.set_made(state.made().saturating_add(1)),
            Err(error) => {
                state.memory().forget();
                return Err(error);
            }
        }
        Ok(vec![(); devices.len()])
    })
}

/// What the steps of all processes must have in common besides the gradients' shapes: the learning rate, and at the first step the
/// names of the variables.
#[cfg(not(target_family = "wasm"))]
fn signature(
    state: &OptimizerState,
    options: &Options,
    replica: &eager::Replica,
    variables: &Trainable<'_>,
) -> Result<u64> {
    let mut words = vec![options.name.to_string(), state.learning_rate().to_bits().to_string()];
    let ids = variables.list.iter().map(|variable| variable.id());
    if replica.replicas.compares(ids.fold(0, |hash, id| hash.rotate_left(7) ^ id)) {
        let named = trackable::named_trainable(variables.root).into_iter();
        words.extend(named.map(|(name, variable)| format!("{name} {}", variable.spec())));
        words.push(variables.root.kind().to_string());
    }
    Ok(hash_of(&words))
}

/// As [`commit`], for the changes of each replica.
#[cfg(not(target_family = "wasm"))]
fn commit_in_replicas(
    replica: &eager::Replica,
    changes: Vec<Vec<Change>>,
    made: u64,
) -> Result<()> {
    let devices = replica.replicas.devices();
    let in_each = |f: &mut dyn FnMut(usize, &[Change]) -> Result<()>| -> Result<()> {
        changes
            .iter()
            .enumerate()
            .try_for_each(|(index, changes)| replica.updating(index, || f(index, changes)))
    };
    let mut old: Vec<Vec<Tensor>> = Vec::with_capacity(changes.len());
    in_each(&mut |_, changes| {
        old.push(changes.iter().map(|(variable, _)| variable.peek()).collect());
        Ok(())
    })?;
    let assigned = in_each(&mut |_, changes| {
        changes.iter().try_for_each(|(variable, value)| variable.replace(value))
    });
    // A replica may fail after another has made its part; the rollback then needs the old values, so none is lent.
    let sent = assigned.and_then(|()| {
        devices.iter().try_for_each(|device| device.flush_replacing(&[], Some(made)))
    });
    if sent.is_err() {
        let _ = in_each(&mut |index, changes| {
            for ((variable, _), value) in changes.iter().zip(&old[index]) {
                // The shape and dtype are the variable's own, so this cannot fail.
                let _ = variable.replace(value);
            }
            Ok(())
        });
    }
    sent
}

/// Creates the slots of `variables`.
pub(super) fn build<O: Optimizer + ?Sized>(optimizer: &O, variables: &Trainable<'_>) -> Result<()> {
    let state = optimizer.state();
    let _turn = state.turn();
    let options = state.options();
    options.stages().try_for_each(|stage| stage.begin(&options, variables))?;
    let variables = &variables.list[..];
    let mut memory = state.memory();
    memory.keep();
    memory.arrange(variables);
    let made = variables.iter().try_for_each(|variable| {
        let zeros = |_: &str, of: &Variable| of.peek().zeros_like();
        memory.slots(&options.slots(), variable, &zeros)?;
        let names = optimizer.slot_names(variable);
        let start = |name: &str, of: &Variable| optimizer.slot_start(name, of);
        memory.slots(&names, variable, &start).map(drop)
    });
    let made = made.and_then(|()| flush(variables, None));
    if made.is_err() {
        memory.forget();
    }
    made
}

/// The variables that have gradients, with their gradients.
fn pairs<'a>(
    state: &OptimizerState,
    grads: Vec<Option<Tensor>>,
    variables: &'a Trainable<'_>,
) -> Result<Pairs<'a>> {
    let optimizer = &state.options().name;
    check(optimizer, &grads, variables)?;
    let mut memory = state.memory();
    let mut pairs = Vec::with_capacity(variables.list.len());
    let mut untold: HashSet<u64, BuildHasherDefault<Mixer>> = HashSet::default();
    for (variable, grad) in variables.list.iter().zip(grads) {
        match grad {
            Some(grad) => pairs.push((variable, grad)),
            None if memory.warned.insert(variable.id()) => {
                untold.insert(variable.id());
            }
            None => {}
        }
    }
    drop(memory);
    if !untold.is_empty() {
        // One walk finds all names.
        let named = trackable::named_trainable(variables.root).into_iter();
        for (name, _) in named.filter(|(_, variable)| untold.contains(&variable.id())) {
            crate::warnings::warn_user!(
                "{optimizer}: the loss does not depend on the variable '{name}', which stays as it is."
            );
        }
    }
    Ok(pairs)
}

fn check(optimizer: &str, grads: &[Option<Tensor>], variables: &Trainable<'_>) -> Result<()> {
    let list = &variables.list;
    if grads.len() != list.len() {
        return Err(Error::Shape(message!(
            "{optimizer}: {} gradients were given for {} trainable variables; there must be one for each.",
            grads.len(),
            list.len()
        )));
    }
    if list.is_empty() {
        return Err(Error::Gradient(message!(
            "{optimizer}: there is no trainable variable to change. A model has none before its first call, nor while \
             set_trainable(false) freezes it."
        )));
    }
    if grads.iter().all(Option::is_none) {
        let named = trackable::named_trainable(variables.root);
        let names: Vec<String> = named.iter().map(|(name, _)| format!("'{name}'")).collect();
        return Err(Error::Gradient(message!(
            "{optimizer}: no variable has a gradient; the loss depends on none of [{}]. Compute it from them while the \
             tape is open.",
            names.join(", ")
        )));
    }
    let wrong = list.iter().zip(grads).find_map(|(v, g)| {
        let grad = g.as_ref()?;
        (grad.shape() != v.shape()).then_some((v, grad))
    });
    match wrong {
        None => Ok(()),
        Some((variable, grad)) => Err(Error::Shape(message!(
            "{optimizer}: the variable '{}' is {:?} and its gradient {:?}; they must have one shape. Give the gradients \
             in the order of the variables.",
            variables.name(variable),
            variable.shape(),
            grad.shape()
        ))),
    }
}

fn new_values(
    state: &OptimizerState,
    options: &Options,
    formula: &Formula<'_>,
    mut pairs: Pairs<'_>,
    variables: &Trainable<'_>,
) -> Result<Vec<Change>> {
    options.stages().try_for_each(|stage| stage.begin(options, variables))?;
    let (step, made, memory) = (state.step()?, state.made(), state.memory_cell());
    let changes = Vec::with_capacity(pairs.len() * 3);
    let mut round = Round { options, step, made, variables, memory, changes, wanted: None };
    // Like Keras's `build`, a step creates slots for all variables, including those that have no gradient yet.
    round.memory().arrange(&variables.list);
    let now = options.stage(StepStage::Accumulate).is_none();
    let mut with = pairs.iter().map(|(variable, _)| variable.id()).peekable();
    for variable in &variables.list {
        // The slots of these variables are created below.
        if with.next_if_eq(&variable.id()).is_some() && now {
            continue;
        }
        let zeros = |_: &str, of: &Variable| of.peek().zeros_like();
        let mut memory = round.memory();
        memory.slots(&options.slots(), variable, &zeros)?;
        memory.slots(&(formula.slots)(variable), variable, formula.start)?;
    }
    for stage in options.stages() {
        pairs = stage.gradients(&mut round, pairs)?;
    }
    // The loop drops each gradient after its use, so that the plan can free its memory.
    for (variable, grad) in pairs {
        let slots = round.slots(&(formula.slots)(variable), variable, formula.start)?;
        // No outer tape records a step.
        let before: Vec<Tensor> = slots.iter().map(Variable::read_stopped).collect();
        let mut w = variable.read_stopped();
        for stage in options.stages() {
            w = stage.start(&round, variable, w)?;
        }
        let grad = grad.stop_gradient().cast(variable.dtype())?;
        let (value, after) = (formula.update)(&round.step, &w, &grad, &before)?;
        if after.len() != slots.len() {
            return Err(Error::Shape(message!(
                "{}: update gave {} slots; slot_names lists {}.",
                options.name,
                after.len(),
                slots.len()
            )));
        }
        round.changes.push((variable.clone(), value));
        round.changes.extend(slots.into_iter().zip(after));
    }
    for stage in options.stages() {
        stage.changes(&mut round)?;
    }
    for (variable, value) in &mut round.changes {
        if let Some(constraint) = variable.constraint() {
            *value = constraint(value)?;
        }
    }
    // In reverse order: the stage that scales the loss comes first and settles last.
    for stage in options.stages().rev() {
        stage.settle(&mut round)?;
    }
    Ok(round.changes)
}

/// Assigns the new values and flushes; after an error, the old values are restored. `made` is the number of previous
/// steps.
fn commit(changes: Vec<Change>, made: u64) -> Result<()> {
    let old: Vec<Tensor> = changes.iter().map(|(variable, _)| variable.peek()).collect();
    let assigned = changes.iter().try_for_each(|(variable, value)| variable.replace(value));
    let cells: Vec<Variable> = changes.into_iter().map(|(variable, _)| variable).collect();
    let sent = assigned.and_then(|()| send(&cells, &old, made));
    if sent.is_err() {
        for (variable, value) in cells.iter().zip(&old) {
            // The shape and dtype are the variable's own, so this cannot fail.
            let _ = variable.replace(value);
        }
    }
    sent
}

/// Flushes. The step may overwrite the buffers of the old values, because only a rollback needs them.
fn send(cells: &[Variable], old: &[Tensor], made: u64) -> Result<()> {
    let Some(first) = cells.first().map(Variable::peek) else { return Ok(()) };
    // One device may fail after another has completed its part; the rollback then needs the old values.
    let one = cells.iter().all(|cell| cell.peek().device() == first.device());
    if !one {
        return flush(cells, Some(made));
    }
    let lent: Vec<_> = old.iter().map(Tensor::value).collect();
    first.device().flush_replacing(&lent, Some(made))
}

/// Flushes each device of `variables` once; usually there is one.
fn flush(variables: &[Variable], made: Option<u64>) -> Result<()> {
    let mut devices = Vec::new();
    for variable in variables {
        let tensor = variable.peek();
        if !devices.contains(tensor.device()) {
            devices.push(tensor.device().clone());
        }
    }
    devices.iter().try_for_each(|device| device.flush_replacing(&[], made))
}
