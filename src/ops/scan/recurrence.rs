//! Linear recurrences along an axis, `y[i] = a[i] y[i-1] + b[i]`: the gradients of scans are composed of them. Their
//! own gradients are recurrences too, in the other direction.

use super::kernels::{Code, Scan};
use crate::eager::dispatch;
use crate::error::Result;
use crate::graph::attributes::Attribute;
use crate::graph::lower::{Lowering, LoweringContext};
use crate::graph::{Op, Spec};
use crate::ops::{Backward, FLOATS, Grads, Keep, Operation, PadMode, expect_dtype, same_dtype};
use crate::shape::broadcast;
use crate::tensor::Tensor;

/// `y[i] = a[i] y[i-1] + b[i]`, from 0, for `a` and `b` of one shape.
pub(super) fn linear_recurrence(
    a: &Tensor,
    b: &Tensor,
    axis: usize,
    reverse: bool,
) -> Result<Tensor> {
    dispatch(LinearRecurrence { axis, reverse }, &[a, b])
}

/// The axis and direction of a scan, which determine each element's neighbour.
#[derive(Clone, Copy)]
pub(super) struct Way {
    pub(super) axis: usize,
    pub(super) reverse: bool,
}

impl Way {
    /// All elements except the last of the scan, or except the first.
    fn part(self, x: &Tensor, first: bool) -> Result<Tensor> {
        let (mut begin, mut size) = (vec![0; x.rank()], vec![-1; x.rank()]);
        let front = first != self.reverse;
        begin[self.axis] = usize::from(!front);
        size[self.axis] = x.shape()[self.axis] as i64 - 1;
        x.slice(&begin, &size)
    }

    /// The tensor with a 0 appended at the end of the scan.
    fn with_zero(self, x: &Tensor) -> Result<Tensor> {
        let mut pads = vec![(0, 0); x.rank()];
        pads[self.axis] = if self.reverse { (1, 0) } else { (0, 1) };
        x.pad_with(&pads, PadMode::Constant(0.into()))
    }

    /// `f` of each element and the next one of the scan; 0 for the last.
    pub(super) fn neighbours(
        self,
        x: &Tensor,
        f: impl Fn(&Tensor, &Tensor) -> Result<Tensor>,
    ) -> Result<Tensor> {
        if x.shape()[self.axis] < 2 {
            return x.zeros_like();
        }
        self.with_zero(&f(&self.part(x, true)?, &self.part(x, false)?)?)
    }

    /// The next element of the scan; 0 for the last.
    pub(super) fn next(self, x: &Tensor) -> Result<Tensor> {
        if x.shape()[self.axis] < 2 {
            return x.zeros_like();
        }
        self.with_zero(&self.part(x, false)?)
    }

    pub(super) fn back(self) -> Way {
        Way { reverse: !self.reverse, ..self }
    }
}

#[derive(Debug, Attribute)]
#[op("LinearRecurrence")]
pub(crate) struct LinearRecurrence {
    axis: usize,
    reverse: bool,
}

impl LinearRecurrence {
    /// The same call on rows, which are along an additional first axis.
    pub(in crate::ops) fn of_rows(&self, a: &Tensor, b: &Tensor) -> Result<Tensor> {
        linear_recurrence(a, b, self.axis + 1, self.reverse)
    }
}

impl Op for LinearRecurrence {
    fn name(&self) -> &'static str {
        "LinearRecurrence"
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Spec> {
        same_dtype("LinearRecurrence", inputs[0], inputs[1])?;
        expect_dtype("LinearRecurrence", inputs[0], FLOATS)?;
        broadcast("LinearRecurrence", &inputs[0].shape, &inputs[1].shape)?;
        Ok(inputs[1].clone())
    }

    fn lower(&self, cx: &LoweringContext) -> Lowering {
        let code = Code {
            carried: "vec2<f32>",
            words: 2,
            identity: "A(1.0, 0.0)",
            combine: "A(a.x * b.x, a.y * b.x + b.y)",
            load: "A(f32(x0[at]), f32(x1[at]))",
            inputs: 2,
            result: "a.y",
        };
        let LinearRecurrence { axis, reverse } = *self;
        Scan { axis, exclusive: false, reverse, code }.lower(cx.output, cx.caps)
    }
}

impl Operation for LinearRecurrence {
    fn keep(&self) -> Keep {
        Keep::Both
    }

    // With g[i] = dy[i] + a[i+1] g[i+1]: db = g and da[i] = g[i] y[i-1].
    fn grad(&self, back: &Backward) -> Result<Grads> {
        let way = Way { axis: self.axis, reverse: self.reverse };
        let g = linear_recurrence(&way.next(back.x(0))?, back.dy, self.axis, !self.reverse)?;
        let db = || Ok(g.clone());
        back.both(&|| g.multiply(way.back().next(back.y())?), &db)
    }
}
