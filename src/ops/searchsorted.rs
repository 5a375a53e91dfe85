//! The insertion positions of values in sorted rows.

use super::inventory::{Entry, Gradient, OpKind, Stop, one};
use super::{Backward, Grads, Keep, NUMERIC, Operation, expect_dtype, no_grads, same_dtype};
use crate::dtype::DType;
use crate::eager::dispatch;
use crate::error::{Error, Result, message};
use crate::graph::attributes::Attribute;
use crate::graph::lower::{Bind, Kernel, Lowering, LoweringContext};
use crate::graph::{Op, Spec};
use crate::shape::Shape;
use crate::tensor::Tensor;
use crate::wgsl::shader;

/// On which side of equal elements a value is inserted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Attribute)]
pub enum Side {
    /// Before them.
    #[default]
    Left,
    /// After them.
    Right,
}

impl Tensor {
    /// The indices (`i32`) at which `values` would be inserted in the tensor's rows, which must be sorted: `y[b,v]` is
    /// the number of elements of `x[b]` that are below `values[b,v]`, or, with [`Side::Right`], not above it. Rows are
    /// along the last axis; both tensors must have the same number of rows. In a row sorted by [`Tensor::sort`] NaN is
    /// after all numbers, but it cannot be searched for.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// let edges = tf::constant([-1.0, 0.0, 0.0, 5.0])?;
    /// let values = tf::constant([0.0, 9.0, -2.0])?;
    /// assert_eq!(edges.searchsorted(&values, tf::Side::Left)?.to_vec::<i32>()?, [1, 4, 0]);
    /// assert_eq!(edges.searchsorted(&values, tf::Side::Right)?.to_vec::<i32>()?, [3, 4, 0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Shape`] if one is a scalar or they have different numbers of rows; [`Error::DType`] if the dtypes differ
    /// or are not numeric.
    pub fn searchsorted(&self, values: &Tensor, side: Side) -> Result<Tensor> {
        expect_dtype("SearchSorted", self.spec(), NUMERIC)?;
        same_dtype("SearchSorted", self.spec(), values.spec())?;
        let (Some((&n, lead)), Some((&count, others))) =
            (self.shape().split_last(), values.shape().split_last())
        else {
            return Err(Error::Shape(message!(
                "SearchSorted: the rows are {:?} and the values {:?}; both need at least one axis.",
                self.shape(),
                values.shape()
            )));
        };
        let rows = Shape::new(lead).elements();
        if rows != Shape::new(others).elements() {
            return Err(Error::Shape(message!(
                "SearchSorted: the rows are {:?} and the values {:?}; all axes but the last must be as many rows.",
                self.shape(),
                values.shape()
            )));
        }
        let a = self.reshape_to([rows, n].into())?;
        let found = values.reshape_to([rows, count].into())?;
        dispatch(SearchSorted { side }, &[&a, &found])?.reshape_to(values.spec().shape.clone())
    }
}

#[derive(Debug, Attribute)]
#[op("SearchSorted")]
pub(crate) struct SearchSorted {
    side: Side,
}

impl Op for SearchSorted {
    fn name(&self) -> &'static str {
        if self.side == Side::Left { "LowerBound" } else { "UpperBound" }
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Spec> {
        Ok(Spec::new(inputs[1].shape.clone(), DType::I32))
    }

    fn lower(&self, cx: &LoweringContext) -> Lowering {
        let (a, values, total) = (cx.inputs[0], cx.inputs[1], cx.output.elements());
        let before = if self.side == Side::Left { "a < v" } else { "a <= v" };
        let steps = (usize::BITS - a.shape[1].leading_zeros()) as usize;
        Kernel::new("searchsorted", shader!(include_str!("../../shaders/searchsorted.wgsl")))
            .alias("T", a.dtype)
            .constant("WG", 64)
            .declare(format!("fn before(a: T, v: T) -> bool {{ return {before}; }}"))
            .read(Bind::Input(0))
            .read(Bind::Input(1))
            .write(Bind::Output)
            .param("len", a.shape[1])
            .param("count", values.shape[1])
            .param("total", total)
            .param("steps", steps)
            .workgroups(total.div_ceil(64), steps)
            .into()
    }
}

impl Operation for SearchSorted {
    fn keep(&self) -> Keep {
        Keep::NoGradient("SearchSorted: an index")
    }

    fn grad(&self, back: &Backward) -> Result<Grads> {
        no_grads(back)
    }
}

/// The inventory of this file.
pub(super) const ENTRIES: &[Entry] =
    &[Entry::new(OpKind::Kernel, "searchsorted", &["tf.searchsorted"], |c| {
        let side = match c.text("side")?.as_deref() {
            None | Some("left") => Side::Left,
            Some("right") => Side::Right,
            Some(_) => return Err(Stop::Lacks("side".into())),
        };
        one(c.arg("a")?.searchsorted(c.arg("v")?, side))
    })
    .takes(NUMERIC)
    .gradient(Gradient::None("SearchSorted: an index"))
    .kernels(&[|make, dtype| {
        let (a, v) = (make(&[2, 9], dtype), make(&[2, 5], dtype));
        Ok(vec![a.searchsorted(&v, Side::Left)?, a.searchsorted(&v, Side::Right)?])
    }])];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_those_of_partition_points() {
        for (rows, n, count) in [(1, 0, 3), (1, 1, 4), (3, 7, 10), (2, 1000, 501)] {
            let a: Vec<i32> = (0..rows * n).map(|i| (i % n.max(1) / 3) as i32 * 2).collect();
            let v: Vec<i32> = (0..rows * count).map(|i| (i as i32 * 37) % 700 - 3).collect();
            let sorted = Tensor::from_slice(&a, [rows, n]).unwrap();
            let values = Tensor::from_slice(&v, [rows, count]).unwrap();
            for side in [Side::Left, Side::Right] {
                let got = sorted.searchsorted(&values, side).unwrap().to_vec::<i32>().unwrap();
                for (i, &v) in v.iter().enumerate() {
                    let row = &a[i / count * n..][..n];
                    let below = |a: &i32| if side == Side::Left { *a < v } else { *a <= v };
                    assert_eq!(got[i] as usize, row.partition_point(below), "{rows} {n} {v}");
                }
            }
        }
    }
}
