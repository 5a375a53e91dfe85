//! Attaches a custom gradient to a result that other ops have computed: a formula for the whole, which needs neither
//! their intermediate values nor their rules.

use std::fmt::Debug;

use super::super::{Backward, Grads, Keep, MatmulOptions, Operation, refuse};
use crate::eager::dispatch;
use crate::error::Result;
use crate::graph::attributes::{Attribute, OpAttributes, Value, Visitor};
use crate::graph::lower::{Lowering, LoweringContext};
use crate::graph::{Op, Spec};
use crate::tensor::Tensor;

/// The gradient rule of a result. The fields are the values that the rule depends on.
pub(crate) trait Rule: Debug + Attribute + Send + Sync + 'static {
    /// The name of the op in files.
    const KIND: &'static str;

    /// TensorFlow's name.
    const NAME: &'static str;

    /// The gradients of the arguments: the first input of `back` is the result itself, so they begin at 1.
    fn grad(&self, back: &Backward) -> Result<Grads>;
}

/// `y`, as the function of `arguments` that `rule` differentiates. The caller computes `y` from arguments through which
/// no gradient flows.
pub(super) fn ruled<R: Rule>(rule: R, y: &Tensor, arguments: &[&Tensor]) -> Result<Tensor> {
    let inputs = [&[y], arguments].concat();
    dispatch(Ruled(rule), &inputs)
}

/// The gradients of the arguments, as a rule returns them.
pub(super) fn of_arguments(grads: impl IntoIterator<Item = Option<Tensor>>) -> Result<Grads> {
    Ok(std::iter::once(None).chain(grads).collect())
}

/// The op that attaches a rule.
#[derive(Debug)]
pub(crate) struct Ruled<R>(R);

impl<R: Rule> Attribute for Ruled<R> {
    fn visit(&self, name: &'static str, visitor: &mut dyn Visitor) {
        self.0.visit(name, visitor);
    }

    fn read(value: &Value) -> std::result::Result<Self, String> {
        R::read(value).map(Ruled)
    }
}

impl<R: Rule> OpAttributes for Ruled<R> {
    const KIND: &'static str = R::KIND;
}

impl<R: Rule> Op for Ruled<R> {
    fn name(&self) -> &'static str {
        R::NAME
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Spec> {
        Ok(inputs[0].clone())
    }

    fn lower(&self, _: &LoweringContext) -> Lowering {
        Lowering::Alias
    }
}

impl<R: Rule> Operation for Ruled<R> {
    fn keep(&self) -> Keep {
        Keep::Both
    }

    fn grad(&self, back: &Backward) -> Result<Grads> {
        self.0.grad(back)
    }
}

/// The op that computed orthonormal columns.
#[derive(Debug, Clone, Copy, Attribute)]
pub(crate) enum Factorization {
    Qr,
    Svd,
}

impl Factorization {
    fn name(self) -> &'static str {
        match self {
            Factorization::Qr => "Qr",
            Factorization::Svd => "Svd",
        }
    }
}

/// `rest`, orthonormal columns `[.., M, M-N]` that complete those of `q` `[.., M, N]`, as a function of `q`. `op` is
/// the name of the op that computed them.
pub(super) fn completing(op: Factorization, rest: &Tensor, q: &Tensor) -> Result<Tensor> {
    ruled(Rest { op }, rest, &[q])
}

#[derive(Debug, Attribute)]
pub(crate) struct Rest {
    op: Factorization,
}

impl Rule for Rest {
    const KIND: &'static str = "OrthogonalComplementRule";
    const NAME: &'static str = "OrthogonalComplement";

    // A single column is unique except for its sign, and rotates with q: dr = -q dq^T r. Several columns are unique
    // only up to a rotation.
    fn grad(&self, back: &Backward) -> Result<Grads> {
        let shape = &back.spec(0).shape;
        let count = shape[shape.len() - 1];
        if count != 1 {
            return refuse(
                self.op.name(),
                &format!("with full_matrices the last {count} columns are not unique"),
                "call it without full_matrices",
            );
        }
        let of_q = back.dy.matmul_with(back.x(1), MatmulOptions::new().transpose_a(true))?;
        of_arguments([Some(back.y().matmul(of_q)?.negative()?)])
    }
}
