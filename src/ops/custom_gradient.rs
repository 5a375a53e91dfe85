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
    let results = Results { specs, leading: Shape::new(&[]), call: joint };
    let joint = results.call(inputs, rule)?;
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

/// Rules are recorded this deep in each other: a rule may call the function that it is the rule of. Each level is an order of the
/// derivatives that tapes around the recorded code can compute.
pub(crate) const DEPTH_OF_RULES: usize = 3;

/// The results of a function with a custom gradient.
#[derive(Clone, Debug)]
pub(crate) struct Results {
    /// Their shapes and dtypes, without the leading axes.
    pub(crate) specs: Vec<Spec>,
    /// The leading axes that all of them have, after the function was vectorized.
    pub(crate) leading: Shape,
    /// [`joint`], as a pointer: a program without custom gradients contains neither the op nor those that its gradient uses.
    call: fn(Results, &[&Tensor], Rule) -> Result<Tensor>,
}

impl Results {
    /// Calls the op of `inputs` that represents the results, whose gradients for `inputs` are computed by `rule`.
    pub(crate) fn call(&self, inputs: &[&Tensor], rule: Rule) -> Result<Tensor> {
        (self.call)(self.clone(), inputs, rule)
    }

    /// The results with an additional leading axis of this size.
    pub(crate) fn of_rows(&self, rows: usize) -> Results {
        let leading: Vec<usize> =
            std::iter::once(rows).chain(self.leading.iter().copied()).collect();
        Results { leading: Shape::new(&leading), ..self.clone() }
    }

    /// The shapes and dtypes with the leading axes.
    pub(crate) fn whole(&self) -> Vec<Spec> {
        self.specs.iter().map(|spec| with_leading(&self.leading, spec)).collect()
    }
}

fn with_leading(leading: &Shape, spec: &Spec) -> Spec {
    let sizes: Vec<usize> = leading.iter().chain(spec.shape.iter()).copied().collect();
    Spec::new(Shape::new(&sizes), spec.dtype)
}

fn joint(results: Results, inputs: &[&Tensor], rule: Rule) -> Result<Tensor> {
    let Results { specs, leading, .. } = results.clone();
    let output = dispatch(Joint { specs, leading, rule: Callback(Runtime(rule.clone())) }, inputs)?;
    eager::has_rule(&output, &results, &rule);
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
    leading: Shape,
    #[attribute(skip)]
    rule: Callback,
}

impl Op for Joint {
    fn name(&self) -> &'static str {
        "CustomGradient"
    }

    fn infer(&self, _: &[&Spec]) -> Result<Spec> {
        if let [only] = &self.specs[..] {
            return Ok(with_leading(&self.leading, &Spec::new(only.shape.clone(), DType::F32)));
        }
        let floats = self.specs.iter().filter(|y| y.dtype.is_float());
        let total = floats.map(Spec::elements).fold(0, usize::saturating_add);
        Ok(with_leading(&self.leading, &Spec::new([total], DType::F32)))
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
            let shape = with_leading(&self.leading, y).shape;
            if !y.dtype.is_float() {
                let zeros = back.dy.device().scope(|| Tensor::zeros(shape))?;
                return zeros.cast(y.dtype);
            }
            if self.specs.len() == 1 {
                return back.dy.cast(y.dtype);
            }
            // The last axis has the elements of all results.
            let (mut begin, mut size) = (vec![0; self.leading.len()], vec![-1; self.leading.len()]);
            begin.push(start);
            size.push(y.elements() as i64);
            start += y.elements();
            let part = back.dy.slice(&begin, &size)?;
            part.reshape_to(shape)?.cast(y.dtype)
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
