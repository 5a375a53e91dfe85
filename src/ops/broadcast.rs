//! Repeats a tensor along axes of size 1, and along new leading axes, to a larger shape.

use super::inventory::{Entry, OpKind, one};
use super::{Backward, Grads, Keep, Operation, only};
use crate::dtype::DType;
use crate::eager::dispatch;
use crate::error::{Error, Result, message};
use crate::graph::attributes::Attribute;
use crate::graph::lower::{Elementwise, Lowering, LoweringContext, View};
use crate::graph::{Op, Spec};
use crate::shape::{Shape, broadcast};
use crate::tensor::Tensor;

impl Tensor {
    /// Broadcasts the tensor to `shape`.
    ///
    /// # Errors
    /// [`Error::Shape`] if the size of an axis is neither 1 nor the requested size.
    pub fn broadcast_to(&self, shape: impl Into<Shape>) -> Result<Tensor> {
        let shape = shape.into();
        if shape == self.spec().shape {
            return Ok(self.clone());
        }
        dispatch(BroadcastTo { shape }, &[self])
    }
}

#[derive(Debug, Attribute)]
#[op("BroadcastTo")]
pub(crate) struct BroadcastTo {
    shape: Shape,
}

impl Op for BroadcastTo {
    fn name(&self) -> &'static str {
        "BroadcastTo"
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Spec> {
        let x = inputs[0];
        let fits = x.shape.len() <= self.shape.len()
            && broadcast("BroadcastTo", &x.shape, &self.shape).is_ok_and(|s| s == self.shape);
        if !fits {
            return Err(Error::Shape(message!(
                "BroadcastTo: {} cannot be broadcast to {}; every axis, aligned at the last, must be 1 or have the \
                 wanted size.",
                x.shape,
                self.shape
            )));
        }
        Ok(Spec::new(self.shape.clone(), x.dtype))
    }

    fn lower(&self, cx: &LoweringContext) -> Lowering {
        Elementwise::view(View::broadcast(cx.inputs[0], cx.output)).into()
    }
}

impl Operation for BroadcastTo {
    fn keep(&self) -> Keep {
        Keep::Nothing
    }

    fn grad(&self, back: &Backward) -> Result<Grads> {
        // The tape sums over the axes that were broadcast.
        only(back.dy.clone())
    }
}

/// The inventory of this file.
pub(super) const ENTRIES: &[Entry] =
    &[Entry::new(OpKind::Kernel, "broadcast_to", &["tf.broadcast_to"], |c| {
        one(c.x()?.broadcast_to(c.need("shape", c.sizes("shape")?)?))
    })
    .takes(&DType::ALL)
    .cases(|cases| cases.of_shape("broadcast_to", &[3, 1], |x| x.broadcast_to([2, 3, 4])))];
