//! The maximum and the minimum of the rows of each segment, and their number.

use super::fold_words::{Fold, Folding};
use super::{Backward, Grads, Keep, NUMERIC, Operation, expect_dtype, no_grads, only};
use crate::dtype::DType;
use crate::eager::dispatch;
use crate::error::Result;
use crate::graph::attributes::Attribute;
use crate::graph::lower::{Bind, Kernels, Lowering, LoweringContext};
use crate::graph::{Op, Spec};
use crate::tensor::Tensor;

/// `[S, N]` by `ids` `[S]` to the largest (or smallest) of each segment, `[rows, N]`.
pub(super) fn extreme(x: &Tensor, ids: &Tensor, rows: usize, largest: bool) -> Result<Tensor> {
    let fold = if largest { Fold::Max } else { Fold::Min };
    dispatch(Extreme { rows, fold }, &[x, ids])
}

/// How many of `ids` `[S]` refer to each of the segments, as `i32` `[rows]`.
pub(super) fn counts(ids: &Tensor, rows: usize) -> Result<Tensor> {
    dispatch(Extreme { rows, fold: Fold::Count }, &[ids])
}

#[derive(Debug, Attribute)]
#[op("SegmentExtreme")]
pub(crate) struct Extreme {
    rows: usize,
    fold: Fold,
}

impl Op for Extreme {
    fn name(&self) -> &'static str {
        match self.fold {
            Fold::Max => "UnsortedSegmentMax",
            Fold::Min => "UnsortedSegmentMin",
            _ => "Bincount",
        }
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Spec> {
        if self.fold == Fold::Count {
            return Ok(Spec::new([self.rows], DType::I32));
        }
        let x = inputs[0];
        expect_dtype(self.name(), x, NUMERIC)?;
        Ok(Spec::new([self.rows, x.shape[1]], x.dtype))
    }

    fn lower(&self, cx: &LoweringContext) -> Lowering {
        let counts = self.fold == Fold::Count;
        let (count, rows, fold) = (cx.inputs[0].shape[0], self.rows, self.fold);
        let inner = if counts { 1 } else { cx.inputs[0].shape[1] };
        let folding = Folding { batch: 1, count, inner, rows, dtype: cx.inputs[0].dtype, fold };
        let (x, ids) = match counts {
            true => (None, Bind::Input(0)),
            false => (Some(Bind::Input(0)), Bind::Input(1)),
        };
        let mut kernels = folding.words(x, ids, Bind::Temp(0));
        kernels.push(folding.result(Bind::Temp(0)));
        Lowering::Kernels(Kernels { temps: vec![folding.bytes()], kernels })
    }
}

impl Operation for Extreme {
    fn keep(&self) -> Keep {
        match self.fold {
            Fold::Count => Keep::NoGradient("Bincount: a number of elements"),
            _ => Keep::Both,
        }
    }

    // The rows that are equal to their segment's result share its gradient.
    fn grad(&self, back: &Backward) -> Result<Grads> {
        if self.fold == Fold::Count {
            return no_grads(back);
        }
        let (x, ids) = (back.x(0), back.x(1));
        // A row without a segment is compared with 0, and may be equal to it; its gradient is then also 0.
        let best = x.equal(back.y().gather(ids, 0)?)?;
        let shared = best.cast(DType::I32)?.unsorted_segment_sum(ids, self.rows)?.maximum(1)?;
        let each = back.dy.divide(shared.cast(x.dtype())?)?.gather(ids, 0)?;
        only(super::select(&best, &each, &each.zeros_like()?)?)
    }
}
