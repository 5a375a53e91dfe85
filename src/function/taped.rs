//! Gradients of the branches and loops of a program, for the tapes inside of a function.

use std::collections::{HashMap, HashSet};

use super::program::{At, Block, Control};
use crate::dtype::DType;
use crate::error::Result;
use crate::ops::where_;
use crate::tape::{GradientTape, PersistentTape, TensorOrVariable};
use crate::tensor::Tensor;
use crate::variable::Variable;

/// A [`Control`] that a replay has run, with what its gradient needs.
pub(super) enum Differentiated {
    /// The blocks that ran, and their results.
    One(Taped, Vec<Tensor>),
    /// All branches, of which a scalar selects one.
    All { index: Tensor, branches: Vec<(Taped, Vec<Tensor>)> },
}

impl Differentiated {
    /// The gradients of the inputs and of the variables, by those of the results.
    pub(super) fn gradients(&self, dys: &[Tensor], variables: &[&Variable]) -> Result<Vec<Tensor>> {
        match self {
            Differentiated::One(tape, results) => tape.gradients(results, dys, variables),
            Differentiated::All { index, branches } => {
                let each =
                    branches.iter().map(|(tape, results)| tape.gradients(results, dys, variables));
                select(index, each.collect::<Result<_>>()?)
            }
        }
    }
}

/// The values that the control uses, by their entries, and those of a float dtype. A tensor in two places of the program has a
/// gradient for each, so it is two tensors here.
pub(super) fn separate(
    control: &Control,
    value: &dyn Fn(At) -> Tensor,
) -> Result<(HashMap<At, Tensor>, Vec<Tensor>)> {
    let mut values: HashMap<At, Tensor> = HashMap::new();
    let mut inputs = Vec::new();
    let mut ids = HashSet::new();
    for at in control.inputs() {
        let mut x = value(at);
        if x.dtype().is_float() {
            if !ids.insert(x.id()) {
                x = x.identity()?;
            }
            inputs.push(x.clone());
        }
        values.insert(at, x);
    }
    Ok((values, inputs))
}

/// Calls `branch` for each block, and selects the results by `index`.
pub(super) fn selected(
    index: &Tensor,
    blocks: &[Block],
    inputs: &[Tensor],
    branch: &dyn Fn(&Block) -> Result<Vec<Tensor>>,
) -> Result<(Differentiated, Vec<Tensor>)> {
    let branches = blocks
        .iter()
        .map(|block| Taped::record(inputs.to_vec(), || branch(block)))
        .collect::<Result<Vec<_>>>()?;
    let made = select(index, branches.iter().map(|(_, results)| results.clone()).collect())?;
    Ok((Differentiated::All { index: index.clone(), branches }, made))
}

/// The values of the branch of this index, or of the last one.
pub(super) fn select(index: &Tensor, mut branches: Vec<Vec<Tensor>>) -> Result<Vec<Tensor>> {
    let mut chosen = branches.pop().unwrap_or_default();
    for (at, branch) in branches.iter().enumerate().rev() {
        let here = match index.dtype() {
            // Of two branches, the first is that for false.
            DType::Bool => index.logical_not()?,
            _ => index.equal(at as i32)?,
        };
        let both = branch.iter().zip(&chosen).map(|(this, other)| where_(&here, this, other));
        chosen = both.collect::<Result<_>>()?;
    }
    Ok(chosen)
}

/// The results of `run`, or for one list of seeds the gradients of `inputs` and `variables` by those of the results, for two
/// lists the gradients of these gradients, and so on: see [`Entry::Gradient`](super::program::Entry::Gradient).
pub(super) fn derivative(
    run: &dyn Fn() -> Result<Vec<Tensor>>,
    inputs: &[Tensor],
    seeds: &[Vec<Tensor>],
    variables: &[&Variable],
) -> Result<Vec<Tensor>> {
    let Some((last, before)) = seeds.split_last() else { return run() };
    let floats = before.iter().flatten().filter(|seed| seed.dtype().is_float());
    let watched = inputs.iter().chain(floats).cloned().collect();
    let (tape, made) = Taped::record(watched, || derivative(run, inputs, before, variables))?;
    tape.gradients(&made, last, variables)
}

/// Blocks that ran under a tape.
pub(super) struct Taped {
    tape: PersistentTape,
    inputs: Vec<Tensor>,
}

impl Taped {
    /// Calls `run`, whose results depend on `inputs`.
    pub(super) fn record(
        inputs: Vec<Tensor>,
        run: impl FnOnce() -> Result<Vec<Tensor>>,
    ) -> Result<(Self, Vec<Tensor>)> {
        let tape = GradientTape::persistent();
        inputs.iter().try_for_each(|x| tape.watch(x))?;
        let made = run();
        tape.stop();
        Ok((Taped { tape, inputs }, made?))
    }

    /// The gradients of the inputs and of the variables, by those of the results.
    fn gradients(
        &self,
        results: &[Tensor],
        dys: &[Tensor],
        variables: &[&Variable],
    ) -> Result<Vec<Tensor>> {
        let floats = results.iter().zip(dys).filter(|(result, _)| result.dtype().is_float());
        let (results, dys): (Vec<Tensor>, Vec<&Tensor>) =
            floats.map(|(result, dy)| (result.clone(), dy)).unzip();
        let inputs = self.inputs.iter().cloned().map(TensorOrVariable::Tensor);
        let variables = variables.iter().map(|variable| (*variable).clone());
        let variables = variables.map(TensorOrVariable::Variable);
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
