//! `y[.., c, ..] = x[.., n - 1 - c, ..]` along the given axes.

use smallvec::SmallVec;

use super::inventory::{Entry, OpKind, one};
use super::{Backward, Grads, Keep, Operation, only};
use crate::dtype::DType;
use crate::eager::dispatch;
use crate::error::Result;
use crate::graph::attributes::Attribute;
use crate::graph::lower::{Elementwise, Lowering, LoweringContext, View};
use crate::graph::{Op, Spec};
use crate::shape::{Axes, axis_list};
use crate::tensor::Tensor;

impl Tensor {
    /// Reverses the order of the elements along `axes`.
    ///
    /// # Errors
    /// [`Error::Index`](crate::Error::Index) if an axis does not exist or occurs twice.
    pub fn reverse(&self, axes: impl Into<Axes>) -> Result<Tensor> {
        let axes = axis_list("ReverseV2", &axes.into(), self.rank())?;
        if axes.is_empty() {
            return Ok(self.clone());
        }
        dispatch(Reverse { axes }, &[self])
    }
}

#[derive(Debug, Attribute)]
#[op("Reverse")]
pub(crate) struct Reverse {
    axes: SmallVec<[usize; 6]>,
}

impl Op for Reverse {
    fn name(&self) -> &'static str {
        "ReverseV2"
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Spec> {
        Ok(inputs[0].clone())
    }

    fn lower(&self, cx: &LoweringContext) -> Lowering {
        let shape = &cx.inputs[0].shape;
        let mut strides = shape.strides();
        let mut offset = 0;
        for &axis in &self.axes {
            offset += (shape[axis] as i64 - 1) * strides[axis];
            strides[axis] = -strides[axis];
        }
        Elementwise::view(View::strided(offset, &strides)).into()
    }
}

impl Operation for Reverse {
    fn keep(&self) -> Keep {
        Keep::Nothing
    }

    fn grad(&self, back: &Backward) -> Result<Grads> {
        let axes: Vec<i64> = self.axes.iter().map(|&axis| axis as i64).collect();
        only(back.dy.reverse(&axes)?)
    }
}

/// The inventory of this file.
pub(super) const ENTRIES: &[Entry] =
    &[Entry::new(OpKind::Kernel, "reverse", &["tf.reverse"], |c| {
        one(c.x()?.reverse(&c.need("axis", c.ints("axis")?)?[..]))
    })
    .takes(&DType::ALL)
    .cases(|cases| cases.of_shape("reverse", &[3, 4], |x| x.reverse(1)))];
