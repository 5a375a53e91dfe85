//! Joins tensors along an axis.

use std::borrow::{Borrow, Cow};
use std::fmt::Write;

use super::inventory::{ANY, Entry, Input, OpKind, one};
use super::{Backward, Grads, Keep, Operation, same_dtype};
use crate::dtype::DType;
use crate::eager::dispatch;
use crate::error::{Error, Result, message};
use crate::graph::attributes::Attribute;
use crate::graph::lower::{
    Arg, Elementwise, Lowering, LoweringContext, Strided, View, ViewAxis, Window,
};
use crate::graph::{Op, Spec};
use crate::shape::{Axis, axis_index};
use crate::tensor::Tensor;
use crate::wgsl::Formula;

/// Concatenates the tensors along `axis`; their other axes must match.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// let (a, b) = (tf::constant([[1, 2]])?, tf::constant([[3, 4]])?);
/// let y = tf::concat([&a, &b], 0)?;
/// assert_eq!(y.shape(), [2, 2]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::Shape`] if the list is empty or the other axes differ; [`Error::DType`] if the dtypes differ; [`Error::Index`] if
/// the axis does not exist.
pub fn concat<T: Borrow<Tensor>>(values: impl AsRef<[T]>, axis: impl Into<Axis>) -> Result<Tensor> {
    let values: Vec<&Tensor> = values.as_ref().iter().map(Borrow::borrow).collect();
    concat_all(&values, axis.into())
}

fn concat_all(values: &[&Tensor], axis: Axis) -> Result<Tensor> {
    let Some(first) = values.first() else {
        return Err(Error::Shape("ConcatV2: no tensors were given; it needs at least one.".into()));
    };
    let axis = axis_index("ConcatV2", axis, first.rank())?;
    if values.len() == 1 {
        return Ok((*first).clone());
    }
    // One of the buffers that a kernel binds is the result.
    let at_once = AT_ONCE.min(first.device().caps().storage_buffers - 1);
    if values.len() > at_once {
        let parts: Result<Vec<Tensor>> =
            values.chunks(at_once).map(|chunk| concat(chunk, axis)).collect();
        return concat(&parts?, axis);
    }
    dispatch(Concat { axis }, values)
}

/// The number of inputs of one kernel if the adapter has WebGPU's minimum of eight storage buffers.
const AT_ONCE: usize = 7;

#[derive(Debug, Attribute)]
#[op("Concat")]
pub(crate) struct Concat {
    axis: usize,
}

impl Op for Concat {
    fn name(&self) -> &'static str {
        "ConcatV2"
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Spec> {
        let first = inputs[0];
        let mut sizes = first.shape.to_vec();
        sizes[self.axis] = 0;
        for x in inputs {
            same_dtype("ConcatV2", first, x)?;
            let fits = x.shape.len() == sizes.len()
                && (0..sizes.len()).all(|k| k == self.axis || x.shape[k] == first.shape[k]);
            if !fits {
                return Err(Error::Shape(message!(
                    "ConcatV2: along axis {} the first tensor is {} and another is {}; all axes but axis {0} must \
                     agree.",
                    self.axis,
                    first.shape,
                    x.shape
                )));
            }
            // A sum beyond `usize` saturates, and the device rejects the tensor because of its size.
            sizes[self.axis] = sizes[self.axis].saturating_add(x.shape[self.axis]);
        }
        Ok(Spec::new(sizes, first.dtype))
    }

    fn lower(&self, cx: &LoweringContext) -> Lowering {
        const NAMES: [(&str, &str); AT_ONCE] = [
            ("a", "in_a"),
            ("b", "in_b"),
            ("c", "in_c"),
            ("d", "in_d"),
            ("e", "in_e"),
            ("f", "in_f"),
            ("g", "in_g"),
        ];
        let mut body = String::from("a");
        let mut args: Vec<(Cow<str>, Arg)> = Vec::new();
        let mut low = 0;
        for (i, x) in cx.inputs.iter().enumerate() {
            let len = x.shape[self.axis] as i64;
            let strides = x.shape.strides();
            let axes = strides.iter().enumerate().map(|(axis, &stride)| ViewAxis {
                stride,
                window: (axis == self.axis).then_some(Window { low: low.into(), len, dilation: 1 }),
            });
            let view = View::Strided(Strided { offset: 0.into(), axes: axes.collect() });
            let (name, inside) = NAMES[i];
            args.push((name.into(), Arg::Input { input: i, view }));
            if i > 0 {
                args.push((inside.into(), Arg::Inside { input: i }));
                body.insert_str(0, "select(");
                let _ = write!(body, ", {name}, {inside})");
            }
            low += len;
        }
        Elementwise { name: "concat", formula: Formula::new(body), args }.into()
    }
}

impl Operation for Concat {
    fn keep(&self) -> Keep {
        Keep::Nothing
    }

    fn grad(&self, back: &Backward) -> Result<Grads> {
        let sizes: Vec<usize> = back.inputs.iter().map(|x| x.spec.shape[self.axis]).collect();
        let parts = back.dy.split_sizes(&sizes, self.axis as i64)?;
        let mut grads = Grads::new();
        for part in parts {
            grads.push(Some(part));
        }
        Ok(grads)
    }
}

/// The inventory of this file.
pub(super) const ENTRIES: &[Entry] = &[Entry::new(OpKind::Kernel, "concat", &["tf.concat"], |c| {
    one(concat(&c.list("xs")?, c.axis()?))
})
.takes(&DType::ALL)
.cases(|cases| {
    let three: [Input; 3] = [(&[2, 3], ANY), (&[2, 1], ANY), (&[2, 4], ANY)];
    cases.add("concat", &three, |x| concat([&x[0], &x[1], &x[2]], -1));
    cases.add("concat of many", &[(&[2, 3], ANY), (&[1, 3], ANY)], |x| {
        let all: Vec<&Tensor> = (0..9).map(|i| &x[i % 2]).collect();
        concat(&all, 0)
    });
})];
