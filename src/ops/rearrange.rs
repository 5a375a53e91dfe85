//! Moves rows to other positions: `y[b,i,n] = x[b,places[b,i],n]`, with a known inverse.
//!
//! The gradient of `gather` must sum rows that were gathered several times. Here no row is used twice, so the gradient
//! is the same op with both maps exchanged. [`inverse`] computes one from the other.

use super::inventory::{Entry, Gradient, OpKind, one};
use super::{Backward, Grads, Keep, Operation, no_grads, only};
use crate::dtype::DType;
use crate::eager::dispatch;
use crate::error::{Error, Result, message};
use crate::graph::attributes::Attribute;
use crate::graph::lower::{Bind, Kernel, Lowering, LoweringContext};
use crate::graph::{Op, Spec};
use crate::shape::Shape;
use crate::tensor::Tensor;
use crate::wgsl::shader;

/// Rows of `x` `[B, R, N]` at the indices `places` `[B, I]`; an index out of range returns zeros. `back` `[B, R]` is
/// the index of each row in the result, or a number out of range if it is not there.
pub(super) fn rearrange(x: &Tensor, places: &Tensor, back: &Tensor) -> Result<Tensor> {
    dispatch(Rearrange, &[x, places, back])
}

/// `[B, rows]` with `y[b, to[b, i]] = i`, from `to` `[B, I]`. Numbers of `to` out of range are ignored; each row must
/// occur exactly once.
pub(super) fn inverse(to: &Tensor, rows: usize) -> Result<Tensor> {
    dispatch(Inverse { rows }, &[to])
}

#[derive(Debug, Attribute)]
#[op("Rearrange")]
pub(crate) struct Rearrange;

impl Op for Rearrange {
    fn name(&self) -> &'static str {
        "Rearrange"
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Spec> {
        let (x, places) = (inputs[0], inputs[1]);
        Ok(Spec::new([x.shape[0], places.shape[1], x.shape[2]], x.dtype))
    }

    fn lower(&self, cx: &LoweringContext) -> Lowering {
        let (x, total) = (&cx.inputs[0].shape, cx.output.elements());
        Kernel::new("gather", shader!(include_str!("../../shaders/gather.wgsl")))
            .alias("T", cx.output.dtype)
            .constant("WG", 64)
            .read(Bind::Input(0))
            .read(Bind::Input(1))
            .write(Bind::Output)
            .param("outer", 1)
            .param("rows", x[1])
            .param("count", cx.inputs[1].shape[1])
            .param("inner", x[2])
            .param("total", total)
            .workgroups(total.div_ceil(64), 0)
            .into()
    }
}

impl Operation for Rearrange {
    fn keep(&self) -> Keep {
        Keep::Inputs
    }

    // dx[b,r] = dy[b,back[b,r]]
    fn grad(&self, back: &Backward) -> Result<Grads> {
        only(rearrange(back.dy, back.x(2), back.x(1))?)
    }
}

#[derive(Debug, Attribute)]
#[op("RearrangeInverse")]
pub(crate) struct Inverse {
    rows: usize,
}

impl Op for Inverse {
    fn name(&self) -> &'static str {
        "InvertPermutation"
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Spec> {
        Ok(Spec::new([inputs[0].shape[0], self.rows], DType::I32))
    }

    fn lower(&self, cx: &LoweringContext) -> Lowering {
        let (count, total) = (cx.inputs[0].shape[1], cx.inputs[0].elements());
        Kernel::new("inverse", shader!(include_str!("../../shaders/inverse.wgsl")))
            .constant("WG", 64)
            .read(Bind::Input(0))
            .write(Bind::Output)
            .param("count", count)
            .param("rows", self.rows)
            .param("total", total)
            .workgroups(total.div_ceil(64), 0)
            .into()
    }
}

impl Operation for Inverse {
    fn keep(&self) -> Keep {
        Keep::NoGradient("InvertPermutation: an index")
    }

    fn grad(&self, back: &Backward) -> Result<Grads> {
        no_grads(back)
    }
}

impl Tensor {
    /// Inverts a permutation of `0..n` (`i32`): `y[x[i]] = i`. The values are not checked, which would wait for the device:
    /// if they are no permutation, some elements of the result are arbitrary.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// assert_eq!(tf::constant([2, 0, 1])?.invert_permutation()?.to_vec::<i32>()?, [1, 2, 0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Shape`](crate::Error::Shape) if the rank is not 1; [`Error::DType`](crate::Error::DType) if the dtype is
    /// not `i32`.
    pub fn invert_permutation(&self) -> Result<Tensor> {
        super::expect_dtype("InvertPermutation", self.spec(), &[DType::I32])?;
        if self.rank() != 1 {
            return Err(Error::Shape(message!(
                "InvertPermutation: the tensor is {:?}; a permutation has one axis.",
                self.shape()
            )));
        }
        let n = self.len();
        inverse(&self.reshape_to([1, n].into())?, n)?.reshape_to(Shape::new(&[n]))
    }
}

/// The inventory of this file.
pub(super) const ENTRIES: &[Entry] =
    &[Entry::new(OpKind::Kernel, "invert_permutation", &["tf.math.invert_permutation"], |c| {
        one(c.x()?.invert_permutation())
    })
    .takes(&[DType::I32])
    .gradient(Gradient::None("InvertPermutation: an index"))
    .kernels(&[|make, dtype| {
        // Arbitrary numbers are no permutation: two invocations would write one element.
        let order = make(&[9], dtype).argsort(0)?;
        Ok(vec![order.invert_permutation()?])
    }])];
