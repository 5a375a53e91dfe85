//! `y = condition ? a : b`, elementwise with broadcasting; TensorFlow's `tf.where`.

use super::inventory::{ANY, Entry, OpKind, one};
use super::{Backward, Grads, Keep, Operation, expect_dtype, same_dtype};
use crate::dtype::DType;
use crate::eager::dispatch;
use crate::error::Result;
use crate::graph::attributes::Attribute;
use crate::graph::lower::{Elementwise, Lowering, LoweringContext, SELECT, View};
use crate::graph::{Op, Spec};
use crate::shape::broadcast;
use crate::tensor::{Tensor, constant};

/// Selects the elements of `a` where `condition` is true and those of `b` elsewhere; all three broadcast together.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// let x = tf::constant([-1.0, 2.0])?;
/// let y = tf::where_(&x.greater(0.0)?, &x, &(&x * 10.0))?;
/// assert_eq!(y.to_vec::<f32>()?, [-10.0, 2.0]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::DType`](crate::Error::DType) if `condition` is not `bool` or `a` and `b` differ in dtype;
/// [`Error::Shape`](crate::Error::Shape) if the shapes cannot be broadcast together.
pub fn where_(condition: &Tensor, a: &Tensor, b: &Tensor) -> Result<Tensor> {
    dispatch(Select, &[condition, a, b])
}

#[derive(Debug, Attribute)]
#[op("Select")]
pub(crate) struct Select;

impl Op for Select {
    fn name(&self) -> &'static str {
        "SelectV2"
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Spec> {
        let (condition, a, b) = (inputs[0], inputs[1], inputs[2]);
        expect_dtype("SelectV2 (the condition)", condition, &[DType::Bool])?;
        same_dtype("SelectV2", a, b)?;
        let values = broadcast("SelectV2", &a.shape, &b.shape)?;
        let shape = broadcast("SelectV2 (condition and values)", &condition.shape, &values)?;
        Ok(Spec::new(shape, a.dtype))
    }

    fn lower(&self, cx: &LoweringContext) -> Lowering {
        let view = |i: usize| View::broadcast(cx.inputs[i], cx.output);
        Elementwise::new(SELECT, "select(b, a, condition)")
            .input("condition", 0, view(0))
            .input("a", 1, view(1))
            .input("b", 2, view(2))
            .into()
    }
}

impl Operation for Select {
    fn keep(&self) -> Keep {
        Keep::Inputs
    }

    fn grad(&self, back: &Backward) -> Result<Grads> {
        let (condition, dy) = (back.x(0), back.dy);
        let zero = super::fill(dy.device(), "Fill", Default::default(), 0.into(), dy.dtype())?;
        let mut grads = Grads::new();
        grads.push(None);
        for (i, [a, b]) in [(1, [dy, &zero]), (2, [&zero, dy])] {
            grads.push(if back.needs(i) { Some(where_(condition, a, b)?) } else { None });
        }
        Ok(grads)
    }
}

/// The inventory of this file.
pub(super) const ENTRIES: &[Entry] = &[Entry::new(OpKind::Kernel, "where_", &["tf.where"], |c| {
    let x = c.x()?;
    one(where_(c.arg("cond")?, x, c.arg("y")?))
})
.takes(&DType::ALL)
.cases(|cases| {
    cases.of_two("where_", [ANY, ANY], |a, b| where_(&constant([[true], [false], [true]])?, a, b));
})];
