//! Finds the results of a layer for symbols by calling it on zeros, in a trial.
//!
//! If sizes are unknown, the layer is called twice, with two different sizes; sizes that differ between the results are
//! unknown, too. The trial sizes are passed on from layer to layer, so that an axis that one layer halves and another doubles
//! fits again.

use super::operation::Callable;
use super::symbol::{LEVELS, Node, Origin, Probe, SymbolSpec, SymbolicTensor};
use crate::dtype::DType;
use crate::error::{Error, Result, message};
use crate::keras::INFERENCE;
use crate::keras::trial::trial;
use crate::shape::Shape;
use crate::tensor::Tensor;
use crate::trackable::shape_text;

/// The trial sizes of an unknown batch.
const BATCH: [usize; 2] = [2, 3];

/// The trial sizes of other unknown axes. If a layer refuses the first (its window is larger, it requires other multiples, or
/// the tensors become too large), the next ones are tried.
const LENGTHS: [[usize; 2]; LEVELS] = [[64, 192], [240, 720], [1024, 3072], [16, 48], [4, 12]];

pub(super) fn of_input(shape: &[Option<usize>], level: usize) -> Probe {
    let lengths = LENGTHS[level.min(LENGTHS.len() - 1)];
    let shapes = [0, 1].map(|i| -> Shape {
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
            Ok(pairs) => return join_all(pairs, level),
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
            let pairs = call(&operation.callable, &probes, &dtypes, mask.as_ref())?;
            Ok(join_all(pairs, level)?.into_iter().map(|spec| spec.probe).collect())
        }
    }
}

/// A result: its shape, its dtype, and the shape of its mask.
type Seen = (Shape, DType, Option<Shape>);

/// The results of a layer for the first and for the second size.
type Pair = [Vec<Seen>; 2];

fn call(
    callable: &dyn Callable,
    inputs: &[Probe],
    dtypes: &[DType],
    mask: Option<&Probe>,
) -> Result<Pair> {
    let fixed = inputs.iter().chain(mask).all(|probe| probe.shapes[0] == probe.shapes[1]);
    let run = |i: usize| trial(|| call_on_zeros(callable, inputs, dtypes, mask, i));
    let first = run(0)?;
    let second = if fixed { first.clone() } else { run(1)? };
    Ok([first, second])
}

fn join_all([first, second]: Pair, level: usize) -> Result<Vec<SymbolSpec>> {
    if first.len() != second.len() {
        return Err(Error::Shape(message!(
            "the layer returns {} results for one size of its input and {} for another; a layer of a model always \
             returns the same number.",
            first.len(),
            second.len()
        )));
    }
    first.into_iter().zip(second).map(|pair| join(pair, level)).collect()
}

fn call_on_zeros(
    callable: &dyn Callable,
    inputs: &[Probe],
    dtypes: &[DType],
    mask: Option<&Probe>,
    i: usize,
) -> Result<Vec<Seen>> {
    let zeros = |shape: &Shape, dtype: DType| match dtype {
        DType::Bool => Tensor::full_of(shape, false, dtype),
        DType::F32 | DType::F16 => Tensor::full_of(shape, 0.0, dtype),
        _ => Tensor::full_of(shape, 0, dtype),
    };
    let of_mask = |shapes: &[Shape; 2]| zeros(&shapes[i], DType::Bool);
    let tensors: Vec<Tensor> = inputs
        .iter()
        .zip(dtypes)
        .map(|(probe, &dtype)| zeros(&probe.shapes[i], dtype))
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

fn join((a, b): (Seen, Seen), level: usize) -> Result<SymbolSpec> {
    let sizes = |shape: &Shape| shape.iter().copied().map(Some).collect::<Vec<_>>();
    if a.0.len() != b.0.len() {
        return Err(Error::Shape(message!(
            "the layer's result is {} for one size of its input and {} for another; a layer of a model always returns \
             the same number of axes.",
            shape_text(&sizes(&a.0)),
            shape_text(&sizes(&b.0))
        )));
    }
    let shape = a.0.iter().zip(b.0.iter()).map(|(a, b)| (a == b).then_some(*a)).collect();
    let probe = Probe { level, shapes: [a.0, b.0], mask: a.2.zip(b.2).map(|(a, b)| [a, b]) };
    Ok(SymbolSpec { shape, dtype: a.1, probe })
}
