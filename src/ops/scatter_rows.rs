//! Rows of updates that replace a tensor's rows, or are compared with them.

use super::fold_words::{Fold, Folding};
use super::{Backward, Grads, Keep, Operation};
use crate::dtype::DType;
use crate::eager::dispatch;
use crate::error::Result;
use crate::graph::attributes::Attribute;
use crate::graph::lower::{Bind, Kernel, Kernels, Lowering, LoweringContext};
use crate::graph::{Op, Spec};
use crate::tensor::Tensor;
use crate::wgsl::shader;

/// `x` `[R, N]`, with row `ids[s]` replaced by `updates[s]`, of `[S, N]`; the last update of a row counts.
pub(super) fn scatter_update(x: &Tensor, ids: &Tensor, updates: &Tensor) -> Result<Tensor> {
    dispatch(ScatterUpdate, &[x, ids, updates])
}

/// The largest (or smallest) of `x` `[R, N]` and the updates `[S, N]` of each row.
pub(super) fn scatter_extreme(
    x: &Tensor,
    ids: &Tensor,
    updates: &Tensor,
    largest: bool,
) -> Result<Tensor> {
    dispatch(ScatterExtreme { largest }, &[x, ids, updates])
}

/// The fold of the updates of `cx`, whose inputs are rows, ids and updates.
fn folding(cx: &LoweringContext, fold: Fold) -> Folding {
    let (x, count) = (cx.inputs[0], cx.inputs[1].shape[0]);
    let inner = if fold == Fold::Last { 1 } else { x.shape[1] };
    Folding { batch: 1, count, inner, rows: x.shape[0], dtype: x.dtype, fold }
}

#[derive(Debug, Attribute)]
#[op("ScatterUpdate")]
pub(crate) struct ScatterUpdate;

impl Op for ScatterUpdate {
    fn name(&self) -> &'static str {
        "TensorScatterUpdate"
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Spec> {
        Ok(inputs[0].clone())
    }

    fn lower(&self, cx: &LoweringContext) -> Lowering {
        if cx.inputs[1].elements() == 0 {
            return Lowering::Alias;
        }
        let winners = Folding { dtype: DType::U32, ..folding(cx, Fold::Last) };
        let mut kernels = winners.words(None, Bind::Input(1), Bind::Temp(0));
        let total = cx.output.elements();
        let file = shader!(include_str!("../../shaders/scatter_update.wgsl"));
        kernels.push(
            Kernel::new("scatter_update", file)
                .alias("T", cx.output.dtype)
                .constant("WG", 64)
                .read(Bind::Input(0))
                .read(Bind::Input(2))
                .read(Bind::Temp(0))
                .write(Bind::Output)
                .param("inner", cx.output.shape[1])
                .param("total", total)
                .workgroups(total.div_ceil(64), 0),
        );
        Lowering::Kernels(Kernels { temps: vec![winners.bytes()], kernels })
    }
}

impl Operation for ScatterUpdate {
    fn keep(&self) -> Keep {
        Keep::Inputs
    }

    fn grad(&self, back: &Backward) -> Result<Grads> {
        let (ids, mut grads) = (back.x(1), Grads::new());
        // A replaced row does not affect the result; each update is treated as the one that counts.
        grads.push(match back.needs(0) {
            true => Some(scatter_update(back.dy, ids, &back.x(2).zeros_like()?)?),
            false => None,
        });
        grads.push(None);
        grads.push(if back.needs(2) { Some(back.dy.gather(ids, 0)?) } else { None });
        Ok(grads)
    }
}

#[derive(Debug, Attribute)]
#[op("ScatterExtreme")]
pub(crate) struct ScatterExtreme {
    largest: bool,
}

impl Op for ScatterExtreme {
    fn name(&self) -> &'static str {
        if self.largest { "TensorScatterMax" } else { "TensorScatterMin" }
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Spec> {
        Ok(inputs[0].clone())
    }

    fn lower(&self, cx: &LoweringContext) -> Lowering {
        if cx.inputs[1].elements() == 0 {
            return Lowering::Alias;
        }
        let folding = folding(cx, if self.largest { Fold::Max } else { Fold::Min });
        let (x, ids, updates) = (Bind::Input(0), Bind::Input(1), Bind::Input(2));
        let mut kernels = folding.words_from(x, updates, ids, Bind::Temp(0));
        kernels.push(folding.result(Bind::Temp(0)));
        Lowering::Kernels(Kernels { temps: vec![folding.bytes()], kernels })
    }
}

impl Operation for ScatterExtreme {
    fn keep(&self) -> Keep {
        Keep::Both
    }

    // All values equal to the result, the element and its updates, share the gradient.
    fn grad(&self, back: &Backward) -> Result<Grads> {
        let (x, ids, updates, y) = (back.x(0), back.x(1), back.x(2), back.y());
        let own = x.equal(y)?.cast(x.dtype())?;
        let theirs = updates.equal(y.gather(ids, 0)?)?.cast(x.dtype())?;
        let count = own.add(theirs.unsorted_segment_sum(ids, x.shape()[0])?)?;
        // NaN is not equal to anything.
        let each = back.dy.divide(count.maximum(1.0)?)?;
        let mut grads = Grads::new();
        grads.push(if back.needs(0) { Some(each.multiply(&own)?) } else { None });
        grads.push(None);
        grads.push(match back.needs(2) {
            true => Some(each.gather(ids, 0)?.multiply(theirs)?),
            false => None,
        });
        Ok(grads)
    }
}
