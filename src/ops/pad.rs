//! Pads a tensor around and between its elements: `y[low + step * c] = x[c]`, and a constant elsewhere.

use ndarray::SliceInfoElem;
use smallvec::{SmallVec, smallvec};

use super::inventory::{Entry, OpKind, Stop, one};
use super::{Backward, Grads, Keep, Operation, concat, only};
use crate::dtype::{DType, Scalar};
use crate::eager::dispatch;
use crate::error::{Error, Result, message};
use crate::graph::attributes::Attribute;
use crate::graph::lower::{
    Arg, Elementwise, Lowering, LoweringContext, RuntimeOffset, Strided, Term, View, ViewAxis,
    Window,
};
use crate::graph::{Op, Runtime, RuntimeScalars, Spec};
use crate::tensor::Tensor;

/// The padding values.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum PadMode {
    /// A constant.
    Constant(Scalar),
    /// The tensor mirrored at its edge elements, which are not repeated.
    Reflect,
    /// The tensor mirrored at its edges, with the edge elements repeated.
    Symmetric,
}

impl Tensor {
    /// Pads each axis with zeros: `paddings[axis] = (before, after)`.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// let x = tf::constant([1, 2, 3])?;
    /// assert_eq!(x.pad(&[(1, 2)])?.to_vec::<i32>()?, [0, 1, 2, 3, 0, 0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Shape`] if there is not one pair for each axis.
    pub fn pad(&self, paddings: &[(usize, usize)]) -> Result<Tensor> {
        self.pad_with(paddings, PadMode::Constant(Scalar::Int(0)))
    }

    /// Like [`Tensor::pad`], with values other than zeros.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// let x = tf::constant([1, 2, 3])?;
    /// assert_eq!(x.pad_with(&[(2, 0)], tf::PadMode::Reflect)?.to_vec::<i32>()?, [3, 2, 1, 2, 3]);
    /// assert_eq!(x.pad_with(&[(0, 1)], tf::PadMode::Constant(7.into()))?.to_vec::<i32>()?, [1, 2, 3, 7]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Shape`] if there is not one pair for each axis, or a mirrored padding is larger than the tensor allows.
    pub fn pad_with(&self, paddings: &[(usize, usize)], mode: PadMode) -> Result<Tensor> {
        if paddings.len() != self.rank() {
            return Err(Error::Shape(message!(
                "Pad: {} pairs of paddings for a tensor of rank {} ({:?}); give one pair an axis.",
                paddings.len(),
                self.rank(),
                self.shape()
            )));
        }
        if let Some(far) = paddings.iter().find(|(low, high)| *low.max(high) > FARTHEST) {
            return Err(Error::Shape(message!(
                "Pad: the paddings {far:?} are wider than any tensor; an axis has at most {FARTHEST} positions."
            )));
        }
        let repeat = match mode {
            PadMode::Constant(value) => {
                let edges = paddings.iter().map(|&(low, high)| (low as i64, high as i64, 1));
                return pad_with(self, edges.collect(), value);
            }
            PadMode::Reflect => 0,
            PadMode::Symmetric => 1,
        };
        let mut padded = self.clone();
        for (axis, &(low, high)) in paddings.iter().enumerate() {
            let size = self.shape()[axis];
            if low.max(high) > (size + repeat).saturating_sub(1) && low.max(high) > 0 {
                return Err(Error::Shape(message!(
                    "MirrorPad: axis {axis} has the size {size}, so at most {} positions can be mirrored; the \
                     paddings are ({low}, {high}).",
                    (size + repeat).saturating_sub(1)
                )));
            }
            padded = mirror(&padded, axis, low, high, 1 - repeat)?;
        }
        Ok(padded)
    }
}

/// This size is far beyond every adapter's limits, so the tensor is rejected, and so small that sums of edges cannot
/// overflow.
const FARTHEST: usize = usize::MAX >> 16;

/// One axis of a mirrored padding; `skip` edge elements are not repeated.
fn mirror(x: &Tensor, axis: usize, low: usize, high: usize, skip: usize) -> Result<Tensor> {
    let size = x.shape()[axis];
    let part = |from: usize, len: usize| -> Result<Tensor> {
        let all = SliceInfoElem::Slice { start: 0, end: None, step: 1 };
        let mut indices = vec![all; x.rank()];
        indices[axis] = SliceInfoElem::Slice {
            start: from as isize,
            end: Some((from + len) as isize),
            step: -1,
        };
        x.strided_slice(indices)
    };
    let mut parts = Vec::new();
    if low > 0 {
        parts.push(part(skip, low)?);
    }
    parts.push(x.clone());
    if high > 0 {
        parts.push(part(size - skip - high, high)?);
    }
    concat(parts.iter().collect::<Vec<_>>(), axis as i64)
}

/// Pads with `(low, high, step)` along each axis: `step - 1` positions between neighbours; negative edges remove
/// elements.
pub(super) fn pad_with(
    x: &Tensor,
    edges: SmallVec<[(i64, i64, i64); 6]>,
    value: Scalar,
) -> Result<Tensor> {
    if edges.iter().all(|&edge| edge == (0, 0, 1)) {
        return Ok(x.clone());
    }
    let bits = value.bits("Pad", x.dtype())?;
    let axes = edges.iter().map(|&(low, high, step)| PaddedAxis {
        more: low + high,
        step,
        whole: (low, high, step) == (0, 0, 1),
        low: Runtime(low),
    });
    dispatch(Pad { axes: axes.collect(), bits: Runtime(bits) }, &[x])
}

/// The position of the elements may change without a new plan, as long as the sizes do not change.
#[derive(Debug, Attribute)]
#[op("Pad")]
pub(crate) struct Pad {
    axes: SmallVec<[PaddedAxis; 4]>,
    bits: Runtime<u32>,
}

#[derive(Debug, Attribute)]
struct PaddedAxis {
    /// The total padding before and after the elements.
    more: i64,
    /// The distance between neighbours in the result.
    step: i64,
    /// The axis does not change.
    whole: bool,
    /// The padding before the elements.
    low: Runtime<i64>,
}

impl Op for Pad {
    fn name(&self) -> &'static str {
        "Pad"
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Spec> {
        let sizes = self.axes.iter().zip(inputs[0].shape.iter()).map(|(axis, &size)| {
            let span = if size == 0 { 0 } else { (size as i64 - 1) * axis.step + 1 };
            (span + axis.more).max(0) as usize
        });
        Ok(Spec::new(sizes.collect::<Vec<_>>(), inputs[0].dtype))
    }

    fn runtime_scalars(&self) -> RuntimeScalars {
        let mut words: RuntimeScalars = smallvec![self.bits.0];
        words.extend(self.axes.iter().map(|axis| axis.low.0 as u32));
        words
    }

    fn lower(&self, cx: &LoweringContext) -> Lowering {
        let x = cx.inputs[0];
        let strides = x.shape.strides();
        let axes = self.axes.iter().enumerate().map(|(axis, own)| {
            let mut low = RuntimeOffset::default();
            low.add_term(Term::own(1 + axis, 1, 0));
            let window = Window { low, len: x.shape[axis] as i64, dilation: own.step };
            ViewAxis { stride: strides[axis], window: (!own.whole).then_some(window) }
        });
        let view = View::Strided(Strided { offset: 0.into(), axes: axes.collect() });
        let body = match x.dtype {
            DType::F32 | DType::F16 => "select(vec4<f32>(bitcast<f32>(value)), x, inside)",
            DType::I32 => "select(vec4<i32>(bitcast<i32>(value)), x, inside)",
            DType::U32 | DType::U8 => "select(vec4<u32>(value), x, inside)",
            DType::Bool => "select(vec4<bool>(value != 0u), x, inside)",
        };
        Elementwise::new("pad", body)
            .input("x", 0, view)
            .arg("inside", Arg::Inside { input: 0 })
            .arg("value", Arg::RuntimeScalar(0))
            .into()
    }
}

impl Operation for Pad {
    fn keep(&self) -> Keep {
        Keep::Nothing
    }

    fn grad(&self, back: &Backward) -> Result<Grads> {
        // Remove the edges, then take every step-th position. A removed edge is filled with zeros.
        let edges = self.axes.iter().map(|axis| (axis.low.0, axis.more - axis.low.0));
        let inner = if edges.clone().all(|(low, high)| low >= 0 && high >= 0) {
            let begin: SmallVec<[usize; 6]> = edges.map(|(low, _)| low as usize).collect();
            let sizes = back.dy.shape().iter().zip(&self.axes);
            let sizes: SmallVec<[i64; 6]> =
                sizes.map(|(&size, axis)| size as i64 - axis.more).collect();
            back.dy.slice(&begin, &sizes)?
        } else {
            let cut = edges.map(|(low, high)| (-low, -high, 1)).collect();
            pad_with(back.dy, cut, Scalar::Int(0))?
        };
        only(inner.take_steps(self.axes.iter().map(|axis| axis.step as usize))?)
    }
}

/// The inventory of this file.
pub(super) const ENTRIES: &[Entry] = &[Entry::new(OpKind::Kernel, "pad", &["tf.pad"], |c| {
    let mode = match c.need("mode", c.text("mode")?)?.as_str() {
        "CONSTANT" => {
            let value = c.scalars("constant_values")?.and_then(|values| values.first().copied());
            PadMode::Constant(value.unwrap_or_default())
        }
        "REFLECT" => PadMode::Reflect,
        "SYMMETRIC" => PadMode::Symmetric,
        _ => return Err(Stop::Lacks("mode".into())),
    };
    // Only `CONSTANT` uses the value.
    c.remark("constant_values");
    one(c.x()?.pad_with(&c.need("paddings", c.pairs("paddings")?)?, mode))
})
.forms(&["pad_with"])
.takes(&DType::ALL)
.cases(|cases| {
    cases.of_shape("pad", &[3, 4], |x| x.pad(&[(1, 0), (2, 3)]));
    let half = |x: &Tensor| x.pad_with(&[(1, 0), (2, 3)], PadMode::Constant(0.5.into()));
    cases.of_shape("pad_with a number", &[3, 4], half);
    cases.of_shape("pad_with reflection", &[3, 4], |x| {
        x.pad_with(&[(2, 1), (0, 3)], PadMode::Reflect)
    });
    cases.of_shape("pad_with symmetry", &[3, 4], |x| {
        x.pad_with(&[(2, 3), (1, 0)], PadMode::Symmetric)
    });
})];
