//! Finds the results of a layer for symbols by calling it on placeholders, in a trial.
//!
//! If sizes are unknown, the layer is called three times, with different sizes; sizes that differ between the results are
//! unknown, too. (Two calls would not do: the result of a layer that uses at most 64 steps is equally long for 64 and 192.) The trial
//! sizes are passed on from layer to layer, so that an axis that one layer halves and another doubles fits again.

use super::operation::Callable;
use super::symbol::{LEVELS, Node, Origin, Probe, ProbedShapes, SymbolSpec, SymbolicTensor};
use crate::dtype::DType;
use crate::eager;
use crate::error::{Error, Result, message};
use crate::graph::Spec;
use crate::keras::INFERENCE;
use crate::keras::trial::trial;
use crate::shape::Shape;
use crate::tensor::Tensor;
use crate::trackable::shape_text;

/// The trial sizes of an unknown batch.
const BATCH: [usize; 3] = [2, 3, 5];

/// The trial sizes of other unknown axes. If a layer refuses the first (its window is larger, it requires other multiples, or
/// the tensors become too large), the next ones are tried. The third of each is the smallest.
const LENGTHS: [[usize; 3]; LEVELS] =
    [[64, 192, 32], [240, 720, 120], [1024, 3072, 512], [16, 48, 8], [4, 12, 2]];

pub(super) fn of_input(shape: &[Option<usize>], level: usize) -> Probe {
    let lengths = LENGTHS[level.min(LENGTHS.len() - 1)];
    let shapes = [0, 1, 2].map(|i| -> Shape {
        let size = |(axis, size): (usize, &Option<usize>)| {
            size.unwrap_or(if axis == 0 { BATCH[i] } else { lengths[i] })
        };
        shape.iter().enumerate().map(size).collect::<Vec<usize>>().into()
    });
    Probe { level, shapes, mask: None }
}

/// The results of `callable` for `inputs`, with `mask` instead of the inputs' own masks if it is set.
///
/// # Errors
/// The errors of the layer; [`Error::Shape`] if a result's rank or the number of results depends on unknown sizes.
pub(super) fn results(
    callable: &dyn Callable,
    inputs: &[SymbolicTensor],
    mask: Option<&SymbolicTensor>,
) -> Result<Vec<SymbolSpec>> {
    let all: Vec<&SymbolicTensor> = inputs.iter().chain(mask).collect();
    let lengths: Vec<usize> =
        all.iter().filter(|x| x.has_lengths()).map(|x| x.spec().probe.level).collect();
    // If the inputs needed other sizes than the first, begin with those.
    let start = lengths.iter().copied().max().unwrap_or(0);
    let others = (0..LENGTHS.len()).filter(|&level| level != start && !lengths.is_empty());
    let mut first_error = None;
    for level in std::iter::once(start).chain(others) {
        let tried = at_level(&all, level).and_then(|mut probes| {
            let mask_probe = mask.and_then(|_| probes.pop());
            let dtypes: Vec<DType> = inputs.iter().map(SymbolicTensor::dtype).collect();
            call(callable, &probes, &dtypes, mask_probe.as_ref())
        });
        match tried {
            Ok(results) => return join_all(results, level),
            Err(error) => {
                first_error.get_or_insert(error);
            }
        }
    }
    Err(first_error.unwrap_or_else(|| Error::Shape("the layer has no result.".into())))
}

/// The probes of `symbols` with the sizes of `level`. Symbols probed at another level are probed again, beginning at the
/// inputs.
fn at_level(symbols: &[&SymbolicTensor], level: usize) -> Result<Vec<Probe>> {
    let fits = |x: &&SymbolicTensor| !x.has_lengths() || x.spec().probe.level == level;
    if symbols.iter().all(fits) {
        return Ok(symbols.iter().map(|x| x.spec().probe.clone()).collect());
    }
    // Each node is popped twice: the second time, its inputs are known. Its results are cached for all later symbols.
    let mut open: Vec<(&Node, bool)> = symbols.iter().map(|x| (&*x.0.node, false)).collect();
    while let Some((node, ready)) = open.pop() {
        let known = &node.tried[level];
        if known.get().is_some() {
            continue;
        }
        if ready {
            known.get_or_init(|| node_probes(node, level));
        } else {
            open.push((node, true));
            open.extend(node.inputs().map(|input| (&*input.0.node, false)));
        }
    }
    symbols.iter().map(|x| tried(x, level)).collect()
}

/// The probe of a symbol whose node was tried with the sizes of `level`.
fn tried(symbol: &SymbolicTensor, level: usize) -> Result<Probe> {
    let probe = match symbol.0.node.tried[level].get() {
        Some(Ok(probes)) => probes.get(symbol.0.output),
        Some(Err(error)) => return Err(error.clone()),
        None => None,
    };
    Ok(probe.unwrap_or(&symbol.spec().probe).clone())
}

fn node_probes(node: &Node, level: usize) -> Result<Vec<Probe>> {
    match &node.origin {
        Origin::Input { shape, .. } => Ok(vec![of_input(shape, level)]),
        Origin::Call { operation, inputs, mask, .. } => {
            let of = |x: &SymbolicTensor| tried(x, level);
            let probes: Vec<Probe> = inputs.iter().map(of).collect::<Result<_>>()?;
            let dtypes: Vec<DType> = inputs.iter().map(SymbolicTensor::dtype).collect();
            let mask = mask.as_ref().map(of).transpose()?;
            let results = call(&operation.callable, &probes, &dtypes, mask.as_ref())?;
            Ok(join_all(results, level)?.into_iter().map(|spec| spec.probe).collect())
        }
    }
}

/// A result: its shape, its dtype, and the shape of its mask.
type Seen = (Shape, DType, Option<Shape>);

/// The results of a layer for each choice of sizes.
type Results = [Vec<Seen>; 3];

fn call(
    callable: &dyn Callable,
    inputs: &[Probe],
    dtypes: &[DType],
    mask: Option<&Probe>,
) -> Result<Results> {
    let one_size = |Probe { shapes: [a, b, c], .. }: &Probe| a == b && a == c;
    let fixed = inputs.iter().chain(mask).all(one_size);
    let run = |i: usize| trial(|| call_on_placeholders(callable, inputs, dtypes, mask, i));
    let first = run(0)?;
    if fixed {
        return Ok([first.clone(), first.clone(), first]);
    }
    Ok([first, run(1)?, run(2)?])
}

fn join_all([first, second, third]: Results, level: usize) -> Result<Vec<SymbolSpec>> {
    for other in [&second, &third] {
        if first.len() != other.len() {
            return Err(Error::Shape(message!(
                "the layer returns {} results for one size of its input and {} for another; a layer of a model always \
                 returns the same number.",
                first.len(),
                other.len()
            )));
        }
    }
    let seen = first.into_iter().zip(second).zip(third);
    seen.map(|((first, second), third)| join([first, second, third], level)).collect()
}

fn call_on_placeholders(
    callable: &dyn Callable,
    inputs: &[Probe],
    dtypes: &[DType],
    mask: Option<&Probe>,
    i: usize,
) -> Result<Vec<Seen>> {
    let placeholder =
        |shapes: &ProbedShapes, dtype| eager::placeholder(Spec::new(shapes[i].clone(), dtype));
    let of_mask = |shapes: &ProbedShapes| placeholder(shapes, DType::Bool);
    let tensors: Vec<Tensor> = inputs
        .iter()
        .zip(dtypes)
        .map(|(probe, &dtype)| placeholder(&probe.shapes, dtype))
        .collect::<Result<_>>()?;
    let masks: Vec<Option<Tensor>> = match mask {
        Some(mask) => vec![Some(of_mask(&mask.shapes)?)],
        None => inputs
            .iter()
            .map(|probe| probe.mask.as_ref().map(of_mask).transpose())
            .collect::<Result<_>>()?,
    };
    let results = callable.call(&tensors, &masks, INFERENCE)?;
    let seen = |(y, mask): &(Tensor, Option<Tensor>)| {
        let mask = mask.as_ref().map(|mask| Shape::new(mask.shape()));
        (Shape::new(y.shape()), y.dtype(), mask)
    };
    Ok(results.iter().map(seen).collect())
}

fn join([a, b, c]: [Seen; 3], level: usize) -> Result<SymbolSpec> {
    let sizes = |shape: &Shape| shape.iter().copied().map(Some).collect::<Vec<_>>();
    for other in [&b, &c] {
        if a.0.len() != other.0.len() {
            return Err(Error::Shape(message!(
                "the layer's result is {} for one size of its input and {} for another; a layer of a model always \
                 returns the same number of axes.",
                shape_text(&sizes(&a.0)),
                shape_text(&sizes(&other.0))
            )));
        }
    }
    let known = |axis: usize| Some(a.0[axis]).filter(|&n| n == b.0[axis] && n == c.0[axis]);
    let shape = (0..a.0.len()).map(known).collect();
    let mask = a.2.zip(b.2).zip(c.2).map(|((a, b), c)| [a, b, c]);
    Ok(SymbolSpec { shape, dtype: a.1, probe: Probe { level, shapes: [a.0, b.0, c.0], mask } })
}
