//! A recurrent layer over a whole sequence as one op, and its gradient as another; `kernels.rs` has their kernels.
//!
//! The op's input is the product of all steps' inputs with the kernel, and its result contains all states and gates,
//! which the gradient needs. `second_order.rs` has the second-order gradient.

use smallvec::SmallVec;

use super::layout::{Cell, SequenceAttributes};
use super::{kernels, second_order};
use crate::dtype::DType;
use crate::eager::dispatch;
use crate::error::Result;
use crate::graph::attributes::Attribute;
use crate::graph::lower::{Kernels, Lowering, LoweringContext};
use crate::graph::{Op, Spec};
use crate::ops::{Backward, Grads, Keep, MatmulOptions, Operation, concat, fill};
use crate::tensor::Tensor;

/// The result of a layer: `h` `[T,B,U]` in the order of the steps, and the state after the last step.
pub(super) struct Run {
    pub(super) sequence: Tensor,
    pub(super) state: Vec<Tensor>,
}

/// `x` `[B,T,G*U]`, the products of the inputs; `u` `[U+1,G*U]`, the recurrent kernel and its bias; `start` `[B,S*U]`, the
/// state before the first step; `mask` `[B,T]`, `bool`.
pub(super) fn run(
    cell: Cell,
    x: &Tensor,
    u: &Tensor,
    start: &Tensor,
    mask: Option<&Tensor>,
    backwards: bool,
) -> Result<Run> {
    let (batch, steps) = (x.shape()[0], x.shape()[1]);
    let units = x.shape()[2] / cell.gates();
    let walk = SequenceAttributes { cell, steps, batch, units, backwards, masked: mask.is_some() };
    let mut inputs = vec![x, u, start];
    inputs.extend(mask);
    let y = dispatch(Sequence { walk }, &inputs)?;
    let state = (0..cell.states()).map(|part| walk.states(&y, part, steps, 1)?.squeeze(0));
    Ok(Run { state: state.collect::<Result<_>>()?, sequence: walk.states(&y, 0, 1, steps)? })
}

#[derive(Debug, Attribute)]
#[op("Recurrent")]
pub(crate) struct Sequence {
    walk: SequenceAttributes,
}

impl Op for Sequence {
    fn name(&self) -> &'static str {
        match self.walk.cell {
            Cell::Lstm => "RecurrentLSTM",
            Cell::Gru => "RecurrentGRU",
            Cell::Simple => "RecurrentSimpleRNN",
        }
    }

    fn infer(&self, _: &[&Spec]) -> Result<Spec> {
        Ok(Spec::new(self.walk.packed(), DType::F32))
    }

    fn lower(&self, cx: &LoweringContext) -> Lowering {
        let kernels = kernels::forward(&self.walk, cx.inputs[0].dtype, cx.caps);
        Lowering::Kernels(Kernels { temps: Vec::new(), kernels })
    }
}

impl Operation for Sequence {
    fn keep(&self) -> Keep {
        Keep::Both
    }

    fn grad(&self, back: &Backward) -> Result<Grads> {
        // The values that the gradient reads from the layer's result, including the gates, are functions of the inputs;
        // the layer's own rule covers only the states after the first, which the program uses.
        let mut inputs: SmallVec<[&Tensor; 5]> = SmallVec::from_slice(&[back.y()]);
        inputs.extend((0..back.inputs.len()).map(|i| back.x(i)));
        let whole = dispatch(Whole { walk: self.walk }, &inputs)?;
        by_inputs(&self.walk, &whole, back, 0, false)
    }
}

/// The result of a [`Sequence`], its first input, as a function of the sequence's inputs, which follow. Unlike the
/// sequence's, its gradient includes the gates and the state before the first step.
#[derive(Debug, Attribute)]
#[op("RecurrentWhole")]
pub(crate) struct Whole {
    walk: SequenceAttributes,
}

impl Op for Whole {
    fn name(&self) -> &'static str {
        "RecurrentStates"
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Spec> {
        Ok(inputs[0].clone())
    }

    fn lower(&self, _: &LoweringContext) -> Lowering {
        Lowering::Alias
    }
}

impl Operation for Whole {
    fn keep(&self) -> Keep {
        Keep::Both
    }

    fn grad(&self, back: &Backward) -> Result<Grads> {
        by_inputs(&self.walk, back.y(), back, 1, true)
    }
}

/// The gradients of a sequence's inputs, which are the inputs of `back` from `first` on; `y` is the sequence's result.
fn by_inputs(
    walk: &SequenceAttributes,
    y: &Tensor,
    back: &Backward,
    first: usize,
    whole: bool,
) -> Result<Grads> {
    let walk = *walk;
    let SequenceAttributes { cell, steps, batch, units, .. } = walk;
    let (gates, states) = (cell.gates(), cell.states());
    let [x, u, start] = [0, 1, 2].map(|i| first + i);
    let weights = back.x(u);
    // The product of the backward pass reads columns of the recurrent kernel, which are contiguous after the transpose.
    let turned = weights.slice(&[0, 0], &[units as i64, -1])?.transpose([1, 0])?;
    let mut inputs = vec![y, back.dy, &turned];
    inputs.extend(walk.masked.then(|| back.x(first + 3)));
    let q = dispatch(SequenceGrad { walk, whole }, &inputs)?;
    let part = |first: usize, count: usize, steps: i64| {
        q.slice(&[0, 0, first, 0], &[steps, -1, count as i64, -1])
    };
    let slopes = part(0, gates, -1)?.reshape_to([steps * batch, gates * units].into())?;
    let mut grads: Grads = (0..first).map(|_| None).collect();
    grads.push(if back.needs(x) {
        // The input reaches the GRU's last gate without the reset.
        let by_x = match cell {
            Cell::Gru => concat([part(0, 2, -1)?, part(3, 1, -1)?], 2)?,
            _ => part(0, gates, -1)?,
        };
        let by_x = if walk.backwards { by_x.reverse(0)? } else { by_x };
        let by_x = by_x.reshape_to([steps, batch, gates * units].into())?.transpose([1, 0, 2])?;
        Some(cast(by_x, back.spec(x).dtype)?)
    } else {
        None
    });
    grads.push(if back.needs(u) {
        let before = walk.states(y, 0, 0, steps)?.reshape_to([steps * batch, units].into())?;
        let product = before.matmul_with(&slopes, MatmulOptions::new().transpose_a(true))?;
        // The others' bias is in x, and the row of u is a constant.
        let bias = match cell {
            Cell::Gru => slopes.reduce_sum(0)?.expand_dims(0)?,
            _ => {
                let shape = [1, gates * units].into();
                fill(weights.device(), "RecurrentLayer", shape, 0.into(), DType::F32)?
            }
        };
        Some(cast(concat([product, bias], 0)?, weights.dtype())?)
    } else {
        None
    });
    grads.push(if back.needs(start) {
        let slope = part(0, gates, 1)?.reshape_to([batch, gates * units].into())?;
        let (_, carry) = cell.passed();
        let passed = |at: usize| part(at, 1, 1)?.reshape_to([batch, units].into());
        let wide = if turned.dtype() == DType::F32 { turned } else { turned.cast(DType::F32)? };
        let mut by_start = vec![slope.matmul(&wide)?.add(passed(carry)?)?];
        if states == 2 {
            by_start.push(passed(carry + 1)?);
        }
        if whole {
            for (at, by_part) in by_start.iter_mut().enumerate() {
                *by_part = by_part.add(walk.states(back.dy, at, 0, 1)?.squeeze(0)?)?;
            }
        }
        Some(cast(concat(&by_start, 1)?, back.spec(start).dtype)?)
    } else {
        None
    });
    Ok(grads)
}

fn cast(x: Tensor, dtype: DType) -> Result<Tensor> {
    if x.dtype() == dtype { Ok(x) } else { x.cast(dtype) }
}

#[derive(Debug, Attribute)]
#[op("RecurrentGrad")]
pub(crate) struct SequenceGrad {
    walk: SequenceAttributes,
    /// Whether the gates have their own gradients.
    whole: bool,
}

impl Op for SequenceGrad {
    fn name(&self) -> &'static str {
        match self.walk.cell {
            Cell::Lstm => "RecurrentLSTMGrad",
            Cell::Gru => "RecurrentGRUGrad",
            Cell::Simple => "RecurrentSimpleRNNGrad",
        }
    }

    fn infer(&self, _: &[&Spec]) -> Result<Spec> {
        let SequenceAttributes { cell, steps, batch, units, .. } = self.walk;
        Ok(Spec::new([steps, batch, cell.passed().0, units], DType::F32))
    }

    fn lower(&self, cx: &LoweringContext) -> Lowering {
        let kernels = kernels::backward(&self.walk, self.whole, cx.inputs[2].dtype, cx.caps);
        Lowering::Kernels(Kernels { temps: Vec::new(), kernels })
    }
}

impl Operation for SequenceGrad {
    fn keep(&self) -> Keep {
        Keep::Both
    }

    fn grad(&self, back: &Backward) -> Result<Grads> {
        second_order::grad(&self.walk, self.whole, back)
    }
}
