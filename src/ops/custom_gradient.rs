//! Attaches the caller's gradient rule to a function's results: two ops that compute nothing.
//!
//! [`Joint`] has the function's arguments as inputs and represents all its results; [`Part`] is one result. In the
//! backward pass each part writes its gradient to its range of the joint's gradient, and the joint calls the rule.

use std::fmt;
use std::sync::Arc;

use super::{Backward, Grads, Keep, Operation};
use crate::dtype::DType;
use crate::eager::{self, dispatch};
use crate::error::{Error, Result, message};
use crate::graph::attributes::Attribute;
use crate::graph::identity::Runtime;
use crate::graph::lower::{Elementwise, Lowering, LoweringContext, View};
use crate::graph::{Op, Spec};
use crate::shape::Shape;
use crate::tensor::Tensor;

/// The gradients of the arguments from those of the results.
pub(crate) type Rule = Arc<dyn Fn(&[Tensor]) -> Result<Vec<Tensor>> + Send + Sync>;

/// `values`, whose gradients for `inputs` are computed by `rule`. `values` must not depend on `inputs` in another way.
pub(crate) fn with_gradient(
    values: &[Tensor],
    inputs: &[&Tensor],
    rule: Rule,
) -> Result<Vec<Tensor>> {
    if inputs.is_empty() {
        return Ok(values.to_vec());
    }
    let specs: Vec<Spec> = values.iter().map(|y| y.spec().clone()).collect();
    let joint = joint(specs, inputs, rule)?;
    let mut place = 0;
    let part = |y: &Tensor| {
        let start = place;
        if !y.dtype().is_float() {
            return Ok(y.stop_gradient());
        }
        place += y.len();
        dispatch(Part { start, alone: values.len() == 1 }, &[y, &joint])
    };
    values.iter().map(part).collect()
}

/// The op of `inputs` that represents results of these shapes and dtypes, whose gradients for `inputs` are computed by `rule`.
pub(crate) fn joint(specs: Vec<Spec>, inputs: &[&Tensor], rule: Rule) -> Result<Tensor> {
    let output =
        dispatch(Joint { specs: specs.clone(), rule: Callback(Runtime(rule.clone())) }, inputs)?;
    eager::has_rule(&output, &specs, &rule);
    Ok(output)
}

/// A rule, which is not part of an op's identity: no code depends on it.
struct Callback(Runtime<Rule>);

impl fmt::Debug for Callback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Callback")
    }
}

/// Represents all float results: a single one unchanged, several flattened and concatenated.
#[derive(Debug, Attribute)]
#[op("CustomGradient")]
pub(crate) struct Joint {
    specs: Vec<Spec>,
    #[attribute(skip)]
    rule: Callback,
}

impl Op for Joint {
    fn name(&self) -> &'static str {
        "CustomGradient"
    }

    fn infer(&self, _: &[&Spec]) -> Result<Spec> {
        if let [only] = &self.specs[..] {
            return Ok(Spec::new(only.shape.clone(), DType::F32));
        }
        let floats = self.specs.iter().filter(|y| y.dtype.is_float());
        let total = floats.map(Spec::elements).fold(0, usize::saturating_add);
        Ok(Spec::new([total], DType::F32))
    }

    // It is never read.
    fn lower(&self, _: &LoweringContext) -> Lowering {
        Elementwise::new("nothing", "vec4<f32>(0.0)").into()
    }
}

impl Operation for Joint {
    fn keep(&self) -> Keep {
        Keep::Nothing
    }

    fn grad(&self, back: &Backward) -> Result<Grads> {
        let mut start = 0;
        let mut own = |y: &Spec| -> Result<Tensor> {
            if !y.dtype.is_float() {
                let zeros = back.dy.device().scope(|| Tensor::zeros(y.shape.clone()))?;
                return zeros.cast(y.dtype);
            }
            if self.specs.len() == 1 {
                return back.dy.cast(y.dtype);
            }
            let part = back.dy.slice(&[start], &[y.elements() as i64])?;
            start += y.elements();
            part.reshape_to(y.shape.clone())?.cast(y.dtype)
        };
        let dys: Result<Vec<Tensor>> = self.specs.iter().map(&mut own).collect();
        let grads = (self.rule.0.0)(&dys?)?;
        if grads.len() != back.inputs.len() {
            return Err(Error::Gradient(message!(
                "CustomGradient: the rule gave {} gradients for {} arguments and variables; give one for each.",
                grads.len(),
                back.inputs.len()
            )));
        }
        for (i, (grad, x)) in grads.iter().zip(back.inputs).enumerate() {
            if x.spec.dtype.is_float() && *grad.spec() != x.spec {
                return Err(Error::Gradient(message!(
                    "CustomGradient: gradient {i} is {} {:?} and its argument {} {}; they must have one shape and dtype.",
                    grad.dtype(),
                    grad.shape(),
                    x.spec.dtype,
                    x.spec.shape
                )));
            }
        }
        Ok(grads.into_iter().map(Some).collect())
    }
}

/// The first input; its gradient goes to the second one's elements from `start` on.
#[derive(Debug, Attribute)]
#[op("CustomGradientResult")]
pub(crate) struct Part {
    start: usize,
    alone: bool,
}

impl Op for Part {
    fn name(&self) -> &'static str {
        "CustomGradientResult"
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Spec> {
        Ok(inputs[0].clone())
    }

    fn lower(&self, _: &LoweringContext) -> Lowering {
        Lowering::Alias
    }
}

impl Operation for Part {
    fn keep(&self) -> Keep {
        Keep::Nothing
    }

    fn grad(&self, back: &Backward) -> Result<Grads> {
        let dy = back.dy.cast(DType::F32)?;
        let joint = if self.alone {
            dy
        } else {
            let behind = back.spec(1).elements() - self.start - dy.len();
            dy.reshape_to(Shape::new(&[dy.len()]))?.pad(&[(self.start, behind)])?
        };
        Ok([None, Some(joint)].into_iter().collect())
    }
}

/// `x`, computed after `then`; nothing that was computed before is reused for it: code after it does not count as a
/// common subexpression of code before it.
pub(crate) fn after(x: &Tensor, then: &Tensor) -> Result<Tensor> {
    if x.is_empty() || then.is_empty() {
        return Ok(x.clone());
    }
    dispatch(After, &[x, then])
}

#[derive(Debug, Attribute)]
#[op("After")]
pub(crate) struct After;

impl Op for After {
    fn name(&self) -> &'static str {
        "OptimizationBarrier"
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Spec> {
        Ok(inputs[0].clone())
    }

    fn lower(&self, cx: &LoweringContext) -> Lowering {
        let first = View::strided(0, &vec![0; cx.output.shape.len()]);
        Elementwise::new("after", "x").input("x", 0, View::Same).input("then", 1, first).into()
    }
}

impl Operation for After {
    fn keep(&self) -> Keep {
        Keep::Nothing
    }

    fn grad(&self, back: &Backward) -> Result<Grads> {
        super::only(back.dy.clone())
    }
}
