//! `y[(c + shift) mod n] = x[c]`: elements that leave an axis at its end re-enter at its beginning.

use smallvec::smallvec;

use super::inventory::{Entry, OpKind, one};
use super::{Backward, Grads, Keep, Operation, only};
use crate::dtype::DType;
use crate::eager::dispatch;
use crate::error::{Error, Result, message};
use crate::graph::attributes::Attribute;
use crate::graph::lower::{
    Arg, Elementwise, Lowering, LoweringContext, RuntimeOffset, Strided, Term, View, ViewAxis,
    Window,
};
use crate::graph::{Op, Runtime, RuntimeScalars, Spec};
use crate::shape::{Axes, axis_index};
use crate::tensor::Tensor;

impl Tensor {
    /// Shifts the elements along each of `axes` cyclically: `y[(c + shift) mod n] = x[c]`. If an axis occurs several
    /// times, its shifts add up.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// let x = tf::constant([[1, 2, 3], [4, 5, 6]])?;
    /// assert_eq!(x.roll(&[1], 1)?.to_vec::<i32>()?, [3, 1, 2, 6, 4, 5]);
    /// assert_eq!(x.roll(&[1, -1], [0, 1])?.to_vec::<i32>()?, [5, 6, 4, 2, 3, 1]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Shape`] if there is not one shift for each axis; [`Error::Index`] if an axis does not exist.
    pub fn roll(&self, shift: &[i64], axes: impl Into<Axes>) -> Result<Tensor> {
        let axes = axes.into().list.unwrap_or_default();
        if axes.len() != shift.len() {
            return Err(Error::Shape(message!(
                "Roll: the shifts {shift:?} and the axes {axes:?} must be equally many; name the axis of each shift."
            )));
        }
        let mut by = vec![0i64; self.rank()];
        for (&axis, &shift) in axes.iter().zip(shift) {
            let at = axis_index("Roll", axis, self.rank())?;
            // An axis of a tensor without elements may be longer than any shift.
            let size = i64::try_from(self.shape()[at]).unwrap_or(i64::MAX).max(1);
            by[at] = ((i128::from(by[at]) + i128::from(shift)).rem_euclid(i128::from(size))) as i64;
        }
        let mut rolled = self.clone();
        for (axis, &by) in by.iter().enumerate().filter(|(_, by)| **by > 0) {
            rolled = dispatch(Roll { axis, by: Runtime(by) }, &[&rolled])?;
        }
        Ok(rolled)
    }
}

/// One axis of a roll. The shift may change without a new plan.
#[derive(Debug, Attribute)]
#[op("Roll")]
pub(crate) struct Roll {
    axis: usize,
    /// At least 1, and less than the size of the axis.
    by: Runtime<i64>,
}

impl Op for Roll {
    fn name(&self) -> &'static str {
        "Roll"
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Spec> {
        Ok(inputs[0].clone())
    }

    fn runtime_scalars(&self) -> RuntimeScalars {
        smallvec![self.by.0 as u32]
    }

    fn lower(&self, cx: &LoweringContext) -> Lowering {
        let shape = &cx.inputs[0].shape;
        let strides = shape.strides();
        // The elements that are shifted, and those that re-enter at the beginning.
        let part = |first: i64| {
            let axes = strides.iter().enumerate().map(|(axis, &stride)| {
                let len = shape[axis] as i64;
                let mut low = RuntimeOffset::from(first * len);
                low.add_term(Term::own(0, 1, len));
                let window = Window { low, len, dilation: 1 };
                ViewAxis { stride, window: (axis == self.axis).then_some(window) }
            });
            View::Strided(Strided { offset: 0.into(), axes: axes.collect() })
        };
        Elementwise::new("roll", "select(back, on, inside)")
            .input("on", 0, part(0))
            .input("back", 0, part(-1))
            .arg("inside", Arg::Inside { input: 0 })
            .into()
    }
}

impl Operation for Roll {
    fn keep(&self) -> Keep {
        Keep::Nothing
    }

    fn grad(&self, back: &Backward) -> Result<Grads> {
        only(back.dy.roll(&[-self.by.0], self.axis)?)
    }
}

/// The inventory of this file.
pub(super) const ENTRIES: &[Entry] = &[Entry::new(OpKind::Kernel, "roll", &["tf.roll"], |c| {
    let axes = c.need("axis", c.ints("axis")?)?;
    one(c.x()?.roll(&c.need("shift", c.ints("shift")?)?, &axes[..]))
})
.takes(&DType::ALL)
.cases(|cases| {
    cases.of_shape("roll", &[3, 5], |x| x.roll(&[2], 1));
    cases.of_shape("roll of both axes", &[3, 5], |x| x.roll(&[1, -7, 1], [0, 1, 0]));
})];
