//! [`Steps`]: a recurrent layer as ordinary calls, one step after the other, or as a loop for other libraries.

use super::Recurrence;
use crate::eager::{self, Loop};
use crate::error::Result;
use crate::ops::{select, stack};
use crate::shape::Shape;
use crate::tensor::Tensor;

/// The result and the states after a step, from the input `[B,..]` and the states before it.
pub(crate) type Step<'a> = &'a dyn Fn(&Tensor, &[Tensor]) -> Result<(Tensor, Vec<Tensor>)>;

/// A sequence that a layer processes step by step.
pub(crate) struct Steps<'a> {
    /// `[B,T,..]`, with at least one step.
    pub(crate) x: &'a Tensor,
    /// The steps that count, `[B,T]`, `bool`.
    pub(crate) mask: Option<&'a Tensor>,
    pub(crate) backwards: bool,
    /// Whether to return the results of all steps.
    pub(crate) sequences: bool,
    /// Whether each step has its own calls also in what is written for another library.
    pub(crate) unroll: bool,
}

impl Steps<'_> {
    pub(crate) fn run(&self, start: Vec<Tensor>, step: Step<'_>) -> Result<Recurrence> {
        match eager::composed_loop() {
            Some(repeat) if !self.unroll && self.x.shape()[1] > 1 => {
                self.looped(repeat, start, step)
            }
            _ => self.unrolled(start, step),
        }
    }

    fn unrolled(&self, start: Vec<Tensor>, step: Step<'_>) -> Result<Recurrence> {
        let mut inputs = along(self.x, 1)?;
        let mut masks = self.mask.map(|mask| along(mask, 1)).transpose()?;
        if self.backwards {
            inputs.reverse();
            masks.iter_mut().for_each(|masks| masks.reverse());
        }
        let mut state = start;
        let mut outputs: Vec<Tensor> = Vec::with_capacity(inputs.len());
        for (place, input) in inputs.iter().enumerate() {
            let (mut output, mut next) = step(input, &state)?;
            if let Some(masks) = &masks {
                // As in Keras: before the first step that counts there is no result, and zeros are used instead.
                let before =
                    outputs.last().map_or_else(|| output.zeros_like(), |y| Ok(y.clone()))?;
                output = masked(&masks[place], &output, &before)?;
                next = all_masked(&masks[place], &next, &state)?;
            }
            state = next;
            outputs.push(output);
        }
        let output = match (self.sequences, outputs.pop()) {
            (false, Some(last)) => last,
            (_, last) => {
                outputs.extend(last);
                stack(&outputs, 1)?
            }
        };
        Ok(Recurrence { output, state })
    }

    /// As [`unrolled`](Steps::unrolled): what another library runs then has one step, for sequences of any length.
    fn looped(&self, repeat: Loop, start: Vec<Tensor>, step: Step<'_>) -> Result<Recurrence> {
        let by_step = |x: &Tensor| -> Result<Tensor> {
            let x = swapped(x)?;
            if self.backwards { x.reverse(0) } else { Ok(x) }
        };
        let x = by_step(self.x)?;
        let mask = self.mask.map(by_step).transpose()?;
        let count = x.shape()[0];
        let first = x.device().scope(|| Tensor::scalar(0_i32))?;
        // Only for the result's shape: nothing uses this step, so it is not written.
        let (output, _) = step(&x.gather(&first, 0)?, &start)?;
        let mut values = vec![output.zeros_like()?];
        if self.sequences {
            let shape = [&[count], output.shape()].concat();
            values.push(x.device().scope(|| Tensor::zeros(shape)?.cast(output.dtype()))?);
        }
        let states = values.len();
        values.extend(start);
        let turn = |place: &Tensor, values: &[Tensor]| {
            let state = &values[states..];
            let (mut output, mut next) = step(&x.gather(place, 0)?, state)?;
            if let Some(mask) = &mask {
                let seen = mask.gather(place, 0)?;
                output = masked(&seen, &output, &values[0])?;
                next = all_masked(&seen, &next, state)?;
            }
            let mut after = vec![output.clone()];
            if self.sequences {
                let (place, row) = (place.reshape([1, 1])?, output.expand_dims(0)?);
                after.push(values[1].tensor_scatter_nd_update(&place, &row)?);
            }
            after.extend(next);
            Ok(after)
        };
        let mut values = repeat(count, values, &turn)?;
        let state = values.split_off(states);
        let output = if self.sequences { swapped(&values[1])? } else { values.swap_remove(0) };
        Ok(Recurrence { output, state })
    }
}

/// `x` with its first two axes, those of the batch and the steps, in the other order.
fn swapped(x: &Tensor) -> Result<Tensor> {
    let axes: Vec<usize> = [1, 0].into_iter().chain(2..x.rank()).collect();
    x.transpose(axes)
}

/// The rows of `new` where `seen` `[B]` is true, those of `old` elsewhere.
fn masked(seen: &Tensor, new: &Tensor, old: &Tensor) -> Result<Tensor> {
    let mut shape = Shape::new(seen.shape());
    (1..new.rank()).for_each(|_| shape.push(1));
    select(&seen.reshape_to(shape)?, new, old)
}

fn all_masked(seen: &Tensor, new: &[Tensor], old: &[Tensor]) -> Result<Vec<Tensor>> {
    new.iter().zip(old).map(|(new, old)| masked(seen, new, old)).collect()
}

/// The slices of `x` along an axis. They are taken from pieces of it: each slice's gradient has the size of the tensor
/// that it was taken from, so taking all from the whole would cost the square of their number.
pub(super) fn along(x: &Tensor, axis: usize) -> Result<Vec<Tensor>> {
    let (count, along) = (x.shape()[axis], axis as i64);
    if count <= 8 {
        return x.unstack(along);
    }
    let piece = count.isqrt().max(2);
    let mut sizes = vec![piece; count / piece];
    sizes.extend((!count.is_multiple_of(piece)).then_some(count % piece));
    let mut steps = Vec::with_capacity(count);
    for part in x.split_sizes(&sizes, along)? {
        steps.extend(part.unstack(along)?);
    }
    Ok(steps)
}
