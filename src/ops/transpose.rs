//! `y[.., c_perm[k], ..] = x[.., c_k, ..]`: the axes in another order.

use smallvec::SmallVec;

use super::inventory::{Entry, OpKind, one};
use super::{Backward, Grads, Keep, Operation, only};
use crate::dtype::DType;
use crate::eager::dispatch;
use crate::error::{Error, Result, message};
use crate::graph::attributes::Attribute;
use crate::graph::lower::{Elementwise, Lowering, LoweringContext, View};
use crate::graph::{Op, Spec};
use crate::shape::{Axes, axis_index};
use crate::tensor::Tensor;

impl Tensor {
    /// Reorders the axes: axis `k` of the result is axis `perm[k]` of the tensor; `()` reverses the order.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// let x = tf::constant([[1, 2, 3], [4, 5, 6]])?;
    /// assert_eq!(x.transpose(())?.to_vec::<i32>()?, [1, 4, 2, 5, 3, 6]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Shape`] if `perm` is not a permutation of the axes.
    pub fn transpose(&self, perm: impl Into<Axes>) -> Result<Tensor> {
        let perm = perm.into().list.unwrap_or_default();
        let rank = self.rank();
        let mut order: SmallVec<[usize; 6]> = SmallVec::new();
        if perm.is_empty() {
            order.extend((0..rank).rev());
        }
        for &axis in &perm {
            let axis = axis_index("Transpose", axis, rank)?;
            if order.contains(&axis) {
                return Err(Error::Shape(message!(
                    "Transpose: axis {axis} occurs twice in the order {perm:?}; name each of the {rank} axes once."
                )));
            }
            order.push(axis);
        }
        if order.len() != rank {
            return Err(Error::Shape(message!(
                "Transpose: the order {perm:?} names {} axes and the tensor {:?} has {rank}; name each once.",
                order.len(),
                self.shape()
            )));
        }
        dispatch(Transpose { order }, &[self])
    }
}

#[derive(Debug, Attribute)]
#[op("Transpose")]
pub(crate) struct Transpose {
    order: SmallVec<[usize; 6]>,
}

impl Op for Transpose {
    fn name(&self) -> &'static str {
        "Transpose"
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Spec> {
        let sizes: Vec<usize> = self.order.iter().map(|&axis| inputs[0].shape[axis]).collect();
        Ok(Spec::new(sizes, inputs[0].dtype))
    }

    fn lower(&self, cx: &LoweringContext) -> Lowering {
        let own = cx.inputs[0].shape.strides();
        let strides: SmallVec<[i64; 6]> = self.order.iter().map(|&axis| own[axis]).collect();
        Elementwise::view(View::strided(0, &strides)).into()
    }
}

impl Operation for Transpose {
    fn keep(&self) -> Keep {
        Keep::Nothing
    }

    fn grad(&self, back: &Backward) -> Result<Grads> {
        let mut inverse = vec![0i64; self.order.len()];
        for (k, &axis) in self.order.iter().enumerate() {
            inverse[axis] = k as i64;
        }
        // An empty order would reverse the axes; a scalar has none.
        only(if inverse.is_empty() { back.dy.clone() } else { back.dy.transpose(&inverse)? })
    }
}

/// The inventory of this file.
pub(super) const ENTRIES: &[Entry] =
    &[Entry::new(OpKind::Kernel, "transpose", &["tf.transpose"], |c| {
        one(c.x()?.transpose(&c.ints("perm")?.unwrap_or_default()[..]))
    })
    .takes(&DType::ALL)
    .cases(|cases| {
        cases.of_shape("transpose", &[2, 3, 4], |x| x.transpose([2, 0, 1]));
        cases.of_shape("transpose around", &[3, 4], |x| x.transpose(()));
    })];
